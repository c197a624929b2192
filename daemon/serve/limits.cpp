#include "serve/limits.hpp"

namespace earshot::serve {
namespace {

constexpr std::uint64_t ki = 1024, mi = 1024 * ki;
constexpr std::uint64_t second = 1000, minute = 60 * second, hour = 60 * minute;

constexpr LimitRule rules[] = {
    {"connections", &Limits::connections_max, 1, 100'000},
    {"refusals", &Limits::refusals_max, 1, 10'000},
    {"request_bytes", &Limits::request_bytes_max, ki, mi},
    {"target_bytes", &Limits::target_bytes_max, 256, mi},
    {"body_bytes", &Limits::body_bytes_max, 256, mi},
    {"requests", &Limits::requests_max, 1, 1'000'000},
    {"stranger_bytes", &Limits::inbound_bytes_max_anonymous, 256, mi},
    {"inbound_bytes", &Limits::inbound_bytes_max, 4 * ki, 64 * mi},
    {"subscriptions", &Limits::subscriptions_max, 1, 32},
    {"patterns", &Limits::patterns_max, 1, Filter::patterns_max},
    {"pattern_bytes", &Limits::pattern_bytes_max, 1, Filter::pattern_bytes_max},
    {"messages_per_second", &Limits::messages_per_second, 1, 1'000'000},
    {"messages_burst", &Limits::messages_burst, 1, 1'000'000},
    {"own_bytes", &Limits::own_bytes_max, 64 * ki, 64 * mi},
    {"write_bytes", &Limits::write_bytes_max, 4 * ki, 4 * mi},
    {"send_buffer_bytes", &Limits::send_buffer_bytes, 4 * ki, 16 * mi},
    {"handshake_ms", &Limits::handshake, 100, 10 * minute},
    {"hello_ms", &Limits::hello, 100, 10 * minute},
    {"keep_alive_ms", &Limits::keep_alive, 100, hour},
    {"answer_ms", &Limits::answer, 100, hour},
    {"ping_ms", &Limits::ping, 100, hour},
    {"silence_ms", &Limits::silence, 200, hour},
    {"stall_ms", &Limits::stall, 100, hour},
    {"goodbye_ms", &Limits::goodbye, 10, minute},
    {"stop_ms", &Limits::stop, 10, 10 * minute},
    {"state_ms", &Limits::state, 10, minute},
    {"tick_ms", &Limits::tick, 10, 10 * second},
    {"bookmark_ms", &Limits::bookmark, 10, hour},
    {"after_entries", &Limits::after_entries, 1, 1'000'000},
    {"missed_streams", &Limits::missed_streams, 1, 10'000'000},
    {"catch_up_bytes", &Limits::catch_up_bytes, 256 * ki, 1024 * mi},
    {"catch_up_folds", &Limits::catch_up_folds, 1, 16},
    {"catch_up_parked", &Limits::catch_up_parked, 1, 10'000},
    {"catch_up_a_reader", &Limits::catch_up_a_reader, 1, 16},
    {"catch_up_patience_ms", &Limits::catch_up_patience, 1, minute},
    {"reads", &Limits::reads, 1, 1000},
    {"reads_waiting", &Limits::reads_waiting, 1, 10'000},
    {"record_part_bytes", &Limits::record_part_bytes, 4 * ki, mi},
};

}  // namespace

std::span<const LimitRule> limit_rules() { return rules; }

std::uint64_t limit_value(const Limits& limits, const LimitRule& rule) {
  struct Visitor {
    const Limits& limits;
    std::uint64_t operator()(std::size_t Limits::*member) const { return limits.*member; }
    std::uint64_t operator()(int Limits::*member) const { return static_cast<std::uint64_t>(limits.*member); }
    std::uint64_t operator()(std::chrono::milliseconds Limits::*member) const {
      return static_cast<std::uint64_t>((limits.*member).count());
    }
  };
  return std::visit(Visitor{limits}, rule.member);
}

void set_limit(Limits& limits, const LimitRule& rule, std::uint64_t value) {
  struct Visitor {
    Limits& limits;
    std::uint64_t value;
    void operator()(std::size_t Limits::*member) const { limits.*member = value; }
    void operator()(int Limits::*member) const { limits.*member = static_cast<int>(value); }
    void operator()(std::chrono::milliseconds Limits::*member) const {
      limits.*member = std::chrono::milliseconds(value);
    }
  };
  std::visit(Visitor{limits, value}, rule.member);
}

std::vector<std::pair<std::string, std::uint64_t>> limit_values(const Limits& limits) {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  for (const LimitRule& rule : rules) all.emplace_back(rule.name, limit_value(limits, rule));
  return all;
}

}  // namespace earshot::serve
