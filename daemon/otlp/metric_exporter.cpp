#include "otlp/metric_exporter.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/quantities.hpp"
#include "otlp/retry.hpp"
#include "serve/stream/frames.hpp"

namespace earshot::otlp {
namespace {

constexpr std::chrono::milliseconds metrics_wait_max{2000};  // at the stop

}  // namespace

MetricExporter::MetricExporter(boost::asio::io_context& io, const Config& config, Requests& requests,
                               serve::Server& server, std::function<void()> before_collecting)
    : config_(config),
      requests_(requests),
      server_(server),
      before_collecting_(std::move(before_collecting)),
      timer_(io),
      sender_(io) {}

void MetricExporter::start() {
  timer_.expires_after(config_.metric_interval);
  timer_.async_wait([this](boost::system::error_code ec) {
    if (ec || stopped_) return;
    start();
    before_collecting_();
    send();
  });
}

/// In one request, because no response will be followed by another.
void MetricExporter::stop() {
  if (std::exchange(stopped_, true)) return;
  timer_.cancel();
  if (!acceptance_.problem().empty() || sender_.is_busy()) return;
  before_collecting_();
  unsent_ = collect(SIZE_MAX);
  send_next();
}

void MetricExporter::finish() { sender_.finish(metrics_wait_max); }

std::string MetricExporter::host_label(std::string_view host) const {
  const bool is_known = collectors_.contains(host);
  return std::string(is_known || collectors_.size() < hosts_max ? host : MetricCollector::other);
}

MetricCollector& MetricExporter::collector_of(std::string_view host) {
  if (const auto known = collectors_.find(host); known != collectors_.end()) return known->second;
  const std::string label = host_label(host);
  return collectors_.try_emplace(label, start_ms_, label).first->second;
}

void MetricExporter::on_span(const Span& span, std::string_view program, std::string_view host) {
  collector_of(host).on_span(span, program);
}

std::map<std::string, SessionNumbers> MetricExporter::session_numbers() {
  std::map<std::string, SessionNumbers> by_host;
  const serve::ServerContext& context = server_.context();
  const auto numbers_of = [&](std::string_view host) -> SessionNumbers& {
    collector_of(host);
    return by_host[host_label(host)];
  };
  const auto numbers_at = [&](const std::string& host) -> SessionNumbers& {
    return numbers_of(host.empty() ? context.host : host);
  };
  for (const auto& [key, usd] : server_.cost_by_program())
    numbers_at(key.first).usd_by_program[key.second] += usd;
  for (const auto& [key, tokens] : server_.tokens()) numbers_at(key.first).tokens[key.second] += tokens;
  context.sessions.for_each([&](const serve::Session& session) {
    if (!serve::is_live(session, context.recent)) return;
    SessionNumbers& numbers = numbers_of(context.host_of(session.name));
    if (session.status && !session.status->state.empty()) ++numbers.by_state[session.status->state];
    for (const LimitState* limit : serve::limits_of(session)) {
      for (const LimitWindow& window : limit->windows) {
        const auto resets = parse_time(window.resets_at);
        if (!window.used_percent || (resets && *resets <= wall_now_ms())) continue;
        const auto same = std::find_if(numbers.limits.begin(), numbers.limits.end(), [&](const auto& each) {
          return each.program == session.program && each.limit == limit->limit && each.window == window.name;
        });
        if (same != numbers.limits.end())
          same->used_ratio = std::max(same->used_ratio, *window.used_percent / 100);
        else if (numbers.limits.size() < MetricCollector::limits_max)
          numbers.limits.push_back({session.program, limit->limit, window.name, *window.used_percent / 100});
      }
    }
  });
  return by_host;
}

/// The metrics of all hosts, in parts of about this size.
std::deque<EncodedByHost> MetricExporter::collect(std::size_t bytes_max) {
  std::deque<EncodedByHost> parts;
  std::size_t bytes = 0;
  const std::map<std::string, SessionNumbers> numbers = session_numbers();
  for (auto& [host, collector] : collectors_) {
    const auto found = numbers.find(host);
    for (const Metric& metric :
         collector.collect(found == numbers.end() ? SessionNumbers() : found->second, wall_now_ms())) {
      if (metric.points.empty()) continue;
      std::string encoded = encode_metric(metric);
      if (parts.empty() || bytes + encoded.size() > bytes_max) parts.emplace_back(), bytes = 0;
      bytes += encoded.size();
      parts.back()[host].push_back(std::move(encoded));
    }
  }
  return parts;
}

void MetricExporter::send() {
  if (sender_.is_busy()) return;
  unsent_ = collect(request_bytes_max);
  send_next();
}

void MetricExporter::send_next() {
  if (unsent_.empty()) return;
  std::string body = encode_request(unsent_.front(), config_.resource);
  unsent_.pop_front();
  sender_.send(requests_.make(config_.metrics, std::move(body)),
               [this](const Response& response) { on_response(response); });
}

/// A failed request is not repeated: the next one has the same totals.
void MetricExporter::on_response(const Response& response) {
  const bool is_done = response.status >= 200 && response.status <= 299 && !is_retryable(response);
  if (is_unauthorized(response.status)) requests_.read_headers_again();
  if (is_done) {
    acceptance_.accepted();
    if (!stopped_) send_next();
    return;
  }
  unsent_.clear();
  acceptance_.refused("the collector does not accept metrics: " + reason_of(response), true);
}

}  // namespace earshot::otlp
