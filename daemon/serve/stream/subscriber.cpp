#include "serve/stream/subscriber.hpp"

#include <algorithm>

#include "serve/stream/frames.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t states_per_write = 16;  // later ones may still be replaced by newer states

/// Memory of a request that waits.
std::size_t bytes_of(const message::Subscribe& asked) {
  std::size_t bytes = sizeof asked;
  const auto add = [&bytes](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) bytes += sizeof text + text.size();
  };
  for (const FilterKey& key : filter_keys) add(asked.filter.*key.list);
  if (asked.after) add(*asked.after);
  return bytes;
}

}  // namespace

// --- Subscriptions ---

void Subscriber::close() {
  if (context_.catch_ups) context_.catch_ups->forget(*this);
  if (context_.records) context_.records->forget(*this);
  if (context_.scans) context_.scans->cancel(this);
  for (const Subscription& subscription : subscriptions_) {
    if (!subscription.state) audience_log().remove_start(subscription.since);
    if (subscription.from_beginning) --context_.from_beginning_subscriptions;
  }
  subscriptions_.clear();
  queue_.clear();
  starting_.clear();
  answer_bytes_ = snapshot_bytes_ = starting_bytes_ = 0;
  missed_.reset();
  changed_.reset();
  page_.reset();
  on_more = nullptr;
  subscriptions_changed();
}

bool Subscriber::may_see(const Session* session) const {
  return !allowed_ || (session && serve::may_see(*allowed_, context_.sessions, *session));
}

/// False also for a missing stream and for one that was never read.
bool Subscriber::may_see(const tail::Stream* stream) const {
  if (!allowed_) return true;
  if (!stream || !context_.sessions.contains(*stream)) return false;
  const Session* session = context_.sessions.find(stream->session());
  return session && serve::may_see(*allowed_, context_.sessions, *session, *stream);
}

bool Subscriber::wants(const Subscription& subscription, const Session& session) const {
  return subscription.filter.matches_session(context_.sessions.keys_of(session)) && may_see(&session);
}

bool Subscriber::wants(const Subscription& subscription, const Session& session,
                       const tail::Stream& stream) const {
  return subscription.filter.matches_session(context_.sessions.keys_of(session)) && may_see(&stream);
}

/// Subscriptions that match a frame, for any type. A restricted client sees the streams of its projects, also
/// if another project has a session of the same id.
Subscriber::Mask Subscriber::mask_of(const Tags& tags) {
  const Mask mask = filter_mask(tags.session);
  if (!allowed_ || mask == 0) return mask;
  if (const tail::Stream* stream = context_.sessions.find_stream(tags.stream))
    return may_see(stream) ? mask : 0;
  const Session* const session = context_.sessions.find(tags.session);
  return session && may_see_removed(*allowed_, context_.sessions, *session, tags.stream) ? mask : 0;
}

Subscriber::Mask Subscriber::mask_of(const Session& session) {
  const Mask mask = filter_mask(session.id);
  return mask != 0 && may_see(&session) ? mask : 0;
}

bool Subscriber::is_in_snapshot(const Subscription& subscription, const Session& session) const {
  if ((session.members.empty() && !session.process_lives()) || !wants(subscription, session)) return false;
  return subscription.all || is_live(session, context_.recent);
}

void Subscriber::subscriptions_changed() {
  const Mask state = mask_where(is_state);
  const bool states = state != 0;
  const bool events = state != mask_where([](const Subscription&) { return true; });
  const bool catches_up = catching_up() != 0;
  AudienceLog& of = audience_log();
  auto& listeners = of.catch_up_subscribers;
  if (events != events_) {
    events ? ++of.readers : --of.readers;
    if (is_patient_) events ? ++of.patient_readers : --of.patient_readers;
  }
  if (states != states_) states ? ++context_.state_connections : --context_.state_connections;
  if (catches_up && !catches_up_) listeners.push_back(this);
  if (!catches_up && catches_up_) std::erase(listeners, static_cast<EvictionListener*>(this));
  if (events && !events_) position_ = bookmarked_ = log().head();
  events_ = events;
  states_ = states;
  catches_up_ = catches_up;
  if (!states_) states_due_.clear();
  if (!catches_up_) missed_.reset();

  cached_masks_.reset();
  types_.fill(all_subscriptions);
  for (std::size_t type = 0; type < event_types; ++type) {
    types_[type] = mask_where([name = event_type_names()[type]](const Subscription& each) {
      return !each.state && each.filter.matches_type(name);
    });
  }
}

