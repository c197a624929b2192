// A connection to the daemon, up to the first byte that is for it alone: resolved, connected, encrypted, and
// proven to be the daemon where its token follows in plain text. For client.cpp and http.cpp.
#pragma once
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket/teardown.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/erased_stream.hpp"
#include "common/endpoint.hpp"

namespace earshot::common {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

/// With or without TLS, decided at run time: Beast is instantiated once.
class Wire {
 public:
  using Stream = asio::generic::stream_protocol;  // TCP and Unix sockets share one template instantiation
  using Plain = beast::basic_stream<Stream>;
  using Tls = asio::ssl::stream<Plain&>;
  using executor_type = Plain::executor_type;

  explicit Wire(asio::io_context& context) : plain_(context) {}
  executor_type get_executor() { return plain_.get_executor(); }
  Plain& plain() { return plain_; }
  Tls& start_tls(asio::ssl::context& context) { return tls_.emplace(plain_, context); }
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    read_some(BufferList<asio::mutable_buffer>(buffers), erase_handler(std::forward<Handler>(handler)));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    write_some(BufferList<asio::const_buffer>(buffers), erase_handler(std::forward<Handler>(handler)));
  }
  // After the closing handshake of the WebSocket, TLS needs none.
  friend void teardown(beast::role_type role, Wire& wire, boost::system::error_code& error) {
    using beast::websocket::teardown;
    teardown(role, wire.plain_, error);
  }
  template <class Handler>
  friend void async_teardown(beast::role_type role, Wire& wire, Handler&& handler) {
    using beast::websocket::async_teardown;
    async_teardown(role, wire.plain_, std::forward<Handler>(handler));
  }
  friend void beast_close_socket(Wire& wire) { wire.plain_.close(); }

 private:
  void read_some(const BufferList<asio::mutable_buffer>& buffers, StreamDone done);
  void write_some(const BufferList<asio::const_buffer>& buffers, StreamDone done);

  Plain plain_;
  std::optional<Tls> tls_;
};

/// Pending handlers share ownership: cancelled ones run after their context was left.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Error = boost::system::error_code;
  static constexpr int handshake_seconds_max = 5;  // to connect, encrypt and prove; then for the answer
  static constexpr const char* ended = "the connection ended";
  static constexpr const char* unanswered = "the connection was accepted but not answered";

  /// `address` belongs to the caller, and is not accessed after cancel().
  Connection(asio::io_context& context, const DaemonAddress& address)
      : address_(address), resolver_(context), wire_(context) {}
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  /// Cancels pending operations.
  virtual void cancel();
  /// How it ended; absent: it goes on.
  const std::optional<ConnectionOutcome>& outcome() const { return outcome_; }

 protected:
  virtual void on_ready() = 0;
  /// The first call counts.
  void end(ConnectionOutcome outcome);
  void end(EndReason end_reason, std::string text);
  const DaemonAddress& address() const { return address_; }
  Wire& wire() { return wire_; }
  Wire::Plain& plain() { return wire_.plain(); }
  beast::flat_buffer& buffer() { return buffer_; }

 private:
  void connect(std::vector<Wire::Stream::endpoint> candidates);
  void on_connected(Error error);
  void encrypt();
  void ask_for_proof();
  void on_proof(Error error);

  const DaemonAddress& address_;
  std::optional<asio::ssl::context> trusted_;  // with TLS
  asio::ip::tcp::resolver resolver_;
  std::vector<Wire::Stream::endpoint> candidates_;
  Wire wire_;
  std::string nonce_;
  http::request<http::empty_body> question_;
  std::optional<http::response_parser<http::string_body>> proof_;
  beast::flat_buffer buffer_;
  std::optional<ConnectionOutcome> outcome_;
};

}  // namespace earshot::common
