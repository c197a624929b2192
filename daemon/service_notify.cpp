#include "service_notify.hpp"

#ifdef EARSHOT_SYSTEMD
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstring>
#include <sstream>
#endif

#include <cstdint>

namespace earshot::service_notify {

#ifdef EARSHOT_SYSTEMD

void ready() { sd_notify(0, "READY=1"); }
void stopping() { sd_notify(0, "STOPPING=1"); }
void alive() { sd_notify(0, "WATCHDOG=1"); }

std::chrono::microseconds watchdog() {
  std::uint64_t usec = 0;
  if (sd_watchdog_enabled(0, &usec) <= 0) return std::chrono::microseconds(0);
  return std::chrono::microseconds(usec);
}

InheritedSocket inherited_socket() {
  const int count = sd_listen_fds(1);
  if (count == 0) return {};
  InheritedSocket inherited;
  if (count < 0) {
    inherited.error = std::string("LISTEN_FDS names no valid sockets: ") + std::strerror(-count);
    return inherited;
  }
  boost::asio::ip::tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  const bool one = count == 1 && (sd_is_socket(SD_LISTEN_FDS_START, AF_INET, SOCK_STREAM, 1) > 0 ||
                                  sd_is_socket(SD_LISTEN_FDS_START, AF_INET6, SOCK_STREAM, 1) > 0);
  if (!one || ::getsockname(SD_LISTEN_FDS_START, endpoint.data(), &size) != 0) {
    inherited.error = "the service manager passed " + std::to_string(count) +
                      " sockets: earshotd takes one listening TCP socket (ListenStream=127.0.0.1:7717)";
    return inherited;
  }
  endpoint.resize(size);
  std::ostringstream text;
  text << endpoint;
  inherited.descriptor = SD_LISTEN_FDS_START;
  inherited.listen = text.str();
  return inherited;
}

#else

void ready() {}
void stopping() {}
void alive() {}
std::chrono::microseconds watchdog() { return std::chrono::microseconds(0); }
InheritedSocket inherited_socket() { return {}; }

#endif

}  // namespace earshot::service_notify