/// The subscription receives events from this position on.
void Subscriber::set_start(Subscription& subscription, Position since) {
  audience_log().add_start(since);
  audience_log().remove_start(subscription.since);
  subscription.since = since;
}

void Subscriber::subscribe(message::Subscribe asked) {
  const auto refuse = [&](std::string_view code, std::string_view text) {
    push_answer(error_frame(asked.id, code, text));
  };
  const auto has_id = [&](const Subscription& each) { return each.id == asked.id; };
  if (mask_where(has_id) != 0 || std::any_of(starting_.begin(), starting_.end(),
                                             [&](const Starting& each) { return has_id(each.subscription); }))
    return refuse("bad_message", "a subscription with this `id` exists");
  if (subscriptions() >= std::min(context_.limits.subscriptions_max, subscriptions_max))
    return refuse("limit", "too many subscriptions");
  if (asked.after && asked.after->size() > context_.limits.after_entries) {
    return refuse("limit", "`after` has more than " + std::to_string(context_.limits.after_entries) +
                               " entries: use several subscriptions");
  }
  const std::size_t bytes = earshot::serve::bytes_of(asked);
  starting_bytes_ += bytes;
  Subscription subscription{.id = asked.id,
                            .filter = std::move(asked.filter),
                            .state = asked.state,
                            .all = asked.all,
                            .catch_up = asked.catch_up && !asked.state,
                            .from_beginning = asked.from_beginning};
  starting_.push_back({std::move(subscription), std::move(asked), bytes});
  start_next();
}

/// Visits all sessions; `done` may be called during the call. One scan at a time.
void Subscriber::scan(Found& found, SessionScans::Visit visit, std::function<void()> done) {
  found.begun = log().head();
  if (context_.scans) return context_.scans->begin(this, std::move(visit), std::move(done));
  context_.sessions.for_each(visit);
  done();
}

/// The found sessions; those that changed during the scan are matched again.
std::vector<Session*> Subscriber::sessions_of(const Found& found,
                                              const std::function<bool(const Session&)>& wanted) {
  std::vector<Session*> sessions;
  for (const std::uint32_t id : found.ids) {
    Session* session = context_.sessions.find(id);
    if (session && !(found.is_sliced && session->changed >= found.begun)) sessions.push_back(session);
  }
  if (!found.is_sliced) return sessions;
  context_.sessions.for_each([&](Session& session) {
    if (session.changed >= found.begun && wanted(session)) sessions.push_back(&session);
  });
  return sessions;
}

/// A client that does not read could otherwise queue any number of snapshots and resumes.
bool Subscriber::is_full() const {
  std::size_t streams = 0;
  for (const Queued& queued : queue_)
    if (queued.resume) streams += queued.resume->missing.size();
  return snapshot_bytes_ > snapshot_bytes_max || streams > resume_streams_max;
}

/// Starts waiting subscriptions, in order.
void Subscriber::start_next() {
  if (is_scanning() || is_full()) return;
  if (starting_.empty()) return start_page();
  Starting& next = starting_.front();
  if (next.asked.page > 0) return start_pages();
  next.found = Found{};
  const auto& asked = next.asked;
  const auto done = [this] {
    finish_start();
    start_next();
    wake();
  };
  if (!asked.snapshot && !asked.since_ms && !asked.from_beginning) return done();
  const auto visit = [this](Session& session) {
    Starting& starting = starting_.front();
    if (!is_in_snapshot(starting.subscription, session)) return;
    starting.found->ids.push_back(session.id);
    if (starting.asked.snapshot) context_.sessions.frame(session, audience_);  // encoded in this slice
  };
  scan(*next.found, visit, done);
  if (!starting_.empty() && starting_.front().found) starting_.front().found->is_sliced = true;
}

/// The subscription receives events from the current head on.
Subscriber::Subscription& Subscriber::add_subscription(Subscription added) {
  const Mask taken = mask_where([](const Subscription&) { return true; });
  Subscription& subscription = subscriptions_.emplace_back(std::move(added));
  subscription.bit = ~taken & (taken + 1);  // the lowest free one
  subscription.since = log().head();
  if (!subscription.state) audience_log().add_start(subscription.since);
  if (subscription.from_beginning) ++context_.from_beginning_subscriptions;
  subscriptions_changed();
  return subscription;
}

