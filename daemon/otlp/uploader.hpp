// Collects spans and log records in batches and sends these in their order, each until the collector has
// accepted or refused it.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "otlp/acceptance.hpp"
#include "otlp/positions.hpp"
#include "otlp/requests.hpp"
#include "otlp/retry.hpp"

namespace earshot::otlp {

using StreamPositions = std::vector<std::pair<std::string, Position>>;

/// Called from the loop. They outlive the uploader.
class UploaderListener {
 public:
  virtual ~UploaderListener() = default;
  /// Where the streams are with the data of the batch that is sent now.
  virtual StreamPositions take_positions() = 0;
  /// The batch is done: what leads up to these positions is not sent again.
  virtual void on_done(StreamPositions positions) = 0;
  /// has_room() may have become true.
  virtual void on_room() = 0;
};

/// All calls on the event loop's thread.
class Uploader {
 public:
  // One more batch of this size may be in flight. A request stays well below 1 MiB, which is what common
  // proxies accept.
  static constexpr std::size_t batch_bytes_max = 512 << 10, batch_items_max = 2048;

  struct Counts {
    std::uint64_t exported = 0, rejected = 0, dropped = 0, retries = 0;
    std::size_t pending = 0, pending_bytes = 0;
    double lag_seconds = 0;
  };

  /// `seed`: of the delays between attempts.
  Uploader(boost::asio::io_context& io, const Config& config, Requests& requests, UploaderListener& listener,
           std::uint64_t seed);

  bool has_room() const { return pending_.bytes < batch_bytes_max && pending_.items < batch_items_max; }
  void add_span(std::string_view host, std::string encoded);
  void add_log(std::string_view host, std::string encoded);
  /// To be done with the next batch, whose data leads up to it.
  void add_position(std::string stream, Position position);
  /// Sends after a delay, or soon if no more events fit.
  void flush_soon();

  /// No more request. What was not accepted is not counted as done.
  void stop();
  /// After the loop: waits shortly for the last response.
  void finish();

  const std::string& problem() const { return acceptance_.problem(); }
  Counts counts() const;

 private:
  struct Batch {
    EncodedByHost spans, logs;
    std::size_t items = 0, bytes = 0;
    StreamPositions positions;  // reached when it is exported
    Clock::time_point begun;
  };
  struct Signal {
    const SignalConfig* config;
    EncodedByHost items;
  };

  void add(EncodedByHost& to, std::string_view host, std::string encoded);
  void flush();
  void send_next();
  void on_response(const Response& response);
  void accept_last(const Response& response);
  void finish_batch();
  void call_after(Timer& timer, std::chrono::milliseconds delay, void (Uploader::*call)());

  boost::asio::io_context& io_;
  const Config& config_;
  Requests& requests_;
  UploaderListener& listener_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
  Batch pending_;
  std::optional<Batch> in_flight_;
  std::deque<Signal> signals_;  // of it, not sent yet; the first one is being sent or retried
  Backoff backoff_;
  Acceptance acceptance_;
  Counts counts_;  // without the pending ones
  Timer flush_timer_, retry_timer_;
  bool stopped_ = false, flush_scheduled_ = false;
  Sender sender_;
};

}  // namespace earshot::otlp
