// A word to the service manager, where there is one: systemd's sd_notify. Without it, nothing happens.
#pragma once
#include <chrono>

namespace earshot::notify {

void ready();
void stopping();

/// How often alive() is expected; zero: nobody watches.
std::chrono::microseconds watchdog();
void alive();

}  // namespace earshot::notify
