#include "serve/connection.hpp"

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <optional>
#include <string>

#include "core/event_json.hpp"
#include "serve/auth.hpp"
#include "serve/message.hpp"
#include "serve/ordered_stream.hpp"
#include "serve/subscriber.hpp"

namespace earshot::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Socket =
    asio::generic::stream_protocol::socket;  // TCP now; a Unix socket needs no second instantiation
using WebSocket = websocket::stream<OrderedStream<Socket>, false>;

constexpr std::string_view subprotocol = "earshot.v1";
constexpr std::size_t linger_bytes_max =
    64 << 10;  // read and dropped after an answer, so that no reset overtakes it

std::string_view view(boost::core::string_view text) { return {text.data(), text.size()}; }

std::vector<std::string_view> all_of(const http::fields& fields, http::field name) {
  std::vector<std::string_view> values;
  const auto range = fields.equal_range(name);
  for (auto it = range.first; it != range.second; ++it) values.push_back(view(it->value()));
  return values;
}

std::string welcome_payload(const Shared& shared) {
  std::string out = R"({"type":"welcome","protocol":1,"server":)";
  append_string(out, shared.server);
  out += R"(,"instance":)";
  append_string(out, shared.instance);
  out += R"(,"host":)";
  append_string(out, shared.host);
  out += R"(,"view":"full","limits":{"frame_bytes":)" + std::to_string(shared.limits.inbound_bytes_max);
  out += R"(,"subscriptions":)" + std::to_string(shared.limits.subscriptions_max) + "}}";
  return out;
}

class Client final : public Connection, public std::enable_shared_from_this<Client> {
 public:
  Client(asio::ip::tcp::socket socket, Shared& shared, Welcome welcome, std::function<void(Connection&)> gone)
      : shared_(shared),
        welcome_(welcome),
        gone_(std::move(gone)),
        ws_(std::move(socket)),
        subscriber_(shared) {
    error_code ignored;
    wire().set_option(asio::socket_base::send_buffer_size(shared.limits.send_buffer_bytes), ignored);
    wire().set_option(asio::ip::tcp::no_delay(true), ignored);
  }

  void start() { read_request(); }

  void ring() override {
    if (phase_ != Phase::open) return;
    if (waits_writable_ || !ws_.next_layer().free()) return subscriber_.shed();
    send();
  }

  void session_changed(const Session& session) override { subscriber_.session_changed(session); }

  void tick(Clock::time_point now) override;

  void stop() override {
    if (phase_ == Phase::request || phase_ == Phase::answer || phase_ == Phase::upgrade) return drop();
    if (phase_ != Phase::open) return;
    stopping_ = true;
    ring();
  }

  void drop() override {
    if (phase_ == Phase::gone) return;
    phase_ = Phase::gone;
    error_code ignored;
    wire().close(ignored);
    subscriber_.close();
    ws_.next_layer().abandon();
    ws_.next_layer().on_free(nullptr);
    asio::post(wire().get_executor(), [self = shared_from_this()] { self->gone_(*self); });
  }

 private:
  enum class Phase { request, answer, upgrade, open, closing, gone };

  Socket& wire() { return ws_.next_layer().next_layer(); }
  void enter(Phase phase) {
    phase_ = phase;
    entered_ = Clock::now();
  }

  void read_request();
  void on_request(error_code ec);
  void answer(const Answer& answer);
  void linger();
  void upgrade(bool authenticated);
  void read_message();
  void on_message(error_code ec);
  bool handle(std::string_view text);
  void subscribe(message::Subscribe subscribe);
  void authenticated();
  void send();
  void wait_writable();
  void ring_soon();
  void close(std::uint16_t code, std::string_view reason);

  Shared& shared_;
  const Welcome welcome_;
  std::function<void(Connection&)> gone_;
  WebSocket ws_;
  Subscriber subscriber_;
  Phase phase_ = Phase::request;
  bool authenticated_ = false;
  bool stopping_ = false;  // what is owed now, then goodbye
  bool reading_ = false;
  bool asleep_ = false;  // the next message waits: what the last one asked for is being read
  bool waits_writable_ = false;
  bool ring_posted_ = false;
  bool pinged_ = false;                        // since it was last heard
  bool pinging_ = false;                       // Beast takes one ping at a time
  Clock::time_point entered_ = Clock::now();   // when this phase began
  Clock::time_point heard_ = Clock::now();     // when the client last sent a byte
  Clock::time_point progress_ = Clock::now();  // when it last took one, or was owed none
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;
  beast::flat_buffer buffer_;

