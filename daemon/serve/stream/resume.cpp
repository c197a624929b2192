// The part of a subscriber that comes from files: what `after` missed, and what the log has let go.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "serve/stream/control_frames.hpp"
#include "serve/stream/subscriber.hpp"

namespace earshot::serve {

// --- After ---

/// What each entry misses. What is wrong with an entry is told at once, behind `ready`.
std::unique_ptr<Resume> Subscriber::resume_of(const Subscription& subscription,
                                              const std::vector<std::string>& after) {
  auto resume = std::make_unique<Resume>();
  resume->id = subscription.id;
  resume->who = subscription.bit;
  for (const std::string& entry : after) {
    const auto place = message::parse_stream_cursor(entry);
    if (!place) {
      constexpr std::size_t shown_bytes = 200;
      push(Kind::answer, make_frame(message::error(
                             subscription.id, "bad_cursor",
                             "`after`: `" + entry.substr(0, shown_bytes) +
                                 "` is not <stream>:<cursor>, as events and session frames give them")));
      continue;
    }
    const tail::Stream* stream = context_.archive ? context_.archive->find(place->stream) : nullptr;
    if (!stream || !may_see(stream)) {
      push(Kind::answer,
           make_frame(reset_frame(subscription.id, context_.host, {}, place->stream, "unknown")));
      continue;
    }
    context_.archive->doubt(*stream);
    const Session* session = context_.sessions.find(stream->session());
    const bool known = session && std::any_of(session->members.begin(), session->members.end(),
                                              [&](const Member& member) { return member.stream == stream; });
    const std::string_view project = known ? session->project_or_directory() : std::string_view();
    // Of a cold one the project is known once it is read: its chunks are judged then.
    if (known && !matches(subscription, session->name, project)) continue;
    const Transcript* transcript = stream->transcript();
    const bool has_all =
        transcript && (place->cursor == transcript->end() || place->cursor == transcript->last_event());
    if (has_all) {
      resume->missing.erase(place->stream);
      resume->places.push_back(place->stream + ":" + to_string(transcript->end()));
      continue;
    }
    resume->missing[place->stream] = {place->cursor, false, stream->bytes(), UINT32_MAX};
    if (context_.sessions.contains(*stream))
      resume->streams[place->stream] = context_.sessions.stream_id(*stream);
  }
  told_before(subscription, *resume);
  return resume;
}

/// What another subscription of this connection has been told of these streams, or will be from the log, ends
/// what this one misses: an event is delivered once.
void Subscriber::told_before(const Subscription& fresh, Resume& resume) {
  for (const Subscription& other : subscriptions_) {
    const bool covers =
        !other.state && &other != &fresh && other.filter.type.empty() && log().holds(other.since);
    if (!covers || resume.missing.empty()) continue;
    std::set<std::uint32_t> seen;
    for (Position at = other.since; at < log().head(); ++at) {
      const Tags& tags = log().tags(at);
      if (tags.stream == 0 || tags.type >= event_types || !seen.insert(tags.stream).second) continue;
      const tail::Stream* stream = context_.sessions.find_stream(tags.stream);
      const Session* session = context_.sessions.find(tags.session);
      if (!stream || !session || !wants(other, *session)) continue;
      const auto missing = resume.missing.find(stream->name());
      if (missing == resume.missing.end()) continue;
      missing->second.upto_offset = tags.cursor.offset;
      missing->second.upto_index = tags.cursor.index - 1;
    }
  }
}

// --- Lag ---

void Subscriber::on_evict(Position next) {
  if (!events_ || position_ >= next) return;
  if (!lost_from_) lost_from_ = position_;
  Mask catching_up = 0;
  for (const Subscription& subscription : subscriptions_)
    if (subscription.keeps) catching_up |= subscription.bit;
  if (!missed_) {
    missed_ = std::make_unique<Resume>();
    missed_->who = catching_up;
  }
  for (Position at = std::max(position_, log().first()); at < next; ++at) {
    const Tags& tags = log().tags(at);
    const Mask who = types_[tags.type] & catching_up & active_at(at);
    if (tags.stream == 0 || who == 0 || (sessions_mask(tags.session) & who) == 0) continue;
    if (muted(tags.stream, at)) continue;
    const tail::Stream* stream = context_.sessions.find_stream(tags.stream);
    if (!stream) continue;  // it is no more, and nothing of it can be read
    missed_->streams[stream->name()] = tags.stream;
    if (tags.type == type_reset) {
      missed_->missing[stream->name()] = {begin_cursor, false, 0, 0};
      missed_->new_histories.insert(stream->name());
    } else if (tags.type < event_types) {
      const auto [missing, fresh] = missed_->missing.try_emplace(stream->name());
      if (fresh) missing->second = {tags.cursor, true, 0, 0};
      missing->second.upto_offset = tags.cursor.offset;
      missing->second.upto_index = tags.cursor.index;
    }
  }
  position_ = next;
  if (missed_->missing.size() <= context_.limits.missed_streams) return;
  // Too many to keep: those who wanted them are told that they fell behind, as everybody else is.
  missed_ = std::make_unique<Resume>();
  for (Subscription& subscription : subscriptions_) subscription.keeps = false;
}

/// The log has gone on without this client. Who keeps gets what it missed from the files; the others are told
/// `lagged`. All get every session that is another since.
void Subscriber::on_lagged() {
  const Position missed_from = *std::exchange(lost_from_, std::nullopt);
  const Position head = log().head();
  const auto is_keeper = [](const Subscription& subscription) { return subscription.keeps; };
  const bool keep = keeps_ && std::any_of(subscriptions_.begin(), subscriptions_.end(), is_keeper);
  ++context_.counters.lagged;
  position_ = keep ? std::max(position_, log().first()) : head;

  std::deque<OwnAddress> first, rest;
  for (OwnAddress& own : own_) {
    if (own.kind == Kind::snapshot) {
      shed_ = true;
      continue;
    }
    const bool is_resume = own.kind == Kind::resume;
    own.at = position_;
    rest.push_back(std::move(own));
    if (!is_resume) continue;
    std::move(rest.begin(), rest.end(), std::back_inserter(first));
    rest.clear();
  }
  own_ = std::move(first);
  // Before what is read again: a stream that went may have come again, and that is the one that is read.
  const auto tell_removed = [this](Frame frame) {
    if (allowed_) return;  // nobody knows any more whose it was
    own_bytes_ += frame->size();
    own_.push_back({position_, Kind::answer, std::move(frame), nullptr});
  };
  for (const auto& [at, frame] : audience_log().removed)
    if (at >= missed_from) tell_removed(frame);
  // Who goes on at the head passes over what the log still has, too.
  for (Position at = log().first(); at < position_; ++at)
    if (at >= missed_from && log().tags(at).type == type_removed)
      tell_removed(std::make_shared<const std::string>(log().frame(at)));
  if (keep && missed_ && !missed_->missing.empty())
    own_.push_back({position_, Kind::resume, nullptr, std::move(missed_)});
  missed_.reset();

  for (Subscription& subscription : subscriptions_) {
    if (subscription.state || subscription.keeps) continue;
    subscription.since = head;
    push(Kind::answer, make_frame(control_frame("lagged", subscription.id)));
  }
  for (OwnAddress& own : rest) {  // its session's frame was shed, and comes again below
    if (own.kind != Kind::reset) continue;
    own.at = head;
    own_.push_back(std::move(own));
  }
  context_.sessions.for_each([&](Session& session) {
    if (session.members.empty() && !session.process_lives()) return;
    if (!shed_ && session.changed < missed_from) return;
    const bool wanted =
        std::any_of(subscriptions_.begin(), subscriptions_.end(), [&](const Subscription& subscription) {
          if (!wants(subscription, session)) return false;
          return subscription.all || session.changed >= missed_from || is_live(session, context_.recent);
        });
    if (wanted) push(Kind::snapshot, context_.sessions.frame(session, audience_));
  });
  shed_ = false;
  for (OwnAddress& own : rest) {
    if (own.kind == Kind::reset) continue;
    own.at = head;
    own_.push_back(std::move(own));
  }
}

// --- From the files ---

Resume* Subscriber::resume() {
  for (OwnAddress& own : own_)
    if (own.kind == Kind::resume) return own.resume.get();
  return nullptr;
}

void Subscriber::insert_before_resume(std::string_view payload) {
  const auto at =
      std::find_if(own_.begin(), own_.end(), [](const OwnAddress& own) { return own.kind == Kind::resume; });
  Frame frame = make_frame(payload);
  own_bytes_ += frame->size();
  own_.insert(at, OwnAddress{at->at, Kind::answer, std::move(frame), nullptr});
}

void Subscriber::begin(Resume& resume) {
  resume.begun = true;
  for (const std::string& stream : resume.new_histories) {
    const tail::Stream* found = context_.archive ? context_.archive->find(stream) : nullptr;
    if (!may_see(found)) continue;  // it is another's by now
    const std::string session = found ? found->session() : std::string();
    insert_before_resume(reset_frame({}, context_.host_of(session), session, stream, "rewritten"));
  }
  if (!context_.catch_ups) return resume.missing.clear();
  for (const auto& [stream, missing] : resume.missing) context_.catch_ups->want(*this, stream, missing);
}

void Subscriber::finish(std::unique_ptr<Resume> resume) {
  const bool complete = resume->others.empty();
  if (allowed_) {  // it may have become another's while it was read
    std::erase_if(resume->places, [&](const std::string& place) {
      return !may_see(context_.archive->find(place.substr(0, place.rfind(':'))));
    });
  }
  if (!resume->id.empty()) {
    // In front of what the log has: just where the client is now.
    auto frames = bookmark_frames(resume->id, resume->places, complete);
    for (auto payload = frames.rbegin(); payload != frames.rend(); ++payload) {
      Frame frame = make_frame(*payload);
      own_bytes_ += frame->size();
      own_.push_front({position_, Kind::answer, std::move(frame), nullptr});
    }
  }
  if (complete) return;
  tell_others(*resume);
  if (resume->id.empty()) return;
  for (const std::string& payload : bookmark_frames(resume->id, {}, true))
    push(Kind::answer, make_frame(payload));
}

void Subscriber::on_chunk(const std::string& stream, std::shared_ptr<Chunk> chunk) {
  if (Resume* to = resume()) to->reading.push_back({stream, std::move(chunk), 0, false, {}});
  if (on_more) on_more();
}

void Subscriber::on_caught(const std::string& stream, ReplayResult how, const Cursor& end) {
  Resume* to = resume();
  if (!to) return;
  if (on_more) on_more();
  if (how == ReplayResult::up) {
    for (Resume::Reading& reading : to->reading) {
      if (reading.stream != stream) continue;
      reading.last = true;
      reading.end = end;
      return;
    }
    to->missing.erase(stream);
    to->places.push_back(stream + ":" + to_string(end));
    return;
  }
  to->missing.erase(stream);
  std::erase_if(to->reading, [&](const Resume::Reading& reading) {
    if (reading.stream == stream) context_.catch_ups->consumed(*this, stream, {});
    return reading.stream == stream;
  });
  if (!context_.archive->find(stream)) return gone(stream, *to);
  differs(stream, how == ReplayResult::differs ? "rewritten" : "unreadable", *to);
}

/// It is no more. What the log has said of it until now may be of a history that the client's cursor is not
/// of.
void Subscriber::gone(const std::string& stream, const Resume& from) {
  insert_before_resume(from.id.empty() ? removed_frame(context_.host, stream)
                                       : reset_frame(from.id, context_.host, {}, stream, "unknown"));
  if (const auto was = from.streams.find(stream); was != from.streams.end())
    mutes_.push_back({was->second, log().head()});
}

/// What the client was told of a stream is not what its file says. It is told so, and its session is shown as
/// it is then, when everything else has been read: finish().
void Subscriber::differs(const std::string& stream, std::string_view reason, Resume& to) {
  to.others.push_back({stream, std::string(reason)});
  // What still waits to be read of it lies before that place, too.
  const auto let_go = [&](Resume* other) {
    if (!other || other->begun) return;
    other->missing.erase(stream);
    other->new_histories.erase(stream);
  };
  for (OwnAddress& own : own_) let_go(own.resume.get());
  let_go(missed_.get());
  // The frame of a cold one needs its transcript; the other streams go on meanwhile.
  to.missing[stream + '\n'] = {};  // no stream is called so: it holds the resume open
  context_.archive->fold(stream, [this, stream, alive = std::weak_ptr<char>(alive_)](const tail::Stream*) {
    if (alive.expired()) return;
    if (Resume* waiting = resume()) waiting->missing.erase(stream + '\n');
    if (on_more) on_more();
  });
}

/// At the log's end, for there the sessions are as they are shown: of their other streams all has been told
/// by then, and of these streams nothing is told in between.
void Subscriber::tell_others(const Resume& resume) {
  // With an id, also when the log had let it go: a session's frame follows, not the first line.
  std::string id = resume.id;
  for (const Subscription& subscription : subscriptions_)
    if (id.empty() && (subscription.bit & resume.who)) id = subscription.id;
  std::vector<Session*> sessions;
  for (const Resume::Other& other : resume.others) {
    const tail::Stream* there = context_.archive->find(other.stream);
    const tail::Stream* found = may_see(there) ? there : nullptr;
    const std::string session = found ? found->session() : std::string();
    push(Kind::reset, make_frame(reset_frame(id, context_.host_of(session), session, other.stream,
                                             found ? std::string_view(other.reason) : "unknown")));
    Session* shown = session.empty() ? nullptr : context_.sessions.find(session);
    if (shown && std::find(sessions.begin(), sessions.end(), shown) == sessions.end())
      sessions.push_back(shown);
    const auto was = resume.streams.find(other.stream);
    if (was != resume.streams.end()) mutes_.push_back({was->second, log().head()});
    if (found && context_.sessions.contains(*found))
      mutes_.push_back({context_.sessions.stream_id(*found), log().head()});
  }
  for (Session* session : sessions) push(Kind::snapshot, context_.sessions.frame(*session, audience_));
}

/// One chunk's events, as far as the batch has room. False: there is none to read now.
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
    Mask who = 0;
    const bool allowed = !allowed_ || may_see(context_.sessions.find(chunk.session));
    for (const Subscription& subscription : subscriptions_) {
      if (allowed && (subscription.bit & resume.who) && matches(subscription, chunk.session, chunk.project))
        who |= subscription.bit;
    }
    const LiveLog::Run run =
        events.matching(reading.at, events.head(), context_.limits.write_bytes_max, [&](const Tags& tags) {
          return (types_[tags.type] & who) != 0 && missing->second.wants(tags.cursor);
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

/// Read to its end, or taken back.
void Subscriber::chunk_read(Resume& resume, Resume::Reading& reading) {
  const Resume::Reading read = std::move(reading);
  resume.reading.pop_front();
  const auto missing = resume.missing.find(read.stream);
  if (missing == resume.missing.end()) return context_.catch_ups->consumed(*this, read.stream, {});
  if (!read.chunk->revoked) {
    if (read.last) {
      resume.missing.erase(missing);
      resume.places.push_back(read.stream + ":" + to_string(read.end));
      return context_.catch_ups->consumed(*this, read.stream, {});
    }
    missing->second.from = read.chunk->end;
    missing->second.inclusive = false;
  }
  context_.catch_ups->consumed(*this, read.stream, missing->second);
}

}  // namespace earshot::serve