/// Queues what the first waiting subscription begins with; its sessions were found.
void Subscriber::finish_start() {
  Starting starting = std::move(starting_.front());
  starting_.pop_front();
  starting_bytes_ -= starting.bytes;
  Subscription& subscription = add_subscription(std::move(starting.subscription));

  const auto sessions = sessions_of(
      *starting.found, [&](const Session& session) { return is_in_snapshot(subscription, session); });
  message::Subscribe& asked = starting.asked;
  if (asked.after) use_present_names(subscription, *asked.after);
  if (asked.snapshot)
    for (Session* session : sessions)
      if (session->is_shown())
        push(Kind::snapshot, context_.sessions.frame(*session, audience_), subscription.bit);
  push(Kind::answer, make_frame(control_frame("ready", subscription.id)), subscription.bit);
  if (asked.after || asked.since_ms || asked.from_beginning)
    push_resume(log().head(), make_resume(subscription, asked, sessions));
}

void Subscriber::unsubscribe(std::string_view id) {
  const auto starting = std::find_if(starting_.begin(), starting_.end(),
                                     [&](const Starting& each) { return each.subscription.id == id; });
  const auto found = std::find_if(subscriptions_.begin(), subscriptions_.end(),
                                  [&](const Subscription& each) { return each.id == id; });
  if (starting != starting_.end()) {
    if (starting->found && context_.scans) context_.scans->cancel(this);
    starting_bytes_ -= starting->bytes;
    starting_.erase(starting);
  } else if (found != subscriptions_.end()) {
    const Mask bit = found->bit;
    if (!found->state) audience_log().remove_start(found->since);
    if (found->from_beginning) --context_.from_beginning_subscriptions;
    subscriptions_.erase(found);
    subscriptions_changed();
    drop_queued(bit);
    forget_resumed(bit);
    forget_unreadable(bit);
    restore_resumes();
    if (changed_ && context_.scans) context_.scans->cancel(this);
    changed_.reset();
    if (page_ && page_->owner == bit) {
      if (!page_->is_complete && context_.scans) context_.scans->cancel(this);
      page_.reset();
    }
  } else {
    return push_answer(error_frame(id, "bad_message", "there is no subscription with this `id`"));
  }
  push_answer(control_frame("unsubscribed", id));
  start_next();
}

void Subscriber::read(const message::Read& asked) {
  if (!may_see(context_.archive ? context_.archive->find_present(asked.stream) : nullptr))
    return push_answer(error_frame(asked.id, "not_found", "there is no stream with this name"));
  if (context_.records) return context_.records->read(*this, asked);
  push_answer(error_frame(asked.id, "not_found", "records are not available here"));
}

void Subscriber::session_changed(const Session& session) {
  if (states_ && (mask_of(session) & mask_where(is_state)) != 0) states_due_.insert(session.id);
}

void Subscriber::session_shown(const Session& session) {
  for (Subscription& subscription : subscriptions_) {
    if (!subscription.from_beginning || (mask_of(session) & subscription.bit) == 0) continue;
    auto resume = std::make_unique<Resume>();
    resume->id = subscription.id;
    resume->subscribers = subscription.bit;
    add_new_streams(subscription, session, *resume);
    if (resume->missing.empty()) continue;
    exclude_delivered(subscription, *resume);
    push_resume(log().head(), std::move(resume));
  }
}

void Subscriber::stream_appeared(std::uint32_t stream) {
  for (Subscription& subscription : subscriptions_)
    if (subscription.from_beginning) subscription.known_streams.insert(stream);
}

/// Subscriptions with a filter that matches this session, for any type.
Subscriber::Mask Subscriber::filter_mask(std::uint32_t id) {
  const Session* session = context_.sessions.find(id);
  if (!session) return 0;
  if (!cached_masks_) cached_masks_ = std::make_unique<std::array<CachedMask, cached_masks>>();
  CachedMask& cached = (*cached_masks_)[id % cached_masks];
  if (cached.session == id && cached.generation == session->generation) return cached.mask;
  const SessionKeys keys = context_.sessions.keys_of(*session);
  cached = {id, session->generation,
            mask_where([&](const Subscription& each) { return each.filter.matches_session(keys); })};
  return cached.mask;
}

bool Subscriber::is_muted(std::uint32_t stream, Position at) const {
  return std::any_of(mutes_.begin(), mutes_.end(),
                     [&](const Mute& mute) { return mute.stream == stream && at < mute.until; });
}

/// Current cursors of the streams that changed since then and match a filtered subscription.
std::vector<std::string> Subscriber::moved_cursors(Position since) {
  std::vector<std::string> cursors;
  context_.sessions.for_each([&](Session& session) {
    if (session.changed < since || session.name.empty()) return;
    if ((mask_of(session) & mask_where(is_filtered)) == 0) return;
    for (const Member& member : session.members) {
      if (!member.stream->transcript()) continue;
      cursors.push_back(stream_cursor(*member.stream, member.stream->transcript()->end()));
    }
  });
  return cursors;
}

