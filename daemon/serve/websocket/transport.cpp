#include "serve/websocket/transport.hpp"

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <cctype>
#include <type_traits>

#include "serve/websocket/ordered_stream.hpp"

namespace earshot::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using boost::system::error_code;

namespace {

constexpr std::size_t idle_read_bytes = 512;  // prepared for the next message
constexpr std::size_t extra_bytes = 4 << 10;
constexpr std::size_t skipped_bytes_max = 3 << 20;  // of a head that is too long; browsers end URLs at 2 MiB
constexpr std::string_view worker_line = "\r\nService-Worker: script\r\n", head_end = "\r\n\r\n";

/// Over a socket, or over TLS.
template <class Stream>
class TransportOf final : public Transport {
 public:
  static constexpr bool tls = !std::is_same_v<Stream, Transport::Socket>;

  template <class... More>
  TransportOf(Socket socket, const Limits& limits, More&... more)
      : limits_(limits), ws_(std::move(socket), more...) {
    error_code ignored;
    this->socket().set_option(asio::socket_base::send_buffer_size(limits.send_buffer_bytes), ignored);
    this->socket().set_option(asio::ip::tcp::no_delay(true), ignored);  // a Unix socket has none
  }

  Socket& socket() override {
    if constexpr (tls) {
      return stream().next_layer();
    } else {
      return stream();
    }
  }

  void open(Done done) override {
    if constexpr (tls) {
      stream().async_handshake(asio::ssl::stream_base::server, std::move(done));
    } else {
      done({});
    }
  }

  void cancel() override {
    error_code ignored;
    socket().cancel(ignored);
  }

  void finish(std::size_t bytes_max, Done done) override {
    if constexpr (tls) {
      stream().async_shutdown(std::move(done));
    } else {
      error_code ignored;
      socket().shutdown(asio::socket_base::shutdown_send, ignored);
      until_gone(bytes_max, std::move(done));
    }
  }

  void shut() override {
    error_code ignored;
    socket().close(ignored);
    ordered().abandon();
    ordered().on_free(nullptr);
    ordered().on_read(nullptr);
  }

  // --- HTTP ---

  void read_head(Read read) override {
    head_ = std::make_unique<Head>();
    head_->parser.header_limit(static_cast<std::uint32_t>(limits_.request_bytes_max));
    head_->parser.body_limit(std::max(limits_.body_bytes_max, request_body_bytes_max));
    buffer_.max_size(2 * limits_.request_bytes_max);
    heard_before_ = ordered().bytes_in();
    http::async_read_header(ordered(), buffer_, head_->parser,
                            [this, read = std::move(read)](error_code ec, std::size_t) mutable {
                              const Fault fault = head_fault(ec);
                              if (!is_too_long(ec)) return read(fault);
                              skip_head("\r\n", 0, [read = std::move(read), fault] { read(fault); });
                            });
  }

  void read_body(std::size_t bytes_max, Read read) override {
    head_->parser.body_limit(bytes_max);
    http::async_read(ordered(), buffer_, head_->parser, [read = std::move(read)](error_code ec, std::size_t) {
      if (ec == http::error::body_limit) return read(Fault::body_too_long);
      read(!ec ? Fault::none : is_http(ec) ? Fault::unreadable : Fault::gone);
    });
  }

  bool begun() const override { return buffer_.size() > 0 || ordered().bytes_in() > heard_before_; }
  bool expects_continue() const override {
    return beast::iequals(head_->parser.get()[http::field::expect], "100-continue");
  }
  std::uint64_t content_length() const override {
    const auto length = head_->parser.content_length();
    return length ? *length : 0;
  }
  bool keep_alive() const override { return head_->parser.keep_alive(); }
  bool http_1_0() const override { return head_->parser.get().version() < 11; }
  bool spoke_early() const override { return buffer_.size() > 0; }

  Request request() const override {
    const auto& head = head_->parser.get();
    Request request;
    request.method = view(head.method_string());
    request.target = view(head.target());
    request.hosts = all_of(head, http::field::host);
    request.origins = all_of(head, http::field::origin);
    request.authorizations = all_of(head, http::field::authorization);
    request.upgrade = websocket::is_upgrade(head);
    request.content_type = view(head[http::field::content_type]);
    request.if_none_match = view(head[http::field::if_none_match]);
    request.wants_worker = head_->wants_worker || head["Service-Worker"] == "script";
    request.body = head.body();
    return request;
  }

