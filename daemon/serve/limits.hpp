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

struct Limits {
  using ms = std::chrono::milliseconds;
  std::size_t connections_max = 1100;       // more are answered 503
  std::size_t refusals_max = 64;            // connections waiting for their 503; more are closed at once
  std::size_t request_bytes_max = 8 << 10;  // header of an HTTP request; longer: 431
  std::size_t inbound_bytes_max_anonymous = 4 << 10;  // message before authentication; longer: close 1009
  std::size_t inbound_bytes_max = 1 << 20;            // message after authentication; longer: close 1009
  std::size_t subscriptions_max = 32;                 // per connection; more: error `limit`
  std::size_t own_bytes_max = 1 << 20;                // unsent answers; its next message waits for them
  std::size_t write_bytes_max = 256 << 10;            // one write, the longest wait of a control frame
  int send_buffer_bytes = 128 << 10;  // SO_SNDBUF: autotuning holds megabytes for an idle client
  ms handshake{5000};                 // to receive a request; then closed
  ms hello{5000};                     // from the upgrade to a valid token; then close 4501
  ms ping{20000};                     // without a byte from the client: ping
  ms silence{40000};                  // without a byte from the client: dropped
  ms stall{30000};                    // without progress of a write: close 4408
  ms goodbye{1000};                   // for the client to answer a close frame; then dropped
  ms stop{1500};                      // to send pending frames when stopping; then dropped
  ms state{250};                      // between two frames of one session for `deliver: state`
  ms tick{1000};                      // interval of the checks of these times

  std::size_t body_bytes_max = 4 << 10;                       // body of a request; longer: 413
  std::size_t target_bytes_max = 4 << 10;                     // path and query; longer: 414
  std::size_t requests_max = 1000;                            // per connection; the last response closes it
  ms keep_alive{15000};                                       // between requests; then closed
  ms answer{30000};                                           // for a client to read a response; then dropped
  std::size_t messages_per_second = 100;                      // and requests per connection, after the burst;
  std::size_t messages_burst = 400;                           // more: close 4429, or 429
  std::size_t patterns_max = Filter::patterns_max;            // per filter key; more: error `bad_filter`
  std::size_t pattern_bytes_max = Filter::pattern_bytes_max;  // longer: error `bad_filter`
  std::size_t after_entries = 20'000;                         // per `subscribe`; more: error `limit`
  std::size_t missed_streams = 65'536;                        // that a client catches up on; more: `lagged`
  std::size_t catch_up_bytes = 16 << 20;     // of unsent events from files; above it the oldest are
                                             // dropped and read again
  std::size_t catch_up_folds = 2;            // read at a time; the others wait
  std::size_t catch_up_parked = 32;          // waiting for their readers; above it the oldest starts again
  std::size_t catch_up_a_reader = 2;         // streams at a time per client
  ms catch_up_patience{500};                 // for the slower readers of a fold; then they get their own
  std::size_t reads = 4;                     // records in memory; the others wait
  std::size_t reads_waiting = 64;            // per connection; more: error `busy`
  std::size_t record_part_bytes = 64 << 10;  // record text per frame
  ms heartbeat{30'000};                      // without a frame to the client: `heartbeat`
  ms bookmark{10'000};                       // between bookmarks of a connection
};

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
