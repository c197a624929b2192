// Exports the daemon's events as OpenTelemetry traces, metrics and logs. It is an in-process client of the
// server that takes the events of a moment together, in slices, so that it delays no other client: events
// that it cannot take now stay in the transcripts and are read from there later. Of each stream the state
// directory has the last event that was exported. If the transcript does not contain it any more, the stream
// is exported again: the same events give the same ids.
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
#include <string_view>

#include "base/clock.hpp"
#include "otlp/config.hpp"
#include "otlp/metric_exporter.hpp"
#include "otlp/positions.hpp"
#include "otlp/requests.hpp"
#include "otlp/status_waits.hpp"
#include "otlp/stream_spans.hpp"
#include "otlp/uploader.hpp"
#include "serve/debounced_file.hpp"
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
class Exporter final : private serve::InProcessListener, private UploaderListener {
 public:
  using ForEach = std::function<void(const std::function<void(const tail::Stream&)>&)>;

  // Of subagents whose parent is not known yet. Above it, or this long after all missed events were read,
  // they become roots.
  static constexpr std::size_t held_bytes_max = 4 << 20;
  static constexpr std::chrono::milliseconds held_max{10'000};
  static constexpr std::size_t subagents_max = 8192;  // whose spans are known; then the earliest is dropped
  // Events are read this long after the first new one, in slices of about a millisecond.
  static constexpr std::chrono::milliseconds delivery_delay{100};
  static constexpr std::size_t slice_frames_max = 128, slice_bytes_max = 256 << 10;

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
    Stream() = default;
    /// Continues at the anchor.
    explicit Stream(const Position& from);
    Position position() const;
    /// Its events are sent from the first line; those up to `exported` are not exported again.
    void read_again();
    /// The transcript was rewritten: all its events are exported.
    void export_again();

    StreamSpans spans;
    Cursor last = begin_cursor;      // of the last event that was handled
    Cursor exported = begin_cursor;  // events up to here were exported before
    std::int64_t newest_ms = 0;
    std::int64_t counted_ms = 0;                    // spans that ended until then are in the metrics already
    std::optional<SpanContext> stored_parent = {};  // of the turn at the anchor
    std::deque<std::string> held = {};              // frames that wait for the parent's span
    std::optional<Clock::time_point> held_since = {};
    bool is_touched = false;  // it is in touched_
    bool is_removed = false;  // and did not return
  };
  using StreamMap = std::map<std::string, Stream, std::less<>>;
  class Sink;

  bool has_room() const override;
  void on_frame(std::string_view payload) override;
  void on_event(const WireFrame& frame, std::string_view payload);
  void handle(StreamMap::value_type& named, const WireFrame& frame, std::string_view payload);
  void on_session(const WireFrame& frame, const simdjson::dom::element& session);
  void on_status(const WireFrame& frame, const simdjson::dom::element& status);
  void add_ended_waits();
  void on_reset(const WireFrame& frame);
  void on_bookmark(const WireFrame& frame, const simdjson::dom::element& bookmark);

  void subscribe_all();
  void resubscribe();
  StreamMap::value_type& stream_of(std::string_view name);
  void on_removed(std::string_view name);
  void on_renamed(std::string_view session, std::string_view from, std::string_view to);
  void find_renamed();
  const SpanContext* parent_of(const Stream& stream, const WireFrame& frame) const;
  void add_subagent(std::string_view session, std::string_view key, const SpanContext& span);
  void drop_held(Stream& stream);
  void release_held();
  void add_span(const Span& span, std::string_view host, std::string_view program, std::int64_t counted_ms);
  void add_log(const WireFrame& frame, std::int64_t newest_ms, std::string_view payload,
               const std::optional<SpanContext>& in);

  StreamPositions take_positions() override;
  void on_done(StreamPositions positions) override;
  void on_room() override;
  void tick();
  void tick_later();
  void call_after(Timer& timer, std::chrono::milliseconds delay, void (Exporter::*call)());

  serve::Server& server_;
  const ForEach for_each_;
  const Config config_;
  Positions positions_;  // what was exported; events older than `retain` are not exported again
  serve::DebouncedFile file_;
  FrameParser parser_;
  StreamMap streams_;
  std::map<std::string, std::string, std::less<>> main_streams_;  // by session
  std::map<std::string, SpanContext, std::less<>> subagents_;     // by session and key
  std::deque<std::string> subagent_order_;
  StatusWaits waits_;
  std::set<std::string, std::less<>> touched_;  // streams with events since the last batch
  std::size_t held_bytes_ = 0;
  std::optional<Clock::time_point>
      caught_up_;  // when all missed events were read; the parents are among them
  bool subagent_added_ = false;

  std::shared_ptr<serve::InProcessClient> local_client_;
  Timer tick_timer_, unreadable_timer_, resubscribe_timer_;
  Requests requests_;
  Uploader uploader_;
  std::unique_ptr<MetricExporter> metric_exporter_;  // null: without metrics
  std::uint64_t expired_ = 0, subscriptions_ = 0;
  bool stopped_ = false, resubscribe_pending_ = false, is_ticking_ = false;
};

}  // namespace earshot::otlp
