#include "serve/http/connection.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "base/sockets.hpp"
#include "serve/http/event_stream.hpp"
#include "serve/slices.hpp"
#include "serve/websocket/acceptor.hpp"
#include "serve/websocket/session.hpp"

namespace earshot::serve {

namespace asio = boost::asio;

constexpr std::size_t copied_bytes_max = 64 << 10;  // a longer body is written behind its head, not copied

HttpConnection::HttpConnection(std::unique_ptr<Transport> transport, TransportKind transport_kind,
                               ServerContext& context, Admission admission,
                               std::function<void(Connection&)> on_closed)
    : context_(context),
      transport_(std::move(transport)),
      transport_kind_(transport_kind),
      admission_(admission),
      on_closed_(std::move(on_closed)),
      rate_(context.limits.messages_per_second, context.limits.messages_burst) {
  ++context.counters.connections;
}

void HttpConnection::start() {
  if (!context_.access.users.empty()) audit_.begin(peer_address(transport_->socket(), transport_kind_));
  transport_->open([self = shared_from_this()](error_code ec) {
    if (self->is_closed()) return;
    if (ec) return self->drop();
    self->read_request();
  });
}

// --- Requests ---

void HttpConnection::read_request() {
  enter(State::reading);
  request_began_.reset();
  transport_->read_head([self = shared_from_this()](Fault fault) {
    if (self->state_ != State::reading) return;  // too late, or closing
    if (fault != Fault::none) return self->on_fault(fault);
    self->on_head();
  });
}

void HttpConnection::on_fault(Fault fault) {
  if (const auto worker = replace_worker(transport_->request())) return respond(*worker, true);
  struct Answer {
    Fault fault;
    Refusal refusal;
    unsigned status;
    std::string_view text;
  };
  constexpr Answer answers[] = {
      {Fault::unreadable, Refusal::unreadable, 400, "the request is not valid HTTP"},
      {Fault::head_too_long, Refusal::too_long, 431, "the header of the request is too long"},
      {Fault::target_too_long, Refusal::too_long, 414, "the path and query are too long"},
      {Fault::body_too_long, Refusal::too_long, 413, "the body of the request is too long"},
  };
  for (const Answer& answer : answers) {
    if (answer.fault != fault) continue;
    context_.counters.refuse(answer.refusal);
    return respond(text_response(answer.status, answer.text), true);
  }
  drop();
}

/// Refuses what needs no body, before the body is read.
void HttpConnection::on_head() {
  const Request request = transport_->request();
  if (admission_ == Admission::foreign) {
    context_.counters.refuse(Refusal::peer);
    return respond(text_response(403, "this socket belongs to another user"), true);
  }
  if (const auto refused = refuse(request, transport_kind_, context_.own_address)) {
    context_.counters.refuse(Refusal::host_or_origin);
    return respond(*refused, true);
  }
  if (const auto worker = replace_worker(request)) return respond(*worker, true);
  if (admission_ == Admission::busy) {
    context_.counters.refuse(Refusal::connections);
    return respond(text_response(503, "too many connections: close some, or retry later"), true);
  }
  if (!rate_.take(Clock::now())) {
    context_.counters.refuse(Refusal::too_often);
    return respond(text_response(429, "too many requests: retry later"), true);
  }
  const std::size_t bytes_max = body_bytes_max(request.path(), transport_kind_, context_.limits);
  if (transport_->content_length() > bytes_max) return on_fault(Fault::body_too_long);
  if (!transport_->expects_continue()) return read_body(bytes_max);
  transport_->write("HTTP/1.1 100 Continue\r\n\r\n", [self = shared_from_this(), bytes_max](error_code ec) {
    if (self->state_ != State::reading) return;
    if (ec) return self->drop();
    self->read_body(bytes_max);
  });
}

void HttpConnection::read_body(std::size_t bytes_max) {
  transport_->read_body(bytes_max, [self = shared_from_this()](Fault fault) {
    if (self->state_ != State::reading) return;
    if (fault != Fault::none) return self->on_fault(fault);
    self->handle();
  });
}

void HttpConnection::handle() {
  enter(State::working);
  is_making_ = false;
  const Request request = transport_->request();
  const auto now = Clock::now();
  caller_ = identify(request, now);
  RequestContext request_context{caller_, now, local_address(transport_->socket(), transport_kind_)};
  is_authenticated_ |= request_context.caller.is_authenticated();
  if (context_.response_bytes >= response_bytes_max(is_authenticated_)) return respond(refuse_response());
  HttpResponse response = route(request, request_context, context_);
  Caller caller = caller_;
  if (response.meta) caller.view = View::meta;
  log_access(request, caller, response);
  finish(std::move(response), caller);
}

/// In slices; what was made so far counts as unread.
void HttpConnection::make(HttpResponse sliced) {
  is_making_ = true;
  const auto made = std::make_shared<std::optional<HttpResponse>>(HttpResponse());
  const auto work = [this, made, make = std::move(sliced.make)](Slice& slice) {
    if (make(slice, **made)) return true;
    account_response((*made)->body.size());
    if (is_peer_gone(transport_->socket().native_handle()))
      made->reset();
    else if (context_.response_bytes > response_bytes_max(is_authenticated_))
      *made = refuse_response();
    else
      return false;
    return true;
  };
  const auto done = [this, made] { *made ? finish(std::move(**made), caller_) : drop(); };
  if (context_.scans) return context_.scans->begin(this, SessionScans::Work(work), done);
  drop();  // the server is gone
}

HttpResponse HttpConnection::refuse_response() {
  context_.counters.refuse(Refusal::responses);
  return text_response(503, "too many responses are unread: retry later");
}

void HttpConnection::finish(HttpResponse response, const Caller& caller) {
  switch (response.kind) {
    case HttpResponse::Kind::response:
      return respond(std::move(response));
    case HttpResponse::Kind::stored:
      return store_browsers(std::move(response));
    case HttpResponse::Kind::later:
      is_making_ = true;
      return response.compute([weak = weak_from_this()](HttpResponse computed) {
        const auto self = weak.lock();
        if (self && self->state_ == State::working) self->finish(std::move(computed), self->caller_);
      });
    case HttpResponse::Kind::sliced:
      return make(std::move(response));
    case HttpResponse::Kind::events:
      return EventStream::start(*this, session_, caller, response);
    case HttpResponse::Kind::websocket:
      if (transport_->spoke_early()) {  // a client must wait for the response to its upgrade
        context_.counters.refuse(Refusal::unreadable);
        return respond(text_response(400, "the client sent data before the upgrade was accepted"), true);
      }
      ++context_.counters.answers[101];
      session_ = std::make_unique<WebSocketSession>(*this, caller);
      return run_session();
  }
}

/// A browser's answer to a challenge can be used once: a repeated request keeps its caller.
Caller HttpConnection::identify(const Request& request, Clock::time_point now) {
  const bool is_socket = transport_kind_ == TransportKind::unix_socket;
  const auto sign_in = !is_socket && request.authorizations.size() == 1
                           ? parse_authorization(request.authorizations.front())
                           : std::nullopt;
  if (!sign_in) return context_.access.identify(request, transport_kind_);
  const std::string purpose = std::string(request.method) + ' ' + std::string(request.target);
  return context_.access.identify(*sign_in, purpose, origin_of(request, transport_kind_), transport_kind_,
                                  now);
}

/// New subscriptions and issued secrets are always logged, other requests if identity or view changed.
void HttpConnection::log_access(const Request& request, const Caller& caller, const HttpResponse& response) {
  const std::string_view what = route_name(request.path());
  if (!response.issued.empty()) {
    const std::string who = caller.is_authenticated() ? caller.name() : "the bearer of a one-time code";
    return audit_.log(who, what, "receives " + response.issued);
  }
  if (caller.auth_result == AuthResult::wrong_token)
    return audit_.log_change("anonymous", what, "receives nothing: the token is wrong");
  if (response.status >= 400) return audit_.log_change(caller.name(), what, "receives nothing");
  const bool subscribes =
      response.kind == HttpResponse::Kind::websocket || response.kind == HttpResponse::Kind::events;
  subscribes ? audit_.log(caller.name(), what, caller.permission())
             : audit_.log_change(caller.name(), what, caller.permission());
}

void HttpConnection::store_browsers(HttpResponse response) {
  if (!context_.callbacks.store_browsers) return respond(response);
  const auto kept = std::make_shared<const HttpResponse>(std::move(response));
  context_.callbacks.store_browsers([weak = weak_from_this(), kept](const std::string& error) {
    const auto self = weak.lock();
    if (!self || self->state_ != State::working) return;
    self->respond(error.empty() ? *kept : text_response(500, kept->not_stored + ": " + error));
  });
}

/// The `last` response closes the connection.
void HttpConnection::respond(HttpResponse response, bool last) {
  if (audit_.is_pending()) audit_.log_change("anonymous", "a refused request", "receives nothing");
  enter(State::responding);
  ++context_.counters.answers[response.status];
  ++requests_;
  Delivery delivery;
  delivery.server = context_.server;
  delivery.now = std::chrono::system_clock::now();
  if (!last) {
    delivery.keep_alive = transport_->keep_alive() && requests_ < context_.limits.requests_max && !stopping_;
    delivery.http_1_0 = transport_->http_1_0();
    delivery.head = transport_->request().method == "HEAD";
  }
  const bool is_body_apart = !delivery.head && response.body.size() > copied_bytes_max;
  delivery.head |= is_body_apart;
  std::string bytes = encode(response, delivery);
  std::string body = is_body_apart ? std::move(response.body) : std::string();
  account_response(bytes.size() + body.size());
  const auto on_written = [self = shared_from_this(), keep_alive = delivery.keep_alive](error_code ec) {
    if (self->is_closed()) return;
    if (ec) return self->drop();
    self->account_response(0);
    self->count_bytes();
    if (keep_alive && !self->stopping_) return self->read_request();
    self->linger();
  };
  if (!is_body_apart) return transport_->write(std::move(bytes), on_written);
  transport_->write(std::move(bytes), [this, on_written, body = std::move(body)](error_code ec) mutable {
    if (ec || is_closed()) return on_written(ec);
    transport_->write(std::move(body), on_written);
  });
}

void HttpConnection::run_session() {
  ++requests_;
  enter(State::session);
  session_->start();
}

void HttpConnection::linger() {
  enter(State::lingering);
  // The owner's program may still be sending a body that is too long.
  constexpr std::size_t owner_bytes_max = 16 << 20;
  const bool is_owner = transport_kind_ == TransportKind::unix_socket && admission_ != Admission::foreign;
  transport_->finish(is_owner ? owner_bytes_max : discarded_bytes_max,
                     [self = shared_from_this()](error_code) { self->drop(); });
}

/// A request that began and was not completed in time is answered by 408; an idle connection is closed.
void HttpConnection::check_request_time(Clock::time_point now) {
  const auto& limits = context_.limits;
  if (!request_began_ && transport_->begun()) request_began_ = requests_ == 0 ? entered_ : now;
  if (!request_began_) {
    const auto idle_max =
        is_authenticated_ ? limits.keep_alive : std::min(limits.handshake, limits.keep_alive);
    if (now - entered_ > (requests_ == 0 ? limits.handshake : idle_max)) drop();
    return;
  }
  if (now - *request_began_ <= limits.handshake) return;
  context_.counters.refuse(Refusal::too_slow);
  enter(State::responding);
  transport_->cancel();
  asio::post(transport_->socket().get_executor(), [self = shared_from_this()] {
    if (!self->is_closed()) self->respond(text_response(408, "the request was not completed in time"), true);
  });
}

// --- All states ---

void HttpConnection::wake() {
  if (state_ == State::session) session_->wake();
}

void HttpConnection::tick(Clock::time_point now) {
  const auto& limits = context_.limits;
  const auto in_state = now - entered_;
  count_bytes();
  switch (state_) {
    case State::handshake:
      if (in_state > limits.handshake) drop();
      return;
    case State::reading:
      return check_request_time(now);
    case State::working:
      return;  // reading from disk
    case State::responding:
      if (in_state > limits.answer) drop();
      return;
    case State::lingering:
      if (in_state > limits.goodbye) drop();
      return;
    case State::session:
      return session_->tick(now);
    case State::closed:
      return;
  }
}

void HttpConnection::stop() {
  switch (state_) {
    case State::responding:
      stopping_ = true;
      return;
    case State::session:
      stopping_ = true;
      return session_->stop();
    case State::lingering:
    case State::closed:
      return;
    case State::handshake:
    case State::reading:
    case State::working:
      return drop();
  }
}

void HttpConnection::token_changed() {
  if (state_ == State::session) session_->token_changed();
  if (state_ == State::working && is_making_ && caller_.is_by_owner_token()) drop();
}

void HttpConnection::browser_removed(std::string_view browser) {
  if (state_ == State::session) return session_->browser_removed(browser);
  if (state_ == State::working && is_making_ && caller_.browser == browser) drop();
}

void HttpConnection::drop() {
  if (is_closed()) return;
  state_ = State::closed;
  if (context_.scans) context_.scans->cancel(this);
  account_response(0);
  if (audit_.is_pending()) audit_.log_change("anonymous", "nothing", "receives nothing");
  count_bytes();
  if (session_) session_->subscriber().close();
  transport_->shut();
  asio::post(transport_->socket().get_executor(), [self = shared_from_this()] { self->on_closed_(*self); });
}

void HttpConnection::count_bytes() {
  auto& counters = context_.counters;
  counters.bytes_in += transport_->bytes_in() - std::exchange(counted_in_, transport_->bytes_in());
  counters.bytes_out += transport_->bytes_out() - std::exchange(counted_out_, transport_->bytes_out());
}

std::shared_ptr<Connection> connect(std::unique_ptr<Transport> transport, TransportKind transport_kind,
                                    ServerContext& context, Admission admission,
                                    std::function<void(Connection&)> on_closed) {
  auto connection = std::make_shared<HttpConnection>(std::move(transport), transport_kind, context, admission,
                                                     std::move(on_closed));
  connection->start();
  return connection;
}

}  // namespace earshot::serve
