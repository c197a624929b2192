// What a daemon must have for itself before it may serve: secrets, its state directory, its socket, its
// certificate.
#pragma once
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
#include <variant>

#include "config/options.hpp"
#include "serve/auth/secrets.hpp"
#include "serve/websocket/unix_listener.hpp"

namespace earshot {

struct StartupResources {
  serve::Secrets secrets;
  serve::StateLock lock;
  serve::UnixListener socket;
  std::unique_ptr<boost::asio::ssl::context> tls;  // null: what listens is plain, on loopback
};

/// All of it, or what is wrong, for people.
std::variant<StartupResources, std::string> acquire_startup_resources(const Options& options);

}  // namespace earshot
