// A client's HTTP: requests, answers, and how long they may take.
#include <boost/asio/post.hpp>
#include <utility>

#include "serve/http/router.hpp"
#include "serve/websocket/client.hpp"

namespace earshot::serve {

namespace asio = boost::asio;

Client::Client(std::unique_ptr<Transport> transport, TransportKind transport_kind, ServerContext& context,
               Admission admission, std::function<void(Connection&)> gone)
    : context_(context),
      transport_(std::move(transport)),
      transport_kind_(transport_kind),
      admission_(admission),
      gone_(std::move(gone)),
      subscriber_(context),
      messages_(context.limits.messages_per_second, context.limits.messages_burst) {
  ++context.counters.connections;
}

void Client::start() {
  if (!context_.users.empty()) audit_.begin(transport_->socket(), transport_kind_);
  subscriber_.on_more = [weak = weak_from_this()] {
    if (const auto alive = weak.lock()) alive->wake_soon();
  };
  transport_->open([self = shared_from_this()](error_code ec) {
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
  transport_->read_head([self = shared_from_this()](Fault fault) {
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
      context_.counters.refuse(Refusal::unreadable);
      return reply(text_response(400, "this request cannot be read"), true);
    case Fault::head_too_long:
      context_.counters.refuse(Refusal::too_long);
      return reply(text_response(431, "the request's head is too long"), true);
    case Fault::target_too_long:
      context_.counters.refuse(Refusal::too_long);
      return reply(text_response(414, "the path and its query are too long"), true);
    case Fault::body_too_long:
      context_.counters.refuse(Refusal::too_long);
      return reply(text_response(413, "the request's body is too long"), true);
  }
}

/// Who may not ask at all is told so before a body is read.
void Client::on_head(Fault) {
  const Request request = transport_->request();
  if (admission_ == Admission::foreign) {
    context_.counters.refuse(Refusal::peer);
    return reply(text_response(403, "this socket is another user's"), true);
  }
  if (const auto refused = refuse(request, transport_kind_, context_.own_address)) {
    context_.counters.refuse(Refusal::host_or_origin);
    return reply(*refused, true);
  }
  if (admission_ == Admission::busy) {
    context_.counters.refuse(Refusal::connections);
    return reply(text_response(503, "too many connections; close some, or come again"), true);
  }
  if (!messages_.take(Clock::now())) {
    context_.counters.refuse(Refusal::too_often);
    return reply(text_response(429, "too many requests; come again later"), true);
  }
  if (!transport_->expects_continue()) return read_body();
  transport_->write("HTTP/1.1 100 Continue\r\n\r\n", [self = shared_from_this()](error_code ec) {
    if (self->phase_ != Phase::request) return;
    if (ec) return self->drop();
    self->read_body();
  });
}

void Client::read_body() {
  transport_->read_body([self = shared_from_this()](Fault fault) {
    if (self->phase_ != Phase::request) return;
    if (fault != Fault::none) return self->on_fault(fault);
    self->act(false);
  });
}

void Client::act(bool cold_is_read) {
  enter(Phase::work);
  user_ = nullptr;  // each request says anew who asks
  subscriber_.restrict_to(nullptr);
  const Request request = transport_->request();
  view_ = transport_kind_ == TransportKind::tls ? context_.remote_view : View::full;
  RequestContext caller{transport_kind_, authenticate(request, transport_kind_, context_.token), Clock::now(),
                        view_, cold_is_read};
  if (caller.auth_result == AuthResult::wrong_token)
    caller.user = find_user_by_token(context_.users, bearer_token(request));
  if (caller.user) {
    caller.auth_result = AuthResult::user;
    known_as(*caller.user);
    caller.view = view_;
  }
  HttpResponse answer = route(request, caller, context_);
  owner_ = caller.auth_result == AuthResult::owner || caller.user;
  by_token_ = caller.auth_result == AuthResult::owner && transport_kind_ != TransportKind::unix_socket;
  if (answer.meta) view_ = View::meta;
  audit(request, caller.auth_result, answer);
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
  if (user.view == View::meta ||
      (transport_kind_ == TransportKind::tls && context_.remote_view == View::meta))
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
void Client::audit(const Request& request, AuthResult auth_result, const HttpResponse& answer) {
  const std::string_view what = route_name(request.path());
  if (!answer.issued_secret.empty())
    return audit_.tell(owner_ ? who() : "who has a one-time code", what,
                       "is given " + std::string(answer.issued_secret));
  if (auth_result == AuthResult::wrong_token)
    return audit_.note("nobody", what, "is shown nothing: the token is wrong");
  if (answer.status >= 400) return audit_.note(who(), what, "is shown nothing");
  const bool listens =
      answer.kind == HttpResponse::Kind::websocket || answer.kind == HttpResponse::Kind::events;
  listens ? audit_.tell(who(), what, sees()) : audit_.note(who(), what, sees());
}

void Client::read_cold(HttpResponse answer) {
  context_.read_cold(std::move(answer.wanted), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->phase_ == Phase::work) self->act(true);
  });
}

/// The `last` answer closes the connection, whatever the client would like.
void Client::reply(const HttpResponse& answer, bool last) {
  if (audit_.owes()) audit_.note("nobody", "what is refused unread", "is shown nothing");
  enter(Phase::answer);
  ++context_.counters.answers[answer.status];
  ++requests_;
  Delivery delivery;
  delivery.server = context_.server;
  delivery.now = std::chrono::system_clock::now();
  if (!last) {
    delivery.keep_alive = transport_->keep_alive() && requests_ < context_.limits.requests_max && !stopping_;
    delivery.http_1_0 = transport_->http_1_0();
    delivery.head = transport_->request().method == "HEAD";
  }
  transport_->write(encode(answer, delivery),
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
  transport_->finish([self = shared_from_this()](error_code) { self->drop(); });
}

/// A request that began and did not end in time is told so; one that never began is not.
void Client::too_slow(Clock::time_point now) {
  const auto& limits = context_.limits;
  if (!begun_ && transport_->begun()) begun_ = requests_ == 0 ? entered_ : now;
  if (!begun_) {
    if (now - entered_ > (requests_ == 0 ? limits.handshake : limits.keep_alive)) drop();
    return;
  }
  if (now - *begun_ <= limits.handshake) return;
  context_.counters.refuse(Refusal::too_slow);
  enter(Phase::answer);  // what is being read is no request any more
  transport_->cancel();
  asio::post(transport_->socket().get_executor(), [self = shared_from_this()] {
    if (self->phase_ != Phase::gone)
      self->reply(text_response(408, "the request did not come in time"), true);
  });
}

// --- All phases ---

void Client::wake() {
  if (phase_ == Phase::events) {
    if (writing_) return subscriber_.shed();
    return send_lines();
  }
  if (phase_ != Phase::socket) return;
  if (waits_room_ || !transport_->free()) return subscriber_.shed();
  send();
}

void Client::tick(Clock::time_point now) {
  const auto& limits = context_.limits;
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
  wake();
}

void Client::stop() {
  switch (phase_) {
    case Phase::answer:
      stopping_ = true;
      return;
    case Phase::socket:
    case Phase::events:
      stopping_ = true;
      return wake();
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
    context_.counters.end(Ending::token_changed);
    return close(close_not_authenticated, "there is a new token");
  }
  if (phase_ == Phase::events || phase_ == Phase::upgrade) {
    context_.counters.end(Ending::token_changed);
    drop();
  }
}

void Client::drop() {
  if (phase_ == Phase::gone) return;
  phase_ = Phase::gone;
  if (audit_.owes()) audit_.note("nobody", "nothing", "is shown nothing");
  count();
  subscriber_.close();
  transport_->shut();
  asio::post(transport_->socket().get_executor(), [self = shared_from_this()] { self->gone_(*self); });
}

void Client::count() {
  auto& counters = context_.counters;
  counters.bytes_in += transport_->bytes_in() - std::exchange(counted_in_, transport_->bytes_in());
  counters.bytes_out += transport_->bytes_out() - std::exchange(counted_out_, transport_->bytes_out());
}

std::shared_ptr<Connection> connect(std::unique_ptr<Transport> transport, TransportKind transport_kind,
                                    ServerContext& context, Admission admission,
                                    std::function<void(Connection&)> gone) {
  auto client =
      std::make_shared<Client>(std::move(transport), transport_kind, context, admission, std::move(gone));
  client->start();
  return client;
}

}  // namespace earshot::serve
