#include "common/client.hpp"

#include <boost/beast/websocket.hpp>
#include <chrono>
#include <csignal>
#include <deque>
#include <optional>
#include <utility>

#include "common/connection.hpp"
#include "common/format.hpp"

namespace earshot::common {
namespace {

namespace websocket = beast::websocket;
using Error = boost::system::error_code;

constexpr std::chrono::seconds close_timeout{1};  // for the closing handshake

constexpr const char* subprotocol = "earshot.v1";

// From the upgrade on.
class Session final : public Connection {
 public:
  Session(asio::io_context& context, const DaemonAddress& address, const Handlers& handlers)
      : Connection(context, address), handlers_(handlers), socket_(wire()), silence_(context) {}

  void send(std::string text) {
    unsent_.push_back(std::move(text));
    if (unsent_.size() == 1) write();
  }

  /// Starts the closing handshake if the connection is open.
  void stop() {
    if (stopping_ || outcome()) return;
    stopping_ = true;
    if (!open_) return end(EndReason::stopped, {});
    websocket::stream_base::timeout limit{};
    limit.handshake_timeout = close_timeout;
    limit.idle_timeout = close_timeout;
    socket_.set_option(limit);
    socket_.async_close(websocket::close_code::normal,
                        [this, own = shared_from_this()](Error) { end(EndReason::stopped, {}); });
  }

  void cancel() override {
    silence_.cancel();
    Connection::cancel();
  }

  bool open() const { return open_; }

 private:
  void on_ready() override {
    plain().expires_never();  // the WebSocket layer has its own timer
    websocket::stream_base::timeout limits{};
    limits.handshake_timeout = std::chrono::seconds(handshake_seconds_max);
    limits.idle_timeout = std::chrono::seconds(Client::silence_seconds_max);
    limits.keep_alive_pings = true;
    socket_.set_option(limits);
    socket_.read_message_max(Client::frame_bytes_max);
    socket_.set_option(websocket::stream_base::decorator([this](websocket::request_type& request) {
      request.set(http::field::user_agent, user_agent());
      request.set(http::field::sec_websocket_protocol, subprotocol);
      if (!address().token.empty()) request.set(http::field::authorization, "Bearer " + address().token);
    }));
    socket_.async_handshake(response_, address().endpoint.authority(), address().endpoint.path,
                            [this, own = shared_from_this()](Error failure) { on_upgraded(failure); });
  }

  void on_upgraded(Error error) {
    if (outcome()) return;
    if (error == websocket::error::upgrade_declined) {
      ConnectionOutcome outcome{EndReason::refused, static_cast<int>(response_.result_int()), 0, {}};
      outcome.text = "HTTP " + std::to_string(outcome.http_status) + " " + std::string(response_.reason());
      return end(std::move(outcome));
    }
    if (error == beast::error::timeout) return end(EndReason::unreachable, unanswered);
    if (error)
      return end(EndReason::refused, "the server there does not speak WebSocket (" + error.message() + ")");
    open_ = true;
    watch_silence();
    if (handlers_.on_open) handlers_.on_open();
    read();
  }

  // Beast's idle timeout counts pongs: they prove that the peer's WebSocket layer runs, but a proxy may
  // answer them too.
  void watch_silence() {
    silence_.expires_after(std::chrono::seconds(Client::silence_seconds_max));
    silence_.async_wait([this, own = shared_from_this()](Error error) {
      if (!error && !stopping_) end(EndReason::closed, silence_text());
    });
  }

  void read() {
    socket_.async_read(buffer(), [this, own = shared_from_this()](Error error, std::size_t) {
      if (outcome()) return;
      if (error) return on_lost(error);
      const auto bytes = buffer().cdata();
      const bool more = stopping_ || handlers_.on_frame(std::string_view(
                                         static_cast<const char*>(bytes.data()), bytes.size()));
      buffer().consume(buffer().size());
      if (more) {
        watch_silence();
      } else {
        stop();
      }
      read();  // also while closing: the peer's close frame has to be read
    });
  }

  void on_lost(Error error) {
    if (stopping_) return;  // async_close reports the end
    ConnectionOutcome outcome{EndReason::closed, 0, 0, {}};
    if (error == websocket::error::closed) {
      outcome.close_code = static_cast<int>(socket_.reason().code);
      outcome.text = "closed by the daemon (" + std::to_string(outcome.close_code) + ")";
      if (!socket_.reason().reason.empty()) {
        outcome.text += ": ";
        outcome.text.append(socket_.reason().reason.data(), socket_.reason().reason.size());
      }
    } else if (error == beast::error::timeout) {
      outcome.text = silence_text();
    } else if (error == websocket::error::message_too_big) {
      outcome.text = "a frame is longer than " + std::to_string(Client::frame_bytes_max) + " bytes";
    } else {
      outcome.text = error == asio::error::eof ? ended : error.message();
    }
    end(std::move(outcome));
  }

