// What the process needs before it serves: the log on stderr, systemd's notification protocol, and all
// resources (state directory lock, secrets, Unix socket, certificate).
#pragma once
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "config/options.hpp"
#include "serve/auth/secrets.hpp"
#include "serve/websocket/acceptor.hpp"

namespace earshot {

struct StartupResources {
  serve::Secrets secrets;
  serve::StateLock lock;
  serve::UnixListener socket;
  std::unique_ptr<boost::asio::ssl::context> tls;  // null: plain TCP, on loopback only
};

/// All resources, or an error message for the user.
std::variant<StartupResources, std::string> acquire_startup_resources(const config::Options& options);

/// Configures spdlog. Control characters are escaped: messages contain file names, which are untrusted.
/// `level`: trace, debug, info, warn, error, off. The logger `audit` writes at every level but `off`.
void start_log(const std::string& level);

}  // namespace earshot

// Without systemd these functions do nothing.
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
