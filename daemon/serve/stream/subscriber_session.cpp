#include "serve/stream/subscriber_session.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <set>
#include <utility>

#include "serve/http/connection.hpp"
#include "serve/stream/frames.hpp"

namespace earshot::serve {

SubscriberSession::SubscriberSession(HttpConnection& connection, const Caller& caller)
    : connection_(connection),
      context_(connection.context()),
      transport_(connection.transport()),
      subscriber_(connection.context()) {
  set_caller(caller);
  subscriber_.on_more = [this, weak = connection.weak_from_this()] {
    if (const auto alive = weak.lock()) wake_soon();
  };
}

void SubscriberSession::set_caller(const Caller& caller) {
  caller_ = caller;
  subscriber_.restrict_to(caller.allowed());
  subscriber_.set_audience(context_.access.audience_of(caller));
}

void SubscriberSession::wake_soon() {
  if (std::exchange(wake_posted_, true)) return;
  boost::asio::post(transport_.socket().get_executor(), [this, owner = connection_.shared_from_this()] {
    wake_posted_ = false;
    if (!connection_.is_closed()) wake();
  });
}

std::optional<message::Invalid> SubscriberSession::check_limits(const message::Subscribe& asked) const {
  const auto& limits = context_.limits;
  if (asked.filter.is_within(limits.patterns_max, limits.pattern_bytes_max)) return {};
  return message::Invalid{asked.id, "bad_filter",
                          "a filter key has at most " + std::to_string(limits.patterns_max) +
                              " patterns of " + std::to_string(limits.pattern_bytes_max) + " bytes"};
}

bool SubscriberSession::check_progress(Clock::time_point now, bool has_unsent) {
  if (!has_unsent || transport_.bytes_out() - bytes_out_ >= progress_bytes_min) {
    bytes_out_ = transport_.bytes_out();
    progress_ = now;
  }
  if (now - progress_ <= context_.limits.stall) return true;
  context_.counters.end(Ending::stalled);
  return false;
}

void SubscriberSession::send_heartbeat(Clock::time_point now) {
  if (now - last_frame_ < context_.limits.heartbeat) return;
  last_frame_ = now;
  subscriber_.push_answer(heartbeat_frame(wall_now_ms()));
}

// --- Cold sessions ---

/// A request that needs the content of cold transcripts.
struct SubscriberSession::ColdRead {
  std::vector<std::string> streams;  // named by a client that may not see all sessions
  std::size_t next = 0;
  std::set<std::string, std::less<>> sessions;           // of these streams
  std::function<bool(std::string_view session)> wanted;  // further sessions; null: none
  std::function<void()> then;
};

/// With `all`, the snapshot requires all cold sessions that may match. A restricted client's streams are read
/// to determine their sessions.
void SubscriberSession::subscribe(message::Subscribe asked) {
  auto request = std::make_shared<ColdRead>();
  if (asked.all && asked.snapshot && context_.read_cold_sessions) {
    request->wanted = [this, filter = asked.filter](std::string_view session) {
      return filter.matches_name(context_.host_of(session), session) &&
             (!caller_.user || may_see_by_name(caller_.user->allowed, context_.sessions, session));
    };
  }
  if (caller_.user && asked.after && asked.after->size() <= context_.limits.after_entries) {
    for (const std::string& entry : *asked.after)
      if (auto parsed = message::parse_stream_cursor(entry))
        request->streams.push_back(std::move(parsed->stream));
  }
  request->then = [this, asked = std::move(asked)]() mutable { subscriber_.subscribe(std::move(asked)); };
  read_cold(request);
}

void SubscriberSession::read(message::Read asked) {
  auto request = std::make_shared<ColdRead>();
  if (caller_.user) request->streams.push_back(asked.stream);
  request->then = [this, asked = std::move(asked)] { subscriber_.read(asked); };
  read_cold(request);
}

/// A session's project is known when all of its streams were read: one of them may have another directory.
void SubscriberSession::read_cold(const std::shared_ptr<ColdRead>& request) {
  const Filter* allowed = caller_.allowed();
  const bool restricted = allowed && !allowed->empty() && context_.archive && context_.read_cold_sessions;
  while (restricted && request->next < request->streams.size()) {
    const std::string& name = request->streams[request->next++];
    const tail::Stream* stream = context_.archive->find(name);
    if (!stream || context_.sessions.contains(*stream)) continue;
    if (!stream->session().empty() && (stream->is_identified() || stream->transcript())) {
      if (may_see_by_name(*allowed, context_.sessions, stream->session()))
        request->sessions.insert(stream->session());
      continue;
    }
    reading_cold_ = true;
    const auto on_folded = [this, allowed, weak = connection_.weak_from_this(),
                            request](const tail::Stream* read) {
      const auto owner = weak.lock();
      if (!owner || owner->is_closed() || !is_open()) return;
      if (read && may_see_by_name(*allowed, context_.sessions, read->session()))
        request->sessions.insert(read->session());
      boost::asio::post(transport_.socket().get_executor(), [this, owner, request] {
        if (!owner->is_closed() && is_open()) read_cold(request);
      });
    };
    return context_.archive->fold(name, on_folded);
  }
  if (!reading_cold_ && !request->wanted && request->sessions.empty()) return request->then();
  const auto done = [this, weak = connection_.weak_from_this(), request] {
    const auto owner = weak.lock();
    if (!owner || owner->is_closed() || !is_open()) return;
    reading_cold_ = false;
    request->then();
    wake();
    on_request_done();
  };
  if (!request->wanted && request->sessions.empty()) return done();
  reading_cold_ = true;
  const auto wanted = [request](std::string_view session) {
    return request->sessions.contains(session) || (request->wanted && request->wanted(session));
  };
  context_.read_cold_sessions(wanted, done);
}

InProcessClient::InProcessClient(boost::asio::io_context& io, ServerContext& context,
                                 InProcessListener& listener, Audience audience, const DeliveryPace& pace)
    : io_(io), listener_(&listener), pace_(pace), delay_timer_(io), subscriber_(context) {
  subscriber_.set_audience(audience);
  subscriber_.set_patient(pace.delay.count() > 0);
  subscriber_.on_more = [this] { deliver_soon(); };
}

void InProcessClient::subscribe(message::Subscribe asked) {
  if (!listener_) return;
  subscribes_.push_back(std::move(asked));
  deliver_soon();
}

void InProcessClient::read(message::Read asked) {
  if (!listener_) return;
  reads_.push_back(std::move(asked));
  deliver_soon();
}

void InProcessClient::leave() {
  if (!std::exchange(listener_, nullptr)) return;
  delay_timer_.cancel();
  if (!delivering_) subscriber_.close();
  boost::asio::post(io_, [self = shared_from_this()] {
    self->subscriber_.close();
    if (self->on_closed) std::exchange(self->on_closed, {})(*self);
  });
}

void InProcessClient::send_requests() {
  for (message::Subscribe& each : std::exchange(subscribes_, {})) subscriber_.subscribe(std::move(each));
  for (const message::Read& each : std::exchange(reads_, {})) subscriber_.read(each);
}

void InProcessClient::wake() {
  if (pace_.delay.count() == 0) return resume();
  if (!listener_) return;
  if (subscriber_.frames_behind() > pace_.behind_max && listener_->has_room()) return deliver_soon();
  if (std::exchange(is_delayed_, true)) return;
  delay_timer_.expires_after(pace_.delay);
  delay_timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
    self->is_delayed_ = false;
    if (!ec) self->resume();
  });
}

