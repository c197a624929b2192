// Events that a subscriber reads from files: what `after`, `since` and `new_streams` request, and what the
// log has evicted.
#include <algorithm>
#include <set>

#include "serve/stream/frames.hpp"
#include "serve/stream/subscriber.hpp"

namespace earshot::serve {
namespace {

// A file's time may lag behind the times of its events: its clock is coarse, and may be another machine's.
constexpr std::int64_t file_time_slack_ms = 10'000;

}  // namespace

// --- Requested events ---

/// The events that a new subscription requests. Entries that cannot be resumed are answered at once, after
/// `ready`.
std::unique_ptr<Resume> Subscriber::make_resume(Subscription& subscription, const message::Subscribe& asked,
                                                const std::vector<Session*>& sessions) {
  auto resume = std::make_unique<Resume>();
  resume->id = subscription.id;
  resume->subscribers = subscription.bit;
  std::set<std::string, std::less<>> named;
  if (asked.after) {
    for (const std::string& entry : *asked.after) {
      add_after(subscription, entry, *resume);
      named.insert(entry.substr(0, entry.rfind(':')));
    }
  }
  if (asked.since_ms || asked.from_beginning) {
    for (const Session* session : sessions) {
      for (const Member& member : session->members) {
        if (subscription.from_beginning) subscription.known_streams.insert(member.id);
        if (named.contains(member.stream->name()) || member.stream->published_bytes() == 0) continue;
        if (asked.since_ms && member.stream->modified_ms() < *asked.since_ms - file_time_slack_ms) continue;
        EventRange range{begin_cursor, false, member.stream->published_bytes(), UINT32_MAX};
        if (asked.since_ms) range.since_ms = *asked.since_ms;
        add_stream(subscription, *member.stream, range, *resume);
      }
    }
  }
  exclude_delivered(subscription, *resume);
  return resume;
}

/// Answers which streams of `after` were renamed, before the session frames name them, and renames the
/// entries. One that is named itself, too, is resumed from there, as the client does.
void Subscriber::use_present_names(const Subscription& subscription, std::vector<std::string>& after) {
  if (!context_.archive) return;
  const auto name_of = [](const std::string& entry) { return entry.substr(0, entry.rfind(':')); };
  std::set<std::string> named;
  for (const std::string& entry : after) named.insert(name_of(entry));
  std::erase_if(after, [&](std::string& entry) {
    const auto parsed = message::parse_stream_cursor(entry);
    if (!parsed) return false;
    const tail::Stream* stream = context_.archive->find_present(parsed->stream);
    if (!stream || stream->name() == parsed->stream || !may_see(stream)) return false;
    const std::string& session = stream->session();
    push(Kind::answer,
         make_frame(renamed_frame(context_.host_of(session), session, parsed->stream, stream->name())),
         subscription.bit);
    if (!named.insert(stream->name()).second) return true;
    entry.replace(0, name_of(entry).size(), stream->name());
    return false;
  });
}

void Subscriber::add_after(const Subscription& subscription, const std::string& entry, Resume& resume) {
  const auto parsed = message::parse_stream_cursor(entry);
  if (!parsed) {
    constexpr std::size_t quoted_bytes = 200;
    return push(Kind::answer,
                make_frame(error_frame(subscription.id, "bad_cursor",
                                       "`after`: `" + entry.substr(0, quoted_bytes) +
                                           "` is not <stream>:<cursor> as in events and session frames")),
                subscription.bit);
  }
  const tail::Stream* stream = context_.archive ? context_.archive->find(parsed->stream) : nullptr;
  if (!stream || !may_see(stream)) {
    return push(Kind::answer,
                make_frame(reset_frame(subscription.id, context_.host, {}, parsed->stream, "unknown")),
                subscription.bit);
  }
  context_.archive->request_verify(*stream);
  const Transcript* transcript = stream->transcript();
  const bool has_all =
      transcript && (parsed->cursor == transcript->end() || parsed->cursor == transcript->last_event());
  if (!has_all) {
    add_stream(subscription, *stream, {parsed->cursor, false, stream->published_bytes(), UINT32_MAX}, resume);
    return;
  }
  const Session* session = context_.sessions.find(stream->session());
  if (session && context_.sessions.contains(*stream) && !wants(subscription, *session, *stream)) return;
  resume.missing.erase(parsed->stream);
  resume.cursors.push_back(stream_cursor(*stream, transcript->end()));
}

/// False: the filter excludes the stream. The project of a cold one is unknown: its chunks are filtered.
bool Subscriber::add_stream(const Subscription& subscription, const tail::Stream& stream,
                            const EventRange& range, Resume& resume) {
  const bool is_known = context_.sessions.contains(stream);
  const Session* session = context_.sessions.find(stream.session());
  if (is_known && session && !wants(subscription, *session, stream)) return false;
  resume.missing[stream.name()] = range;
  if (is_known) resume.stream_ids[stream.name()] = context_.sessions.stream_id(stream);
  return true;
}

/// The history of the streams of this session that the subscription was not shown before.
void Subscriber::add_new_streams(Subscription& subscription, const Session& session, Resume& resume) {
  for (const Member& member : session.members) {
    if (!subscription.known_streams.insert(member.id).second || member.stream->published_bytes() == 0)
      continue;
    add_stream(subscription, *member.stream,
               {begin_cursor, false, member.stream->published_bytes(), UINT32_MAX}, resume);
  }
}

/// An event is sent once per connection: what other subscriptions receive of these streams, live or from the
/// files, is not sent again for this one.
void Subscriber::exclude_delivered(const Subscription& subscription, Resume& resume) {
  resume.requested = resume.missing;
  for (const Subscription& other : subscriptions_) {
    if (other.state || resume.stream_ids.empty()) continue;
    const auto first_events = audience_log().first_events(other.since);
    for (const auto& [name, id] : resume.stream_ids) {
      const auto first = first_events.find(id);
      const auto missing = resume.missing.find(name);
      if (first == first_events.end() || missing == resume.missing.end()) continue;
      const tail::Stream* stream = context_.sessions.find_stream(id);
      const Session* session = stream ? context_.sessions.find(stream->session()) : nullptr;
      if (!session || !wants(other, *session, *stream)) continue;
      resume.delivered[name].push_back({other.bit, {first->second, true, UINT64_MAX, UINT32_MAX}});
    }
  }
  for (auto& [name, missing] : resume.missing) {
    if (const auto resumed = resumed_.find(name); resumed != resumed_.end()) {
      auto& delivered = resume.delivered[name];
      delivered.insert(delivered.end(), resumed->second.begin(), resumed->second.end());
    }
    if (resumed_.size() < resumed_streams_max || resumed_.contains(name)) {
      EventRange all = missing;
      all.upto_offset = UINT64_MAX;
      resumed_[name].push_back({subscription.bit, all});
    }
    // Do not read events that others deliver completely.
    const auto delivered = resume.delivered.find(name);
    if (delivered == resume.delivered.end()) continue;
    for (const Resume::Delivered& each : delivered->second) {
      const bool all_types = std::all_of(types_.begin(), types_.begin() + event_types,
                                         [&](Mask mask) { return (mask & each.by) != 0; });
      const Cursor& from = each.range.from;
      const bool is_earlier = from.offset < missing.upto_offset ||
                              (from.offset == missing.upto_offset && from.index <= missing.upto_index);
      if (!all_types || each.range.since_ms != EventRange::any_time || !is_earlier) continue;
      missing.upto_offset = from.offset;
      missing.upto_index = each.range.inclusive && from.index > 0 ? from.index - 1 : from.index;
      if (missing.upto_offset > missing.from.offset) continue;  // else read up to the cursor, to verify it
      missing.upto_offset = missing.from.offset;
      missing.upto_index = missing.from.index;
    }
  }
}

/// A subscription has ended or lagged: what a queued resume left to it may not be sent any more. Events that
/// it has already sent may be repeated.
void Subscriber::restore_resumes() {
  for (Queued& queued : queue_) {
    if (!queued.resume || queued.resume->begun || queued.resume->id.empty()) continue;
    Resume& resume = *queued.resume;
    resume.missing = std::move(resume.requested);
    resume.delivered.clear();
    for (const Subscription& subscription : subscriptions_) {
      if ((subscription.bit & resume.subscribers) == 0) continue;
      forget_resumed(subscription.bit);
      exclude_delivered(subscription, resume);
    }
  }
}

void Subscriber::forget_resumed(Mask bit) {
  for (auto at = resumed_.begin(); at != resumed_.end();) {
    std::erase_if(at->second, [bit](const Resume::Delivered& each) { return (each.by & bit) != 0; });
    at = at->second.empty() ? resumed_.erase(at) : std::next(at);
  }
}

// --- Falling behind ---

/// Notes which events were evicted before they were sent.
void Subscriber::on_evict(Position next) {
  if (!events_ || position_ >= next) return;
  if (!lost_from_) lost_from_ = position_;
  const Mask catches_up = catching_up();
  if (!missed_) {
    missed_ = std::make_unique<Resume>();
    missed_->subscribers = catches_up;
  }
  for (Position at = std::max(position_, log().first()); at < next; ++at) {
    const Tags& tags = log().tags(at);
    const Mask who = types_[tags.type] & catches_up & active_at(at);
    const tail::Stream* stream = context_.sessions.find_stream(tags.stream);
    if (tags.stream == 0 || !stream) continue;  // deleted
    // Its name once the evicted frames that rename streams were sent.
    const std::string* const former = context_.logs.former_name(tags.stream, next);
    const std::string& name = former ? *former : stream->name();
    if (const std::string* from = context_.logs.former_name(tags.stream, at)) rename_missed(*from, name);
    if (who == 0 || (mask_of(tags) & who) == 0 || is_muted(tags.stream, at)) continue;
    missed_->stream_ids[name] = tags.stream;
    if (tags.type == type_reset) {
      missed_->missing[name] = {begin_cursor, false, 0, 0};
      missed_->new_histories.insert(name);
    } else if (tags.type < event_types) {
      const auto [missing, fresh] = missed_->missing.try_emplace(name);
      if (fresh) missing->second = {tags.cursor, true, 0, 0};
      missing->second.upto_offset = tags.cursor.offset;
      missing->second.upto_index = tags.cursor.index;
    }
  }
  position_ = next;
  if (missed_->missing.size() <= context_.limits.missed_streams) return;
  // Too many streams: these subscriptions receive `lagged` like the others.
  missed_ = std::make_unique<Resume>();
  for (Subscription& subscription : subscriptions_) subscription.catch_up = false;
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

bool Subscriber::is_due_after_lag(const Session& session) const {
  if (session.members.empty() && !session.process_lives()) return false;
  const bool has_changed = session.changed >= *lost_from_;
  if (!has_changed && !shed_) return false;
  const bool shown_to_all = has_changed || is_live(session, context_.recent);
  return mask_where([&](const Subscription& each) {
           return (each.all || shown_to_all) && wants(each, session);
         }) != 0;
}

/// Finds the sessions to send after `lagged`. False: the scan is not complete.
bool Subscriber::find_changed() {
  if (changed_) return changed_->is_complete;
  if (is_scanning()) return false;
  changed_ = Found{};
  // Those in the queue are dropped.
  shed_ |= std::any_of(queue_.begin(), queue_.end(),
                       [](const Queued& queued) { return queued.kind == Kind::snapshot; });
  const auto visit = [this](Session& session) {
    if (!is_due_after_lag(session)) return;
    changed_->ids.push_back(session.id);
    context_.sessions.frame(session, audience_);  // encoded in this slice
  };
  scan(*changed_, visit, [this] {
    changed_->is_complete = true;
    wake();
  });
  changed_->is_sliced = !changed_->is_complete;
  return changed_->is_complete;
}

/// The log has evicted frames that were not sent. Subscriptions that catch up receive the events from the
/// files, the others `lagged`; all receive the frames of sessions that changed since.
void Subscriber::on_lagged() {
  const auto due = sessions_of(*changed_, [this](const Session& each) { return is_due_after_lag(each); });
  changed_.reset();
  const Position missed_from = *std::exchange(lost_from_, std::nullopt);
  const Position head = log().head();
  const bool catch_up = catching_up() != 0;
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
    queue_.push_back(queued(position_, Kind::answer, std::move(frame), 0));
  };
  for (const auto& [at, frame] : audience_log().evicted_names)
    if (at >= missed_from) push_name(frame);
  // A subscriber that continues at the head skips what the log still has.
  for (Position at = log().first(); at < position_; ++at)
    if (at >= missed_from && is_about_names(log().tags(at).type))
      push_name(std::make_shared<const std::string>(log().frame(at)));
  if (catch_up && missed_ && !missed_->missing.empty()) push_resume(position_, std::move(missed_));
  missed_.reset();

  for (Subscription& subscription : subscriptions_) {
    if (subscription.state || subscription.catch_up) continue;
    set_start(subscription, head);
    forget_resumed(subscription.bit);
    push(Kind::answer, make_frame(control_frame("lagged", subscription.id)), subscription.bit);
  }
  restore_resumes();
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

// --- Reading from files ---

Resume* Subscriber::resume() {
  for (Queued& queued : queue_)
    if (queued.kind == Kind::resume) return queued.resume.get();
  return nullptr;
}

void Subscriber::insert_before_resume(std::string_view payload, Mask owners) {
  const auto at = std::find_if(queue_.begin(), queue_.end(),
                               [](const Queued& each) { return each.kind == Kind::resume; });
  queue_.insert(at, queued(at->at, Kind::answer, make_frame(payload), owners));
}

void Subscriber::begin(Resume& resume) {
  resume.begun = true;
  for (const std::string& stream : resume.new_histories) {
    const tail::Stream* found =
        context_.archive ? context_.archive->find(resume.names_of(stream).present) : nullptr;
    if (!may_see(found)) continue;  // it belongs to another session by now
    const std::string session = found ? found->session() : std::string();
    insert_before_resume(reset_frame({}, context_.host_of(session), session, stream, "rewritten"));
  }
  if (!context_.catch_ups) return resume.missing.clear();
  for (const auto& [stream, missing] : resume.missing)
    context_.catch_ups->want(*this, resume.names_of(stream), missing);
}

void Subscriber::finish(std::unique_ptr<Resume> resume) {
  const bool complete = resume->others.empty();
  const Mask subscribers = resume->subscribers, owners = resume->id.empty() ? 0 : subscribers;
  if (allowed_) {  // a stream may have changed its session meanwhile
    std::erase_if(resume->cursors, [&](const std::string& cursor) {
      return !may_see(context_.archive->find(resume->names_of(cursor.substr(0, cursor.rfind(':'))).present));
    });
  }
  std::vector<std::string> frames;
  if (!resume->id.empty()) frames = bookmark_frames(resume->id, resume->cursors, complete);
  if (!complete) {  // add_queued() continues with push_resets()
    resume->is_read = true;
    queue_.push_front({position_, Kind::resume, nullptr, std::move(resume), subscribers});
  }
  for (auto payload = frames.rbegin(); payload != frames.rend(); ++payload)  // this is the client's position
    queue_.push_front(queued(position_, Kind::answer, make_frame(*payload), owners));
}

void Subscriber::on_chunk(const std::string& stream, std::shared_ptr<Chunk> chunk) {
  if (Resume* to = resume()) to->reading.push_back({stream, std::move(chunk), 0, false, {}});
  wake();
}

void Subscriber::on_caught(const std::string& stream, ReplayResult how, const Cursor& end) {
  Resume* to = resume();
  if (!to) return;
  wake();
  if (how == ReplayResult::up) {
    for (Resume::Reading& reading : to->reading) {
      if (reading.stream != stream) continue;
      reading.last = true;
      reading.end = end;
      return;
    }
    to->missing.erase(stream);
    to->cursors.push_back(stream + ":" + to_string(end));
    return;
  }
  to->missing.erase(stream);
  resumed_.erase(stream);
  std::erase_if(to->reading, [&](const Resume::Reading& reading) {
    if (reading.stream == stream) context_.catch_ups->consumed(*this, to->names_of(stream), {});
    return reading.stream == stream;
  });
  if (!context_.archive->find(to->names_of(stream).present)) return on_missing_stream(stream, *to);
  on_other_history(stream, how == ReplayResult::differs ? "rewritten" : "unreadable", *to);
}

/// The stream was deleted. Its frames in the log up to now may be of another history than the client's
/// cursor.
void Subscriber::on_missing_stream(const std::string& stream, const Resume& from) {
  insert_before_resume(from.id.empty() ? removed_frame(context_.host, stream)
                                       : reset_frame(from.id, context_.host, {}, stream, "unknown"),
                       from.id.empty() ? 0 : from.subscribers);
  if (const auto id = from.stream_ids.find(stream); id != from.stream_ids.end())
    mutes_.push_back({id->second, log().head()});
}

/// The file does not match the client's cursor: `reset`, followed by the session's frame, after everything
/// else was read (push_resets).
void Subscriber::on_other_history(const std::string& stream, std::string_view reason, Resume& to) {
  to.others.push_back({stream, std::string(reason)});
  // The reset covers what other queued resumes wanted of this stream.
  const auto drop = [&](Resume* other) {
    if (!other || other->begun) return;
    other->missing.erase(stream);
    other->requested.erase(stream);
    other->new_histories.erase(stream);
  };
  for (Queued& queued : queue_) drop(queued.resume.get());
  drop(missed_.get());
  // The frame of a cold session requires its transcript. This entry, which cannot be the name of a stream,
  // keeps the resume open until it was read.
  to.missing[stream + '\n'] = {};
  context_.archive->fold(to.names_of(stream).present,
                         [this, stream, alive = std::weak_ptr<char>(alive_)](const tail::Stream*) {
                           if (alive.expired()) return;
                           if (Resume* waiting = resume()) waiting->missing.erase(stream + '\n');
                           wake();
                         });
}

/// Queued at the head: by then the events of all other streams were sent, and the session frames describe
/// exactly that position. Frames of these streams before it are muted. At most resets_per_turn; false: others
/// follow.
bool Subscriber::push_resets(Resume& resume) {
  const std::size_t end = std::min(resume.others.size(), resume.resets_pushed + resets_per_turn);
  // The id is sent also if the log had evicted the events: a session frame follows, not the first line.
  std::string id = resume.id;
  for (const Subscription& subscription : subscriptions_)
    if (id.empty() && (subscription.bit & resume.subscribers)) id = subscription.id;
  std::vector<Session*> sessions;
  while (resume.resets_pushed < end) {
    const Resume::OtherHistory& other = resume.others[resume.resets_pushed++];
    const std::string present = resume.names_of(other.stream).present;
    const tail::Stream* existing = context_.archive->find(present);
    const tail::Stream* stream = may_see(existing) ? existing : nullptr;
    const std::string session_name = stream ? stream->session() : std::string();
    // The frames that renamed it were sent before.
    const std::string& name = stream ? stream->name() : present;
    push(Kind::reset,
         make_frame(reset_frame(id, context_.host_of(session_name), session_name, name,
                                stream ? std::string_view(other.reason) : "unknown")),
         resume.subscribers);
    Session* session = session_name.empty() ? nullptr : context_.sessions.find(session_name);
    if (session && std::find(sessions.begin(), sessions.end(), session) == sessions.end())
      sessions.push_back(session);
    if (stream && !context_.sessions.contains(*stream) && unreadable_.size() < resumed_streams_max)
      unreadable_[name] |= resume.subscribers;
    const auto known = resume.stream_ids.find(other.stream);
    if (known != resume.stream_ids.end()) mutes_.push_back({known->second, log().head()});
    if (stream && context_.sessions.contains(*stream))
      mutes_.push_back({context_.sessions.stream_id(*stream), log().head()});
  }
  for (Session* session : sessions)
    push(Kind::snapshot, context_.sessions.frame(*session, audience_), resume.subscribers);
  if (resume.resets_pushed < resume.others.size()) return false;
  if (resume.id.empty()) return true;
  for (const std::string& payload : bookmark_frames(resume.id, {}, true))
    push(Kind::answer, make_frame(payload), resume.subscribers);
  return true;
}

/// Resumes that are queued keep the name that the client knows at their position.
void Subscriber::stream_renamed(std::string_view from, const std::string& to) {
  const auto rename = [&](auto& by_name) {
    const auto known = by_name.find(from);
    if (known == by_name.end()) return;
    auto moved = by_name.extract(known);
    moved.key() = to;
    by_name.insert(std::move(moved));
  };
  rename(resumed_);
  rename(unreadable_);
  for (Queued& queued : queue_)
    if (queued.resume) queued.resume->rename(from, to);
  if (missed_) missed_->rename(from, to);
}

/// A stream that could not be read for a resume was folded: the client learns its position by another reset
/// with the session's frame.
void Subscriber::stream_readable(const tail::Stream& stream) {
  const auto at = unreadable_.find(stream.name());
  if (at == unreadable_.end()) return;
  const Mask subscribers = at->second;
  unreadable_.erase(at);
  Session* session = context_.sessions.find(stream.session());
  if (!session || !may_see(&stream)) return;
  const auto asked = std::find_if(subscriptions_.begin(), subscriptions_.end(),
                                  [&](const Subscription& each) { return (each.bit & subscribers) != 0; });
  if (asked == subscriptions_.end()) return;
  push(Kind::reset,
       make_frame(reset_frame(asked->id, context_.host_of(session->name), session->name, stream.name(),
                              "unreadable")),
       subscribers);
  mutes_.push_back({context_.sessions.stream_id(stream), log().head()});
  push(Kind::snapshot, context_.sessions.frame(*session, audience_), subscribers);
  wake();
}

void Subscriber::forget_unreadable(Mask bit) {
  for (auto at = unreadable_.begin(); at != unreadable_.end();) {
    at->second &= ~bit;
    at = at->second == 0 ? unreadable_.erase(at) : std::next(at);
  }
}

/// Adds events of the first chunk as far as the batch has room. False: no chunk is ready.
bool Subscriber::add_chunk(Batch& batch, Resume& resume) {
  while (!resume.reading.empty()) {
    Resume::Reading& reading = resume.reading.front();
    Chunk& chunk = *reading.chunk;
    const auto missing = resume.missing.find(reading.stream);
    if (chunk.revoked || missing == resume.missing.end()) {
      chunk_read(resume, reading);
      continue;
    }
    LiveLog& events = chunk.log(audience_);
    const SessionKeys keys{context_.host_of(chunk.session), chunk.session, chunk.project, chunk.program};
    const bool allowed =
        !allowed_ || may_see(context_.archive->find(resume.names_of(reading.stream).present));
    const Mask receivers = mask_where([&](const Subscription& each) {
      return allowed && (each.bit & resume.subscribers) != 0 && each.filter.matches_session(keys);
    });
    const auto delivered = resume.delivered.find(reading.stream);
    const auto is_delivered = [&](const Tags& tags) {
      return delivered != resume.delivered.end() &&
             std::any_of(delivered->second.begin(), delivered->second.end(),
                         [&](const Resume::Delivered& each) {
                           return (types_[tags.type] & each.by) != 0 &&
                                  each.range.contains(tags.cursor, tags.time_ms);
                         });
    };
    const LiveLog::Run run =
        events.matching(reading.at, events.head(), context_.limits.write_bytes_max, [&](const Tags& tags) {
          return (types_[tags.type] & receivers) != 0 &&
                 missing->second.contains(tags.cursor, tags.time_ms) && !is_delivered(tags);
        });
    if (run.first == run.next) {
      chunk_read(resume, reading);
      continue;
    }
    batch.add(run.bytes, Batch::From::chunk, run, context_.limits.write_bytes_max);
    return true;
  }
  return false;
}

/// The first chunk was sent completely, or was revoked.
void Subscriber::chunk_read(Resume& resume, Resume::Reading& reading) {
  const Resume::Reading read = std::move(reading);
  resume.reading.pop_front();
  const auto missing = resume.missing.find(read.stream);
  if (missing == resume.missing.end())
    return context_.catch_ups->consumed(*this, resume.names_of(read.stream), {});
  if (!read.chunk->revoked) {
    if (read.last) {
      resume.missing.erase(missing);
      resume.cursors.push_back(read.stream + ":" + to_string(read.end));
      return context_.catch_ups->consumed(*this, resume.names_of(read.stream), {});
    }
    missing->second.from = read.chunk->end;
    missing->second.inclusive = false;
  }
  context_.catch_ups->consumed(*this, resume.names_of(read.stream), missing->second);
}

}  // namespace earshot::serve
