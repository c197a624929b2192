#include "serve/stream/catch_up.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "agents/transcript_file.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "serve/stream/subscriber.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t piece_bytes = 64 << 10;  // read at a time
constexpr std::size_t slice_bytes = 2 << 10;   // folded without returning to the event loop
constexpr std::size_t held_bytes_max = 256
                                       << 10;  // of events before the first timed one; more match no `since`
static_assert(piece_bytes <= tail::History::piece_bytes_max);

}  // namespace

std::size_t Chunk::bytes() const {
  std::size_t sum = 0;
  for (const auto& log : logs) sum += log ? log->bytes() : 0;
  return sum;
}

struct CatchUps::Fold {
  struct Held {  // an event before the first timed one
    Audience audience;
    std::string payload;
    Tags tags;
  };

  Fold(boost::asio::io_context& io, StreamNames names, std::unique_ptr<tail::History> bytes)
      : stream(std::move(names)), history(std::move(bytes)), transcript(history->options()), patience(io) {}

  std::uint64_t upto() const {
    std::uint64_t most = 0;
    for (const Waiter& waiter : waiters) most = std::max(most, waiter.missing.upto_offset);
    return most;
  }
  bool has_since() const {
    return std::any_of(waiters.begin(), waiters.end(),
                       [](const Waiter& waiter) { return waiter.missing.since_ms != EventRange::any_time; });
  }
  bool any_reading() const {
    return std::any_of(waiters.begin(), waiters.end(), [](const Waiter& waiter) { return waiter.reading; });
  }
  bool all_reading() const {
    return std::all_of(waiters.begin(), waiters.end(), [](const Waiter& waiter) { return waiter.reading; });
  }

  /// The records' session where the path alone does not prove one.
  const std::string& session_name() const {
    const std::string& recorded = transcript.recorded_session();
    return session.empty() || (!is_identified && !recorded.empty()) ? recorded : session;
  }

  StreamNames stream;
  std::string session, directory;  // by the stream's path
  bool is_identified = true;       // tail::Stream::is_identified()
  std::unique_ptr<tail::History> history;
  Transcript transcript;
  std::vector<Waiter> waiters;
  std::uint64_t fed = 0;     // bytes
  std::int64_t time_ms = 0;  // of the last timed event; 0: none yet
  std::vector<Held> held;    // events before it, for readers with `since`
  std::size_t held_bytes = 0;
  std::shared_ptr<Chunk> chunk;
  Clock::time_point published;
  Timer patience;
  tail::History::Piece piece;  // the last one, while it is folded
  std::span<const char> left;  // of it
  bool cold = false;           // the stream had no transcript when the fold began
  bool reading = false;        // a piece is read or folded
  bool over = false;
};

/// Encodes each requested event once per audience.
class CatchUps::Collect final : public EventSink {
 public:
  Collect(CatchUps& owner, Fold& fold) : owner_(owner), fold_(fold) {}

  void on_event(const Event& event) override {
    if (event.time_ms != 0) {
      fold_.time_ms = event.time_ms;
      flush();
    }
    // Before the first timed event the time is unknown: with `since`, wait for it.
    const bool hold = fold_.time_ms == 0 && fold_.has_since() && fold_.held_bytes < held_bytes_max;
    std::array<bool, audience_count> wanted{};
    for (Waiter& waiter : fold_.waiters) {
      if (waiter.differs || waiter.over || !waiter.missing.contains(event.cursor)) continue;
      // Nothing of a partly delivered line is sent before its prefix hash is verified.
      if (event.cursor.offset == waiter.missing.from.offset &&
          event.cursor.prefix_hash != waiter.missing.from.prefix_hash) {
        waiter.differs = true;
        continue;
      }
      if (hold || waiter.missing.contains(event.cursor, fold_.time_ms))
        wanted[static_cast<std::size_t>(waiter.reader->audience())] = true;
    }
    for (const Audience audience : all_audiences) {
      if (!wanted[static_cast<std::size_t>(audience)]) continue;
      const std::string& session = fold_.session_name();
      payload_.clear();
      append_event(payload_, event, {owner_.context_.host_of(session), fold_.stream.known, session},
                   owner_.context_.encoding(audience));
      const Tags tags{.type = type_of(event.body), .cursor = event.cursor, .time_ms = fold_.time_ms};
      if (!hold) {
        append(audience, payload_, tags);
        continue;
      }
      fold_.held_bytes += payload_.size();
      fold_.held.push_back({audience, payload_, tags});
    }
  }