void Subscriber::tick(Clock::time_point now) {
  if (context_.records) context_.records->tick();
  if (!events_ || now - bookmarked_at_ < context_.limits.bookmark) return;
  bookmarked_at_ = now;
  const bool filtered = mask_where(is_filtered) != 0;
  const Position head = log().head();
  const Position since = std::exchange(bookmarked_, head);
  // A subscriber that is behind receives the cursors with its events.
  if (!filtered || since == head || !queue_.empty() || position_ != head || lost_from_) return;
  for (const std::string& payload : bookmark_frames({}, moved_cursors(since), false))
    push(Kind::answer, make_frame(payload));
}

// --- The queue ---

Subscriber::Queued Subscriber::queued(Position at, Kind kind, Frame frame, Mask owners) {
  bytes_of(kind) += frame->size();
  return {at, kind, std::move(frame), nullptr, owners};
}

void Subscriber::push(Kind kind, Frame frame, Mask owners) {
  queue_.push_back(queued(log().head(), kind, std::move(frame), owners));
}

void Subscriber::push_resume(Position at, std::unique_ptr<Resume> resume) {
  const Mask owners = resume->subscribers;
  queue_.push_back({at, Kind::resume, nullptr, std::move(resume), owners});
}

void Subscriber::push_answer(std::string_view payload) {
  if (resume()) return insert_before_resume(payload);
  push(Kind::answer, make_frame(payload));
}

/// Drops the frames of a subscription that has ended.
void Subscriber::drop_queued(Mask bit) {
  std::erase_if(queue_, [&](Queued& queued) {
    if ((queued.owners & bit) == 0) return false;
    queued.owners &= ~bit;
    if (queued.resume) queued.resume->subscribers = queued.owners;
    if (queued.owners != 0) return false;
    if (queued.resume && queued.resume->begun && context_.catch_ups) context_.catch_ups->forget(*this);
    release(queued);
    return true;
  });
}

void Subscriber::shed() {
  if (!events_ || log().holds(position_)) return;
  const auto dropped = std::erase_if(queue_, [this](const Queued& each) {
    if (each.kind != Kind::snapshot) return false;
    release(each);
    return true;
  });
  if (dropped > 0) shed_ = true;
}

// --- Sending ---

void Batch::add(std::span<const char> bytes, From from, const LiveLog::Run& run, std::size_t bytes_max) {
  iovecs_[count_] = {const_cast<char*>(bytes.data()), bytes.size()};
  runs_[count_] = run;
  from_[count_++] = from;
  bytes_ += bytes.size();
  full = count_ == pieces_max || bytes_ >= bytes_max;
}

/// Encodes the frames of sessions with a due state. False: none is due.
bool Subscriber::add_states() {
  std::size_t made = 0;
  while (!states_due_.empty() && made < states_per_write) {
    const auto first = states_due_.begin();
    Session* session = context_.sessions.find(*first);
    states_due_.erase(first);
    if (!session || !session->is_shown() || !may_see(session)) continue;
    push(Kind::snapshot, context_.sessions.frame(*session, audience_));
    ++made;
  }
  return made > 0;
}

/// Adds frames of the log before `until` as long as the batch has room, and advances `scanned`.
void Subscriber::add_log(Batch& batch, Position until) {
  std::erase_if(mutes_, [&](const Mute& mute) { return mute.until <= batch.scanned; });
  const Mask active = active_at(batch.scanned);
  const bool everything =
      mutes_.empty() && !allowed_ &&
      (active & mask_where([](const Subscription& each) { return each.filter.empty(); })) != 0;
  // Stop where another subscription starts: it is active from there on.
  for (const Subscription& subscription : subscriptions_) {
    if (!subscription.state && subscription.since > batch.scanned)
      until = std::min(until, subscription.since);
  }
  if (active == 0) batch.scanned = until;
  Position at = batch.scanned;
  const auto wanted = [&](const Tags& tags) {
    const Mask typed = types_[tags.type] & active;
    if (typed == 0 || (mask_of(tags) & typed) == 0) return false;
    return mutes_.empty() || is_about_names(tags.type) || !is_muted(tags.stream, at);
  };
  while (batch.scanned < until && !batch.full) {
    const std::size_t room = context_.limits.write_bytes_max - batch.bytes_;
    if (!mutes_.empty()) {  // one frame at a time while a stream is muted
      at = batch.scanned;
      if (!wanted(log().tags(at))) {
        ++batch.scanned;
        continue;
      }
    }
    const LiveLog::Run run = everything        ? log().contiguous(batch.scanned, until, room)
                             : !mutes_.empty() ? log().contiguous(batch.scanned, batch.scanned + 1, room)
                                               : log().matching(batch.scanned, until, room, wanted);
    if (run.first == run.next) {
      batch.scanned = until;
      return;
    }
    if (batch.count_ > 0 && run.bytes.size() > room) {
      batch.full = true;
      return;
    }
    batch.add(run.bytes, Batch::From::log, run, context_.limits.write_bytes_max);
    batch.scanned = run.next;
  }
}

