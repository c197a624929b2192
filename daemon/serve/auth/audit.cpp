#include "serve/auth/audit.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstring>
#include <memory>

namespace earshot::serve {

void Audit::begin(Transport::Socket& socket, TransportKind transport_kind) {
  from_ = transport_kind == TransportKind::unix_socket ? "the Unix socket" : "somewhere";
  if (transport_kind == TransportKind::unix_socket) return;
  boost::system::error_code ec;
  const auto peer = socket.remote_endpoint(ec);
  boost::asio::ip::tcp::endpoint tcp;
  if (ec || peer.size() > tcp.capacity()) return;  // it is gone already
  std::memcpy(tcp.data(), peer.data(), peer.size());
  tcp.resize(peer.size());
  const auto address = tcp.address();
  from_ = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  from_ += ":" + std::to_string(tcp.port());
}

void Audit::note(std::string_view who, std::string_view what, std::string_view gets) {
  const std::string line = std::string(who) + '\n' + std::string(gets);
  if (line != last_) tell(who, what, gets);
}

void Audit::tell(std::string_view who, std::string_view what, std::string_view gets) {
  if (from_.empty()) return;
  last_ = std::string(who) + '\n' + std::string(gets);
  // A logger of its own, which no level but `off` silences (log.cpp). In tests there may be none.
  auto log = spdlog::get("audit");
  if (!log) log = spdlog::default_logger();
  log->info("audit: {} from {} asks for {} and {}", who, from_, what, gets);
}

}  // namespace earshot::serve
