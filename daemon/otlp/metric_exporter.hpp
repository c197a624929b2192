// Sends the metrics of all hosts at an interval.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "otlp/acceptance.hpp"
#include "otlp/metric_collector.hpp"
#include "otlp/requests.hpp"
#include "serve/server.hpp"

namespace earshot::otlp {

/// The metrics of each host of a hub are a resource of their own. All calls on the event loop's thread.
class MetricExporter {
 public:
  static constexpr std::size_t hosts_max = 64;                 // further ones together are the host `(other)`
  static constexpr std::size_t request_bytes_max = 512 << 10;  // longer ones are several

  /// `before_collecting`: for the spans that on_span() is still to get of present events.
  MetricExporter(boost::asio::io_context& io, const Config& config, Requests& requests, serve::Server& server,
                 std::function<void()> before_collecting);
  void start();
  /// Sends the metrics since the last interval.
  void stop();
  /// After the loop: waits shortly for the last response.
  void finish();
  /// Each span once.
  void on_span(const Span& span, std::string_view program, std::string_view host);
  const std::string& problem() const { return acceptance_.problem(); }

 private:
  MetricCollector& collector_of(std::string_view host);
  std::string host_label(std::string_view host) const;
  std::map<std::string, SessionNumbers> session_numbers();
  std::deque<EncodedByHost> collect(std::size_t bytes_max);
  void send();
  void send_next();
  void on_response(const Response& response);

  const Config& config_;
  Requests& requests_;
  serve::Server& server_;
  const std::function<void()> before_collecting_;
  const std::int64_t start_ms_ = wall_now_ms();
  std::map<std::string, MetricCollector, std::less<>> collectors_;  // by host
  std::deque<EncodedByHost> unsent_;                                // of this interval
  Acceptance acceptance_;
  Timer timer_;
  bool stopped_ = false;
  Sender sender_;
};

}  // namespace earshot::otlp
