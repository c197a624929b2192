#include "notify.hpp"

#ifdef EARSHOT_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include <cstdint>

namespace earshot::notify {

#ifdef EARSHOT_SYSTEMD

void ready() { sd_notify(0, "READY=1"); }
void stopping() { sd_notify(0, "STOPPING=1"); }
void alive() { sd_notify(0, "WATCHDOG=1"); }

std::chrono::microseconds watchdog() {
  std::uint64_t usec = 0;
  if (sd_watchdog_enabled(0, &usec) <= 0) return std::chrono::microseconds(0);
  return std::chrono::microseconds(usec);
}

#else

void ready() {}
void stopping() {}
void alive() {}
std::chrono::microseconds watchdog() { return std::chrono::microseconds(0); }

#endif

}  // namespace earshot::notify
