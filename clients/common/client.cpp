#include "common/client.hpp"

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <csignal>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "common/diagnostics.hpp"

namespace earshot::common {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using Tcp = asio::ip::tcp;
using Stream = asio::generic::stream_protocol;  // TCP and Unix sockets: one instantiation
using Socket = websocket::stream<beast::basic_stream<Stream>>;
using Error = boost::system::error_code;

constexpr std::chrono::seconds closing_time_limit{1};  // for a polite goodbye

constexpr const char* subprotocol = "earshot.v1";

// One connection, from the look-up of its name to its end. Its handlers share it: what is cancelled is told
// after run() returned.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(asio::io_context& context, const Endpoint& endpoint, const std::string& token,
          const Handlers& handlers)
      : endpoint_(endpoint), token_(token), handlers_(handlers), resolver_(context), socket_(context) {}

  void start() {
    if (endpoint_.is_unix()) {
      const asio::local::stream_protocol::endpoint path(endpoint_.socket);
      return connect({Stream::endpoint(path)});
    }
    resolver_.async_resolve(
        endpoint_.host, endpoint_.port,
        [this, self = shared_from_this()](Error error, Tcp::resolver::results_type found) {
          if (outcome_) return;
          if (error) return end(Ending::unreachable, error.message());
          std::vector<Stream::endpoint> places;
          for (const auto& each : found) places.emplace_back(each.endpoint());
          connect(std::move(places));
        });
  }

  void send(std::string text) {
    unsent_.push_back(std::move(text));
    if (unsent_.size() == 1) write();
  }

  /// A goodbye where there is somebody to say it to.
  void stop() {
    if (stopping_ || outcome_) return;
    stopping_ = true;
    if (!open_) return end(Ending::stopped, {});
    websocket::stream_base::timeout limit{};
    limit.handshake_timeout = closing_time_limit;
    limit.idle_timeout = closing_time_limit;
    socket_.set_option(limit);
    socket_.async_close(websocket::close_code::normal,
                        [this, self = shared_from_this()](Error) { end(Ending::stopped, {}); });
  }

  /// Nobody waits any more: nothing of the caller's is touched after this.
  void drop() {
    resolver_.cancel();
    beast::get_lowest_layer(socket_).close();
  }

  const std::optional<Outcome>& outcome() const { return outcome_; }
  bool open() const { return open_; }

 private:
  void connect(std::vector<Stream::endpoint> places) {
    beast::get_lowest_layer(socket_).expires_after(std::chrono::seconds(Client::handshake_seconds));
    places_ = std::move(places);
    beast::get_lowest_layer(socket_).async_connect(
        places_,
        [this, self = shared_from_this()](Error failed, const Stream::endpoint&) { connected(failed); });
  }

  void connected(Error error) {
    if (outcome_) return;
    if (error)
      return end(Ending::unreachable, error == beast::error::timeout ? "no answer" : error.message());
    beast::get_lowest_layer(socket_).expires_never();  // the WebSocket layer has its own clock
    if (!endpoint_.is_unix())
      beast::get_lowest_layer(socket_).socket().set_option(Tcp::no_delay(true), error);
    websocket::stream_base::timeout limits{};
    limits.handshake_timeout = std::chrono::seconds(Client::handshake_seconds);
    limits.idle_timeout = std::chrono::seconds(Client::silence_seconds);
    limits.keep_alive_pings = true;
    socket_.set_option(limits);
    socket_.read_message_max(Client::message_bytes_max);
    socket_.set_option(websocket::stream_base::decorator([this](websocket::request_type& request) {
      request.set(beast::http::field::user_agent, user_agent());
      request.set(beast::http::field::sec_websocket_protocol, subprotocol);
      if (!token_.empty()) request.set(beast::http::field::authorization, "Bearer " + token_);
    }));
    socket_.async_handshake(response_, endpoint_.authority(), endpoint_.path,
                            [this, self = shared_from_this()](Error failed) { upgraded(failed); });
  }

  void upgraded(Error error) {
    if (outcome_) return;
    if (error == websocket::error::upgrade_declined) {
      Outcome outcome{Ending::refused, static_cast<int>(response_.result_int()), 0, {}};
      outcome.text = "HTTP " + std::to_string(outcome.http_status) + " " + std::string(response_.reason());
      return end(std::move(outcome));
    }
    if (error == beast::error::timeout)
      return end(Ending::unreachable, "it took the connection but did not answer");
    if (error)
      return end(Ending::refused, "what answers there speaks no WebSocket (" + error.message() + ")");
    open_ = true;
    if (handlers_.on_open) handlers_.on_open();
    read();
  }

  void read() {
    socket_.async_read(buffer_, [this, self = shared_from_this()](Error error, std::size_t) {
      if (outcome_) return;
      if (error) return lost(error);
      const auto bytes = buffer_.cdata();
      const bool more = stopping_ || handlers_.on_message(std::string_view(
                                         static_cast<const char*>(bytes.data()), bytes.size()));
      buffer_.consume(buffer_.size());
      if (!more) stop();
      read();  // goes on while we say goodbye: the other side's close frame is read too
    });
  }

  void lost(Error error) {
    if (stopping_) return;  // async_close tells
    Outcome outcome{Ending::closed, 0, 0, {}};
    if (error == websocket::error::closed) {
      outcome.close_code = static_cast<int>(socket_.reason().code);
      outcome.text = "closed by the daemon (" + std::to_string(outcome.close_code) + ")";
      if (!socket_.reason().reason.empty()) {
        outcome.text += ": ";
        outcome.text.append(socket_.reason().reason.data(), socket_.reason().reason.size());
      }
    } else if (error == beast::error::timeout) {
      outcome.text = "nothing heard for " + std::to_string(Client::silence_seconds) + " s";
    } else if (error == websocket::error::message_too_big) {
      outcome.text = "a message is longer than " + std::to_string(Client::message_bytes_max) + " bytes";
    } else {
      outcome.text = error == asio::error::eof ? "the connection ended" : error.message();
    }
    end(std::move(outcome));
  }

  void write() {
    socket_.text(true);
    socket_.async_write(asio::buffer(unsent_.front()),
                        [this, self = shared_from_this()](Error error, std::size_t) {
                          if (error || outcome_) return;  // the read tells why
                          unsent_.pop_front();
                          if (!unsent_.empty()) write();
                        });
  }

  void end(Ending ending, std::string text) { end(Outcome{ending, 0, 0, std::move(text)}); }
  void end(Outcome outcome) {
    if (!outcome_) outcome_ = std::move(outcome);
  }

  const Endpoint& endpoint_;  // the caller's, who waits in run()
  const std::string& token_;
  const Handlers& handlers_;
  Tcp::resolver resolver_;
  std::vector<Stream::endpoint> places_;
  Socket socket_;
  websocket::response_type response_;
  beast::flat_buffer buffer_;
  std::deque<std::string> unsent_;  // what the command asks for: a handful at most
  bool open_ = false;
  bool stopping_ = false;
  std::optional<Outcome> outcome_;
};

}  // namespace

