// What time it is. One seam, so that a simulated machine can have a time of its own: everything that waits,
// ages or compares times asks here.
#pragma once
#include <boost/asio/basic_waitable_timer.hpp>
#include <chrono>
#include <cstdint>

namespace earshot::watch {

/// Never jumps, whatever is done to the machine's date; for intervals. Its times are those of the steady
/// clock.
struct Clock {
  using duration = std::chrono::steady_clock::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
  /// How long the loop may sleep until it must look at the clock again.
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

/// The date, since 1970; for what is compared with the times of files. It may jump.
std::chrono::nanoseconds wall_now() noexcept;
inline std::int64_t wall_now_ms() noexcept { return wall_now() / std::chrono::milliseconds(1); }

}  // namespace earshot::watch
