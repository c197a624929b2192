// HTTP and WebSocket on one socket. Beast, which is slow to compile, is only in transport.cpp and in
// http/message.cpp.
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

#include "serve/http/message.hpp"
#include "serve/limits.hpp"

namespace earshot::serve {

constexpr std::size_t discarded_bytes_max = 64 << 10;  // of a client that is no longer read

/// Why a request could not be read. `gone`: disconnected.
enum class Fault { none, gone, unreadable, head_too_long, target_too_long, body_too_long };

/// All calls and callbacks on one thread. Each callback is called once, never during the call that sets it.
/// One read and one write at a time. The caller keeps the transport alive until all callbacks were called.
class Transport {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Done = std::function<void(boost::system::error_code)>;
  using Read = std::function<void(Fault)>;

  virtual ~Transport() = default;

  virtual Socket& socket() = 0;
  /// The TLS handshake, if any.
  virtual void open(Done done) = 0;
  /// Aborts the pending read, whose callback receives an error.
  virtual void cancel() = 0;
  /// Shuts down sending, then discards up to `bytes_max` bytes of input until the client closes: closing
  /// first could reset the connection before the client has read the response.
  virtual void finish(std::size_t bytes_max, Done done) = 0;

  // HTTP
  /// A body that is announced to be longer than request_body_bytes_max and Limits::body_bytes_max is a fault.
  virtual void read_head(Read read) = 0;
  /// A body of more than `bytes_max` bytes is a fault.
  virtual void read_body(std::size_t bytes_max, Read read) = 0;
  virtual bool begun() const = 0;  // a byte of the next request was received
  virtual bool expects_continue() const = 0;
  virtual std::uint64_t content_length() const = 0;  // 0: not stated
  virtual bool keep_alive() const = 0;               // the client accepts further requests
  virtual bool http_1_0() const = 0;
  virtual bool spoke_early() const = 0;  // data followed the request
  virtual Request request() const = 0;   // until the next read_head()
  virtual void write(std::string bytes, Done done) = 0;
  /// Discards input; `done` when the client disconnects or sends more than `bytes_max` bytes.
  virtual void until_gone(std::size_t bytes_max, Done done) = 0;

  // WebSocket
  struct Message {
    std::string_view text;  // valid during the call; empty for a binary message
  };
  virtual void accept(const std::string& server, std::size_t message_bytes_max, Done done) = 0;
  virtual void message_max(std::size_t bytes) = 0;
  virtual void read_message(std::function<void(boost::system::error_code, Message)> done) = 0;
  /// Called for what is no message and costs as much: a ping, a pong, 4 KiB that are no content of messages.
  virtual void on_extra_frame(std::function<void()> call) = 0;
  virtual void ping(Done done) = 0;
  virtual void close(std::uint16_t code, std::string_view reason, Done done) = 0;
  virtual bool closed() const = 0;  // a close frame was sent: nothing may follow it

  // Frames of the log
  /// No write is pending.
  virtual bool free() const = 0;
  /// Called when free() becomes true.
  virtual void on_free(std::function<void()> call) = 0;
  /// Sends as much as possible now and returns the number of bytes; requires free(). Does not refer to
  /// `pieces` afterwards. `owner` is kept alive while a write is pending.
  virtual std::size_t send(std::span<const iovec> pieces, const std::shared_ptr<void>& owner,
                           boost::system::error_code& ec) = 0;
  /// The rest of a partly sent frame, to be sent before anything else.
  virtual void keep_rest(std::span<const char> rest) = 0;
  /// Called when that rest was sent and there is room for more.
  virtual void wait_room(Done done) = 0;

  virtual std::uint64_t bytes_in() const = 0;   // received
  virtual std::uint64_t bytes_out() const = 0;  // taken by the kernel
  /// Closes the socket; pending callbacks receive errors.
  virtual void shut() = 0;
};

std::unique_ptr<Transport> make_plain_transport(Transport::Socket socket, const Limits& limits);
/// `context` outlives it.
std::unique_ptr<Transport> make_tls_transport(Transport::Socket socket, const Limits& limits,
                                              boost::asio::ssl::context& context);

}  // namespace earshot::serve
