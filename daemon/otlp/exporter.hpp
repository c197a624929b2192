// Exports the daemon's events as OpenTelemetry traces, metrics and logs. It is an in-process client of the
// server: events that it cannot take now stay in the transcripts and are read from there later. What was
// exported is remembered by cursor in the state directory.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "otlp/config.hpp"
#include "otlp/metric_collector.hpp"
#include "otlp/position_file.hpp"
#include "otlp/sender.hpp"
#include "otlp/status_waits.hpp"
#include "otlp/stream_spans.hpp"
#include "serve/server.hpp"
#include "tail/stream.hpp"

namespace earshot::otlp {

struct ExporterMetrics {
  std::uint64_t exported = 0;  // spans and log records that the collector accepted
  std::uint64_t rejected = 0;  // that it rejected in a partial success
  std::uint64_t dropped = 0;   // of requests that it refused for good
  std::uint64_t expired = 0;   // older than `retain`
  std::uint64_t retries = 0;
  std::size_t pending = 0, pending_bytes = 0;  // not accepted yet
  double lag_seconds = 0;                      // age of the oldest of those
  std::string problem;                         // for users, or empty
};

/// All calls and callbacks run on the event loop's thread.
class Exporter final : private serve::InProcessListener {
 public:
  using ForEach = std::function<void(const std::function<void(const tail::Stream&)>&)>;

  // Above these events wait in the transcripts. One more batch of this size may be in flight. A request stays
  // well below 1 MiB, which is what common proxies accept.
  static constexpr std::size_t batch_bytes_max = 512 << 10, batch_items_max = 2048;
  // Of subagents whose parent is not known yet. Above it, or this long after all missed events were read,
  // they become roots.
  static constexpr std::size_t held_bytes_max = 4 << 20;
  static constexpr std::chrono::milliseconds held_max{10'000};
  static constexpr std::size_t subagents_max = 8192;  // whose spans are known; then the earliest is dropped

  /// `server`, and the streams that `for_each` visits (all known transcripts), must outlive the exporter.
  Exporter(boost::asio::io_context& io, boost::asio::any_io_executor disk, serve::Server& server,
           ForEach for_each, Config config, const std::string& state);
  ~Exporter() override;
  void start();
  void stop();
  /// After the loop and the disk threads. Waits shortly for the last response.
  void flush_positions();
  ExporterMetrics metrics() const;

 private:
  struct Stream {
    StreamSpans spans;
    Cursor last = begin_cursor;      // of the last event that was handled
    Cursor exported = begin_cursor;  // spans up to here were exported before the start
    std::int64_t newest_ms = 0;
    std::optional<SpanContext> stored_parent = {};  // of the turn at the anchor
    std::deque<std::string> held = {};              // frames that wait for the parent's span
    std::optional<Clock::time_point> held_since = {};
  };
  struct Batch {
    EncodedByHost spans, logs;
    std::size_t items = 0, bytes = 0;
    std::vector<std::pair<std::string, Position>> positions;  // reached when it is exported
    Clock::time_point begun;
  };
  enum class SignalKind { traces, logs };
  struct Signal {
    SignalKind kind;
    EncodedByHost items;
  };
  class Sink;

  bool has_room() const override;
  void on_frame(std::string_view payload) override;
  void on_event(const WireFrame& frame, std::string_view payload);
  void handle(const std::string& name, Stream& stream, const WireFrame& frame, std::string_view payload);
  void on_session(const WireFrame& frame);
  void on_status(const WireFrame& frame, const simdjson::dom::element& status);
  void add_ended_waits();
  void on_reset(const WireFrame& frame);
  void on_removed(const WireFrame& frame);

  void subscribe_all();
  void resubscribe();
  Stream& stream_of(std::string_view name);
  const SpanContext* parent_of(const Stream& stream, const WireFrame& frame) const;
  void add_subagent(std::string_view session, std::string_view key, const SpanContext& span);
  void release_held();
  void add_span(const Span& span, std::string_view host, std::string_view program);
  void add_log(const WireFrame& frame, std::int64_t newest_ms, std::string_view payload,
               const std::optional<SpanContext>& in);

  void flush();
  void flush_soon();
  void send_next();
  Request request(const Signal& signal) const;
  void on_response(Response response);
  void accept_last(const Response& response);
  void finish_batch();
  void commit(std::vector<std::pair<std::string, Position>> positions);
  struct Acceptance {     // by the collector, of traces and logs or of metrics
    std::string problem;  // empty: it accepts them
    bool is_retried = false;
  };
  static void set_problem(Acceptance& of, const std::string& problem, bool is_retried);
  void tick();
  void send_metrics();
  void send_metrics_now();
  SessionNumbers session_numbers();
  void read_headers_again();
  Request request(const std::string& url, std::string body) const;
  void call_after(Timer& timer, std::chrono::milliseconds delay, void (Exporter::*call)());

  boost::asio::io_context& io_;
  serve::Server& server_;
  const ForEach for_each_;
  const boost::asio::any_io_executor disk_;
  const Config config_;
  std::vector<std::string> headers_;  // of the configuration, or read again since
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
  PositionFile file_;
  FrameParser parser_;
  std::map<std::string, Stream, std::less<>> streams_;
  std::map<std::string, std::string, std::less<>> main_streams_;  // by session
  std::map<std::string, SpanContext, std::less<>> subagents_;     // by session and key
  std::deque<std::string> subagent_order_;
  StatusWaits waits_;
  std::set<std::string, std::less<>> touched_;  // streams with events since the last batch
  std::size_t held_bytes_ = 0;
  std::optional<Clock::time_point>
      caught_up_;  // when all missed events were read; the parents are among them
  bool subagent_added_ = false;

  Batch pending_;
  std::optional<Batch> in_flight_;
  std::deque<Signal> signals_;  // of it, not sent yet; the first one is being sent or retried
  std::chrono::milliseconds retry_delay_{0};
  Acceptance of_spans_, of_metrics_;

  MetricCollector collector_;

  std::shared_ptr<serve::InProcessClient> local_client_;
  Timer flush_timer_, retry_timer_, tick_timer_, metrics_timer_, unreadable_timer_;
  Sender sender_;
  std::unique_ptr<Sender> metrics_sender_;  // null: without metrics
  ExporterMetrics metrics_;
  std::uint64_t subscriptions_ = 0;
  bool stopped_ = false, flush_scheduled_ = false, resubscribe_pending_ = false;
};

}  // namespace earshot::otlp