  /// Appends the held events, with the time of the event that follows them.
  void flush() {
    for (Fold::Held& held : std::exchange(fold_.held, {})) {
      held.tags.time_ms = fold_.time_ms;
      append(held.audience, held.payload, held.tags);
    }
    fold_.held_bytes = 0;
  }

 private:
  void append(Audience audience, std::string_view payload, const Tags& tags) {
    bool wanted = false;
    for (Waiter& waiter : fold_.waiters) {
      if (waiter.differs || waiter.over || waiter.reader->audience() != audience) continue;
      if (waiter.missing.contains(tags.cursor, tags.time_ms)) wanted = waiter.wants_chunk = true;
    }
    if (!wanted) return;
    if (!fold_.chunk) fold_.chunk = owner_.new_chunk();
    auto& log = fold_.chunk->logs[static_cast<std::size_t>(audience)];
    if (!log) log = std::make_unique<LiveLog>(SIZE_MAX, Chunk::segment_bytes);
    log->append(payload, tags);
  }

  CatchUps& owner_;
  Fold& fold_;
  std::string payload_;
};

CatchUps::CatchUps(boost::asio::io_context& io, ServerContext& context) : io_(io), context_(context) {}
CatchUps::~CatchUps() = default;

// --- Requests ---

void CatchUps::want(Subscriber& reader, const StreamNames& stream, const EventRange& missing) {
  const Waiter waiter{&reader, missing};
  Reader& wanting = readers_[&reader];
  // Join a fold that has not reached the cursor yet.
  for (const auto& fold : folds_) {
    if (fold->stream != stream || fold->over || missing.from.offset <= fold->fed) continue;
    if (wanting.busy >= context_.limits.catch_up_a_reader) break;
    ++wanting.busy;
    fold->waiters.push_back(waiter);
    const auto holder = fold;
    return advance(holder);
  }
  waiting_[stream].push_back(waiter);
  if (wanting.streams.empty()) turns_.push_back(&reader);
  wanting.streams.push_back(stream);
  start_soon();
}

void CatchUps::consumed(Subscriber& reader, const StreamNames& stream,
                        const std::optional<EventRange>& rest) {
  for (const auto& fold : folds_) {
    if (fold->stream.known != stream.known) continue;
    const auto waiter = std::find_if(fold->waiters.begin(), fold->waiters.end(), [&](const Waiter& each) {
      return each.reader == &reader && each.reading;
    });
    if (waiter == fold->waiters.end()) continue;
    waiter->reading = false;
    const auto holder = fold;
    return advance(holder);
  }
  release(reader);
  if (rest) return want(reader, stream, *rest);
  start_soon();
}

void CatchUps::stream_renamed(std::string_view from, const std::string& to) {
  const auto rename = [&](StreamNames& stream) {
    if (stream.present == from) stream.present = to;
  };
  for (auto& [reader, wanting] : readers_)
    for (StreamNames& stream : wanting.streams) rename(stream);
  for (const auto& fold : folds_) rename(fold->stream);
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto next = std::next(at);
    if (at->first.present == from) {
      auto renamed = waiting_.extract(at);
      rename(renamed.key());
      auto& waiting = waiting_[renamed.key()];
      waiting.insert(waiting.end(), renamed.mapped().begin(), renamed.mapped().end());
    }
    at = next;
  }
}

void CatchUps::forget(Subscriber& reader) {
  if (readers_.erase(&reader) == 0) return;
  std::erase(turns_, &reader);
  const auto is_theirs = [&](const Waiter& waiter) { return waiter.reader == &reader; };
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    std::erase_if(at->second, is_theirs);
    at = at->second.empty() ? waiting_.erase(at) : std::next(at);
  }
  for (const auto& fold : std::vector(folds_.begin(), folds_.end())) {
    if (std::erase_if(fold->waiters, is_theirs) == 0) continue;
    if (fold->reading) continue;  // fold_slice() continues with the remaining waiters
    fold->waiters.empty() ? end(fold) : advance(fold);
  }
  start_soon();
}

