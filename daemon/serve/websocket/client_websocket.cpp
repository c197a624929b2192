// A client's WebSocket: the upgrade, what it says, and what it is sent.
#include <boost/asio/post.hpp>
#include <utility>

#include "serve/auth/secrets.hpp"
#include "serve/websocket/client.hpp"

namespace earshot::serve {
namespace {

std::string welcome_payload(const ServerContext& context, View view) {
  std::string out = R"({"type":"welcome","protocol":1,"server":)";
  append_string(out, context.server);
  out += R"(,"instance":)";
  append_string(out, context.instance);
  out += R"(,"host":)";
  append_string(out, context.host);
  out += view == View::meta ? R"(,"view":"meta")" : R"(,"view":"full")";
  out += R"(,"limits":{"frame_bytes":)" + std::to_string(context.limits.inbound_bytes_max);
  out += R"(,"subscriptions":)" + std::to_string(context.limits.subscriptions_max) + "}}";
  return out;
}

}  // namespace

void Client::upgrade(const HttpResponse& answer) {
  if (transport_->spoke_early()) {  // a client may not speak before its upgrade is granted
    context_.counters.refuse(Refusal::unreadable);
    return reply(text_response(400, "nothing may follow the request before it is answered"), true);
  }
  enter(Phase::upgrade);
  ++context_.counters.answers[101];
  owner_ = answer.authenticated;
  const std::size_t bytes_max =
      owner_ ? context_.limits.inbound_bytes_max : context_.limits.inbound_bytes_max_anonymous;
  transport_->accept(context_.server, bytes_max, [self = shared_from_this()](error_code ec) {
    if (self->phase_ == Phase::gone) return;
    if (ec) return self->drop();
    self->enter(Phase::socket);
    self->heard_ = self->progress_ = self->entered_;
    self->transport_->on_free([weak = self->weak_from_this()] {
      if (const auto alive = weak.lock()) alive->wake();
    });
    if (self->owner_) self->send_welcome();
    self->read_message();
  });
}

void Client::send_welcome() {
  owner_ = true;
  transport_->message_max(context_.limits.inbound_bytes_max);
  subscriber_.show(audience());
  subscriber_.tell(welcome_payload(context_, view_));
  wake();
}

void Client::read_message() {
  if (reading_ || phase_ != Phase::socket) return;
  reading_ = true;
  transport_->read_message([self = shared_from_this()](error_code ec, Transport::Message message) {
    self->on_message(ec, message.text);
  });
}

void Client::on_message(error_code ec, std::string_view text) {
  reading_ = false;
  if (phase_ == Phase::gone) return;
  if (ec) return drop();  // a close frame was answered, or a violation with 1002, 1007 or 1009
  if (phase_ == Phase::socket && !stopping_) {
    ++context_.counters.messages;
    if (!messages_.take(Clock::now())) {
      context_.counters.end(Ending::too_often);
      return close(close_too_often, "too many messages");
    }
    if (handle(text)) wake();
  }
  if (!subscriber_.congested() && !asleep_) read_message();
}

/// False: the connection is being closed.
bool Client::handle(std::string_view text) {
  message::Message said = message::parse(text);
  if (const auto* hello = std::get_if<message::Hello>(&said); hello && !owner_) {
    if (same_secret(hello->token, context_.token)) {
      by_token_ = true;
      if (hello->meta) view_ = View::meta;
      send_welcome();
      audit_.tell(who(), "hello", sees());
      return true;
    }
    if (const User* user = find_user_by_token(context_.users, hello->token)) {
      known_as(*user);
      if (hello->meta) view_ = View::meta;
      send_welcome();
      audit_.tell(who(), "hello", sees());
      return true;
    }
    audit_.tell("nobody", "hello", "is shown nothing: the token is wrong");
    context_.counters.refuse(Refusal::token);
  }
  if (!owner_) {
    close(close_not_authenticated, "the first message is hello with the token");
    return false;
  }
  const auto say = [this](std::string_view id, std::string_view code, std::string_view what) {
    subscriber_.tell(message::error(id, code, what));
  };
  struct Visitor {
    Client& client;
    const decltype(say)& tell;
    void operator()(message::Hello& hello) {  // once more is no harm; the Unix socket asks for no token
      const bool silent = hello.token.empty() && client.transport_kind_ == TransportKind::unix_socket;
      const bool same = client.user_ ? find_user_by_token(client.context_.users, hello.token) == client.user_
                                     : same_secret(hello.token, client.context_.token);
      if (!silent && !same) tell({}, "bad_message", "the token is wrong");
    }
    void operator()(message::Subscribe& subscribe) {
      const auto unfit = client.unfit(subscribe);
      if (unfit) return tell(unfit->id, unfit->code, unfit->text);
      client.subscribe(std::move(subscribe));
    }
    void operator()(message::Unsubscribe& unsubscribe) { client.subscriber_.unsubscribe(unsubscribe.id); }
    void operator()(message::Read& read) { client.read(std::move(read)); }
    void operator()(message::Invalid& bad) { tell(bad.id, bad.code, bad.text); }
  };
  std::visit(Visitor{*this, say}, said);
  return true;
}

/// What of it goes beyond the limits of this daemon or of this connection.
std::optional<message::Invalid> Client::unfit(const message::Subscribe& asked) const {
  const auto& limits = context_.limits;
  for (const auto* key :
       {&asked.filter.project, &asked.filter.session, &asked.filter.host, &asked.filter.type}) {
    bool fits = key->size() <= limits.patterns_max;
    for (const std::string& pattern : *key) fits = fits && pattern.size() <= limits.pattern_bytes_max;
    if (fits) continue;
    return message::Invalid{asked.id, "bad_filter",
                            "a key has at most " + std::to_string(limits.patterns_max) + " patterns of " +
                                std::to_string(limits.pattern_bytes_max) + " bytes"};
  }
  return {};
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
  const std::size_t sent = transport_->send(batch.iovecs(), shared_from_this(), ec);
  if (ec) return drop();
  const auto rest = subscriber_.sent(batch, sent);
  if (!rest.empty()) transport_->keep_rest(rest);
  if (sent < batch.bytes() || batch.full || stopping_) wait_room();
  if (!subscriber_.congested() && !asleep_) read_message();
}

void Client::wait_room() {
  if (waits_room_) return;
  waits_room_ = true;
  transport_->wait_room([self = shared_from_this()](error_code ec) {
    self->waits_room_ = false;
    if (self->phase_ == Phase::gone) return;
    if (ec) return self->drop();
    self->wake();
  });
}

/// For what the subscriber has to send though the log has not grown.
void Client::wake_soon() {
  if (std::exchange(wake_posted_, true)) return;
  boost::asio::post(transport_->socket().get_executor(), [self = shared_from_this()] {
    self->wake_posted_ = false;
    self->wake();
  });
}

/// Secrets are left as they are only where the owner asked for it, and only over his own socket.
Audience Client::audience() const {
  if (view_ == View::meta) return Audience::meta;
  return !context_.redact && transport_kind_ == TransportKind::unix_socket ? Audience::raw : Audience::full;
}

void Client::close(std::uint16_t code, std::string_view reason) {
  if (phase_ != Phase::socket) return;
  enter(Phase::closing);
  transport_->close(code, reason, [self = shared_from_this()](error_code) { self->drop(); });
}

void Client::tick_socket(Clock::time_point now) {
  const auto& limits = context_.limits;
  if (transport_->closed()) return enter(Phase::closing);  // the client broke the protocol, or said goodbye
  if (!owner_ && now - entered_ > limits.hello) {
    context_.counters.end(Ending::no_hello);
    return close(close_not_authenticated, "no hello in time");
  }
  if (std::exchange(bytes_in_, transport_->bytes_in()) != transport_->bytes_in() || asleep_) {
    heard_ = now;
    pinged_ = false;
  }
  const bool owes = waits_room_ || !transport_->free();
  if (std::exchange(bytes_out_, transport_->bytes_out()) != transport_->bytes_out() || !owes) progress_ = now;
  if (now - progress_ > limits.stall) {
    context_.counters.end(Ending::stalled);
    return close(close_stalled, "nothing was read for too long");
  }
  if (now - heard_ > limits.silence) {
    context_.counters.end(Ending::silent);
    return drop();
  }
  if (now - heard_ > limits.ping && !pinged_ && !pinging_) {
    pinged_ = pinging_ = true;
    transport_->ping([self = shared_from_this()](error_code) { self->pinging_ = false; });
  }
}

}  // namespace earshot::serve
