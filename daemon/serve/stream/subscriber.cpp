// What a connection asks for: subscriptions, their snapshots, and the queue of what is told to it alone.
#include "serve/stream/subscriber.hpp"

#include <algorithm>

#include "core/event_json.hpp"
#include "serve/stream/control_frames.hpp"

namespace earshot::serve {

void Subscriber::close() {
  if (context_.catch_ups) context_.catch_ups->forget(*this);
  if (context_.records) context_.records->forget(*this);
  subscriptions_.clear();
  own_.clear();
  own_bytes_ = 0;
  missed_.reset();
  on_more = nullptr;
  subscriptions_changed();
}

void Subscriber::push(Kind kind, Frame frame) {
  if (kind == Kind::answer || kind == Kind::reset) own_bytes_ += frame->size();
  own_.push_back({log().head(), kind, std::move(frame), nullptr});
}

void Subscriber::own_gone(OwnAddress& own) {
  if (own.kind == Kind::answer || own.kind == Kind::reset) own_bytes_ -= own.frame->size();
}

void Subscriber::tell(std::string_view payload) {
  if (resume()) return insert_before_resume(payload);
  push(Kind::answer, make_frame(payload));
}

bool Subscriber::matches(const Subscription& subscription, std::string_view session,
                         std::string_view project) const {
  return subscription.filter.matches_session(context_.host_of(session), session, project);
}

bool Subscriber::may_see(const Session* session) const {
  return !allowed_ || (session && context_.may_see(*allowed_, *session));
}

/// False as well for one that is not, and for one of which only its file is known.
bool Subscriber::may_see(const tail::Stream* stream) const {
  if (!allowed_) return true;
  return stream && context_.sessions.contains(*stream) && may_see(context_.sessions.find(stream->session()));
}

bool Subscriber::wants(const Subscription& subscription, const Session& session) const {
  return matches(subscription, session.name, session.project_or_directory()) && may_see(&session);
}

void Subscriber::subscriptions_changed() {
  const auto is_state = [](const Subscription& subscription) { return subscription.state; };
  const bool states = std::any_of(subscriptions_.begin(), subscriptions_.end(), is_state);
  const bool events = !std::all_of(subscriptions_.begin(), subscriptions_.end(), is_state);
  const bool keeps = std::any_of(subscriptions_.begin(), subscriptions_.end(),
                                 [](const Subscription& subscription) { return subscription.keeps; });
  if (events != events_) events ? ++audience_log().readers : --audience_log().readers;
  if (states != states_) states ? ++context_.state_connections : --context_.state_connections;
  if (keeps && !keeps_) audience_log().catch_up_subscribers.push_back(this);
  if (!keeps && keeps_) std::erase(audience_log().catch_up_subscribers, this);
  if (events && !events_) position_ = bookmarked_ = log().head();
  events_ = events;
  states_ = states;
  keeps_ = keeps;
  if (!states_) states_due_.clear();
  if (!keeps_) missed_.reset();

  verdicts_.reset();
  types_.fill(all_subscriptions);
  for (std::size_t type = 0; type < event_types; ++type) {
    types_[type] = 0;
    for (const Subscription& subscription : subscriptions_) {
      if (!subscription.state && subscription.filter.matches_type(event_type_names()[type]))
        types_[type] |= subscription.bit;
    }
  }
}

void Subscriber::subscribe(message::Subscribe asked) {
  const auto refuse = [&](std::string_view code, std::string_view text) {
    tell(message::error(asked.id, code, text));
  };
  const auto same_id = [&](const Subscription& subscription) { return subscription.id == asked.id; };
  if (std::any_of(subscriptions_.begin(), subscriptions_.end(), same_id)) {
    return refuse("bad_message", "a subscription has this `id` already");
  }
  if (subscriptions_.size() >= std::min(context_.limits.subscriptions_max, masked_max))
    return refuse("limit", "too many subscriptions");
  if (asked.after && asked.after->size() > context_.limits.after_entries) {
    return refuse("limit", "`after` has more than " + std::to_string(context_.limits.after_entries) +
                               " entries: take several subscriptions");
  }

  Mask taken = 0;
  for (const Subscription& subscription : subscriptions_) taken |= subscription.bit;
  const Mask bit = ~taken & (taken + 1);  // the lowest that is free
  subscriptions_.push_back({std::move(asked.id), std::move(asked.filter), asked.state, asked.all,
                            asked.catch_up && !asked.state, log().head(), bit});
  subscriptions_changed();
  const Subscription& subscription = subscriptions_.back();
  if (asked.snapshot) snapshot(subscription);
  push(Kind::answer, make_frame(control_frame("ready", subscription.id)));
  if (!asked.after) return;
  auto resume = resume_of(subscription, *asked.after);
  own_.push_back({log().head(), Kind::resume, nullptr, std::move(resume)});
}

void Subscriber::snapshot(const Subscription& subscription) {
  context_.sessions.for_each([&](Session& session) {
    const bool empty = session.members.empty() && !session.process_lives();
    if (empty || !wants(subscription, session)) return;
    if (!subscription.all && !is_live(session, context_.recent)) return;
    push(Kind::snapshot, context_.sessions.frame(session, audience_));
  });
}

void Subscriber::unsubscribe(std::string_view id) {
  const auto found = std::find_if(subscriptions_.begin(), subscriptions_.end(),
                                  [&](const Subscription& s) { return s.id == id; });
  if (found == subscriptions_.end())
    return tell(message::error(id, "bad_message", "no subscription has this `id`"));
  const Mask bit = found->bit;
  subscriptions_.erase(found);
  subscriptions_changed();
  std::erase_if(own_, [&](OwnAddress& own) {
    if (own.kind != Kind::resume) return false;
    own.resume->who &= ~bit;
    if (own.resume->who != 0) return false;
    if (own.resume->begun && context_.catch_ups) context_.catch_ups->forget(*this);
    return true;
  });
}

void Subscriber::read(const message::Read& asked) {
  if (!may_see(context_.archive ? context_.archive->find(asked.stream) : nullptr))
    return tell(message::error(asked.id, "not_found", "no stream is called so"));
  if (context_.records) return context_.records->ask(*this, asked);
  tell(message::error(asked.id, "not_found", "nothing can be read again here"));
}

void Subscriber::session_changed(const Session& session) {
  if (!states_) return;
  const bool wanted = std::any_of(
      subscriptions_.begin(), subscriptions_.end(),
      [&](const Subscription& subscription) { return subscription.state && wants(subscription, session); });
  if (wanted) states_due_.insert(session.id);
}

/// Which subscriptions are for this session, whatever the type.
Subscriber::Mask Subscriber::sessions_mask(std::uint32_t id) {
  const Session* session = context_.sessions.find(id);
  if (!session) return 0;
  if (!verdicts_) verdicts_ = std::make_unique<std::array<Verdict, verdicts>>();
  Verdict& verdict = (*verdicts_)[id % verdicts];
  if (verdict.session == id && verdict.generation == session->generation) return verdict.mask;
  verdict = {id, session->generation, 0};
  for (const Subscription& subscription : subscriptions_) {
    if (!subscription.state && wants(subscription, *session)) verdict.mask |= subscription.bit;
  }
  return verdict.mask;
}

/// Those that want frames from here on.
Subscriber::Mask Subscriber::active_at(Position at) const {
  Mask active = 0;
  for (const Subscription& subscription : subscriptions_)
    if (!subscription.state && subscription.since <= at) active |= subscription.bit;
  return active;
}

bool Subscriber::muted(std::uint32_t stream, Position at) const {
  return std::any_of(mutes_.begin(), mutes_.end(),
                     [&](const Mute& mute) { return mute.stream == stream && at < mute.until; });
}

void Subscriber::shed() {
  if (!events_ || log().holds(position_)) return;
  const auto released = std::erase_if(own_, [](const OwnAddress& own) { return own.kind == Kind::snapshot; });
  if (released > 0) shed_ = true;
}

/// Where the streams are that have moved since, of those that a filtered subscription is for.
std::vector<std::string> Subscriber::moved_places(Position since) {
  std::vector<std::string> places;
  context_.sessions.for_each([&](Session& session) {
    if (session.changed < since || session.name.empty()) return;
    const bool wanted =
        std::any_of(subscriptions_.begin(), subscriptions_.end(), [&](const Subscription& subscription) {
          return !subscription.state && !subscription.filter.empty() && wants(subscription, session);
        });
    if (!wanted) return;
    for (const Member& member : session.members) {
      if (!member.stream->transcript()) continue;
      places.push_back(member.stream->name() + ":" + to_string(member.stream->transcript()->end()));
    }
  });
  return places;
}

void Subscriber::tick(Clock::time_point now) {
  if (!events_ || now - bookmarked_at_ < context_.limits.bookmark) return;
  bookmarked_at_ = now;
  const bool filtered = std::any_of(
      subscriptions_.begin(), subscriptions_.end(),
      [](const Subscription& subscription) { return !subscription.state && !subscription.filter.empty(); });
  const Position head = log().head();
  const Position since = std::exchange(bookmarked_, head);
  // One that is behind gets its cursors with the events themselves.
  if (!filtered || since == head || !own_.empty() || position_ != head || lost_from_) return;
  for (std::string& payload : bookmark_frames({}, moved_places(since), false))
    push(Kind::answer, make_frame(payload));
}

}  // namespace earshot::serve