struct Client::Parts {
  asio::io_context context{1};
  asio::signal_set signals{context, SIGINT, SIGTERM};
  asio::steady_timer alarm{context};
  bool signalled = false;
  Session* session = nullptr;

  Parts() {
    signals.async_wait([this](Error error, int) {
      if (error) return;
      signalled = true;
      if (session != nullptr) session->stop();
    });
  }
};

Client::Client() : parts_(std::make_unique<Parts>()) {}
Client::~Client() = default;

Outcome Client::run(const Endpoint& endpoint, const std::string& token, const Handlers& handlers) {
  Parts& p = *parts_;
  p.context.restart();
  p.context.poll();  // a signal may have come
  if (p.signalled) return {Ending::stopped, 0, 0, {}};
  const auto session = std::make_shared<Session>(p.context, endpoint, token, handlers);
  p.session = session.get();
  session->start();
  while (!session->outcome()) {
    if (p.context.poll_one() > 0) continue;
    if (session->open() && handlers.on_quiet) handlers.on_quiet();
    p.context.run_one();
  }
  p.session = nullptr;
  session->drop();
  return *session->outcome();
}

Visit Client::visit(const Doors& doors, const Handlers& handlers) {
  Visit visit;
  for (const DaemonAddress& door : doors) {
    visit.outcomes.push_back(run(door.endpoint, door.token, handlers));
    if (visit.last().ending != Ending::unreachable) break;
  }
  return visit;
}

void Client::send(std::string text) {
  if (parts_->session != nullptr) parts_->session->send(std::move(text));
}

void Client::post(std::function<void()> work) { asio::post(parts_->context, std::move(work)); }

void Client::set_alarm(std::int64_t ms, std::function<void()> ring) {
  parts_->alarm.expires_after(std::chrono::milliseconds(ms));  // what it waited for is cancelled
  parts_->alarm.async_wait([ring = std::move(ring)](Error error) {
    if (!error) ring();
  });
}

bool Client::pause(std::int64_t ms) {
  Parts& p = *parts_;
  p.context.restart();
  asio::steady_timer timer(p.context, std::chrono::milliseconds(ms));
  bool done = false;
  timer.async_wait([&](Error error) { done = done || !error; });
  while (!done && !p.signalled) p.context.run_one();
  timer.cancel();
  p.context.poll();  // the cancelled wait refers to `done`
  return !p.signalled;
}

}  // namespace earshot::common
