#include "serve/websocket/session.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "agents/agent.hpp"
#include "base/json_writer.hpp"
#include "serve/auth/secrets.hpp"
#include "serve/http/connection.hpp"
#include "serve/stream/frames.hpp"

namespace earshot::serve {
namespace {

std::string welcome_frame(const ServerContext& context, View view) {
  std::string out;
  JsonWriter json(out);
  json.begin_object()
      .member("type", "welcome")
      .member("protocol", 1)
      .member("server", context.server)
      .member("instance", context.instance)
      .member("host", context.host)
      .member_if_any("url", context.welcome_url)
      .member("view", view == View::meta ? "meta" : "full");
  json.key("limits")
      .begin_object()
      .member("frame_bytes", context.limits.inbound_bytes_max)
      .member("subscriptions", context.limits.subscriptions_max)
      .member("outbound_bytes", outbound_bytes_max)
      .end_object();
  json.key("resume").begin_object();
  for (const AgentProgram* program : agent_programs())
    if (const auto words = program->resume_command(); !words.empty())
      json.array_member(program->program(), words);
  json.end_object().end_object();
  return out;
}

}  // namespace

void WebSocketSession::start() {
  const std::size_t bytes_max = caller_.is_authenticated() ? context_.limits.inbound_bytes_max
                                                           : context_.limits.inbound_bytes_max_anonymous;
  transport_.accept(context_.server, bytes_max,
                    [this, owner = connection_.shared_from_this()](error_code ec) {
                      if (connection_.is_closed()) return;
                      if (ec) return connection_.drop();
                      enter(State::open);
                      received_ = entered_;
                      transport_.on_free([weak = connection_.weak_from_this()] {
                        if (const auto alive = weak.lock()) alive->wake();
                      });
                      transport_.on_extra_frame([this, weak = connection_.weak_from_this()] {
                        boost::asio::post(transport_.socket().get_executor(), [this, weak] {
                          const auto alive = weak.lock();
                          if (alive && !connection_.is_closed() && state_ == State::open) is_too_often();
                        });
                      });
                      if (caller_.is_authenticated()) send_welcome();
                      read_message();
                    });
}

void WebSocketSession::send_welcome() {
  transport_.message_max(context_.limits.inbound_bytes_max);
  subscriber_.push_answer(welcome_frame(context_, caller_.view));
  wake();
}

// --- Messages ---

void WebSocketSession::read_message() {
  if (reading_ || state_ != State::open) return;
  reading_ = true;
  transport_.read_message([this, owner = connection_.shared_from_this()](
                              error_code ec, Transport::Message message) { on_message(ec, message.text); });
}

void WebSocketSession::on_message(error_code ec, std::string_view text) {
  reading_ = false;
  if (connection_.is_closed()) return;
  if (ec) return connection_.drop();  // closed, or a violation that was answered by 1002, 1007 or 1009
  if (state_ == State::open && !connection_.is_stopping()) {
    ++context_.counters.messages;
    if (is_too_often()) return;
    if (handle(text)) wake();
  }
  if (!subscriber_.is_congested() && !is_reading_cold()) read_message();
}

/// True: the connection is being closed.
bool WebSocketSession::is_too_often() {
  if (connection_.rate().take(Clock::now())) return false;
  context_.counters.end(Ending::too_often);
  close(close_too_often, "too many messages");
  return true;
}

/// Returns whether the client has proved its identity.
bool WebSocketSession::authenticate(const message::Hello& hello) {
  AccessPolicy& access = context_.access;
  Caller caller = hello.sign_in ? access.identify(*hello.sign_in, "hello", caller_.origin,
                                                  caller_.transport_kind, Clock::now())
                                : access.identify(hello.token, caller_.origin, caller_.transport_kind);
  if (!caller.is_authenticated()) {
    connection_.audit().log("anonymous", "hello",
                            hello.sign_in ? "receives nothing: the browser is not signed in"
                                          : "receives nothing: the token is wrong");
    context_.counters.refuse(Refusal::token);
    return false;
  }
  if (hello.meta || caller_.view == View::meta) caller.view = View::meta;
  set_caller(caller);
  send_welcome();
  connection_.audit().log(caller_.name(), "hello", caller_.permission());
  return true;
}

/// False: the connection is being closed.
bool WebSocketSession::handle(std::string_view text) {
  message::Message message = message::parse(text);
  if (!caller_.is_authenticated()) {
    const auto* hello = std::get_if<message::Hello>(&message);
    if (hello && authenticate(*hello)) return true;
    close(close_not_authenticated, hello && hello->sign_in
                                       ? "this browser is not signed in"
                                       : "the first message must be hello with the token");
    return false;
  }
  struct Visitor {
    WebSocketSession& session;
    void refuse(std::string_view id, std::string_view code, std::string_view text) {
      session.subscriber_.push_answer(error_frame(id, code, text));
    }
    void operator()(message::Hello& hello) {  // repeated; on the Unix socket no token is required
      const Caller& caller = session.caller_;
      if (hello.token.empty() && caller.transport_kind == TransportKind::unix_socket) return;
      const Caller again =
          session.context_.access.identify(hello.token, caller.origin, caller.transport_kind);
      if (hello.sign_in || !again.is_authenticated() || again.user != caller.user)
        refuse({}, "bad_message", "the token is wrong");
    }
    void operator()(message::Subscribe& subscribe) {
      if (const auto bad = session.check_limits(subscribe)) return refuse(bad->id, bad->code, bad->text);
      session.subscribe(std::move(subscribe));
    }
    void operator()(message::Unsubscribe& unsubscribe) { session.subscriber_.unsubscribe(unsubscribe.id); }
    void operator()(message::NextPage& next) { session.subscriber_.next_page(next); }
    void operator()(message::Read& read) { session.read(std::move(read)); }
    void operator()(message::Invalid& bad) { refuse(bad.id, bad.code, bad.text); }
  };
  std::visit(Visitor{*this}, message);
  return true;
}

// --- Frames ---

void WebSocketSession::wake() {
  if (state_ != State::open) return;
  if (waits_room_ || !transport_.free()) return subscriber_.shed();
  send();
}

/// One write per call, so that a client that is far behind does not delay the others.
void WebSocketSession::send() {
  Batch batch;
  subscriber_.gather(batch);
  if (batch.empty()) {
    if (connection_.is_stopping()) close(close_going_away, "the daemon is stopping");
    return;
  }
  error_code ec;
  const std::size_t sent = transport_.send(batch.iovecs(), connection_.shared_from_this(), ec);
  if (ec) return connection_.drop();
  if (sent > 0) frame_sent();
  const auto rest = subscriber_.sent(batch, sent);
  if (!rest.empty()) transport_.keep_rest(rest);
  if (sent < batch.bytes() || batch.full || connection_.is_stopping()) wait_room();
  if (!subscriber_.is_congested() && !is_reading_cold()) read_message();
}

void WebSocketSession::wait_room() {
  if (waits_room_) return;
  waits_room_ = true;
  transport_.wait_room([this, owner = connection_.shared_from_this()](error_code ec) {
    waits_room_ = false;
    if (connection_.is_closed()) return;
    if (ec) return connection_.drop();
    wake();
  });
}

// --- The end ---

void WebSocketSession::close(std::uint16_t code, std::string_view reason) {
  if (state_ != State::open) return;
  enter(State::closing);
  transport_.close(code, reason,
                   [this, owner = connection_.shared_from_this()](error_code) { connection_.drop(); });
}

void WebSocketSession::stop() {
  if (state_ == State::upgrading) return connection_.drop();
  wake();
}

void WebSocketSession::token_changed() {
  if (!caller_.is_by_owner_token() || state_ == State::closing) return;
  context_.counters.end(Ending::token_changed);
  if (state_ == State::upgrading) return connection_.drop();
  close(close_not_authenticated, "the token was changed");
}

void WebSocketSession::browser_removed(std::string_view browser) {
  if (caller_.browser != browser || state_ == State::closing) return;
  context_.counters.end(Ending::browser_removed);
  if (state_ == State::upgrading) return connection_.drop();
  close(close_not_authenticated, "this browser was signed out");
}

void WebSocketSession::tick(Clock::time_point now) {
  const auto& limits = context_.limits;
  if (state_ == State::upgrading && now - entered_ > limits.handshake) return connection_.drop();
  if (state_ == State::closing && now - entered_ > limits.goodbye) return connection_.drop();
  if (state_ != State::open) return;
  if (transport_.closed()) return enter(State::closing);  // by the client, or for its violation
  if (!caller_.is_authenticated() && now - entered_ > limits.hello) {
    context_.counters.end(Ending::no_hello);
    return close(close_not_authenticated, "no hello in time");
  }
  // While no message is read, silence is ours: a client that does not read its answers is `stalled`.
  if (std::exchange(bytes_in_, transport_.bytes_in()) != transport_.bytes_in() || !reading_) {
    received_ = now;
    pinged_ = false;
  }
  const bool has_unsent = waits_room_ || !transport_.free();
  if (!check_progress(now, has_unsent)) return close(close_stalled, "the client did not read for too long");
  if (now - received_ > limits.silence) {
    context_.counters.end(Ending::silent);
    return connection_.drop();
  }
  if (now - received_ > limits.ping && !pinged_ && !pinging_) {
    pinged_ = pinging_ = true;
    transport_.ping([this, owner = connection_.shared_from_this()](error_code) { pinging_ = false; });
  }
  if (caller_.is_authenticated() && !has_unsent) send_heartbeat(now);
  subscriber_.tick(now);
  wake();
}

}  // namespace earshot::serve