  struct Http {
    std::optional<http::request_parser<http::empty_body>> parser{std::in_place};
    http::response<http::string_body> response;
    std::size_t lingered = 0;
  };
  std::unique_ptr<Http> http_ = std::make_unique<Http>();  // gone after the upgrade
};

void Client::read_request() {
  http_->parser->header_limit(static_cast<std::uint32_t>(shared_.limits.request_bytes_max));
  buffer_.max_size(2 * shared_.limits.request_bytes_max);
  http::async_read_header(ws_.next_layer(), buffer_, *http_->parser,
                          [self = shared_from_this()](error_code ec, std::size_t) { self->on_request(ec); });
}

void Client::on_request(error_code ec) {
  if (phase_ == Phase::gone) return;
  Answer refused;
  refused.body = "this request cannot be read\n";
  if (ec == http::error::header_limit || ec == http::error::buffer_overflow) {
    refused.status = 431;
    refused.body = "the request's head is too long\n";
    return answer(refused);
  }
  if (ec && ec.category() == make_error_code(http::error::bad_method).category() &&
      ec != http::error::end_of_stream && ec != http::error::partial_message) {
    refused.status = 400;
    return answer(refused);
  }
  if (ec) return drop();

  const auto& head = http_->parser->get();
  Request request;
  request.method = view(head.method_string());
  request.target = view(head.target());
  request.hosts = all_of(head, http::field::host);
  request.origins = all_of(head, http::field::origin);
  request.authorizations = all_of(head, http::field::authorization);
  request.upgrade = websocket::is_upgrade(head);
  const Answer judged = judge(request, shared_.own, shared_.token);
  if (welcome_ == Welcome::busy && judged.status != 403) {
    refused.status = 503;
    refused.body = "too many connections; close some, or come again\n";
    return answer(refused);
  }
  if (judged.kind == Answer::Kind::response) return answer(judged);
  if (buffer_.size() > 0) {  // a client may not speak before its upgrade is granted
    refused.status = 400;
    return answer(refused);
  }
  upgrade(judged.authenticated);
}

void Client::answer(const Answer& answer) {
  enter(Phase::answer);
  auto& response = http_->response;
  response.version(11);
  response.result(answer.status);
  response.set(http::field::server, shared_.server);
  response.set(http::field::content_type, answer.content_type);
  response.set(http::field::cache_control, "no-store");
  response.set("Content-Security-Policy", boost::core::string_view(page_policy.data(), page_policy.size()));
  response.set("X-Content-Type-Options", "nosniff");
  response.set("Referrer-Policy", "no-referrer");
  response.set(http::field::connection, "close");
  if (answer.status == 401) response.set(http::field::www_authenticate, "Bearer");
  if (!answer.allow.empty()) response.set(http::field::allow, answer.allow);
  if (!answer.upgrade.empty()) response.set(http::field::upgrade, answer.upgrade);
  response.body() = answer.body;
  response.prepare_payload();
  http::async_write(ws_.next_layer(), response, [self = shared_from_this()](error_code ec, std::size_t) {
    if (ec) return self->drop();
    error_code ignored;
    self->wire().shutdown(asio::socket_base::shutdown_send, ignored);
    self->linger();
  });
}

/// What the client still sends is read and dropped until it closes: closing first would reset the answer
/// away.
void Client::linger() {
  buffer_.clear();
  wire().async_read_some(buffer_.prepare(4096), [self = shared_from_this()](error_code ec, std::size_t n) {
    self->http_->lingered += n;
    if (ec || self->http_->lingered > linger_bytes_max) return self->drop();
    self->linger();
  });
}

