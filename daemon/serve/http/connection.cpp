// A client's HTTP: requests, answers, and how long they may take.
#include <boost/asio/post.hpp>
#include <utility>

#include "serve/http/router.hpp"
#include "serve/websocket/client.hpp"

namespace earshot::serve {

namespace asio = boost::asio;

Client::Client(std::unique_ptr<Transport> wire, TransportKind via, ServerContext& shared, Admission welcome,
               std::function<void(Connection&)> gone)
    : shared_(shared),
      wire_(std::move(wire)),
      via_(via),
      welcome_(welcome),
      gone_(std::move(gone)),
      subscriber_(shared),
      messages_(shared.limits.messages_per_second, shared.limits.messages_burst) {
  ++shared.counts.connections;
}

void Client::start() {
  if (!shared_.users.empty()) audit_.begin(wire_->socket(), via_);
  subscriber_.on_more = [weak = weak_from_this()] {
    if (const auto alive = weak.lock()) alive->ring_soon();
  };
  wire_->open([self = shared_from_this()](error_code ec) {
    if (self->phase_ == Phase::gone) return;
    if (ec) return self->drop();
    self->read_request();
  });
}

Connection::Kind Client::kind() const {
  if (phase_ == Phase::events) return Kind::events;
  return phase_ == Phase::socket || phase_ == Phase::upgrade ? Kind::websocket : Kind::http;
}

void Client::read_request() {
  enter(Phase::request);
  begun_.reset();
  wire_->read_head([self = shared_from_this()](Fault fault) {
    if (self->phase_ != Phase::request) return;  // it came too late, or somebody is going
    if (fault != Fault::none) return self->on_fault(fault);
    self->on_head(fault);
  });
}

void Client::on_fault(Fault fault) {
  switch (fault) {
    case Fault::none:
    case Fault::gone:
      return drop();
    case Fault::unreadable:
      shared_.counts.refuse(Refusal::unreadable);
      return reply(plain(400, "this request cannot be read"), true);
    case Fault::head_too_long:
      shared_.counts.refuse(Refusal::too_long);
      return reply(plain(431, "the request's head is too long"), true);
    case Fault::target_too_long:
      shared_.counts.refuse(Refusal::too_long);
      return reply(plain(414, "the path and its query are too long"), true);
    case Fault::body_too_long:
      shared_.counts.refuse(Refusal::too_long);
      return reply(plain(413, "the request's body is too long"), true);
  }
}

/// Who may not ask at all is told so before a body is read.
void Client::on_head(Fault) {
  const Request request = wire_->request();
  if (welcome_ == Admission::foreign) {
    shared_.counts.refuse(Refusal::peer);
    return reply(plain(403, "this socket is another user's"), true);
  }
  if (const auto refused = refuse(request, via_, shared_.own)) {
    shared_.counts.refuse(Refusal::host_or_origin);
    return reply(*refused, true);
  }
  if (welcome_ == Admission::busy) {
    shared_.counts.refuse(Refusal::connections);
    return reply(plain(503, "too many connections; close some, or come again"), true);
  }
  if (!messages_.take(Clock::now())) {
    shared_.counts.refuse(Refusal::too_often);
    return reply(plain(429, "too many requests; come again later"), true);
  }
  if (!wire_->expects_continue()) return read_body();
  wire_->write("HTTP/1.1 100 Continue\r\n\r\n", [self = shared_from_this()](error_code ec) {
    if (self->phase_ != Phase::request) return;
    if (ec) return self->drop();
    self->read_body();
  });
}

void Client::read_body() {
  wire_->read_body([self = shared_from_this()](Fault fault) {
    if (self->phase_ != Phase::request) return;
    if (fault != Fault::none) return self->on_fault(fault);
    self->act(false);
  });
}

void Client::act(bool cold_is_read) {
  enter(Phase::work);
  user_ = nullptr;  // each request says anew who asks
  subscriber_.restrict_to(nullptr);
  const Request request = wire_->request();
  view_ = via_ == TransportKind::tls ? shared_.remote_view : View::full;
  RequestContext asker{via_, standing_of(request, via_, shared_.token), Clock::now(), view_, cold_is_read};
  if (asker.standing == AuthResult::wrong_token)
    asker.user = user_of_token(shared_.users, bearer_token(request));
  if (asker.user) {
    asker.standing = AuthResult::user;
    known_as(*asker.user);
    asker.view = view_;
  }
  HttpResponse answer = route(request, asker, shared_);
  owner_ = asker.standing == AuthResult::owner || asker.user;
  by_token_ = asker.standing == AuthResult::owner && via_ != TransportKind::unix_socket;
  if (answer.meta) view_ = View::meta;
  audit(request, asker.standing, answer);
  switch (answer.kind) {
    case HttpResponse::Kind::response:
      return reply(answer);
    case HttpResponse::Kind::cold:
      return read_cold(std::move(answer));
    case HttpResponse::Kind::events:
      return stream(answer);
    case HttpResponse::Kind::websocket:
      return upgrade(answer);
  }
}

void Client::known_as(const User& user) {
  user_ = &user;
  if (user.view == View::meta || (via_ == TransportKind::tls && shared_.remote_view == View::meta))
    view_ = View::meta;
  subscriber_.restrict_to(&user.allowed);
}

/// Who it is, as the audit's lines call him.
std::string_view Client::who() const {
  return user_ ? std::string_view(user_->name) : owner_ ? "the owner" : "nobody";
}

std::string_view Client::sees() const {
  return !owner_ ? "is shown nothing" : view_ == View::meta ? "is shown meta" : "is shown full";
}

/// What came of a request. That somebody listens from here on, or was handed a secret, is a line of its own.
void Client::audit(const Request& request, AuthResult standing, const HttpResponse& answer) {
  const std::string_view what = name_of_path(request.path());
  if (!answer.hands_out.empty())
    return audit_.tell(owner_ ? who() : "who has a one-time code", what,
                       "is given " + std::string(answer.hands_out));
  if (standing == AuthResult::wrong_token)
    return audit_.note("nobody", what, "is shown nothing: the token is wrong");
  if (answer.status >= 400) return audit_.note(who(), what, "is shown nothing");
  const bool listens =
      answer.kind == HttpResponse::Kind::websocket || answer.kind == HttpResponse::Kind::events;
  listens ? audit_.tell(who(), what, sees()) : audit_.note(who(), what, sees());
}

void Client::read_cold(HttpResponse answer) {
  shared_.read_cold(std::move(answer.wanted), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->phase_ == Phase::work) self->act(true);
  });
}

