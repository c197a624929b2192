// When a request is sent again. Pure.
#pragma once
#include <chrono>
#include <cstdint>
#include <random>
#include <string>

#include "otlp/sender.hpp"

namespace earshot::otlp {

/// Doubling delays with equal jitter: at least half of each, so that daemons that lost their collector
/// together do not return together.
class Backoff {
 public:
  static constexpr std::chrono::milliseconds delay_min{500}, delay_max{30'000};
  static constexpr std::chrono::milliseconds asked_max{600'000};  // of Retry-After

  /// The same seed gives the same delays.
  explicit Backoff(std::uint64_t seed) : random_(seed) {}
  /// Between half of the present delay and all of it; at least `asked`, cut to `asked_max`.
  std::chrono::milliseconds next(std::chrono::milliseconds asked = {});
  /// After an answer.
  void reset() { delay_ = {}; }

 private:
  std::mt19937_64 random_;
  std::chrono::milliseconds delay_{};
};

/// A token that is not valid (any more): the headers may have been corrected.
bool is_unauthorized(long status);
/// Errors that do not concern the data, which is kept until the network, the collector or the setup is
/// corrected: no answer, OTLP's retryable responses, and the answers of a wrong token, endpoint or proxy.
bool is_retryable(const Response& response);
/// For users: why `response` is retried or is a refusal.
std::string reason_of(const Response& response);

}  // namespace earshot::otlp
