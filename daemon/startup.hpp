// Everything the daemon acquires before it serves: state directory lock, secrets, Unix socket, certificate.
#pragma once
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
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

}  // namespace earshot
