// One-time codes: a browser trades one for the token, so that the token is in no URL. Pure: the clock is an
// argument.
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
  using Time = watch::Clock::time_point;
  static constexpr std::size_t outstanding_max = 16;  // one more: the oldest goes
  static constexpr std::chrono::seconds good_for{60};

  /// 256 bits from the system, 64 hex digits.
  std::string make(Time now);
  /// True once, and only while it is good. In a time that does not depend on how nearly right it is.
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
