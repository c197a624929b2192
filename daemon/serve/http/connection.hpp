// A client's HTTP requests, until one of them starts a WebSocket or an event stream.
#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "serve/auth/access.hpp"
#include "serve/http/router.hpp"
#include "serve/stream/subscriber_session.hpp"
#include "serve/websocket/transport.hpp"

namespace earshot::serve {

/// busy: every request is answered by 503. foreign: by 403, as another user is connected.
enum class Admission { yes, busy, foreign };

class HttpConnection final : public Connection, public std::enable_shared_from_this<HttpConnection> {
 public:
  using error_code = boost::system::error_code;

  HttpConnection(std::unique_ptr<Transport> transport, TransportKind transport_kind, ServerContext& context,
                 Admission admission, std::function<void(Connection&)> on_closed);
  void start();

  void wake() override;
  Subscriber* subscriber() override { return state_ == State::session ? &session_->subscriber() : nullptr; }
  void tick(Clock::time_point now) override;
  void stop() override;
  void token_changed() override;
  void browser_removed(std::string_view browser) override;
  void drop() override;
  std::optional<Clock::time_point> unauthenticated_since() const override {
    const bool is_known = is_authenticated_ || (session_ && session_->is_authenticated());
    if (is_known || is_closed() || admission_ != Admission::yes) return {};
    return entered_;
  }
  Kind kind() const override { return session_ ? session_->kind() : Kind::http; }
  TransportKind transport_kind() const override { return transport_kind_; }

  // For the session that took over the connection
  ServerContext& context() { return context_; }
  Transport& transport() { return *transport_; }
  Audit& audit() { return audit_; }
  TokenBucket& rate() { return rate_; }
  bool is_stopping() const { return stopping_; }
  bool is_closed() const { return state_ == State::closed; }
  /// Sends a response instead of starting the session.
  void respond(HttpResponse response, bool last = false);
  /// The session has been set: it handles the connection from here on.
  void run_session();
  /// Ends the connection once the client has read everything.
  void linger();

 private:
  enum class State {
    handshake,   // TLS
    reading,     // a request, or waiting for one
    working,     // the response is being made
    responding,  // the response is being written
    lingering,   // the last response was written: waiting for the client to close
    session,     // a WebSocket or an event stream
    closed
  };
  void enter(State state) {
    state_ = state;
    entered_ = Clock::now();
  }

  void read_request();
  void on_fault(Fault fault);
  void on_head();
  void read_body(std::size_t bytes_max);
  void handle();
  void make(HttpResponse sliced);
  HttpResponse refuse_response();
  void finish(HttpResponse response, const Caller& caller);
  void log_access(const Request& request, const Caller& caller, const HttpResponse& response);
  Caller identify(const Request& request, Clock::time_point now);
  void store_browsers(HttpResponse response);
  void check_request_time(Clock::time_point now);
  /// Of all connections. Clients without a token leave room for the others, and all of TCP for the owner's
  /// socket.
  std::size_t response_bytes_max(bool is_authenticated) const {
    const std::size_t quarter = context_.limits.response_bytes_max / 4;
    if (transport_kind_ == TransportKind::unix_socket) return 4 * quarter;
    return is_authenticated ? 3 * quarter : quarter;
  }
  void account_response(std::size_t bytes) {
    context_.response_bytes += bytes;
    context_.response_bytes -= std::exchange(response_bytes_, bytes);
  }
  void count_bytes();

  ServerContext& context_;
  const std::unique_ptr<Transport> transport_;
  const TransportKind transport_kind_;
  const Admission admission_;
  std::function<void(Connection&)> on_closed_;  // owns the context: destroyed after `session_`
  std::unique_ptr<SubscriberSession> session_;
  Audit audit_;
  TokenBucket rate_;  // of requests and messages
  State state_ = State::handshake;
  Clock::time_point entered_ = Clock::now();
  std::optional<Clock::time_point> request_began_;  // when its first byte was seen
  std::size_t requests_ = 0;                        // answered ones
  std::size_t response_bytes_ = 0;                  // being written
  bool is_authenticated_ = false;                   // by a request
  Caller caller_;                                   // of the current request
  bool is_making_ = false;                          // the response, in several turns of the loop
  bool stopping_ = false;
  std::uint64_t counted_in_ = 0, counted_out_ = 0;
};

/// Starts to serve a client. The connection keeps itself alive until its socket is closed; `on_closed` is
/// then called once, from the loop. `context` outlives `on_closed`.
std::shared_ptr<Connection> connect(std::unique_ptr<Transport> transport, TransportKind transport_kind,
                                    ServerContext& context, Admission admission,
                                    std::function<void(Connection&)> on_closed);

}  // namespace earshot::serve