// --- Folds ---

void CatchUps::start_soon() {
  if (std::exchange(starting_, true)) return;
  boost::asio::post(io_, [this, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    starting_ = false;
    start();
  });
}

/// Readers take turns, so that one with many streams does not delay the others.
void CatchUps::start() {
  const std::size_t each_max = context_.limits.catch_up_a_reader;
  const auto has_room = [&](const Waiter& waiter) { return readers_.at(waiter.reader).busy < each_max; };
  for (std::size_t busy = 0; running_ < context_.limits.catch_up_folds && busy < turns_.size();) {
    Subscriber* const next = turns_.front();
    Reader& reader = readers_.at(next);
    turns_.pop_front();
    if (reader.busy >= each_max) {
      turns_.push_back(next);
      ++busy;
      continue;
    }
    const StreamNames stream = std::move(reader.streams.front());
    reader.streams.pop_front();
    if (!reader.streams.empty()) turns_.push_back(next);
    const auto at = waiting_.find(stream);
    if (at == waiting_.end()) continue;
    std::vector<Waiter>& waiters = at->second;
    if (std::none_of(waiters.begin(), waiters.end(), [&](const Waiter& each) { return each.reader == next; }))
      continue;
    // All waiting readers with room share the fold.
    const auto served = std::stable_partition(waiters.begin(), waiters.end(),
                                              [&](const Waiter& each) { return !has_room(each); });
    std::vector<Waiter> sharing(served, waiters.end());
    waiters.erase(served, waiters.end());
    if (waiters.empty()) waiting_.erase(at);
    begin(stream, std::move(sharing));
    busy = 0;
  }
}

void CatchUps::begin(const StreamNames& stream, std::vector<Waiter> waiters) {
  const tail::Stream* found = context_.archive ? context_.archive->find(stream.present) : nullptr;
  if (!found) {
    for (const Waiter& waiter : waiters) waiter.reader->on_caught(stream.known, ReplayResult::failed, {});
    return;
  }
  if (folds_.size() >= context_.limits.catch_up_parked) abandon_oldest();
  auto fold = std::make_shared<Fold>(io_, stream, context_.archive->history(*found));
  fold->is_identified = found->is_identified();
  fold->session = fold->is_identified ? found->session() : found->path_identity().session;
  fold->directory = found->directory();
  fold->cold = !found->transcript();
  for (Waiter& waiter : waiters) {
    ++readers_.at(waiter.reader).busy;
    waiter.verified = waiter.missing.from == begin_cursor && !waiter.missing.inclusive;
    waiter.differs = waiter.missing.from.offset == 0 && !waiter.verified;
  }
  fold->waiters = std::move(waiters);
  folds_.push_back(fold);
  ++folds_begun;
  read(fold);
}

/// Ends the fold with the readers that are busy longest: each requests the rest after its chunk.
void CatchUps::abandon_oldest() {
  auto oldest = folds_.end();
  for (auto at = folds_.begin(); at != folds_.end(); ++at) {
    if ((*at)->reading || !(*at)->all_reading()) continue;
    if (oldest == folds_.end() || (*at)->published < (*oldest)->published) oldest = at;
  }
  if (oldest == folds_.end()) return;
  const auto holder = *oldest;
  end(holder);
}

void CatchUps::end(const std::shared_ptr<Fold>& fold) {
  if (std::exchange(fold->over, true)) return;
  if (std::exchange(fold->reading, false)) --running_;
  fold->patience.cancel();
  fold->waiters.clear();
  std::erase(folds_, fold);
  start_soon();
}

void CatchUps::read(const std::shared_ptr<Fold>& fold) {
  fold->reading = true;
  fold->patience.cancel();
  fold->chunk.reset();
  ++running_;
  const std::uint64_t left = fold->upto() - std::min(fold->upto(), fold->fed);
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece_bytes));
  fold->history->next(wanted, [this, weak = std::weak_ptr<Fold>(fold),
                               alive = std::weak_ptr<char>(alive_)](tail::History::Piece piece) {
    const auto holder = weak.lock();
    if (alive.expired() || !holder || holder->over) return;
    on_piece(holder, std::move(piece));
  });
}

