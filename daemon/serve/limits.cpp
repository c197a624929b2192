#include "serve/limits.hpp"

#include <type_traits>

namespace earshot::serve {
namespace {

using Duration = std::chrono::milliseconds Limits::*;

constexpr std::uint64_t ki = 1024, mi = 1024 * ki;
constexpr std::uint64_t second = 1000, minute = 60 * second, hour = 60 * minute;

constexpr LimitRule rules[] = {
    {"connections", &Limits::connections_max, 1, 100'000,
     "Connections in total; above it the unauthenticated one that is longest in its state is closed, then "
     "503 is answered"},
    {"reserved_connections", &Limits::reserved_connections, 1, 10'000,
     "Further connections of the Unix socket; then 503"},
    {"refusals", &Limits::refusals_max, 1, 10'000,
     "Connections waiting for their 503; further ones are closed at once"},
    {"request_bytes", &Limits::request_bytes_max, ki, mi, "Head of an HTTP request; longer: 431"},
    {"target_bytes", &Limits::target_bytes_max, 256, mi, "Path and query of a request; longer: 414"},
    {"body_bytes", &Limits::body_bytes_max, 256, mi, "Body of a request; longer: 413"},
    {"requests", &Limits::requests_max, 1, 1'000'000, "Requests per connection; the last answer closes it"},
    {"unauthenticated_bytes", &Limits::inbound_bytes_max_anonymous, 256, mi,
     "A message before authentication; longer: close 1009"},
    {"inbound_bytes", &Limits::inbound_bytes_max, 4 * ki, 64 * mi,
     "A message after authentication; longer: close 1009"},
    {"subscriptions", &Limits::subscriptions_max, 1, 32, "Subscriptions per connection; more: error `limit`"},
    {"patterns", &Limits::patterns_max, 1, Filter::patterns_max,
     "Patterns per filter key; more: error `bad_filter`"},
    {"pattern_bytes", &Limits::pattern_bytes_max, 1, Filter::pattern_bytes_max,
     "Size of a pattern; longer: error `bad_filter`"},
    {"messages_per_second", &Limits::messages_per_second, 1, 1'000'000,
     "Messages and HTTP requests per second and connection, after the burst; more: close 4429 or 429"},
    {"messages_burst", &Limits::messages_burst, 1, 1'000'000, "Messages at once"},
    {"own_bytes", &Limits::own_bytes_max, 64 * ki, 64 * mi,
     "Unsent answers of a connection; its next message waits for them"},
    {"write_bytes", &Limits::write_bytes_max, 4 * ki, 4 * mi, "Size of one write"},
    {"send_buffer_bytes", &Limits::send_buffer_bytes, 4 * ki, 16 * mi, "SO_SNDBUF of a connection"},
    {"handshake", &Limits::handshake, 100, 10 * minute, "Time to send an HTTP head; then closed"},
    {"hello", &Limits::hello, 100, 10 * minute, "Time from the upgrade to a valid token; then close 4501"},
    {"keep_alive", &Limits::keep_alive, 100, hour,
     "Idle time between requests, without a token at most `handshake`; then closed"},
    {"response_bytes", &Limits::response_bytes_max, 64 * ki, 4096 * mi,
     "HTTP responses that clients have not read, a quarter of it for clients without a token; above it: 503"},
    {"answer", &Limits::answer, 100, hour, "Time for a client to read an HTTP answer; then dropped"},
    {"ping", &Limits::ping, 100, hour, "Silence before a client is pinged"},
    {"silence", &Limits::silence, 200, hour, "Silence before a client is dropped; more than `ping`"},
    {"stall", &Limits::stall, 100, hour, "Time without read progress; then close 4408"},
    {"close", &Limits::goodbye, 10, minute, "Time for a client to answer a close frame; then dropped"},
    {"stop", &Limits::stop, 10, 10 * minute,
     "Time at shutdown to send what is pending and to answer the close frame; then dropped"},
    {"state", &Limits::state, 10, minute, "Interval between frames of one session with `deliver: state`"},
    {"tick", &Limits::tick, 10, 10 * second, "Resolution of these times"},
    {"heartbeat", &Limits::heartbeat, 100, hour, "Idle time before a heartbeat is sent"},
    {"bookmark", &Limits::bookmark, 10, hour, "Interval between bookmarks of a connection"},
    {"after_entries", &Limits::after_entries, 1, 1'000'000,
     "Cursors in one `subscribe`; more: error `limit`"},
    {"missed_streams", &Limits::missed_streams, 1, 10'000'000,
     "Streams a lagging client catches up on; more: `lagged`"},
    {"catch_up_bytes", &Limits::catch_up_bytes, 256 * ki, 1024 * mi,
     "Catch-up events in memory; above it the oldest are dropped and read again"},
    {"catch_up_folds", &Limits::catch_up_folds, 1, 16, "Transcripts read for catch-up at a time"},
    {"catch_up_parked", &Limits::catch_up_parked, 1, 10'000,
     "Catch-up reads waiting for slow clients; above it the oldest starts again"},
    {"catch_up_a_reader", &Limits::catch_up_a_reader, 1, 16, "Streams a client catches up on at a time"},
    {"catch_up_patience", &Limits::catch_up_patience, 1, minute,
     "Wait for the slower clients of a shared catch-up read"},
    {"reads", &Limits::reads, 1, 1000, "Records in memory for `read` requests; others wait"},
    {"reads_waiting", &Limits::reads_waiting, 1, 10'000,
     "Waiting `read` requests per connection; more: error `busy`"},
    {"record_part_bytes", &Limits::record_part_bytes, 4 * ki, mi, "Record text per frame"},
};

}  // namespace

std::span<const LimitRule> limit_rules() { return rules; }

std::uint64_t limit_value(const Limits& limits, const LimitRule& rule) {
  const auto value_of = [&](auto member) -> std::uint64_t {
    if constexpr (std::is_same_v<decltype(member), Duration>)
      return static_cast<std::uint64_t>((limits.*member).count());
    else
      return static_cast<std::uint64_t>(limits.*member);
  };
  return std::visit(value_of, rule.member);
}

void set_limit(Limits& limits, const LimitRule& rule, std::uint64_t value) {
  const auto assign = [&](auto member) {
    limits.*member = std::remove_reference_t<decltype(limits.*member)>(value);
  };
  std::visit(assign, rule.member);
}

std::vector<std::pair<std::string, std::uint64_t>> limit_values(const Limits& limits) {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  for (const LimitRule& rule : rules) {
    const bool is_duration = rule.unit() == LimitRule::Unit::duration;
    all.emplace_back(std::string(rule.name) + (is_duration ? "_ms" : ""), limit_value(limits, rule));
  }
  return all;
}

}  // namespace earshot::serve
