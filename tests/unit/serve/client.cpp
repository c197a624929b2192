#include "unit/serve/client.hpp"

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <deque>

#include "unit/serve/support.hpp"

namespace earshot::test {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using boost::system::error_code;

struct Client::Impl : std::enable_shared_from_this<Client::Impl> {
  Impl(asio::io_context& io, Client& client) : owner(&client), stream(io) {}

  Client* owner;  // null after its destruction
  websocket::stream<tcp::socket> stream;
  websocket::response_type response;
  beast::flat_buffer buffer;
  struct Out {
    std::string bytes;
    bool text;
  };
  std::deque<Out> out;
  std::size_t pings_due = 0;
  bool writing = false, pinging = false, reading = false;

  void over() {
    if (!owner) return;
    owner->ended = true;
    if (stream.reason().code != websocket::close_code::none) owner->close_code = stream.reason().code;
  }
  void read() {
    if (std::exchange(reading, true)) return;
    read_next();
  }
  void read_next() {
    stream.async_read(buffer, [self = shared_from_this()](error_code ec, std::size_t) {
      if (!self->owner) return;
      if (ec) return self->over();
      const auto data = self->buffer.cdata();
      self->owner->frames.emplace_back(static_cast<const char*>(data.data()), data.size());
      self->buffer.consume(self->buffer.size());
      self->read_next();
    });
  }
  void write() {
    if (writing || out.empty() || !owner || !owner->open) return;
    writing = true;
    stream.text(out.front().text);
    stream.async_write(asio::buffer(out.front().bytes),
                       [self = shared_from_this()](error_code ec, std::size_t) {
                         self->writing = false;
                         self->out.pop_front();
                         if (!ec) self->write();
                       });
  }
  void ping() {
    if (pinging || pings_due == 0) return;
    pinging = true;
    --pings_due;
    stream.async_ping("?", [self = shared_from_this()](error_code ec) {
      self->pinging = false;
      if (!ec) self->ping();
    });
  }
};

Client::Client(asio::io_context& io, std::uint16_t port, ClientOptions options)
    : impl_(std::make_shared<Impl>(io, *this)) {
  auto& stream = impl_->stream;
  tcp::socket& socket = stream.next_layer();
  socket.open(tcp::v4());
  if (options.receive_buffer > 0)
    socket.set_option(asio::socket_base::receive_buffer_size(options.receive_buffer));
  socket.connect({asio::ip::address_v4::loopback(), port});
  stream.set_option(websocket::stream_base::decorator([options](websocket::request_type& request) {
    namespace http = beast::http;
    if (!options.token.empty()) request.set(http::field::authorization, "Bearer " + options.token);
    if (!options.origin.empty()) request.set(http::field::origin, options.origin);
    if (!options.protocol.empty()) request.set(http::field::sec_websocket_protocol, options.protocol);
  }));
  stream.read_message_max(64 << 20);
  stream.control_callback([impl = std::weak_ptr(impl_)](websocket::frame_type kind, beast::string_view) {
    const auto self = impl.lock();
    if (!self || !self->owner) return;
    if (kind == websocket::frame_type::pong) ++self->owner->pongs;
    if (kind == websocket::frame_type::ping) ++self->owner->pings_seen;
  });
  const std::string host = options.host.empty() ? "127.0.0.1:" + std::to_string(port) : options.host;
  stream.async_handshake(impl_->response, host, "/v1/ws",
                         [impl = impl_, reading = options.reading](error_code ec) {
                           if (!impl->owner) return;
                           if (ec) {
                             if (ec == websocket::error::upgrade_declined)
                               impl->owner->refused = impl->response.result_int();
                             return impl->over();
                           }
                           impl->owner->open = true;
                           const auto protocol = impl->response[beast::http::field::sec_websocket_protocol];
                           impl->owner->protocol.assign(protocol.data(), protocol.size());
                           impl->write();
                           if (reading) impl->read();
                         });
}

Client::~Client() {
  impl_->owner = nullptr;
  vanish();
}

void Client::send(std::string text) {
  impl_->out.push_back({std::move(text), true});
  impl_->write();
}

void Client::send_binary(std::string bytes) {
  impl_->out.push_back({std::move(bytes), false});
  impl_->write();
}

void Client::send_raw(std::string bytes) {
  auto kept = std::make_shared<std::string>(std::move(bytes));
  asio::async_write(impl_->stream.next_layer(), asio::buffer(*kept), [kept](error_code, std::size_t) {});
}

void Client::read() { impl_->read(); }

void Client::ping() {
  ++impl_->pings_due;
  impl_->ping();
}

void Client::vanish() {
  error_code ignored;
  impl_->stream.next_layer().close(ignored);
}

bool Client::has(std::string_view type) const {
  for (const std::string& name : types()) {
    if (name == type) return true;
  }
  return false;
}

std::vector<std::string> Client::types() const {
  std::vector<std::string> names;
  for (const std::string& frame : frames) {
    const std::string type = at(frame, "/type");
    names.push_back(type.size() > 2 ? type.substr(1, type.size() - 2) : type);
  }
  return names;
}

std::string exchange(asio::io_context& io, std::uint16_t port, std::string_view bytes) {
  tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), port});
  std::string answer;
  bool over = false;
  asio::async_write(socket, asio::buffer(bytes.data(), bytes.size()), [](error_code, std::size_t) {});
  asio::async_read(socket, asio::dynamic_buffer(answer), [&](error_code, std::size_t) { over = true; });
  if (!run_until(io, [&] { return over; })) answer += "(no end)";
  error_code ignored;
  socket.close(ignored);
  run_until(io, [&] { return over; });
  return answer;
}

}  // namespace earshot::test
