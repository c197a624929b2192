#include "common/client.hpp"

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/erased_stream.hpp"
#include "common/format.hpp"

namespace earshot::common {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using Tcp = asio::ip::tcp;
using Stream = asio::generic::stream_protocol;  // TCP and Unix sockets share one template instantiation
using Plain = beast::basic_stream<Stream>;
using Tls = asio::ssl::stream<Plain&>;
using Error = boost::system::error_code;

// A connection with or without TLS, decided at run time: Beast is instantiated once.
class Wire {
 public:
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
  friend void teardown(beast::role_type role, Wire& wire, Error& error) {
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
  void read_some(const BufferList<asio::mutable_buffer>& buffers, StreamDone done) {
    tls_ ? tls_->async_read_some(buffers, std::move(done)) : plain_.async_read_some(buffers, std::move(done));
  }
  void write_some(const BufferList<asio::const_buffer>& buffers, StreamDone done) {
    tls_ ? tls_->async_write_some(buffers, std::move(done))
         : plain_.async_write_some(buffers, std::move(done));
  }

  Plain plain_;
  std::optional<Tls> tls_;
};
using Socket = websocket::stream<Wire>;

// Trusts the certificates of `ca_file` (empty: of the system). Returns the reason if the file cannot be used.
std::string trust(asio::ssl::context& context, const std::string& ca_file) {
  Error error;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_verify_mode(asio::ssl::verify_peer, error);
  if (ca_file.empty())
    context.set_default_verify_paths(error);
  else
    context.load_verify_file(ca_file, error);
  return error ? "cannot read the certificates of " + (ca_file.empty() ? "the system" : ca_file) + ": " +
                     error.message()
               : "";
}

constexpr std::chrono::seconds close_timeout{1};  // for the closing handshake

constexpr const char* subprotocol = "earshot.v1";
constexpr const char* ended = "the connection ended";
constexpr const char* unanswered = "the connection was accepted but not answered";

Tcp::endpoint tcp_endpoint(const Stream::endpoint& generic) {
  Tcp::endpoint endpoint;
  if (generic.size() > endpoint.capacity()) return endpoint;
  std::memcpy(endpoint.data(), generic.data(), generic.size());
  endpoint.resize(generic.size());
  return endpoint;
}

// One connection, from name resolution to its end. Pending handlers share ownership: cancelled ones run after
// run() has returned.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(asio::io_context& context, const DaemonAddress& address, const Handlers& handlers)
      : address_(address), handlers_(handlers), resolver_(context), socket_(context), silence_(context) {}

  void start() {
    if (endpoint_.is_unix()) {
      const asio::local::stream_protocol::endpoint path(endpoint_.socket);
      return connect({Stream::endpoint(path)});
    }
    resolver_.async_resolve(
        endpoint_.host, endpoint_.port,
        [this, self = shared_from_this()](Error error, Tcp::resolver::results_type found) {
          if (outcome_) return;
          if (error) return end(EndReason::unreachable, error.message());
          std::vector<Stream::endpoint> candidates;
          for (const auto& each : found) candidates.emplace_back(each.endpoint());
          connect(std::move(candidates));
        });
  }

  void send(std::string text) {
    unsent_.push_back(std::move(text));
    if (unsent_.size() == 1) write();
  }

  /// Starts the closing handshake if the connection is open.
  void stop() {
    if (stopping_ || outcome_) return;
    stopping_ = true;
    if (!open_) return end(EndReason::stopped, {});
    websocket::stream_base::timeout limit{};
    limit.handshake_timeout = close_timeout;
    limit.idle_timeout = close_timeout;
    socket_.set_option(limit);
    socket_.async_close(websocket::close_code::normal,
                        [this, self = shared_from_this()](Error) { end(EndReason::stopped, {}); });
  }

  /// Cancels pending operations. The caller's objects are not accessed afterwards.
  void cancel() {
    resolver_.cancel();
    silence_.cancel();
    plain().close();
  }

  const std::optional<ConnectionOutcome>& outcome() const { return outcome_; }
  bool open() const { return open_; }

 private:
  void connect(std::vector<Stream::endpoint> candidates) {
    plain().expires_after(std::chrono::seconds(Client::handshake_seconds_max));
    candidates_ = std::move(candidates);
    plain().async_connect(candidates_, [this, self = shared_from_this()](
                                           Error error, const Stream::endpoint&) { on_connected(error); });
  }

  Plain& plain() { return socket_.next_layer().plain(); }

  void on_connected(Error error) {
    if (outcome_) return;
    if (error)
      return end(EndReason::unreachable, error == beast::error::timeout ? "no answer" : error.message());
    if (!endpoint_.is_unix()) plain().socket().set_option(Tcp::no_delay(true), error);
    if (endpoint_.tls) return encrypt();
    address_.needs_proof() ? ask_for_proof() : upgrade();
  }

