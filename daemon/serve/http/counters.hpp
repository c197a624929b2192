// Counters since the start, for /metrics.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

namespace earshot::serve {

/// Why a client or request was refused.
enum class Refusal {
  connections,
  peer,
  host_or_origin,
  token,
  code,
  too_often,
  unreadable,
  too_long,
  too_slow
};
constexpr std::array<std::string_view, 9> refusal_names = {"connections", "peer",     "host_or_origin",
                                                           "token",       "code",     "too_often",
                                                           "unreadable",  "too_long", "too_slow"};

/// Why the daemon closed a connection.
enum class Ending { stalled, silent, no_hello, too_often, token_changed };
constexpr std::array<std::string_view, 5> ending_names = {"stalled", "silent", "no_hello", "too_often",
                                                          "token_changed"};

struct Counters {
  std::array<std::uint64_t, refusal_names.size()> refusals{};
  std::array<std::uint64_t, ending_names.size()> endings{};
  std::map<unsigned, std::uint64_t> answers;  // by HTTP status
  std::uint64_t connections = 0, bytes_in = 0, bytes_out = 0, messages = 0;
  std::uint64_t lagged = 0;  // `lagged` and catch-ups after eviction

  void refuse(Refusal why) { ++refusals[static_cast<std::size_t>(why)]; }
  void end(Ending why) { ++endings[static_cast<std::size_t>(why)]; }
};

}  // namespace earshot::serve
