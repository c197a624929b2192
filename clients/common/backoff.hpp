// How long to wait before trying again: longer each time, and partly by chance, so that a thousand clients do
// not come back at once.
#pragma once
#include <algorithm>
#include <cstdint>
#include <random>

namespace earshot::common {

class Backoff {
 public:
  static constexpr std::int64_t first_ms = 250;
  static constexpr std::int64_t max_ms = 10'000;

  /// Half of it for certain, half by chance; the next one is twice as long.
  std::int64_t next_ms() {
    const std::int64_t ms = ms_ / 2 + std::uniform_int_distribution<std::int64_t>(0, ms_ / 2)(random_);
    ms_ = std::min(ms_ * 2, max_ms);
    return ms;
  }
  void reset() { ms_ = first_ms; }

 private:
  std::int64_t ms_ = first_ms;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace earshot::common
