// The limits of connections, and their names in [limits] of earshot.toml, /v1/health and /metrics.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "serve/stream/subscription.hpp"

namespace earshot::serve {

/// Defaults. limit_rules() describes each limit and what happens there.
struct Limits {
  using ms = std::chrono::milliseconds;

  // Connections and requests
  std::size_t connections_max = 1100, reserved_connections = 32, refusals_max = 64;
  std::size_t unauthenticated_max = 200;  // connections
  std::size_t request_bytes_max = 8 << 10, target_bytes_max = 4 << 10, body_bytes_max = 4 << 10;
  std::size_t requests_max = 1000, response_bytes_max = 16 << 20;
  ms handshake{5000}, keep_alive{15000}, answer{30000};

  // Messages and frames
  std::size_t inbound_bytes_max_anonymous = 4 << 10, inbound_bytes_max = 1 << 20;
  std::size_t messages_per_second = 100, messages_burst = 400;
  std::size_t own_bytes_max = 1 << 20;
  std::size_t write_bytes_max = 256 << 10;  // the longest wait of a control frame
  int send_buffer_bytes = 128 << 10;        // autotuning holds megabytes for an idle client
  ms hello{5000}, ping{20000}, silence{40000}, stall{30000}, goodbye{1000}, stop{75};
  ms state{250}, tick{1000}, heartbeat{30'000}, bookmark{10'000};

  // Subscriptions
  std::size_t subscriptions_max = 32, after_entries = 20'000, missed_streams = 65'536;
  std::size_t patterns_max = Filter::patterns_max, pattern_bytes_max = Filter::pattern_bytes_max;
  std::size_t catch_up_bytes = 16 << 20, catch_up_folds = 2, catch_up_parked = 32, catch_up_a_reader = 2;
  ms catch_up_patience{500};
  std::size_t reads = 4, reads_waiting = 64, record_part_bytes = 64 << 10;
};

/// Of TLS handshakes of a peer, which cost the daemon milliseconds each. Above it connections are closed.
constexpr std::size_t handshakes_per_second = 20, handshakes_burst = 100, handshake_peers_max = 1024;

struct LimitRule {
  using Member = std::variant<std::size_t Limits::*, int Limits::*, std::chrono::milliseconds Limits::*>;
  enum class Unit { count, bytes, duration };

  std::string_view name;
  Member member;
  std::uint64_t min, max;        // durations in milliseconds
  std::string_view description;  // and what happens at the limit

  /// Sizes have names that end in `_bytes`.
  Unit unit() const {
    if (std::holds_alternative<std::chrono::milliseconds Limits::*>(member)) return Unit::duration;
    return name.ends_with("_bytes") ? Unit::bytes : Unit::count;
  }
};

std::span<const LimitRule> limit_rules();
std::uint64_t limit_value(const Limits& limits, const LimitRule& rule);
/// `value` is within the rule's bounds.
void set_limit(Limits& limits, const LimitRule& rule, std::uint64_t value);

/// Every limit by name with its unit: `connections`, `write_bytes`, `ping_ms`.
std::vector<std::pair<std::string, std::uint64_t>> limit_values(const Limits& limits);

}  // namespace earshot::serve