void Client::upgrade(bool authenticated) {
  enter(Phase::upgrade);
  authenticated_ = authenticated;
  const auto& head = http_->parser->get();
  http::token_list offered(head[http::field::sec_websocket_protocol]);
  const bool speaks_ours = offered.exists(boost::core::string_view(subprotocol.data(), subprotocol.size()));
  ws_.set_option(websocket::stream_base::decorator(
      [server = shared_.server, speaks_ours](websocket::response_type& response) {
        response.set(http::field::server, server);
        if (speaks_ours) {
          response.set(http::field::sec_websocket_protocol,
                       boost::core::string_view(subprotocol.data(), subprotocol.size()));
        }
      }));
  ws_.auto_fragment(false);
  ws_.read_message_max(authenticated ? shared_.limits.inbound_bytes_max
                                     : shared_.limits.inbound_bytes_max_stranger);
  ws_.async_accept(http_->parser->get(), [self = shared_from_this()](error_code ec) {
    if (self->phase_ == Phase::gone) return;
    if (ec) return self->drop();
    self->http_.reset();
    self->buffer_ = {};
    self->enter(Phase::open);
    self->heard_ = self->progress_ = self->entered_;
    self->ws_.next_layer().on_free([weak = self->weak_from_this()] {
      if (const auto alive = weak.lock()) alive->ring();
    });
    self->ws_.text(true);
    self->subscriber_.on_more = [weak = self->weak_from_this()] {
      if (const auto alive = weak.lock()) alive->ring_soon();
    };
    if (self->authenticated_) self->authenticated();
    self->read_message();
  });
}

void Client::authenticated() {
  authenticated_ = true;
  ws_.read_message_max(shared_.limits.inbound_bytes_max);
  subscriber_.tell(welcome_payload(shared_));
  ring();
}

void Client::read_message() {
  if (reading_ || phase_ != Phase::open) return;
  reading_ = true;
  ws_.async_read(buffer_, [self = shared_from_this()](error_code ec, std::size_t) { self->on_message(ec); });
}

void Client::on_message(error_code ec) {
  reading_ = false;
  if (phase_ == Phase::gone) return;
  if (ec) return drop();  // Beast has answered a close frame, or a violation with 1002, 1007 or 1009
  const beast::flat_buffer message = std::exchange(buffer_, {});  // an idle client keeps no buffer
  if (phase_ == Phase::open && !stopping_) {
    const auto data = message.cdata();
    const std::string_view text(static_cast<const char*>(data.data()), data.size());
    if (handle(ws_.got_text() ? text : std::string_view())) ring();  // a binary message says nothing
  }
  if (!subscriber_.congested() && !asleep_) read_message();
}

/// False: the connection is being closed.
bool Client::handle(std::string_view text) {
  message::Message said = message::parse(text);
  if (const auto* hello = std::get_if<message::Hello>(&said); hello && !authenticated_) {
    if (same_secret(hello->token, shared_.token)) {
      authenticated();
      return true;
    }
  }
  if (!authenticated_) {
    close(close_not_authenticated, "the first message is hello with the token");
    return false;
  }
  const auto say = [this](std::string_view id, std::string_view code, std::string_view what) {
    subscriber_.tell(message::error(id, code, what));
  };
  struct Visitor {
    Client& client;
    const decltype(say)& tell;
    void operator()(message::Hello& hello) {  // once more is no harm
      if (!same_secret(hello.token, client.shared_.token)) tell({}, "bad_message", "the token is wrong");
    }
    void operator()(message::Subscribe& subscribe) { client.subscribe(std::move(subscribe)); }
    void operator()(message::Unsubscribe& unsubscribe) { client.subscriber_.unsubscribe(unsubscribe.id); }
    void operator()(message::Read& read) { client.subscriber_.read(read); }
    void operator()(message::Bad& bad) { tell(bad.id, bad.code, bad.text); }
  };
  std::visit(Visitor{*this, say}, said);
  return true;
}

