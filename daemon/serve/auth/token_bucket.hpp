// How often something may happen: so many at once, then so many a second. Pure: the clock is an argument.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/clock.hpp"

namespace earshot::serve {

class TokenBucket {
 public:
  using Time = watch::Clock::time_point;

  TokenBucket(std::size_t per_second, std::size_t burst)
      : per_second_(static_cast<double>(per_second)), burst_(static_cast<double>(burst)), left_(burst_) {}

  /// False: too often.
  bool take(Time now) {
    if (last_ != Time())
      left_ = std::min(burst_, left_ + std::chrono::duration<double>(now - last_).count() * per_second_);
    last_ = now;
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  double per_second_, burst_, left_;
  Time last_;
};

}  // namespace earshot::serve
