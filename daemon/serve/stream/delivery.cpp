// What goes out of a subscriber next, and what has gone.
#include <algorithm>

#include "serve/stream/subscriber.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t states_at_once =
    16;  // frames made for one write; those behind them may still become newer

}  // namespace

void Batch::add(std::span<const char> bytes, From from, const LiveLog::Run& run, std::size_t bytes_max) {
  iovecs_[count_] = {const_cast<char*>(bytes.data()), bytes.size()};
  runs_[count_] = run;
  from_[count_++] = from;
  bytes_ += bytes.size();
  full = count_ == pieces_max || bytes_ >= bytes_max;
}

/// Frames for sessions whose state is owed, made now: the newest wins. False: none is owed.
bool Subscriber::add_states() {
  std::size_t made = 0;
  while (!states_due_.empty() && made < states_at_once) {
    const auto first = states_due_.begin();
    Session* session = context_.sessions.find(*first);
    states_due_.erase(first);
    if (!session || session->name.empty() || !may_see(session)) continue;
    push(Kind::snapshot, context_.sessions.frame(*session, audience_));
    ++made;
  }
  return made > 0;
}

/// Frames of the log before `until`, as far as the batch has room; `scanned` says how far it came.
void Subscriber::add_log(Batch& batch, Position until) {
  std::erase_if(mutes_, [&](const Mute& mute) { return mute.until <= batch.scanned; });
  const Mask active = active_at(batch.scanned);
  const bool everything =
      mutes_.empty() &&
      std::any_of(subscriptions_.begin(), subscriptions_.end(), [&](const Subscription& subscription) {
        return !allowed_ && (subscription.bit & active) != 0 && subscription.filter.empty();
      });
  // A subscription that begins in between is judged when that place is reached.
  for (const Subscription& subscription : subscriptions_) {
    if (!subscription.state && subscription.since > batch.scanned)
      until = std::min(until, subscription.since);
  }
  if (active == 0) batch.scanned = until;
  Position at = batch.scanned;
  const auto wanted = [&](const Tags& tags) {
    const Mask typed = types_[tags.type] & active;
    if (typed == 0 || (sessions_mask(tags.session) & typed) == 0) return false;
    return mutes_.empty() || tags.type == type_removed || !muted(tags.stream, at);
  };
  while (batch.scanned < until && !batch.full) {
    const std::size_t room = context_.limits.write_bytes_max - batch.bytes_;
    if (!mutes_.empty()) {  // frame by frame, for as long as one is muted
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

/// The next of the own frames. False: nothing behind it may go out now.
bool Subscriber::add_own(Batch& batch, std::size_t& next_own) {
  OwnAddress& own = own_[next_own];
  if (own.kind != Kind::resume) {
    ++next_own;
    batch.add({own.frame->data(), own.frame->size()}, Batch::From::own, {}, context_.limits.write_bytes_max);
    return true;
  }
  if (!batch.empty()) {  // what is before it goes out first
    batch.full = true;
    return false;
  }
  Resume& resume = *own.resume;
  if (!resume.begun) {
    begin(resume);
    return true;  // frames may stand before it now
  }
  if (add_chunk(batch, resume)) {
    batch.full = true;
    return false;
  }
  if (!resume.done()) return false;
  auto over = std::move(own.resume);
  own_.pop_front();
  finish(std::move(over));
  return true;
}

void Subscriber::gather(Batch& batch) {
  torn_.reset();
  if (own_bytes_ == 0 && context_.records) context_.records->give(*this);
  if (events_ && !lost_from_ && !log().holds(position_)) lost_from_ = position_;
  if (lost_from_) on_lagged();
  batch.scanned = position_;
  std::size_t next_own = 0;
  while (!batch.full) {
    const bool has_own = next_own < own_.size();
    const Position until = has_own ? own_[next_own].at : log().head();
    if (events_ && batch.scanned < until) {
      add_log(batch, until);
      continue;
    }
    if (has_own ? !add_own(batch, next_own) : !add_states()) break;
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
    if (batch.from_[i] == Batch::From::own) {
      own_gone(own_.front());
      torn_ = std::move(own_.front().frame);
      own_.pop_front();
      if (torn) return std::span(torn_->data(), torn_->size()).subspan(gone);
      continue;
    }
    const bool from_log = batch.from_[i] == Batch::From::log;
    Resume* from = from_log ? nullptr : resume();
    LiveLog& source = from_log ? log() : from->reading.front().chunk->log(audience_);
    Position& position = from_log ? position_ : from->reading.front().at;
    const LiveLog::Cut cut = torn ? source.cut(run, gone) : LiveLog::Cut{run.next, {}};
    position = cut.next;
    if (!from_log && position > run.first) {  // so far the client has it: should the chunk be taken back
      EventRange& missing = from->missing.find(from->reading.front().stream)->second;
      missing.from = source.tags(position - 1).cursor;
      missing.inclusive = false;
    }
    if (torn) return cut.rest;
  }
  if (all) position_ = std::max(position_, batch.scanned);
  return {};
}

}  // namespace earshot::serve