/// The `last` answer closes the connection, whatever the client would like.
void Client::reply(const HttpResponse& answer, bool last) {
  if (audit_.owes()) audit_.note("nobody", "what is refused unread", "is shown nothing");
  enter(Phase::answer);
  ++shared_.counts.answers[answer.status];
  ++requests_;
  Delivery delivery;
  delivery.server = shared_.server;
  delivery.now = std::chrono::system_clock::now();
  if (!last) {
    delivery.keep_alive = wire_->keep_alive() && requests_ < shared_.limits.requests_max && !stopping_;
    delivery.http_1_0 = wire_->http_1_0();
    delivery.head = wire_->request().method == "HEAD";
  }
  wire_->write(encode(answer, delivery),
               [self = shared_from_this(), keep = delivery.keep_alive](error_code ec) {
                 if (self->phase_ == Phase::gone) return;
                 if (ec) return self->drop();
                 self->replied(keep);
               });
}

void Client::replied(bool keep_alive) {
  count();
  if (keep_alive && !stopping_) return read_request();
  linger();
}

void Client::linger() {
  enter(Phase::linger);
  wire_->finish([self = shared_from_this()](error_code) { self->drop(); });
}

/// A request that began and did not end in time is told so; one that never began is not.
void Client::too_slow(Clock::time_point now) {
  const auto& limits = shared_.limits;
  if (!begun_ && wire_->begun()) begun_ = requests_ == 0 ? entered_ : now;
  if (!begun_) {
    if (now - entered_ > (requests_ == 0 ? limits.handshake : limits.keep_alive)) drop();
    return;
  }
  if (now - *begun_ <= limits.handshake) return;
  shared_.counts.refuse(Refusal::too_slow);
  enter(Phase::answer);  // what is being read is no request any more
  wire_->cancel();
  asio::post(wire_->socket().get_executor(), [self = shared_from_this()] {
    if (self->phase_ != Phase::gone) self->reply(plain(408, "the request did not come in time"), true);
  });
}

// --- All phases ---

void Client::ring() {
  if (phase_ == Phase::events) {
    if (writing_) return subscriber_.shed();
    return send_lines();
  }
  if (phase_ != Phase::socket) return;
  if (waits_room_ || !wire_->free()) return subscriber_.shed();
  send();
}

void Client::tick(Clock::time_point now) {
  const auto& limits = shared_.limits;
  const auto in_phase = now - entered_;
  count();
  switch (phase_) {
    case Phase::open:
    case Phase::upgrade:
      if (in_phase > limits.handshake) drop();
      return;
    case Phase::request:
      return too_slow(now);
    case Phase::work:
      return;  // what the answer needs is being read from the disk
    case Phase::answer:
      if (in_phase > limits.answer) drop();
      return;
    case Phase::linger:
    case Phase::closing:
      if (in_phase > limits.goodbye) drop();
      return;
    case Phase::socket:
      tick_socket(now);
      break;
    case Phase::events:
      tick_events(now);
      break;
    case Phase::gone:
      return;
  }
  if (!subscribed()) return;
  subscriber_.tick(now);
  ring();
}

void Client::stop() {
  switch (phase_) {
    case Phase::answer:
      stopping_ = true;
      return;
    case Phase::socket:
    case Phase::events:
      stopping_ = true;
      return ring();
    case Phase::linger:
    case Phase::closing:
    case Phase::gone:
      return;
    case Phase::open:
    case Phase::request:
    case Phase::work:
    case Phase::upgrade:
      return drop();
  }
}

void Client::token_changed() {
  if (!by_token_) return;
  if (phase_ == Phase::socket) {
    shared_.counts.end(Ending::token_changed);
    return close(close_not_authenticated, "there is a new token");
  }
  if (phase_ == Phase::events || phase_ == Phase::upgrade) {
    shared_.counts.end(Ending::token_changed);
    drop();
  }
}

void Client::drop() {
  if (phase_ == Phase::gone) return;
  phase_ = Phase::gone;
  if (audit_.owes()) audit_.note("nobody", "nothing", "is shown nothing");
  count();
  subscriber_.close();
  wire_->shut();
  asio::post(wire_->socket().get_executor(), [self = shared_from_this()] { self->gone_(*self); });
}

void Client::count() {
  auto& counts = shared_.counts;
  counts.bytes_in += wire_->bytes_in() - std::exchange(counted_in_, wire_->bytes_in());
  counts.bytes_out += wire_->bytes_out() - std::exchange(counted_out_, wire_->bytes_out());
}

std::shared_ptr<Connection> connect(std::unique_ptr<Transport> wire, TransportKind via, ServerContext& shared,
                                    Admission welcome, std::function<void(Connection&)> gone) {
  auto client = std::make_shared<Client>(std::move(wire), via, shared, welcome, std::move(gone));
  client->start();
  return client;
}

}  // namespace earshot::serve
