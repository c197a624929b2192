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

/// The events that the subscription requests. Entries that cannot be resumed are answered at once, after
/// `ready`.
std::unique_ptr<Resume> Subscriber::make_resume(const std::vector<Session*>& sessions) {
  auto resume = std::make_unique<Resume>();
  const message::Subscribe& asked = subscription_->asked;
  std::set<std::string, std::less<>> named;
  if (asked.after) {
    for (const std::string& entry : *asked.after) {
      add_after(entry, *resume);
      named.insert(entry.substr(0, entry.rfind(':')));
    }
  }
  if (!asked.since_ms && !asked.from_beginning) return resume;
  for (const Session* session : sessions) {
    for (const Member& member : session->members) {
      const tail::Stream& stream = *member.stream;
      if (asked.from_beginning) subscription_->known_streams.insert(member.id);
      if (named.contains(stream.name()) || stream.published_bytes() == 0) continue;
      if (asked.since_ms && stream.modified_ms() < *asked.since_ms - file_time_slack_ms) continue;
      add_stream(stream, {.since_ms = asked.since_ms.value_or(EventRange::any_time)}, *resume);
    }
  }
  return resume;
}

/// Answers which streams of `after` were renamed, before the session frames name them, and renames the
/// entries. One that is named itself, too, is resumed from there, as the client does.
void Subscriber::use_present_names(std::vector<std::string>& after) {
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
    push(Kind::control, renamed_frame(context_.host_of(session), session, parsed->stream, stream->name()));
    if (!named.insert(stream->name()).second) return true;
    entry.replace(0, name_of(entry).size(), stream->name());
    return false;
  });
}

void Subscriber::add_after(const std::string& entry, Resume& resume) {
  const auto parsed = message::parse_stream_cursor(entry);
  if (!parsed) {
    constexpr std::size_t quoted_bytes = 200;
    return push(Kind::control, error_frame(id(), "bad_cursor",
                                           "`after`: `" + entry.substr(0, quoted_bytes) +
                                               "` is not <stream>:<cursor> as in events and session frames"));
  }
  const tail::Stream* stream = context_.archive ? context_.archive->find(parsed->stream) : nullptr;
  if (!stream || !may_see(stream))
    return push(Kind::control, reset_frame(id(), context_.host, {}, parsed->stream, "unknown"));
  context_.archive->request_verify(*stream);
  const Transcript* transcript = stream->transcript();
  const bool has_all =
      transcript && (parsed->cursor == transcript->end() || parsed->cursor == transcript->last_event());
  const bool is_known = context_.sessions.contains(*stream);
  if (subscription_->asked.from_beginning && !is_known) subscription_->known_cold.insert(stream->name());
  if (!has_all) return add_stream(*stream, {.from = parsed->cursor}, resume);
  const Session* session = context_.sessions.find(stream->session());
  if (session && is_known && !wants(*session, *stream)) return;
  resume.missing.erase(parsed->stream);
  resume.cursors.push_back(stream_cursor(*stream, transcript->end()));
}

/// Up to what was published. The filter may exclude the stream. The project of a cold one is unknown: its
/// chunks are filtered.
void Subscriber::add_stream(const tail::Stream& stream, EventRange range, Resume& resume) {
  const bool is_known = context_.sessions.contains(stream);
  const Session* session = context_.sessions.find(stream.session());
  if (is_known && session && !wants(*session, stream)) return;
  range.upto_offset = stream.published_bytes();
  resume.missing[stream.name()] = range;
  if (is_known) resume.stream_ids[stream.name()] = context_.sessions.stream_id(stream);
}

// --- Streams that are sent from their beginning ---

/// With `new_streams: beginning`: true once for each stream that is not resumed.
bool Subscriber::is_new(const tail::Stream& stream, std::uint32_t id) {
  if (!subscription_->asked.from_beginning || !subscription_->known_streams.insert(id).second) return false;
  return subscription_->known_cold.erase(stream.name()) == 0;
}

/// Sends the new ones of these streams from the files, up to what was published; the log has the rest.
void Subscriber::send_history(const std::vector<std::uint32_t>& streams) {
  auto resume = std::make_unique<Resume>();
  for (const std::uint32_t id : streams) {
    const tail::Stream* stream = context_.sessions.find_stream(id);
    if (!stream || !is_new(*stream, id) || stream->published_bytes() == 0) continue;
    mutes_.push_back({id, log().head()});
    add_stream(*stream, {}, *resume);
  }
  if (!resume->missing.empty()) push_resume(log().head(), std::move(resume));
}

void Subscriber::session_shown(const Session& session) {
  if (!reads_log() || !subscription_->asked.from_beginning || !wants(session)) return;
  std::vector<std::uint32_t> streams;
  for (const Member& member : session.members) streams.push_back(member.id);
  send_history(streams);
}

void Subscriber::stream_appeared(std::uint32_t stream) {
  if (reads_log() && subscription_->asked.from_beginning) subscription_->known_streams.insert(stream);
}

// --- Reading from files ---

Resume* Subscriber::resume() {
  for (Queued& queued : queue_)
    if (queued.kind == Kind::resume) return queued.resume.get();
  return nullptr;
}

void Subscriber::insert_before_resume(Kind kind, std::string_view payload) {
  const auto at = std::find_if(queue_.begin(), queue_.end(),
                               [](const Queued& each) { return each.kind == Kind::resume; });
  queue_.insert(at, queued(at->at, kind, make_frame(payload)));
}

