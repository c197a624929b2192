// The current time. Defined in base/system.cpp, which the simulator replaces: use these and not std::chrono's
// clocks for waiting, ages and comparisons with file times.
#pragma once
#include <boost/asio/basic_waitable_timer.hpp>
#include <chrono>
#include <cstdint>

namespace earshot {

/// A monotonic clock for intervals, with the time points of std::chrono::steady_clock.
struct Clock {
  using duration = std::chrono::steady_clock::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
  /// How long the event loop may sleep before it reads the clock again.
  static duration sleep(duration until_due) noexcept;
};

struct WaitTraits {
  static Clock::duration to_wait_duration(const Clock::duration& until_due) {
    return Clock::sleep(until_due);
  }
  static Clock::duration to_wait_duration(const Clock::time_point& due) {
    const Clock::time_point now = Clock::now();
    return Clock::sleep(due > now ? due - now : Clock::duration::zero());
  }
};

using Timer = boost::asio::basic_waitable_timer<Clock, WaitTraits>;

/// The time since 1970 by the wall clock, which may jump; for comparisons with the times of files.
std::chrono::nanoseconds wall_now() noexcept;
inline std::int64_t wall_now_ms() noexcept { return wall_now() / std::chrono::milliseconds(1); }

}  // namespace earshot
