#include "serve/websocket/acceptor.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace earshot::serve {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {
constexpr auto pause = std::chrono::milliseconds(100);  // no descriptor is left: until one is
}

Acceptor::Acceptor(asio::io_context& io, int family, int descriptor, TransportKind transport_kind,
                   Admit admit)
    : acceptor_(io, asio::generic::stream_protocol(family, 0), descriptor),
      again_(io),
      transport_kind_(transport_kind),
      admit_(std::move(admit)) {}

void Acceptor::close() {
  error_code ignored;
  acceptor_.close(ignored);
  again_.cancel();
}

void Acceptor::accept() {
  acceptor_.async_accept([this](error_code ec, Socket socket) {
    if (ec == asio::error::operation_aborted || !acceptor_.is_open()) return;
    const bool exhausted = ec == boost::system::errc::too_many_files_open ||
                           ec == boost::system::errc::too_many_files_open_in_system ||
                           ec == boost::system::errc::no_buffer_space ||
                           ec == boost::system::errc::not_enough_memory;
    if (exhausted) {
      spdlog::warn("a client cannot be accepted: {}", ec.message());
      again_.expires_after(pause);
      again_.async_wait([this](error_code cancelled) {
        if (!cancelled) accept();
      });
      return;
    }
    if (!ec) admit_(std::move(socket), transport_kind_);
    accept();
  });
}

}  // namespace earshot::serve