void CatchUps::on_piece(const std::shared_ptr<Fold>& fold, tail::History::Piece piece) {
  if (piece.error) {
    const auto waiters = std::move(fold->waiters);
    end(fold);
    for (const Waiter& waiter : waiters) {
      release(*waiter.reader);
      waiter.reader->on_caught(fold->stream.known, ReplayResult::failed, {});
    }
    return;
  }
  bytes_read += piece.bytes.size();
  fold->left = piece.bytes;
  fold->piece = std::move(piece);
  fold_slice(fold);
}

/// Live events wait for a slice of the piece at most.
void CatchUps::fold_slice(const std::shared_ptr<Fold>& fold) {
  if (fold->waiters.empty()) return end(fold);
  auto slice = fold->left.first(std::min(slice_bytes, fold->left.size()));
  if (slice.size() < fold->left.size())  // a line that is cut would be copied
    if (const auto lf = find_last({slice.data(), slice.size()}, '\n'); lf != std::string_view::npos)
      slice = slice.first(lf + 1);
  fold->left = fold->left.subspan(slice.size());
  const bool is_last = fold->left.empty(), file_over = is_last && fold->piece.end;
  feed(*fold, slice, file_over);
  if (!is_last)
    return boost::asio::post(io_,
                             [this, weak = std::weak_ptr<Fold>(fold), alive = std::weak_ptr<char>(alive_)] {
                               const auto holder = weak.lock();
                               if (!alive.expired() && holder && !holder->over) fold_slice(holder);
                             });
  fold->piece = {};
  fold->reading = false;
  --running_;
  publish(fold, file_over);
}

/// Stops at each cursor, to verify its prefix hash, and at the end of each range.
void CatchUps::feed(Fold& fold, std::span<const char> bytes, bool file_over) {
  Collect collect(*this, fold);
  const auto check = [&](bool is_end) {
    const Cursor end = fold.transcript.end();
    for (Waiter& waiter : fold.waiters) {
      const EventRange& missing = waiter.missing;
      if (!waiter.verified && !waiter.differs && missing.from.offset == fold.fed) {
        const bool known = missing.from.index <= end.index && (!missing.inclusive || missing.from.index > 0);
        waiter.verified =
            end.offset == missing.from.offset && end.prefix_hash == missing.from.prefix_hash && known;
        waiter.differs = !waiter.verified;
      }
      const bool is_range_over =
          missing.upto_offset <= fold.fed || (is_end && missing.upto_offset == unknown_bytes);
      if (!waiter.over && is_range_over) {
        collect.flush();
        waiter.over = true;
        waiter.end = end;
        // A cursor behind the range is of another history, also if this fold, for others, reads up to it.
        waiter.differs |= !waiter.verified;
      }
    }
  };
  check(false);
  while (!bytes.empty()) {
    std::uint64_t next = fold.fed + bytes.size();
    for (const Waiter& waiter : fold.waiters) {
      for (const std::uint64_t cut : {waiter.missing.from.offset, waiter.missing.upto_offset})
        if (cut > fold.fed) next = std::min(next, cut);
    }
    const auto part = bytes.first(static_cast<std::size_t>(next - fold.fed));
    bytes = bytes.subspan(part.size());
    fold.transcript.feed(part, workspace_, collect);
    fold.fed = next;
    check(false);
  }
  if (file_over) check(true);
  if (file_over) collect.flush();
}

