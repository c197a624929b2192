#include "base/clock.hpp"

namespace earshot {

Clock::time_point Clock::now() noexcept { return std::chrono::steady_clock::now(); }

Clock::duration Clock::sleep(duration until_due) noexcept { return until_due; }

std::chrono::nanoseconds wall_now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace earshot
