// The layer under websocket::stream: Beast's control frames and complete log frames share one ordered writer.
// Beast has precedence, or a busy log would starve pongs. It has at most one pending write, so a flag is
// enough.
#pragma once
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/erased_stream.hpp"
#include "base/sockets.hpp"

namespace earshot::serve {

template <class Next>
class OrderedStream {
 public:
  using next_layer_type = Next;
  using executor_type = typename Next::executor_type;
  using error_code = boost::system::error_code;

  template <class... Args>
  explicit OrderedStream(Args&&... args)
      : next_(std::forward<Args>(args)...),
        turn_(next_.get_executor(), boost::asio::steady_timer::time_point::max()) {}

  executor_type get_executor() { return next_.get_executor(); }
  Next& next_layer() { return next_; }
  const Next& next_layer() const { return next_; }

  /// Called when Beast has written: frames may go out again.
  void on_free(std::function<void()> call) { on_free_ = std::move(call); }
  /// Called when bytes were received, before they are counted: those before them were used.
  void on_read(std::function<void()> call) { on_read_ = std::move(call); }

  std::uint64_t bytes_in() const { return bytes_in_; }    // received
  std::uint64_t bytes_out() const { return bytes_out_; }  // taken by the kernel
  bool closed() const { return closed_; }                 // a close frame was sent: nothing may follow it
  bool has_rest() const { return !rest_.empty(); }

  /// No write is pending, and Beast is not waiting.
  bool free() const { return !busy_ && !control_waits_ && !closed_ && rest_.empty(); }

  /// Sends what the socket takes at once. Only while free(). A full socket buffer is 0 bytes and no error.
  std::size_t send_now(std::span<const iovec> pieces, error_code& ec) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    for (;;) {
      const ssize_t n = pieces.size() == 1
                            ? send_no_wait(next_.native_handle(), pieces[0].iov_base, pieces[0].iov_len)
                            : send_no_wait(next_.native_handle(), message);
      if (n >= 0) {
        bytes_out_ += static_cast<std::uint64_t>(n);
        return static_cast<std::size_t>(n);
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS)
        ec.assign(errno, boost::system::system_category());
      return 0;
    }
  }

  /// For TLS, which cannot write synchronously: copies the beginning of `pieces` and writes it. Only while
  /// free(). Keeps `owner` until then; calls on_written or on_free.
  std::size_t send_copy(std::span<const iovec> pieces, std::shared_ptr<void> owner, error_code& ec) {
    if (failed_) ec = failed_;
    if (ec) return 0;
    out_.clear();
    for (const iovec& piece : pieces) {
      const std::size_t room = copy_bytes_max - out_.size();
      out_.append(static_cast<const char*>(piece.iov_base), std::min(room, piece.iov_len));
    }
    busy_ = true;
    write_copy(std::move(owner));
    return out_.size();
  }

  /// Called once, instead of on_free, when everything taken was written.
  void on_written(std::function<void(error_code)> call) { on_written_ = std::move(call); }

  /// The rest of a partly sent frame: nothing is sent before it.
  void keep_rest(std::span<const char> rest) { rest_.assign(rest.data(), rest.size()); }

  /// Sends what the socket takes of the rest; then Beast has its turn.
  void send_rest(error_code& ec) {
    const iovec piece{rest_.data(), rest_.size()};
    rest_.erase(0, send_now({&piece, 1}, ec));
    if (!rest_.empty() || ec) return;
    rest_.shrink_to_fit();
    turn_.cancel();
  }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    read_some(BufferList<boost::asio::mutable_buffer>(buffers),
              erase_handler(std::forward<Handler>(handler)));
  }

  /// For Beast: the response to the upgrade and control frames.
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    write_all(BufferList<boost::asio::const_buffer>(buffers), erase_handler(std::forward<Handler>(handler)));
  }

  /// After the socket was closed: ends a waiting write.
  void abandon() {
    rest_.clear();
    turn_.cancel();
    on_written_ = nullptr;
  }

 private:
  static constexpr int close_opcode = 0x88;
  static constexpr std::size_t copy_bytes_max = 64 << 10;

  void write_copy(std::shared_ptr<void> owner) {
    boost::asio::async_write(next_, boost::asio::buffer(out_),
                             [this, owner = std::move(owner)](error_code ec, std::size_t n) mutable {
                               bytes_out_ += n;
                               if (!ec && !rest_.empty()) {
                                 out_.assign(rest_, 0, copy_bytes_max);
                                 rest_.erase(0, out_.size());
                                 return write_copy(std::move(owner));
                               }
                               busy_ = false;
                               failed_ = ec;
                               out_ = {};  // an idle client keeps no buffer
                               rest_ = {};
                               turn_.cancel();  // Beast has its turn
                               if (on_written_) return std::exchange(on_written_, nullptr)(ec);
                               if (const auto call = on_free_) call();  // may set another one
                             });
  }

  using Written = BufferList<boost::asio::const_buffer>;

  void read_some(const BufferList<boost::asio::mutable_buffer>& buffers, StreamDone done) {
    next_.async_read_some(buffers, [this, done = std::move(done)](error_code ec, std::size_t n) {
      if (on_read_) on_read_();
      bytes_in_ += n;
      done(ec, n);
    });
  }

  void write_all(const Written& buffers, StreamDone done) {
    control_waits_ = busy_ || !rest_.empty();
    if (control_waits_) {
      return turn_.async_wait([this, buffers, done = std::move(done)](error_code) mutable {  // until cancel()
        write_all(buffers, std::move(done));
      });
    }
    busy_ = true;
    if (opcode(buffers) == close_opcode) closed_ = true;
    boost::asio::async_write(next_, buffers, [this, done = std::move(done)](error_code ec, std::size_t n) {
      busy_ = false;
      bytes_out_ += n;
      if (on_free_) boost::asio::post(next_.get_executor(), on_free_);
      done(ec, n);
    });
  }

  static int opcode(const Written& buffers) {
    return buffers.begin() == buffers.end() ? -1
                                            : *static_cast<const unsigned char*>(buffers.begin()->data());
  }

  Next next_;
  boost::asio::steady_timer turn_;
  std::function<void()> on_free_, on_read_;
  std::function<void(error_code)> on_written_;
  std::string rest_;
  std::string out_;    // the copy being written
  error_code failed_;  // of writing one
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;
  bool busy_ = false, control_waits_ = false, closed_ = false;
};

template <class Next>
void teardown(boost::beast::role_type role, OrderedStream<Next>& stream, boost::system::error_code& ec) {
  using boost::beast::websocket::teardown;
  teardown(role, stream.next_layer(), ec);
}

template <class Next, class Handler>
void async_teardown(boost::beast::role_type role, OrderedStream<Next>& stream, Handler&& handler) {
  using boost::beast::websocket::async_teardown;
  async_teardown(role, stream.next_layer(), std::forward<Handler>(handler));
}

template <class Next>
void beast_close_socket(OrderedStream<Next>& stream) {
  boost::beast::close_socket(boost::beast::get_lowest_layer(stream));
}

}  // namespace earshot::serve