void CatchUps::publish(const std::shared_ptr<Fold>& fold, bool file_over) {
  const auto chunk = fold->chunk;
  if (chunk) {
    chunk->end = fold->transcript.end();
    chunk->session = fold->session_name();
    const Session* session = context_.sessions.find(chunk->session);
    chunk->project =
        session ? std::string(session->project_or_directory()) : fold->transcript.state().project;
    if (chunk->project.empty()) chunk->project = fold->directory;
    chunk->program =
        session && !session->program.empty() ? session->program : fold->transcript.state().program;
    account(chunk);
  }
  struct Ended {
    Subscriber* reader;
    ReplayResult how;
    Cursor end;
    bool has_chunk;
  };
  std::vector<Ended> ended;
  std::vector<Subscriber*> served;
  std::vector<Waiter> left;
  for (Waiter& waiter : fold->waiters) {
    const bool gets_chunk = std::exchange(waiter.wants_chunk, false) && !waiter.differs;
    if (gets_chunk) {
      waiter.reading = true;
      served.push_back(waiter.reader);
    }
    if (waiter.differs || waiter.over || file_over) {
      // A file that ends before the end of the range has another history.
      const ReplayResult how =
          waiter.differs || !waiter.verified || !waiter.over ? ReplayResult::differs : ReplayResult::up;
      if (how == ReplayResult::differs) ++resets;
      const bool told = fold->cold && how == ReplayResult::up;
      const tail::Stream* cold = told ? context_.archive->find(fold->stream.present) : nullptr;
      if (cold) context_.archive->mark_published(*cold, waiter.over ? waiter.end : fold->transcript.end());
      ended.push_back({waiter.reader, how, waiter.over ? waiter.end : fold->transcript.end(), gets_chunk});
    } else {
      left.push_back(waiter);
    }
  }
  fold->waiters = std::move(left);
  fold->published = Clock::now();
  for (Subscriber* reader : served) reader->on_chunk(fold->stream.known, chunk);
  for (const Ended& each : ended) {
    if (!each.has_chunk) release(*each.reader);
    each.reader->on_caught(fold->stream.known, each.how, each.end);
  }
  fold->waiters.empty() ? end(fold) : advance(fold);
  start_soon();
}

/// Reads on when all chunks were sent, or when some were and the other readers had their time.
void CatchUps::advance(const std::shared_ptr<Fold>& fold) {
  if (fold->over || fold->reading) return;
  if (fold->waiters.empty()) return end(fold);
  if (!fold->any_reading()) return read(fold);
  if (fold->all_reading()) return;
  const auto until = fold->published + context_.limits.catch_up_patience;
  if (Clock::now() >= until) {
    std::erase_if(fold->waiters, [](const Waiter& waiter) { return waiter.reading; });
    return read(fold);
  }
  fold->patience.expires_at(until);
  fold->patience.async_wait([this, weak = std::weak_ptr<Fold>(fold),
                             alive = std::weak_ptr<char>(alive_)](boost::system::error_code ec) {
    const auto holder = weak.lock();
    if (!ec && holder && !alive.expired()) advance(holder);
  });
}

void CatchUps::release(Subscriber& reader) {
  const auto found = readers_.find(&reader);
  if (found != readers_.end() && found->second.busy > 0) --found->second.busy;
}

// --- Memory ---

std::shared_ptr<Chunk> CatchUps::new_chunk() {
  return {new Chunk, [this, alive = std::weak_ptr<char>(alive_)](Chunk* chunk) {
            if (!alive.expired() && !chunk->revoked) bytes_ -= chunk->counted;
            delete chunk;
          }};
}

/// Above the limit the oldest chunk is revoked, even if it was not sent yet.
void CatchUps::account(const std::shared_ptr<Chunk>& chunk) {
  chunk->counted = chunk->bytes();
  bytes_ += chunk->counted;
  chunks_.push_back(chunk);
  while (!chunks_.empty()) {
    const auto oldest = chunks_.front().lock();
    const bool too_much = bytes_ > context_.limits.catch_up_bytes && chunks_.size() > 1;
    if (oldest && !too_much) break;
    chunks_.pop_front();
    if (!oldest) continue;
    oldest->revoked = true;
    bytes_ -= oldest->counted;
    for (auto& log : oldest->logs) log.reset();
    ++revoked;
    for (const auto& fold : folds_) {
      if (fold->chunk != oldest) continue;
      std::erase_if(fold->waiters, [](const Waiter& waiter) { return waiter.reading; });
      boost::asio::post(io_, [this, weak = std::weak_ptr<Fold>(fold), alive = std::weak_ptr<char>(alive_)] {
        const auto holder = weak.lock();
        if (holder && !alive.expired()) advance(holder);
      });
    }
  }
}

}  // namespace earshot::serve
