#include "service_notify.hpp"

#ifdef EARSHOT_SYSTEMD
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstring>
#include <sstream>
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

HandedOver handed_over() {
  const int count = sd_listen_fds(1);
  if (count == 0) return {};
  HandedOver given;
  if (count < 0) {
    given.error = std::string("LISTEN_FDS: no such sockets were handed over: ") + std::strerror(-count);
    return given;
  }
  boost::asio::ip::tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  const bool one = count == 1 && (sd_is_socket(SD_LISTEN_FDS_START, AF_INET, SOCK_STREAM, 1) > 0 ||
                                  sd_is_socket(SD_LISTEN_FDS_START, AF_INET6, SOCK_STREAM, 1) > 0);
  if (!one || ::getsockname(SD_LISTEN_FDS_START, endpoint.data(), &size) != 0) {
    given.error = "the service manager handed over " + std::to_string(count) +
                  " sockets: one is understood, a TCP socket that listens (ListenStream=127.0.0.1:7717)";
    return given;
  }
  endpoint.resize(size);
  std::ostringstream text;
  text << endpoint;
  given.descriptor = SD_LISTEN_FDS_START;
  given.listen = text.str();
  return given;
}

#else

void ready() {}
void stopping() {}
void alive() {}
std::chrono::microseconds watchdog() { return std::chrono::microseconds(0); }
HandedOver handed_over() { return {}; }

#endif

}  // namespace earshot::notify
