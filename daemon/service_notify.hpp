// A word to and from the service manager, where there is one: systemd's sd_notify and its sockets.
// Without it, nothing happens.
#pragma once
#include <chrono>
#include <string>

namespace earshot::notify {

void ready();
void stopping();

/// How often alive() is expected; zero: nobody watches.
std::chrono::microseconds watchdog();
void alive();

/// A TCP socket that the manager opened for us (ListenStream=) and that listens; -1: none.
struct HandedOver {
  int descriptor = -1;
  std::string listen;  // ADDR:PORT, as --listen has it
  std::string error;   // for people; it cannot be used
};
HandedOver handed_over();

}  // namespace earshot::notify
