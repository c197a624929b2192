// One-time codes: a browser exchanges one for the token, so that URLs never contain the token. Pure: the time
// is an argument.
#pragma once
#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace earshot::serve {

class OneTimeCodes {
 public:
  using Time = Clock::time_point;
  static constexpr std::size_t outstanding_max = 16;  // one more replaces the oldest
  static constexpr std::chrono::seconds good_for{60};

  /// 256 random bits as 64 hex digits.
  std::string make(Time now);
  /// True once, while the code is valid. Takes the same time for every text.
  bool take(std::string_view code, Time now);
  std::size_t outstanding(Time now) const;

 private:
  struct Code {
    std::string text;
    Time until;
  };
  std::deque<Code> codes_;  // oldest first
};

}  // namespace earshot::serve
