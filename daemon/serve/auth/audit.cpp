#include "serve/auth/audit.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstring>
#include <memory>

namespace earshot::serve {

void Audit::begin(Transport::Socket& socket, TransportKind transport_kind) {
  address_ = transport_kind == TransportKind::unix_socket ? "the Unix socket" : "an unknown address";
  if (transport_kind == TransportKind::unix_socket) return;
  boost::system::error_code ec;
  const auto peer = socket.remote_endpoint(ec);
  boost::asio::ip::tcp::endpoint tcp;
  if (ec || peer.size() > tcp.capacity()) return;  // disconnected
  std::memcpy(tcp.data(), peer.data(), peer.size());
  tcp.resize(peer.size());
  const auto address = tcp.address();
  address_ = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  address_ += ":" + std::to_string(tcp.port());
}

void Audit::log_change(std::string_view who, std::string_view what, std::string_view result) {
  const std::string line = std::string(who) + '\n' + std::string(result);
  if (line != last_) log(who, what, result);
}

void Audit::log(std::string_view who, std::string_view what, std::string_view result) {
  if (address_.empty()) return;
  last_ = std::string(who) + '\n' + std::string(result);
  // A logger of its own, which only the level `off` silences (log.cpp); tests may have none.
  auto logger = spdlog::get("audit");
  if (!logger) logger = spdlog::default_logger();
  logger->info("audit: {} from {} requests {} and {}", who, address_, what, result);
}

}  // namespace earshot::serve