  void write(std::string bytes, Done done) override {
    out_ = std::move(bytes);
    out_done_ = 0;
    write_more(std::move(done));
  }

  void until_gone(std::size_t bytes_max, Done done) override {
    // The connection of an event stream keeps this memory.
    if (scrap_.empty()) scrap_.resize(bytes_max > discarded_bytes_max ? 64 << 10 : 1 << 10);
    stream().async_read_some(asio::buffer(scrap_),
                             [this, bytes_max, done = std::move(done)](error_code ec, std::size_t n) mutable {
                               dropped_ += n;
                               if (!ec && dropped_ > bytes_max) ec = asio::error::message_size;
                               if (ec) return done(ec);
                               until_gone(bytes_max, std::move(done));
                             });
  }

  // --- WebSocket ---

  void accept(const std::string& server, std::size_t message_bytes_max, Done done) override {
    static constexpr beast::string_view subprotocol = "earshot.v1";
    http::token_list offered(head_->parser.get()[http::field::sec_websocket_protocol]);
    const bool ours = offered.exists(subprotocol);
    ws_.set_option(websocket::stream_base::decorator([server, ours](websocket::response_type& response) {
      response.set(http::field::server, server);
      if (ours) response.set(http::field::sec_websocket_protocol, subprotocol);
    }));
    ws_.auto_fragment(false);
    ws_.read_message_max(message_bytes_max);
    ws_.async_accept(head_->parser.get(), [this, done = std::move(done)](error_code ec) {
      head_.reset();
      buffer_ = {};
      out_ = {};
      if (!ec) ws_.text(true);
      done(ec);
    });
  }

  void message_max(std::size_t bytes) override { ws_.read_message_max(bytes); }

  void read_message(std::function<void(error_code, Message)> done) override {
    // Beast's own read prepares 1.5 KiB, which each idle client would hold.
    const std::size_t prepared = std::max(idle_read_bytes, buffer_.size());
    ws_.async_read_some(
        buffer_, prepared, [this, done = std::move(done)](error_code ec, std::size_t bytes) mutable {
          content_ += bytes;
          if (!ec && !ws_.is_message_done()) return read_message(std::move(done));
          const beast::flat_buffer message = std::exchange(buffer_, {});  // an idle client keeps no buffer
          const auto data = message.cdata();
          if (ec || !ws_.got_text()) return done(ec, {});
          done(ec, {{static_cast<const char*>(data.data()), data.size()}});
        });
  }

  void on_extra_frame(std::function<void()> call) override {
    extra_frame_ = std::move(call);
    content_ = ordered().bytes_in();
    ws_.control_callback([this](websocket::frame_type kind, beast::string_view) {
      if (kind != websocket::frame_type::close) extra_frame_();
    });
    ordered().on_read([this] {  // Beast skips fragments without content by itself
      if (ordered().bytes_in() < content_ + extra_bytes) return;
      content_ += extra_bytes;
      extra_frame_();
    });
  }

  void ping(Done done) override { ws_.async_ping({}, std::move(done)); }

  void close(std::uint16_t code, std::string_view reason, Done done) override {
    const websocket::close_reason why(static_cast<websocket::close_code>(code),
                                      beast::string_view(reason.data(), reason.size()));
    ws_.async_close(why, std::move(done));
  }

  bool closed() const override { return ordered().closed(); }

  // --- Frames ---

  bool free() const override { return ordered().free(); }
  void on_free(std::function<void()> call) override { ordered().on_free(std::move(call)); }

  std::size_t send(std::span<const iovec> pieces, const std::shared_ptr<void>& owner,
                   error_code& ec) override {
    if constexpr (tls) {
      return ordered().send_copy(pieces, owner, ec);
    } else {
      return ordered().send_now(pieces, ec);
    }
  }

  void keep_rest(std::span<const char> rest) override { ordered().keep_rest(rest); }

  void wait_room(Done done) override {
    if constexpr (tls) {
      ordered().on_written(std::move(done));
    } else {
      socket().async_wait(Socket::wait_write, [this, done = std::move(done)](error_code ec) mutable {
        if (!ec && ordered().has_rest()) {
          ordered().send_rest(ec);
          if (!ec && ordered().has_rest()) return wait_room(std::move(done));
        }
        done(ec);
      });
    }
  }

  std::uint64_t bytes_in() const override { return ordered().bytes_in(); }
  std::uint64_t bytes_out() const override { return ordered().bytes_out() + written_; }