  void encrypt() {
    trusted_.emplace(asio::ssl::context::tls_client);
    if (const std::string reason = trust(*trusted_, address_.tls_ca); !reason.empty())
      return end(EndReason::refused, reason);
    Tls& tls = socket_.next_layer().start_tls(*trusted_);
    Error error;
    asio::ip::make_address(endpoint_.host, error);
    if (error) SSL_set_tlsext_host_name(tls.native_handle(), endpoint_.host.c_str());  // a name, not a number
    tls.set_verify_callback(asio::ssl::host_name_verification(endpoint_.host), error);
    tls.async_handshake(Tls::client, [this, &tls, self = shared_from_this()](Error failure) {
      if (outcome_) return;
      if (failure == beast::error::timeout)
        return end(EndReason::unreachable, "the TLS handshake was not answered");
      if (failure) return end(EndReason::refused, tls_error(failure, tls));
      upgrade();
    });
  }

  static std::string tls_error(Error error, Tls& tls) {
    std::string text = "TLS: " + error.message();
    const long result = SSL_get_verify_result(tls.native_handle());
    if (result != X509_V_OK)
      text.append(" (")
          .append(X509_verify_cert_error_string(result))
          .append("); trust its authority with --tls-ca FILE");
    return text;
  }

  void ask_for_proof() {
    nonce_ = make_nonce();
    question_.method(http::verb::get);
    question_.target("/v1/proof?nonce=" + nonce_);
    question_.set(http::field::host, endpoint_.authority());
    question_.set(http::field::user_agent, user_agent());
    proof_.emplace();
    proof_->body_limit(proof_bytes_max);
    http::async_write(socket_.next_layer(), question_,
                      [this, self = shared_from_this()](Error error, std::size_t) {
                        if (outcome_) return;
                        if (error) return on_proof(error);
                        http::async_read(socket_.next_layer(), buffer_, *proof_,
                                         [this, self = shared_from_this()](Error failure, std::size_t) {
                                           if (!outcome_) on_proof(failure);
                                         });
                      });
  }

  void on_proof(Error error) {
    if (error == beast::error::timeout) return end(EndReason::unreachable, unanswered);
    if (error == http::error::end_of_stream || error == asio::error::connection_reset)
      return end(EndReason::closed, ended);  // perhaps the daemon stops
    if (error) return end(not_proven(0, error.message()));
    const Tcp::endpoint peer = tcp_endpoint(plain().socket().remote_endpoint(error));
    const auto& answer = proof_->get();
    const bool proven = answer.result() == http::status::ok &&
                        is_proof(answer.body(), address_.token, nonce_,
                                 host_and_port(peer.address().to_string(), peer.port()));
    if (!proven) return end(not_proven(answer.result_int()));
    if (!answer.keep_alive() || buffer_.size() > 0) return end(EndReason::closed, ended);
    upgrade();
  }

  void upgrade() {
    plain().expires_never();  // the WebSocket layer has its own timer
    websocket::stream_base::timeout limits{};
    limits.handshake_timeout = std::chrono::seconds(Client::handshake_seconds_max);
    limits.idle_timeout = std::chrono::seconds(Client::silence_seconds_max);
    limits.keep_alive_pings = true;
    socket_.set_option(limits);
    socket_.read_message_max(Client::frame_bytes_max);
    socket_.set_option(websocket::stream_base::decorator([this](websocket::request_type& request) {
      request.set(http::field::user_agent, user_agent());
      request.set(http::field::sec_websocket_protocol, subprotocol);
      if (!address_.token.empty()) request.set(http::field::authorization, "Bearer " + address_.token);
    }));
    socket_.async_handshake(response_, endpoint_.authority(), endpoint_.path,
                            [this, self = shared_from_this()](Error failure) { on_upgraded(failure); });
  }

  void on_upgraded(Error error) {
    if (outcome_) return;
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
    silence_.async_wait([this, self = shared_from_this()](Error error) {
      if (!error && !stopping_) end(EndReason::closed, silence_text());
    });
  }

  void read() {
    socket_.async_read(buffer_, [this, self = shared_from_this()](Error error, std::size_t) {
      if (outcome_) return;
      if (error) return on_lost(error);
      const auto bytes = buffer_.cdata();
      const bool more = stopping_ || handlers_.on_frame(std::string_view(
                                         static_cast<const char*>(bytes.data()), bytes.size()));
      buffer_.consume(buffer_.size());
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
                        [this, self = shared_from_this()](Error error, std::size_t) {
                          if (error || outcome_) return;  // the pending read reports the reason
                          unsent_.pop_front();
                          if (!unsent_.empty()) write();
                        });
  }

  void end(EndReason end_reason, std::string text) {
    end(ConnectionOutcome{end_reason, 0, 0, std::move(text)});
  }
  void end(ConnectionOutcome outcome) {
    if (!outcome_) outcome_ = std::move(outcome);
  }

  const DaemonAddress& address_;  // these belong to the caller of run()
  const Endpoint& endpoint_ = address_.endpoint;
  const Handlers& handlers_;
  std::optional<asio::ssl::context> trusted_;  // with TLS
  Tcp::resolver resolver_;
  std::vector<Stream::endpoint> candidates_;
  Socket socket_;
  asio::steady_timer silence_;
  std::string nonce_;
  http::request<http::empty_body> question_;
  std::optional<http::response_parser<http::string_body>> proof_;
  websocket::response_type response_;
  beast::flat_buffer buffer_;
  std::deque<std::string> unsent_;  // requests of the command: a handful at most
  bool open_ = false;
  bool stopping_ = false;
  std::optional<ConnectionOutcome> outcome_;
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