/// Who asks for all sessions waits until those that are only known have been read.
void Client::subscribe(message::Subscribe subscribe) {
  if (!subscribe.all || !subscribe.snapshot || !shared_.read_cold)
    return subscriber_.subscribe(std::move(subscribe));
  asleep_ = true;
  auto wanted = [filter = subscribe.filter, host = shared_.host](std::string_view session) {
    Filter without_project = filter;  // the project is known once the transcript is read
    without_project.project.clear();
    return without_project.matches_session(host, session, {});
  };
  shared_.read_cold(std::move(wanted), [weak = weak_from_this(), subscribe]() mutable {
    const auto self = weak.lock();
    if (!self || self->phase_ != Phase::open) return;
    self->asleep_ = false;
    self->subscriber_.subscribe(std::move(subscribe));
    self->ring();
    self->read_message();
  });
}

/// One write a turn, so that a client who is far behind does not hold up the others.
void Client::send() {
  Batch batch;
  subscriber_.gather(batch);
  if (batch.empty()) {
    if (stopping_) close(close_going_away, "the daemon stops");
    return;
  }
  error_code ec;
  const std::size_t sent = ws_.next_layer().send_now(batch.iovecs(), ec);
  if (ec) return drop();
  const auto rest = subscriber_.sent(batch, sent);
  if (!rest.empty()) ws_.next_layer().keep_rest(rest);
  if (sent < batch.bytes() || batch.full || stopping_) wait_writable();
  if (!subscriber_.congested() && !asleep_) read_message();
}

void Client::wait_writable() {
  if (waits_writable_) return;
  waits_writable_ = true;
  wire().async_wait(Socket::wait_write, [self = shared_from_this()](error_code ec) {
    self->waits_writable_ = false;
    if (self->phase_ == Phase::gone) return;
    if (ec) return self->drop();
    auto& stream = self->ws_.next_layer();
    if (stream.has_rest()) {
      stream.send_rest(ec);
      if (ec) return self->drop();
      if (stream.has_rest()) return self->wait_writable();
    }
    self->ring();
  });
}

void Client::ring_soon() {
  if (std::exchange(ring_posted_, true)) return;
  asio::post(wire().get_executor(), [self = shared_from_this()] {
    self->ring_posted_ = false;
    self->ring();
  });
}

void Client::close(std::uint16_t code, std::string_view reason) {
  if (phase_ != Phase::open) return;
  enter(Phase::closing);
  const websocket::close_reason why(static_cast<websocket::close_code>(code),
                                    boost::core::string_view(reason.data(), reason.size()));
  ws_.async_close(why, [self = shared_from_this()](error_code) { self->drop(); });
}

void Client::tick(Clock::time_point now) {
  const auto& limits = shared_.limits;
  auto& stream = ws_.next_layer();
  const auto in_phase = now - entered_;
  switch (phase_) {
    case Phase::request:
    case Phase::answer:
    case Phase::upgrade:
      if (in_phase > limits.handshake) drop();
      return;
    case Phase::closing:
      if (in_phase > limits.goodbye) drop();
      return;
    case Phase::gone:
      return;
    case Phase::open:
      break;
  }
  if (stream.closed()) {  // Beast has closed: the client broke the protocol, or said goodbye
    enter(Phase::closing);
    return;
  }
  if (!authenticated_ && in_phase > limits.hello) return close(close_not_authenticated, "no hello in time");
  if (std::exchange(bytes_in_, stream.bytes_in()) != stream.bytes_in() || asleep_) {
    heard_ = now;
    pinged_ = false;
  }
  if (std::exchange(bytes_out_, stream.bytes_out()) != stream.bytes_out() || !waits_writable_)
    progress_ = now;
  subscriber_.tick(now);
  if (!waits_writable_) ring();
  if (now - progress_ > limits.stall) return close(close_stalled, "nothing was read for too long");
  if (now - heard_ > limits.silence) return drop();
  if (now - heard_ > limits.ping && !pinged_ && !pinging_) {
    pinged_ = pinging_ = true;
    ws_.async_ping({}, [self = shared_from_this()](error_code) { self->pinging_ = false; });
  }
}

}  // namespace

std::shared_ptr<Connection> connect(asio::ip::tcp::socket socket, Shared& shared, Welcome welcome,
                                    std::function<void(Connection&)> gone) {
  auto client = std::make_shared<Client>(std::move(socket), shared, welcome, std::move(gone));
  client->start();
  return client;
}

}  // namespace earshot::serve
