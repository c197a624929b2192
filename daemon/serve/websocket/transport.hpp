// One socket and what runs on it: HTTP requests, then perhaps a WebSocket. What it means is the connection's
// business. Plain on this side: Beast is heavy and stays in wire_plain.cpp and wire_tls.cpp.
#pragma once
#include <sys/uio.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "serve/http/request.hpp"
#include "serve/server_context.hpp"

namespace earshot::serve {

/// Why a request cannot be had.
enum class Fault { none, gone, unreadable, head_too_long, target_too_long, body_too_long };

/// All calls and callbacks on one thread. Each callback comes once, later, and keeps its captures until then;
/// one read and one write at a time. Whoever calls keeps the wire alive until its callbacks have come.
class Transport {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Done = std::function<void(boost::system::error_code)>;
  using Read = std::function<void(Fault)>;

  virtual ~Transport() = default;

  virtual Socket& socket() = 0;
  /// The TLS handshake; nothing when the wire is plain.
  virtual void open(Done done) = 0;
  /// Ends what is being read: its callback comes, with an error.
  virtual void cancel() = 0;
  /// Says goodbye after the last byte, then drops what the client still sends until it closes: closing first
  /// would reset the answer away.
  virtual void finish(Done done) = 0;

  // HTTP
  virtual void read_head(Read read) = 0;
  virtual void read_body(Read read) = 0;
  virtual bool begun() const = 0;  // a byte of the next request is there
  virtual bool expects_continue() const = 0;
  virtual bool keep_alive() const = 0;  // the client would like to ask more
  virtual bool http_1_0() const = 0;
  virtual bool spoke_early() const = 0;  // something came behind the request
  virtual Request request() const = 0;   // until the next read_head()
  virtual void write(std::string bytes, Done done) = 0;
  /// Drops what the client sends; comes when it is gone, or sends more than it may.
  virtual void until_gone(Done done) = 0;

  // WebSocket
  struct Message {
    std::string_view text;  // good during the call; empty for a binary message, which says nothing
  };
  virtual void accept(const std::string& server, std::size_t message_bytes_max, Done done) = 0;
  virtual void message_max(std::size_t bytes) = 0;
  virtual void read_message(std::function<void(boost::system::error_code, Message)> done) = 0;
  virtual void ping(Done done) = 0;
  virtual void close(std::uint16_t code, std::string_view reason, Done done) = 0;
  virtual bool closed() const = 0;  // a close frame went out: nothing may follow it

  // Whole frames beside those
  /// Nobody is writing and nothing must go first.
  virtual bool free() const = 0;
  /// Called when it became so.
  virtual void on_free(std::function<void()> call) = 0;
  /// Takes what can go out now, only while free(). Nothing of `pieces` is referred to afterwards. `owner` is
  /// kept while it is being written.
  virtual std::size_t send(std::span<const iovec> pieces, const std::shared_ptr<void>& owner,
                           boost::system::error_code& ec) = 0;
  /// The rest of a frame of which send() took a part: goes before all else.
  virtual void keep_rest(std::span<const char> rest) = 0;
  /// Comes when there is room for more, and that rest has gone.
  virtual void wait_room(Done done) = 0;

  virtual std::uint64_t bytes_in() const = 0;   // any inbound byte is life
  virtual std::uint64_t bytes_out() const = 0;  // taken by the kernel
  /// Closes the socket; callbacks that wait come with errors.
  virtual void shut() = 0;
};

std::unique_ptr<Transport> make_plain_transport(Transport::Socket socket, const Limits& limits);
/// `context` outlives it.
std::unique_ptr<Transport> make_tls_transport(Transport::Socket socket, const Limits& limits,
                                              boost::asio::ssl::context& context);

}  // namespace earshot::serve
