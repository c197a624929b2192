#include "startup.hpp"

#include <spdlog/spdlog.h>

#include "serve/websocket/acceptor.hpp"

namespace earshot {
namespace {

using serve::AuthError;
using serve::UnixError;
using serve::UnixListener;

/// The default path may belong to another daemon or may not exist: then the socket is in the state directory.
std::variant<UnixListener, UnixError> open_socket(const config::Options& options) {
  auto socket = UnixListener::open(options.socket);
  const auto* error = std::get_if<UnixError>(&socket);
  const std::string own = options.state + "/sock";
  if (!error || options.socket_given || options.socket == own) return socket;
  spdlog::warn("{}; using {} instead", error->text, own);
  return UnixListener::open(own);
}

/// The socket was not configured explicitly, so TCP alone is enough.
UnixListener without_socket(const UnixError& error) {
  spdlog::warn("{}; without a Unix socket, clients connect by TCP with the token", error.text);
  return {};
}

}  // namespace

std::variant<StartupResources, std::string> acquire_startup_resources(const config::Options& options) {
  if (std::string error = make_private_directory(options.state); !error.empty()) return error;
  auto lock = serve::StateLock::acquire(options.state);
  if (const auto* error = std::get_if<AuthError>(&lock)) return error->text;
  if (const std::string& warning = std::get<0>(lock).warning(); !warning.empty())
    spdlog::warn("{}; clients are served, but nothing is stored in this directory", warning);
  auto secrets = serve::load_secrets(options.state, options.metrics_token_file);
  if (const auto* error = std::get_if<AuthError>(&secrets)) return error->text;
  for (const std::string& each : std::get<0>(secrets).set_aside) spdlog::warn("{}", each);
  std::unique_ptr<boost::asio::ssl::context> tls;
  if (!options.tls_cert.empty()) {
    auto loaded = serve::load_tls(options.tls_cert, options.tls_key);
    if (const auto* error = std::get_if<AuthError>(&loaded)) return error->text;
    tls = std::get<0>(std::move(loaded));
  }
  auto socket = open_socket(options);
  if (const auto* error = std::get_if<UnixError>(&socket)) {
    if (options.socket_given || error->live) return error->text;
    socket = without_socket(*error);
  }
  return StartupResources{std::get<0>(std::move(secrets)), std::get<0>(std::move(lock)),
                          std::get<0>(std::move(socket)), std::move(tls)};
}

}  // namespace earshot