 private:
  struct Head {
    http::request_parser<http::string_body> parser;
    bool wants_worker = false;  // by a head that is too long
  };

  OrderedStream<Stream>& ordered() { return ws_.next_layer(); }
  const OrderedStream<Stream>& ordered() const { return ws_.next_layer(); }
  Stream& stream() { return ordered().next_layer(); }

  static std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }
  static std::vector<std::string_view> all_of(const http::fields& fields, http::field name) {
    std::vector<std::string_view> values;
    const auto range = fields.equal_range(name);
    for (auto it = range.first; it != range.second; ++it) values.push_back(view(it->value()));
    return values;
  }
  static bool is_http(error_code ec) {
    return ec.category() == make_error_code(http::error::bad_method).category() &&
           ec != http::error::end_of_stream && ec != http::error::partial_message;
  }

  static bool is_too_long(error_code ec) {
    return ec == http::error::header_limit || ec == http::error::buffer_overflow;
  }

  Fault head_fault(error_code ec) const {
    if (is_too_long(ec)) {
      const auto data = buffer_.cdata();
      const std::string_view head(static_cast<const char*>(data.data()), data.size());
      const bool first_line_ended =
          head_->parser.get().method() != http::verb::unknown || head.find('\n') != std::string_view::npos;
      return first_line_ended ? Fault::head_too_long : Fault::target_too_long;
    }
    if (ec == http::error::body_limit) return Fault::body_too_long;
    if (ec) return is_http(ec) ? Fault::unreadable : Fault::gone;
    return head_->parser.get().target().size() > limits_.target_bytes_max ? Fault::target_too_long
                                                                          : Fault::none;
  }

  /// The rest of a head that is too long matters only if a browser asks for the script of a service worker,
  /// whose URL, chosen by another program, may be of any length.
  /// `head`: what precedes the buffer.
  void skip_head(std::string head, std::size_t skipped, std::function<void()> done) {
    const auto data = buffer_.cdata();
    head.append(static_cast<const char*>(data.data()), data.size());
    buffer_.consume(buffer_.size());
    const std::size_t end = head.find(head_end);
    const bool is_whole = end != head.npos;
    if (is_whole) head.resize(end + 2);
    const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
    head_->wants_worker |=
        std::search(head.begin(), head.end(), worker_line.begin(), worker_line.end(), same) != head.end();
    if (is_whole || head_->wants_worker || skipped > skipped_bytes_max) return done();
    head.erase(0, head.size() - std::min(head.size(), worker_line.size()));
    ordered().async_read_some(buffer_.prepare(limits_.request_bytes_max),
                              [this, head = std::move(head), skipped, done = std::move(done)](
                                  error_code ec, std::size_t n) mutable {
                                buffer_.commit(n);
                                ec ? done() : skip_head(std::move(head), skipped + n, std::move(done));
                              });
  }

  void write_more(Done done) {
    stream().async_write_some(asio::buffer(out_.data() + out_done_, out_.size() - out_done_),
                              [this, done = std::move(done)](error_code ec, std::size_t n) mutable {
                                written_ += n;
                                out_done_ += n;
                                if (!ec && out_done_ < out_.size()) return write_more(std::move(done));
                                if (out_.capacity() > kept_bytes_max) out_ = {};
                                done(ec);
                              });
  }

  static constexpr std::size_t kept_bytes_max = 4 << 10;  // memory kept after a response

  const Limits& limits_;
  websocket::stream<OrderedStream<Stream>, false> ws_;
  beast::flat_buffer buffer_;
  std::unique_ptr<Head> head_;  // null after the upgrade
  std::vector<char> scrap_;
  std::string out_;
  std::size_t out_done_ = 0, dropped_ = 0;
  std::function<void()> extra_frame_;
  std::uint64_t content_ = 0;  // of messages, and what was paid for as extra frames
  std::uint64_t written_ = 0, heard_before_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_plain_transport(Transport::Socket socket, const Limits& limits) {
  return std::make_unique<TransportOf<Transport::Socket>>(std::move(socket), limits);
}

std::unique_ptr<Transport> make_tls_transport(Transport::Socket socket, const Limits& limits,
                                              asio::ssl::context& context) {
  return std::make_unique<TransportOf<asio::ssl::stream<Transport::Socket>>>(std::move(socket), limits,
                                                                             context);
}

}  // namespace earshot::serve
