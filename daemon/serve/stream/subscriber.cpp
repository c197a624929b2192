#include "serve/stream/subscriber.hpp"

#include <algorithm>
#include <utility>

#include "base/hex.hpp"
#include "serve/stream/frames.hpp"

namespace earshot::serve {
namespace {

// Session frames that are encoded when they are sent: later ones may still be replaced by newer ones.
constexpr std::size_t frames_per_write = 16;
constexpr std::size_t continuation_bytes = 8;

}  // namespace

// --- The subscription ---

void Subscriber::subscribe(message::Subscribe asked) {
  end_subscription();
  Subscription& subscription = subscription_.emplace(Subscription{.asked = std::move(asked)});
  subscription.types.set();
  for (std::size_t type = 0; type < event_types; ++type)
    subscription.types[type] = filter().matches_type(event_type_names()[type]);
  if (subscription.asked.page > 0) {
    state_ = State::live;
    listen();
    subscription.pages.changes = context_.sessions.changes();
    return find_page();
  }
  state_ = State::starting;
  found_.emplace(Found{.begun = context_.sessions.changes()});
  if (!subscription.asked.snapshot && !subscription.asked.since_ms && !subscription.asked.from_beginning)
    return start_live();
  const auto visit = [this](Session& session) {
    if (!is_in_snapshot(session)) return;
    found_->ids.push_back(session.id);
    if (subscription_->asked.snapshot) context_.sessions.frame(session, audience_);  // encoded in this slice
  };
  scan(visit, [this] { start_live(); });
}

/// Queues what the subscription begins with; it receives the log from its head on.
void Subscriber::start_live() {
  state_ = State::live;
  listen();
  const auto sessions = take_found([this](const Session& session) { return is_in_snapshot(session); });
  message::Subscribe& asked = subscription_->asked;
  if (!asked.snapshot) push(Kind::control, control_frame("ready", id()));
  if (asked.after) use_present_names(*asked.after);
  if (asked.snapshot) {
    for (Session* session : sessions)
      if (session->is_shown()) push(Kind::snapshot, context_.sessions.frame(*session, audience_));
    push(Kind::control, control_frame("ready", id()));
  }
  if (asked.after || asked.since_ms || asked.from_beginning) push_resume(log().head(), make_resume(sessions));
  asked.after.reset();
  wake();
}

void Subscriber::end_subscription() {
  if (state_ == State::idle) return;
  if (context_.scans) context_.scans->cancel(this);
  if (context_.catch_ups) context_.catch_ups->forget(*this);
  if (has_begun()) unlisten();
  std::erase_if(queue_, [this](const Queued& each) {
    if (each.kind == Kind::answer) return false;
    release(each);
    return true;
  });
  found_.reset();
  page_.reset();
  missed_.reset();
  states_due_.clear();
  cached_matches_.reset();
  mutes_.clear();
  unreadable_.clear();
  shed_ = false;
  alive_ = std::make_shared<char>();
  subscription_.reset();
  state_ = State::idle;
}

void Subscriber::close() {
  end_subscription();
  if (context_.records) context_.records->forget(*this);
  queue_.clear();
  answer_bytes_ = 0;
  on_more = nullptr;
}

/// Counts as a reader of the log, from its head on, or of states.
void Subscriber::listen() {
  AudienceLog& of = audience_log();
  if (subscription_->asked.state) {
    ++context_.state_connections;
    return;
  }
  ++of.readers;
  if (is_patient_) ++of.patient_readers;
  if (subscription_->asked.catch_up) of.catch_up_subscribers.push_back(this);
  if (subscription_->asked.from_beginning) ++context_.from_beginning_subscriptions;
  position_ = of.log.head();
  bookmarked_ = context_.sessions.changes();
}

void Subscriber::unlisten() {
  AudienceLog& of = audience_log();
  if (subscription_->asked.state) {
    --context_.state_connections;
    return;
  }
  --of.readers;
  if (is_patient_) --of.patient_readers;
  std::erase(of.catch_up_subscribers, static_cast<EvictionListener*>(this));
  if (subscription_->asked.from_beginning) --context_.from_beginning_subscriptions;
}

void Subscriber::read(const message::Read& asked) {
  if (!may_see(context_.archive ? context_.archive->find_present(asked.stream) : nullptr))
    return push_answer(error_frame(asked.id, "not_found", "there is no stream with this name"));
  if (context_.records) return context_.records->read(*this, asked);
  push_answer(error_frame(asked.id, "not_found", "records are not available here"));
}

void Subscriber::session_changed(const Session& session) {
  if (wants_states() && wants(session)) states_due_.insert(session.id);
}

void Subscriber::tick(Clock::time_point now) {
  if (context_.records) context_.records->tick();
  if (!reads_log() || now - bookmarked_at_ < context_.limits.bookmark) return;
  bookmarked_at_ = now;
  const std::uint64_t since = std::exchange(bookmarked_, context_.sessions.changes());
  // A subscriber that is behind receives the cursors with its events.
  const bool is_behind = state_ == State::behind || frames_behind() > 0 || !queue_.empty();
  if (filter().empty() || since == bookmarked_ || is_behind) return;
  for (const std::string& payload : bookmark_frames({}, moved_cursors(since), false))
    push(Kind::control, payload);
}

/// Current cursors of the streams of its sessions that changed since then.
std::vector<std::string> Subscriber::moved_cursors(std::uint64_t since) {
  std::vector<std::string> cursors;
  context_.sessions.for_each_changed(since, [&](Session& session) {
    if (!wants(session)) return;
    for (const Member& member : session.members) {
      if (!member.stream->transcript()) continue;
      cursors.push_back(stream_cursor(*member.stream, member.stream->transcript()->end()));
    }
  });
  return cursors;
}

// --- What it may see and wants ---

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

/// The filter matches this session, for any type.
bool Subscriber::matches(const Session& session) {
  if (filter().matches_all_sessions()) return true;
  if (!cached_matches_) cached_matches_ = std::make_unique<std::array<CachedMatch, cached_matches>>();
  CachedMatch& cached = (*cached_matches_)[session.id % cached_matches];
  if (cached.session != session.id || cached.generation != session.generation) {
    cached = {session.id, session.generation, filter().matches_session(context_.sessions.keys_of(session))};
  }
  return cached.matches;
}

bool Subscriber::wants(const Session& session) { return matches(session) && may_see(&session); }

bool Subscriber::wants(const Session& session, const tail::Stream& stream) {
  return matches(session) && may_see(&stream);
}

/// A frame of the log, of any type. A restricted client sees the streams of its projects, also if another
/// project has a session of the same id.
bool Subscriber::wants(const Tags& tags) {
  const Session* const session = context_.sessions.find(tags.session);
  if (!session || !matches(*session)) return false;
  if (!allowed_) return true;
  if (const tail::Stream* stream = context_.sessions.find_stream(tags.stream)) return may_see(stream);
  return may_see_removed(*allowed_, context_.sessions, *session, tags.stream);
}

bool Subscriber::is_in_snapshot(const Session& session) {
  if ((session.members.empty() && !session.process_lives()) || !wants(session)) return false;
  return subscription_->asked.all || is_live(session, context_.recent);
}

/// Visits all sessions; `done` may be called during the call. One scan at a time.
void Subscriber::scan(SessionScans::Visit visit, std::function<void()> done) {
  if (!context_.scans) {
    context_.sessions.for_each(visit);
    return done();
  }
  context_.scans->begin(this, std::move(visit), std::move(done));
}

/// The found sessions; those that changed since the scan began are matched again.
std::vector<Session*> Subscriber::take_found(const std::function<bool(const Session&)>& wanted) {
  const Found found = std::move(*found_);
  found_.reset();
  std::vector<Session*> sessions;
  for (const std::uint32_t id : found.ids) {
    Session* session = context_.sessions.find(id);
    if (session && session->change <= found.begun) sessions.push_back(session);
  }
  context_.sessions.for_each_changed(found.begun, [&](Session& session) {
    if (wanted(session)) sessions.push_back(&session);
  });
  return sessions;
}

bool Subscriber::is_muted(std::uint32_t stream, Position at) const {
  return std::any_of(mutes_.begin(), mutes_.end(),
                     [&](const Mute& mute) { return mute.stream == stream && at < mute.until; });
}

// --- The queue ---

Subscriber::Queued Subscriber::queued(Position at, Kind kind, Frame frame) {
  bytes_of(kind) += frame->size();
  return {at, kind, std::move(frame), nullptr};
}

void Subscriber::push(Kind kind, Frame frame) {
  queue_.push_back(queued(log().head(), kind, std::move(frame)));
}

void Subscriber::push_resume(Position at, std::unique_ptr<Resume> resume) {
  queue_.push_back({at, Kind::resume, nullptr, std::move(resume)});
}

void Subscriber::push_answer(std::string_view payload) {
  if (resume()) return insert_before_resume(Kind::answer, payload);
  push(Kind::answer, payload);
}

void Subscriber::shed() {
  if (!reads_log() || log().holds(position_)) return;
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
  while (!states_due_.empty() && made < frames_per_write) {
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
  const bool from_beginning = subscription_->asked.from_beginning;
  const bool everything = mutes_.empty() && !allowed_ && filter().empty() && !from_beginning;
  std::vector<std::uint32_t> new_streams;  // their events are sent from the files
  Position at = batch.scanned;
  const auto wanted = [&](const Tags& tags) {
    if (!subscription_->types[tags.type] || !wants(tags)) return false;
    if (from_beginning && tags.type < event_types && !subscription_->known_streams.contains(tags.stream)) {
      new_streams.push_back(tags.stream);
      return false;
    }
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
      break;
    }
    if (batch.count_ > 0 && run.bytes.size() > room) {
      batch.full = true;
      break;
    }
    batch.add(run.bytes, Batch::From::log, run, context_.limits.write_bytes_max);
    batch.scanned = run.next;
  }
  if (new_streams.empty()) return;
  send_history(new_streams);
  wake();
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
  if (reads_log() && !log().holds(position_)) fall_behind();
  if (state_ == State::behind) {
    if (!find_changed()) return;  // on_more() follows
    go_on_after_lag();
  }
  batch.scanned = position_;
  auto next = queue_.begin();
  while (!batch.full) {
    const bool has_queued = next != queue_.end();
    const Position until = has_queued ? next->at : log().head();
    if (reads_log() && batch.scanned < until) {
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
  return {};
}

// --- Snapshots by page ---

void Subscriber::next_page(const message::NextPage& asked) {
  if (state_ == State::idle || id() != asked.id)
    return push_answer(error_frame(asked.id, "bad_message", "there is no subscription with this `id`"));
  std::string& next = subscription_->pages.next;
  if (next.empty() || next != asked.next) {
    return push_answer(
        error_frame(asked.id, "bad_page",
                    "`next` is not that of the subscription's last `page` frame, or was used before: "
                    "subscribe again for a new snapshot"));
  }
  next.clear();
  find_page();
}

void Subscriber::find_page() {
  state_ = State::paging;
  page_ = std::make_unique<Page>(
      Page{PageSelection(subscription_->asked.page, subscription_->pages.last, local_day(wall_now_ms()))});
  const auto visit = [this](const Session& session) {
    if (!session.is_shown() || !is_in_snapshot(session)) return;
    const std::uint64_t begun = subscription_->pages.changes;
    if (session.change <= begun) {
      page_->selection.add(session, context_.sessions.models(), [this, begun](std::uint32_t id) {
        const Session* later = context_.sessions.find(id);
        return later && later->change <= begun ? later : nullptr;
      });
    } else if (session.pending || session.is_throttled) {
      states_due_.insert(session.id);  // its frame would follow too late for a `ready` after this page
    }
  };
  scan(visit, [this] {
    page_found();
    wake();
  });
}

void Subscriber::page_found() {
  state_ = State::live;
  page_->ids = page_->selection.ids_reversed();
  if (page_->selection.rest().sessions() > 0) return;
  // The last page: everything that is known belongs before `ready`.
  page_->ids.insert(page_->ids.begin(), states_due_.begin(), states_due_.end());
  states_due_.clear();
}

/// Queues the next frames of the page. False: there is none.
bool Subscriber::add_page() {
  if (!page_ || state_ == State::paging) return false;
  for (std::size_t made = 0; made < frames_per_write && !page_->ids.empty();) {
    Session* session = context_.sessions.find(page_->ids.back());
    page_->ids.pop_back();
    if (!session || !session->is_shown() || !may_see(session)) continue;
    push(Kind::snapshot, context_.sessions.frame(*session, audience_));
    ++made;
  }
  if (page_->ids.empty()) finish_page();
  return true;
}

void Subscriber::finish_page() {
  const std::unique_ptr<Page> page = std::move(page_);
  Pages& pages = subscription_->pages;
  pages.last = page->selection.last();
  const PageRest& rest = page->selection.rest();
  if (rest.sessions() > 0) pages.next = random_hex(continuation_bytes);
  push(Kind::control, page_frame(id(), rest, pages.next));
  if (rest.sessions() == 0) push(Kind::control, control_frame("ready", id()));
}

// --- Falling behind ---

/// The log has evicted frames that were not sent.
void Subscriber::fall_behind() {
  if (state_ == State::behind) return;
  state_ = State::behind;
  lost_from_ = position_;
}

/// Notes which events were evicted before they were sent.
void Subscriber::on_evict(Position next) {
  if (position_ >= next) return;
  fall_behind();
  if (!subscription_->asked.catch_up) return;  // there were too many streams
  if (!missed_) {
    missed_ = std::make_unique<Resume>();
    missed_->is_requested = false;
  }
  for (Position at = std::max(position_, log().first()); at < next; ++at) {
    const Tags& tags = log().tags(at);
    const tail::Stream* stream = context_.sessions.find_stream(tags.stream);
    if (tags.stream == 0 || !stream) continue;  // deleted
    // Its name once the evicted frames that rename streams were sent.
    const std::string* const former = context_.logs.former_name(tags.stream, next);
    const std::string& name = former ? *former : stream->name();
    if (const std::string* from = context_.logs.former_name(tags.stream, at)) rename_missed(*from, name);
    if (!subscription_->types[tags.type] || !wants(tags) || is_muted(tags.stream, at)) continue;
    missed_->stream_ids[name] = tags.stream;
    if (tags.type == type_reset) {
      missed_->missing[name] = {begin_cursor, false, 0, 0};
      missed_->new_histories.insert(name);
    } else if (tags.type < event_types) {
      const auto [missing, fresh] = missed_->missing.try_emplace(name);
      if (fresh) {
        const bool is_whole = is_new(*stream, tags.stream);
        missing->second = {is_whole ? begin_cursor : tags.cursor, !is_whole, 0, 0};
      }
      missing->second.upto_offset = tags.cursor.offset;
      missing->second.upto_index = tags.cursor.index;
    }
  }
  position_ = next;
  if (missed_->missing.size() <= context_.limits.missed_streams) return;
  // Too many streams: it receives `lagged` like the others.
  missed_.reset();
  subscription_->asked.catch_up = false;
}

void Subscriber::rename_missed(const std::string& from, const std::string& to) {
  const auto missing = missed_->missing.find(from);
  if (from == to || missing == missed_->missing.end()) return;
  missed_->missing[to] = missing->second;
  missed_->missing.erase(missing);
  if (auto present = missed_->present.extract(from); present && present.mapped() != to)
    missed_->present[to] = std::move(present.mapped());
  if (missed_->new_histories.erase(from) > 0) missed_->new_histories.insert(to);
}

bool Subscriber::is_due_after_lag(const Session& session) {
  if (session.members.empty() && !session.process_lives()) return false;
  const bool has_changed = session.changed >= lost_from_;
  if (!has_changed && !shed_) return false;
  const bool is_shown = subscription_->asked.all || has_changed || is_live(session, context_.recent);
  return is_shown && wants(session);
}

/// Finds the sessions to send after a lag. False: the scan is not complete.
bool Subscriber::find_changed() {
  if (found_) return found_->is_complete;
  // Those in the queue are dropped.
  shed_ |= std::any_of(queue_.begin(), queue_.end(),
                       [](const Queued& queued) { return queued.kind == Kind::snapshot; });
  found_.emplace(Found{.begun = context_.sessions.changes()});
  const auto visit = [this](Session& session) {
    if (!is_due_after_lag(session)) return;
    found_->ids.push_back(session.id);
    context_.sessions.frame(session, audience_);  // encoded in this slice
  };
  scan(visit, [this] {
    found_->is_complete = true;
    wake();
  });
  return found_->is_complete;
}

/// A subscription that catches up receives the evicted events from the files, another one `lagged`; both
/// receive the frames of sessions that changed since.
void Subscriber::go_on_after_lag() {
  const auto due = take_found([this](const Session& each) { return is_due_after_lag(each); });
  state_ = State::live;
  const Position head = log().head();
  const bool catch_up = subscription_->asked.catch_up;
  ++context_.counters.lagged;
  position_ = catch_up ? std::max(position_, log().first()) : head;

  std::list<Queued> first, rest;
  for (Queued& queued : queue_) {
    if (queued.kind == Kind::snapshot) {
      release(queued);
      continue;
    }
    const bool is_resume = queued.kind == Kind::resume;
    queued.at = position_;
    rest.push_back(std::move(queued));
    if (!is_resume) continue;
    std::move(rest.begin(), rest.end(), std::back_inserter(first));
    rest.clear();
  }
  queue_ = std::move(first);
  // Before the events from files: a removed stream may exist again, and that is the one being read.
  const auto push_name = [this](Frame frame) {
    if (allowed_) return;  // its session can no longer be checked
    queue_.push_back(queued(position_, Kind::control, std::move(frame)));
  };
  for (const auto& [at, frame] : audience_log().evicted_names)
    if (at >= lost_from_) push_name(frame);
  // A subscriber that continues at the head skips what the log still has.
  for (Position at = log().first(); at < position_; ++at)
    if (at >= lost_from_ && is_about_names(log().tags(at).type))
      push_name(std::make_shared<const std::string>(log().frame(at)));
  if (missed_ && !missed_->missing.empty()) push_resume(position_, std::move(missed_));
  missed_.reset();

  if (!catch_up) push(Kind::control, control_frame("lagged", id()));
  for (Queued& queued : rest) {  // its session frame was dropped, and is queued again below
    if (queued.kind != Kind::reset) continue;
    queued.at = head;
    queue_.push_back(std::move(queued));
  }
  for (Session* session : due)
    if (session->is_shown()) push(Kind::snapshot, context_.sessions.frame(*session, audience_));
  shed_ = false;
  for (Queued& queued : rest) {
    if (queued.kind == Kind::reset) continue;
    queued.at = head;
    queue_.push_back(std::move(queued));
  }
}

}  // namespace earshot::serve
