#include "serve/subscriber.hpp"

#include <algorithm>

#include "core/event_json.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t states_at_once =
    16;  // frames made for one write; those behind them may still become newer

std::string with_id(std::string_view type, std::string_view id) {
  std::string out = R"({"type":)";
  append_string(out, type);
  out += R"(,"id":)";
  append_string(out, id);
  out += '}';
  return out;
}

}  // namespace

bool is_live(const Session& session, std::chrono::milliseconds recent) {
  using namespace std::chrono;
  if (session.process_lives()) return true;
  const std::int64_t now_ms = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  return !session.members.empty() && now_ms - session.modified_ms() <= recent.count();
}

void Subscriber::close() {
  subscriptions_.clear();
  own_.clear();
  own_bytes_ = 0;
  count_kinds();
}

void Subscriber::push(Kind kind, Frame frame) {
  if (kind != Kind::snapshot) own_bytes_ += frame->size();
  own_.push_back({shared_.log.head(), kind, std::move(frame)});
}

void Subscriber::tell(std::string_view payload) { push(Kind::answer, make_frame(payload)); }

bool Subscriber::wants(const Subscription& subscription, const Session& session) const {
  return subscription.filter.matches_session(shared_.host, session.name, session.project_or_directory());
}

void Subscriber::count_kinds() {
  const auto is_state = [](const Subscription& subscription) { return subscription.state; };
  const bool states = std::any_of(subscriptions_.begin(), subscriptions_.end(), is_state);
  const bool events = !std::all_of(subscriptions_.begin(), subscriptions_.end(), is_state);
  if (events != events_) events ? ++shared_.event_connections : --shared_.event_connections;
  if (states != states_) states ? ++shared_.state_connections : --shared_.state_connections;
  if (events && !events_) position_ = shared_.log.head();
  events_ = events;
  states_ = states;
  if (!states_) states_due_.clear();

  verdicts_.reset();
  for (std::size_t type = 0; type < event_types; ++type) {
    types_[type] = 0;
    for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
      const Subscription& subscription = subscriptions_[i];
      if (!subscription.state && subscription.filter.matches_type(event_type_names()[type]))
        types_[type] |= Mask{1} << i;
    }
  }
  types_[type_always] = all_subscriptions;
}

void Subscriber::subscribe(message::Subscribe asked) {
  const auto refuse = [&](std::string_view code, std::string_view text) {
    tell(message::error(asked.id, code, text));
  };
  if (asked.after) return refuse("unsupported", "`after` is not served yet: subscribe without it");
  const auto same_id = [&](const Subscription& subscription) { return subscription.id == asked.id; };
  if (std::any_of(subscriptions_.begin(), subscriptions_.end(), same_id)) {
    return refuse("bad_message", "a subscription has this `id` already");
  }
  if (subscriptions_.size() >= std::min(shared_.limits.subscriptions_max, masked_max))
    return refuse("limit", "too many subscriptions");

  subscriptions_.push_back(
      {std::move(asked.id), std::move(asked.filter), asked.state, asked.all, shared_.log.head()});
  count_kinds();
  const Subscription& subscription = subscriptions_.back();
  if (asked.snapshot) snapshot(subscription);
  push(Kind::answer, make_frame(with_id("ready", subscription.id)));
}

void Subscriber::snapshot(const Subscription& subscription) {
  shared_.sessions.for_each([&](Session& session) {
    const bool empty = session.members.empty() && !session.process_lives();
    if (empty || !wants(subscription, session)) return;
    if (!subscription.all && !is_live(session, shared_.recent)) return;
    push(Kind::snapshot, shared_.sessions.frame(session));
  });
}

void Subscriber::unsubscribe(std::string_view id) {
  const auto erased = std::erase_if(subscriptions_, [&](const Subscription& s) { return s.id == id; });
  if (!erased) return tell(message::error(id, "bad_message", "no subscription has this `id`"));
  count_kinds();
}

void Subscriber::session_changed(const Session& session) {
  if (!states_) return;
  const bool wanted = std::any_of(
      subscriptions_.begin(), subscriptions_.end(),
      [&](const Subscription& subscription) { return subscription.state && wants(subscription, session); });
  if (wanted) states_due_.insert(session.id);
}

Subscriber::Mask Subscriber::sessions_mask(std::uint32_t id) {
  const Session* session = shared_.sessions.find(id);
  if (!session) return 0;
  if (!verdicts_) verdicts_ = std::make_unique<std::array<Verdict, verdicts>>();
  Verdict& verdict = (*verdicts_)[id % verdicts];
  if (verdict.session == id && verdict.generation == session->generation) return verdict.mask;
  verdict = {id, session->generation, 0};
  for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
    if (!subscriptions_[i].state && wants(subscriptions_[i], *session)) verdict.mask |= Mask{1} << i;
  }
  return verdict.mask;
}