void InProcessClient::deliver_ready(std::size_t frames_max) {
  if (delivering_) return;
  frames_left_ = frames_max;
  bytes_left_ = pace_.turn_bytes_max;
  while (listener_) {
    send_requests();
    if (!listener_->has_room()) return;
    if (is_turn_over()) return deliver_soon();
    Batch batch;
    subscriber_.gather(batch);
    if (batch.empty()) return;
    delivering_ = true;
    const std::size_t taken = deliver(batch);
    delivering_ = false;
    if (!listener_) return;
    subscriber_.sent(batch, taken);
  }
}

std::size_t InProcessClient::deliver(const Batch& batch) {
  std::size_t taken = 0;
  for (const iovec& piece : batch.iovecs()) {
    std::string_view frames(static_cast<const char*>(piece.iov_base), piece.iov_len);
    while (!frames.empty()) {
      if (!listener_ || is_turn_over() || !listener_->has_room()) return taken;
      const std::size_t left = frames.size();
      listener_->on_frame(take_payload(frames));
      taken += left - frames.size();
      --frames_left_;
      bytes_left_ -= std::min(bytes_left_, left - frames.size());
    }
  }
  return taken;
}

void InProcessClient::deliver_soon() {
  if (std::exchange(delivery_posted_, true)) return;
  boost::asio::post(io_, [self = shared_from_this()] {
    self->delivery_posted_ = false;
    self->resume();
  });
}

}  // namespace earshot::serve
