// systemd's notification protocol (sd_notify, socket activation). Without systemd these functions do nothing.
#pragma once
#include <chrono>
#include <string>

namespace earshot::service_notify {

void ready();
void stopping();

/// How often alive() must be called; zero: no watchdog.
std::chrono::microseconds watchdog();
void alive();

/// A listening TCP socket that the service manager opened (ListenStream=); -1: none.
struct InheritedSocket {
  int descriptor = -1;
  std::string listen;  // ADDR:PORT, as for --listen
  std::string error;   // for the user; the socket cannot be used
};
InheritedSocket inherited_socket();

}  // namespace earshot::service_notify