void Subscriber::begin(Resume& resume) {
  resume.begun = true;
  for (const std::string& stream : resume.new_histories) {
    const tail::Stream* found =
        context_.archive ? context_.archive->find(resume.names_of(stream).present) : nullptr;
    if (!may_see(found)) continue;  // it belongs to another session by now
    const std::string session = found ? found->session() : std::string();
    insert_before_resume(Kind::control,
                         reset_frame({}, context_.host_of(session), session, stream, "rewritten"));
  }
  if (!context_.catch_ups) return resume.missing.clear();
  for (const auto& [stream, missing] : resume.missing)
    context_.catch_ups->want(*this, resume.names_of(stream), missing);
}

void Subscriber::finish(std::unique_ptr<Resume> resume) {
  const bool complete = resume->others.empty();
  if (allowed_) {  // a stream may have changed its session meanwhile
    std::erase_if(resume->cursors, [&](const std::string& cursor) {
      return !may_see(context_.archive->find(resume->names_of(cursor.substr(0, cursor.rfind(':'))).present));
    });
  }
  std::vector<std::string> frames;
  if (resume->is_requested) frames = bookmark_frames(id(), resume->cursors, complete);
  if (!complete) {  // add_queued() continues with push_resets()
    resume->is_read = true;
    queue_.push_front({position_, Kind::resume, nullptr, std::move(resume)});
  }
  for (auto payload = frames.rbegin(); payload != frames.rend(); ++payload)  // this is the client's position
    queue_.push_front(queued(position_, Kind::control, make_frame(*payload)));
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
  insert_before_resume(Kind::control, from.is_requested
                                          ? reset_frame(id(), context_.host, {}, stream, "unknown")
                                          : removed_frame(context_.host, stream));
  if (const auto known = from.stream_ids.find(stream); known != from.stream_ids.end())
    mutes_.push_back({known->second, log().head()});
}

/// The file does not match the client's cursor: `reset`, followed by the session's frame, after everything
/// else was read (push_resets).
void Subscriber::on_other_history(const std::string& stream, std::string_view reason, Resume& to) {
  to.others.push_back({stream, std::string(reason)});
  // The reset covers what other queued resumes wanted of this stream.
  const auto drop = [&](Resume* other) {
    if (!other || other->begun) return;
    other->missing.erase(stream);
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
  std::vector<Session*> sessions;
  while (resume.resets_pushed < end) {
    const Resume::OtherHistory& other = resume.others[resume.resets_pushed++];
    const std::string present = resume.names_of(other.stream).present;
    const tail::Stream* existing = context_.archive->find(present);
    const tail::Stream* stream = may_see(existing) ? existing : nullptr;
    const std::string session_name = stream ? stream->session() : std::string();
    // The frames that renamed it were sent before.
    const std::string& name = stream ? stream->name() : present;
    // The id is sent also if the log had evicted the events: a session frame follows, not the first line.
    push(Kind::reset, reset_frame(id(), context_.host_of(session_name), session_name, name,
                                  stream ? std::string_view(other.reason) : "unknown"));
    Session* session = session_name.empty() ? nullptr : context_.sessions.find(session_name);
    if (session && std::find(sessions.begin(), sessions.end(), session) == sessions.end())
      sessions.push_back(session);
    if (stream && !context_.sessions.contains(*stream) && unreadable_.size() < unreadable_max)
      unreadable_.insert(name);
    const auto known = resume.stream_ids.find(other.stream);
    if (known != resume.stream_ids.end()) mutes_.push_back({known->second, log().head()});
    if (stream && context_.sessions.contains(*stream))
      mutes_.push_back({context_.sessions.stream_id(*stream), log().head()});
  }
  for (Session* session : sessions) push(Kind::snapshot, context_.sessions.frame(*session, audience_));
  if (resume.resets_pushed < resume.others.size()) return false;
  if (!resume.is_requested) return true;
  for (const std::string& payload : bookmark_frames(id(), {}, true)) push(Kind::control, payload);
  return true;
}

/// Resumes that are queued keep the name that the client knows at their position.
void Subscriber::stream_renamed(std::string_view from, const std::string& to) {
  if (!has_begun()) return;
  const auto rename = [&](std::set<std::string, std::less<>>& names) {
    if (const auto known = names.find(from); known != names.end()) {
      names.erase(known);
      names.insert(to);
    }
  };
  rename(unreadable_);
  rename(subscription_->known_cold);
  for (Queued& queued : queue_)
    if (queued.resume) queued.resume->rename(from, to);
  if (missed_) missed_->rename(from, to);
}

/// A stream that could not be read for a resume was folded: the client learns its position by another reset
/// with the session's frame.
void Subscriber::stream_readable(const tail::Stream& stream) {
  if (unreadable_.erase(stream.name()) == 0) return;
  Session* session = context_.sessions.find(stream.session());
  if (!session || !may_see(&stream)) return;
  push(Kind::reset,
       reset_frame(id(), context_.host_of(session->name), session->name, stream.name(), "unreadable"));
  mutes_.push_back({context_.sessions.stream_id(stream), log().head()});
  push(Kind::snapshot, context_.sessions.frame(*session, audience_));
  wake();
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
    const bool is_wanted =
        filter().matches_session(keys) &&
        (!allowed_ || may_see(context_.archive->find(resume.names_of(reading.stream).present)));
    const LiveLog::Run run = events.matching(reading.at, is_wanted ? events.head() : reading.at,
                                             context_.limits.write_bytes_max, [&](const Tags& tags) {
                                               return subscription_->types[tags.type] &&
                                                      missing->second.contains(tags.cursor, tags.time_ms);
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
