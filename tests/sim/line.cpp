#include "line.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace earshot::sim {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class SimTransport final : public serve::Transport {
 public:
  explicit SimTransport(std::shared_ptr<Connection> line)
      : connection_(std::move(line)), socket_(connection_->io) {
    connection_->moved = [this] { moved(); };
    connection_->drop = [this] {
      // Local, since the last one may own this object.
      const auto read = std::exchange(read_, {});
      const auto room = std::exchange(room_, {});
      const auto on_free = std::exchange(on_free_, {});
    };
  }
  ~SimTransport() override {
    connection_->moved = connection_->drop = nullptr;
    connection_->ended = true;
  }

  Socket& socket() override { return socket_; }
  void open(Done done) override { later(std::move(done), {}); }
  void cancel() override {
    if (read_) later_message(asio::error::operation_aborted, {});
  }
  void finish(std::size_t, Done done) override { later(std::move(done), {}); }

  void read_head(Read read) override {
    asio::post(connection_->io, [read] { read(serve::Fault::none); });
  }
  void read_body(std::size_t, Read read) override {
    asio::post(connection_->io, [read] { read(serve::Fault::none); });
  }
  bool begun() const override { return false; }
  bool expects_continue() const override { return false; }
  std::uint64_t content_length() const override { return 0; }
  bool keep_alive() const override { return false; }
  bool http_1_0() const override { return false; }
  bool spoke_early() const override { return false; }
  serve::Request request() const override {
    serve::Request request;
    request.method = "GET";
    request.target = "/v1/ws";
    request.hosts = {"localhost"};
    request.upgrade = true;
    return request;
  }
  void write(std::string bytes, Done done) override {
    connection_->http += bytes;
    later(std::move(done), {});
  }
  void until_gone(std::size_t, Done done) override { later(std::move(done), {}); }

  void accept(const std::string&, std::size_t, Done done) override { later(std::move(done), {}); }
  void message_max(std::size_t) override {}
  void read_message(std::function<void(error_code, Message)> done) override {
    read_ = std::move(done);
    moved();
  }
  void on_extra_frame(std::function<void()>) override {}  // messages only
  void ping(Done done) override {
    if (connection_->pongs) ++bytes_in_;
    later(std::move(done), {});
  }
  void close(std::uint16_t code, std::string_view, Done done) override {
    closed_ = true;
    connection_->close_code = code;
    later(std::move(done), {});
  }
  bool closed() const override { return closed_; }

  bool free() const override { return rest_.empty(); }
  void on_free(std::function<void()> call) override { on_free_ = std::move(call); }
  std::size_t send(std::span<const iovec> pieces, const std::shared_ptr<void>&, error_code& ec) override {
    if (connection_->left) {
      ec = asio::error::broken_pipe;
      return 0;
    }
    std::size_t sent = 0;
    for (const iovec& piece : pieces) {
      const std::size_t n = std::min(piece.iov_len, connection_->room);
      take({static_cast<const char*>(piece.iov_base), n});
      sent += n;
      if (n < piece.iov_len) break;
    }
    return sent;
  }
  void keep_rest(std::span<const char> rest) override { rest_.assign(rest.data(), rest.size()); }
  void wait_room(Done done) override {
    room_ = std::move(done);
    moved();
  }

  std::uint64_t bytes_in() const override { return bytes_in_; }
  std::uint64_t bytes_out() const override { return bytes_out_; }
  void shut() override {
    shut_ = connection_->ended = true;
    on_free_ = nullptr;
    if (read_) later_message(asio::error::operation_aborted, {});
    if (room_) later(std::exchange(room_, {}), asio::error::operation_aborted);
  }

 private:
  void take(std::string_view bytes) {
    connection_->outgoing += bytes;
    connection_->room -= bytes.size();
    bytes_out_ += bytes.size();
  }
  void later(Done done, error_code ec) {
    asio::post(connection_->io, [done = std::move(done), ec] { done(ec); });
  }
  void later_message(error_code ec, std::string text) {
    asio::post(connection_->io,
               [done = std::exchange(read_, {}), ec, text = std::move(text)] { done(ec, {text}); });
  }
  void moved() {
    if (shut_) return;
    if (read_ && connection_->left) later_message(asio::error::eof, {});
    if (read_ && !connection_->incoming.empty()) {
      std::string text = std::move(connection_->incoming.front());
      connection_->incoming.pop_front();
      bytes_in_ += text.size();
      later_message({}, std::move(text));
    }
    if (connection_->room > 0 && !rest_.empty()) {
      const std::size_t n = std::min(rest_.size(), connection_->room);
      take(std::string_view(rest_).substr(0, n));
      rest_.erase(0, n);
      if (rest_.empty() && on_free_) asio::post(connection_->io, on_free_);
    }
    if (room_ && connection_->left) later(std::exchange(room_, {}), asio::error::broken_pipe);
    if (room_ && connection_->room > 0 && rest_.empty()) later(std::exchange(room_, {}), {});
  }

  const std::shared_ptr<Connection> connection_;
  Socket socket_;
  std::function<void(error_code, Message)> read_;
  Done room_;
  std::function<void()> on_free_;
  std::string rest_;
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;
  bool closed_ = false, shut_ = false;
};

}  // namespace

std::unique_ptr<serve::Transport> make_sim_transport(std::shared_ptr<Connection> line) {
  return std::make_unique<SimTransport>(std::move(line));
}

}  // namespace earshot::sim