/// Adds the next queued frame. False: nothing behind it may be sent now.
bool Subscriber::add_queued(Batch& batch, std::list<Queued>::iterator& next) {
  Queued& queued = *next;
  if (queued.kind != Kind::resume) {
    ++next;
    batch.add({queued.frame->data(), queued.frame->size()}, Batch::From::queue, {},
              context_.limits.write_bytes_max);
    return true;
  }
  if (!batch.empty()) {  // send what precedes it first
    batch.full = true;
    return false;
  }
  Resume& resume = *queued.resume;
  if (resume.is_read) {
    if (!push_resets(resume)) {
      wake();
      return false;
    }
    queue_.pop_front();
    next = queue_.begin();
    return true;
  }
  if (!resume.begun) {
    begin(resume);
    next = queue_.begin();  // it may have queued frames before the resume
    return true;
  }
  if (add_chunk(batch, resume)) {
    batch.full = true;
    return false;
  }
  if (!resume.done()) return false;
  auto finished = std::move(queued.resume);
  queue_.pop_front();
  finish(std::move(finished));
  next = queue_.begin();
  return true;
}

void Subscriber::gather(Batch& batch) {
  partial_.reset();
  if (answer_bytes_ == 0 && context_.records) context_.records->send_next(*this);
  if (events_ && !lost_from_ && !log().holds(position_)) lost_from_ = position_;
  if (lost_from_ && !find_changed()) return;  // on_more() follows
  if (lost_from_) on_lagged();
  start_next();
  batch.scanned = position_;
  auto next = queue_.begin();
  while (!batch.full) {
    const bool has_queued = next != queue_.end();
    const Position until = has_queued ? next->at : log().head();
    if (events_ && batch.scanned < until) {
      add_log(batch, until);
      continue;
    }
    if (has_queued) {
      if (!add_queued(batch, next)) break;
      continue;
    }
    const std::size_t taken = queue_.size();
    if (!add_page() && !add_states()) break;
    next = std::next(queue_.begin(), static_cast<std::ptrdiff_t>(taken));
  }
  if (batch.empty()) position_ = batch.scanned;
}

std::span<const char> Subscriber::sent(const Batch& batch, std::size_t bytes) {
  const bool all = bytes == batch.bytes_;
  for (std::size_t i = 0; i < batch.count_ && bytes > 0; ++i) {
    const iovec& piece = batch.iovecs_[i];
    const LiveLog::Run& run = batch.runs_[i];
    const std::size_t written = std::min(bytes, piece.iov_len);
    const bool is_partial = written < piece.iov_len;
    bytes -= written;
    if (batch.from_[i] == Batch::From::queue) {
      release(queue_.front());
      partial_ = std::move(queue_.front().frame);
      queue_.pop_front();
      if (is_partial) return std::span(partial_->data(), partial_->size()).subspan(written);
      continue;
    }
    const bool from_log = batch.from_[i] == Batch::From::log;
    Resume* from = from_log ? nullptr : resume();
    LiveLog& source = from_log ? log() : from->reading.front().chunk->log(audience_);
    Position& position = from_log ? position_ : from->reading.front().at;
    const LiveLog::Cut cut = is_partial ? source.cut(run, written) : LiveLog::Cut{run.next, {}};
    position = cut.next;
    if (!from_log && position > run.first) {  // the new start, should the chunk be revoked
      EventRange& missing = from->missing.find(from->reading.front().stream)->second;
      missing.from = source.tags(position - 1).cursor;
      missing.inclusive = false;
    }
    if (is_partial) return cut.rest;
  }
  if (all) position_ = std::max(position_, batch.scanned);
  const bool awaits_page =
      mask_where([](const Subscription& each) { return each.pages && each.pages->is_requested; }) != 0;
  if (!starting_.empty() || awaits_page) wake();  // the queue may have room
  return {};
}

}  // namespace earshot::serve