  static std::string silence_text() {
    return "no frame received for " + std::to_string(Client::silence_seconds_max) + " s";
  }

  void write() {
    socket_.text(true);
    socket_.async_write(asio::buffer(unsent_.front()),
                        [this, own = shared_from_this()](Error error, std::size_t) {
                          if (error || outcome()) return;  // the pending read reports the reason
                          unsent_.pop_front();
                          if (!unsent_.empty()) write();
                        });
  }

  const Handlers& handlers_;  // of the caller of run()
  websocket::stream<Wire&> socket_;
  asio::steady_timer silence_;
  websocket::response_type response_;
  std::deque<std::string> unsent_;  // requests of the command: a handful at most
  bool open_ = false;
  bool stopping_ = false;
};

}  // namespace

struct Client::Impl {
  asio::io_context context{1};
  asio::signal_set signals{context, SIGINT, SIGTERM};
  asio::signal_set hangups{context};
  std::function<void()> on_hangup;
  asio::steady_timer timer{context};
  bool signalled = false;
  bool interrupted = false;
  Session* session = nullptr;

  void await_hangup() {
    hangups.async_wait([this](Error error, int) {
      if (error) return;
      on_hangup();
      await_hangup();
    });
  }

  Impl() {
    signals.async_wait([this](Error error, int) {
      if (error) return;
      signalled = true;
      if (session != nullptr) session->stop();
    });
  }
};

Client::Client() : impl_(std::make_unique<Impl>()) {}
Client::~Client() = default;

ConnectionOutcome Client::run(const DaemonAddress& address, const Handlers& handlers) {
  if (!address.unusable.empty()) return {EndReason::unreachable, 0, 0, address.unusable};
  Impl& impl = *impl_;
  impl.context.restart();
  impl.context.poll();  // delivers a signal that arrived meanwhile
  if (impl.signalled || std::exchange(impl.interrupted, false)) return {EndReason::stopped, 0, 0, {}};
  const auto session = std::make_shared<Session>(impl.context, address, handlers);
  impl.session = session.get();
  session->start();
  while (!session->outcome()) {
    if (impl.context.poll_one() > 0) continue;
    if (session->open() && handlers.on_idle) handlers.on_idle();
    impl.context.run_one();
  }
  impl.session = nullptr;
  impl.interrupted = false;
  session->cancel();
  return *session->outcome();
}

ConnectResult Client::run_any(const DaemonAddresses& addresses, const Handlers& handlers) {
  ConnectResult result;
  for (const DaemonAddress& address : addresses) {
    result.outcomes.push_back(run(address, handlers));
    if (result.last().end_reason != EndReason::unreachable) break;
  }
  return result;
}

void Client::send(std::string text) {
  if (impl_->session != nullptr) impl_->session->send(std::move(text));
}

void Client::post(std::function<void()> work) { asio::post(impl_->context, std::move(work)); }

void Client::set_timer(std::int64_t ms, std::function<void()> on_expiry) {
  impl_->timer.expires_after(std::chrono::milliseconds(ms));  // cancels the previous wait
  impl_->timer.async_wait([on_expiry = std::move(on_expiry)](Error error) {
    if (!error) on_expiry();
  });
}

void Client::handle_hangup(std::function<void()> on_hangup) {
  impl_->on_hangup = std::move(on_hangup);
  impl_->hangups.add(SIGHUP);
  impl_->await_hangup();
}

void Client::interrupt() {
  impl_->interrupted = true;
  if (impl_->session != nullptr) impl_->session->stop();
}

bool Client::pause(std::int64_t ms) {
  Impl& impl = *impl_;
  impl.context.restart();
  asio::steady_timer timer(impl.context, std::chrono::milliseconds(ms));
  bool done = false;
  timer.async_wait([&](Error error) { done = done || !error; });
  while (!done && !impl.signalled && !impl.interrupted) impl.context.run_one();
  timer.cancel();
  impl.context.poll();  // the cancelled wait refers to `done`; a hangup may arrive here, too
  impl.interrupted = false;
  return !impl.signalled;
}

}  // namespace earshot::common