/// The log has gone on without this client. Each event subscription is told so, then every session that is
/// another since.
void Subscriber::catch_up() {
  std::deque<Own> kept;
  for (Own& own : own_) {
    if (own.kind == Kind::snapshot) shed_ = true;
    if (own.kind == Kind::answer) kept.push_back(std::move(own));
  }
  own_.clear();
  const Position missed_from = position_;
  position_ = shared_.log.head();
  for (const Subscription& subscription : subscriptions_) {
    if (subscription.state) continue;
    push(Kind::lagged, make_frame(with_id("lagged", subscription.id)));
  }
  shared_.sessions.for_each([&](Session& session) {
    if (session.members.empty() && !session.process_lives()) return;
    if (!shed_ && session.changed < missed_from) return;
    const bool wanted =
        std::any_of(subscriptions_.begin(), subscriptions_.end(), [&](const Subscription& subscription) {
          if (!wants(subscription, session)) return false;
          return subscription.all || session.changed >= missed_from || is_live(session, shared_.recent);
        });
    if (wanted) push(Kind::snapshot, shared_.sessions.frame(session));
  });
  shed_ = false;
  for (Own& own : kept) {
    own.at = position_;
    own_.push_back(std::move(own));
  }
  own_bytes_ = 0;
  for (const Own& own : own_) own_bytes_ += own.kind == Kind::snapshot ? 0 : own.frame->size();
}

void Subscriber::shed() {
  if (!events_ || shared_.log.holds(position_)) return;
  const auto released = std::erase_if(own_, [](const Own& own) { return own.kind == Kind::snapshot; });
  if (released > 0) shed_ = true;
}

/// Frames for sessions whose state is owed, made now: the newest wins. False: none is owed.
bool Subscriber::add_states() {
  std::size_t made = 0;
  while (!states_due_.empty() && made < states_at_once) {
    const auto first = states_due_.begin();
    Session* session = shared_.sessions.find(*first);
    states_due_.erase(first);
    if (!session || session->name.empty()) continue;
    push(Kind::snapshot, shared_.sessions.frame(*session));
    ++made;
  }
  return made > 0;
}

/// Frames of the log before `until`, as far as the batch has room; `scanned` says how far it came.
void Subscriber::add_log(Batch& batch, Position until) {
  Mask active = 0;
  bool everything = false;
  for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
    const Subscription& subscription = subscriptions_[i];
    if (subscription.state || subscription.since > batch.scanned) continue;
    active |= Mask{1} << i;
    everything |= subscription.filter.empty();
  }
  if (active == 0) batch.scanned = until;
  while (batch.scanned < until && !batch.full) {
    const std::size_t room = shared_.limits.write_bytes_max - batch.bytes_;
    const LiveLog::Run run = everything ? shared_.log.contiguous(batch.scanned, until, room)
                                        : shared_.log.matching(batch.scanned, until, room, [&](Tags tags) {
                                            const Mask typed = types_[tags.type] & active;
                                            return typed != 0 && (sessions_mask(tags.session) & typed) != 0;
                                          });
    if (run.first == run.next) {
      batch.scanned = until;
      return;
    }
    if (batch.count_ > 0 && run.bytes.size() > room) {
      batch.full = true;
      return;
    }
    batch.iovecs_[batch.count_] = {const_cast<char*>(run.bytes.data()), run.bytes.size()};
    batch.runs_[batch.count_++] = run;
    batch.bytes_ += run.bytes.size();
    batch.scanned = run.next;
    batch.full = batch.count_ == Batch::pieces_max || batch.bytes_ >= shared_.limits.write_bytes_max;
  }
}

void Subscriber::gather(Batch& batch) {
  torn_.reset();
  if (events_ && !shared_.log.holds(position_)) catch_up();
  batch.scanned = position_;
  std::size_t next_own = 0;
  while (!batch.full) {
    const bool has_own = next_own < own_.size();
    const Position until = has_own ? own_[next_own].at : shared_.log.head();
    if (events_ && batch.scanned < until) {
      add_log(batch, until);
      continue;
    }
    if (!has_own) {
      if (add_states()) continue;
      break;
    }
    const Frame& frame = own_[next_own++].frame;
    batch.iovecs_[batch.count_] = {const_cast<char*>(frame->data()), frame->size()};
    batch.runs_[batch.count_++] = {};
    batch.bytes_ += frame->size();
    batch.full = batch.count_ == Batch::pieces_max || batch.bytes_ >= shared_.limits.write_bytes_max;
  }
  if (batch.empty()) position_ = batch.scanned;
}

std::span<const char> Subscriber::sent(const Batch& batch, std::size_t bytes) {
  const bool all = bytes == batch.bytes_;
  for (std::size_t i = 0; i < batch.count_ && bytes > 0; ++i) {
    const iovec& piece = batch.iovecs_[i];
    const LiveLog::Run& run = batch.runs_[i];
    const std::size_t gone = std::min(bytes, piece.iov_len);
    const bool torn = gone < piece.iov_len;
    bytes -= gone;
    if (run.first == run.next) {
      if (own_.front().kind != Kind::snapshot) own_bytes_ -= own_.front().frame->size();
      torn_ = std::move(own_.front().frame);
      own_.pop_front();
      if (torn) return std::span(torn_->data(), torn_->size()).subspan(gone);
    } else if (torn) {
      const LiveLog::Cut cut = shared_.log.cut(run, gone);
      position_ = cut.next;
      return cut.rest;
    } else {
      position_ = run.next;
    }
  }
  if (all) position_ = std::max(position_, batch.scanned);
  return {};
}

}  // namespace earshot::serve
