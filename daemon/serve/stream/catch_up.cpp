#include "serve/stream/catch_up.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/clock.hpp"
#include "serve/stream/types.hpp"

namespace earshot::serve {
namespace {
using watch::Clock;

constexpr std::size_t piece_bytes =
    64 << 10;  // folded at once: what happens meanwhile waits for no more than that
static_assert(piece_bytes <= tail::History::piece_bytes_max);

}  // namespace

std::size_t Chunk::bytes() const {
  std::size_t sum = 0;
  for (const auto& log : logs) sum += log ? log->bytes() : 0;
  return sum;
}

struct CatchUps::Fold {
  Fold(boost::asio::io_context& io, std::string stream_name, std::unique_ptr<tail::History> bytes)
      : stream(std::move(stream_name)),
        history(std::move(bytes)),
        transcript(history->options()),
        patience(io) {}

  std::uint64_t upto() const {
    std::uint64_t most = 0;
    for (const Waiter& seat : seats) most = std::max(most, seat.missing.upto_offset);
    return most;
  }
  bool anybody_reads() const {
    return std::any_of(seats.begin(), seats.end(), [](const Waiter& seat) { return seat.reading; });
  }
  bool everybody_reads() const {
    return std::all_of(seats.begin(), seats.end(), [](const Waiter& seat) { return seat.reading; });
  }

  const std::string stream;
  std::string session, directory;
  std::unique_ptr<tail::History> history;
  Transcript transcript;
  std::vector<Waiter> seats;
  std::uint64_t fed = 0;  // bytes
  std::shared_ptr<Chunk> chunk;
  Clock::time_point published;
  watch::Timer patience;
  bool cold = false;     // nobody else knew what the file holds when it began
  bool reading = false;  // bytes are on their way
  bool over = false;
};

/// Encodes each event that somebody wants, once for each way that it is shown.
class CatchUps::Collect final : public EventSink {
 public:
  Collect(CatchUps& owner, Fold& fold) : owner_(owner), fold_(fold) {}

  void on_event(const Event& event) override {
    std::array<bool, audience_count> wanted{};
    for (Waiter& seat : fold_.seats) {
      if (seat.differs || seat.over || !seat.missing.wants(event.cursor)) continue;
      // Of the line that the reader has in part, nothing is shown before its mark is known to fit.
      if (event.cursor.offset == seat.missing.from.offset &&
          event.cursor.prefix_hash != seat.missing.from.prefix_hash) {
        seat.differs = true;
        continue;
      }
      seat.wants_chunk = true;
      wanted[static_cast<std::size_t>(seat.reader->audience())] = true;
    }
    for (const Audience audience : all_audiences) {
      if (!wanted[static_cast<std::size_t>(audience)]) continue;
      if (!fold_.chunk) fold_.chunk = owner_.new_chunk();
      auto& log = fold_.chunk->logs[static_cast<std::size_t>(audience)];
      if (!log) log = std::make_unique<LiveLog>(SIZE_MAX, Chunk::segment_bytes);
      const std::string& session =
          fold_.session.empty() ? fold_.transcript.recorded_session() : fold_.session;
      payload_.clear();
      append_event(payload_, event, {owner_.context_.host_of(session), fold_.stream, session},
                   owner_.context_.encoding(audience));
      log->append(payload_, {0, type_of(event.body), 0, event.cursor});
    }
  }

 private:
  CatchUps& owner_;
  Fold& fold_;
  std::string payload_;
};

CatchUps::CatchUps(boost::asio::io_context& io, ServerContext& context) : io_(io), context_(context) {}
CatchUps::~CatchUps() = default;

// --- Who waits ---

void CatchUps::want(CatchUpReader& reader, const std::string& stream, const EventRange& missing) {
  Waiter seat{&reader, missing};
  // A fold that has not come to its place yet takes it along.
  for (const auto& fold : folds_) {
    if (fold->stream != stream || fold->over || missing.from.offset <= fold->fed) continue;
    if (loads_[&reader] >= context_.limits.catch_up_a_reader) break;
    ++loads_[&reader];
    fold->seats.push_back(seat);
    const auto holder = fold;
    return go_on(holder);
  }
  loads_.try_emplace(&reader, 0);
  auto [at, fresh] = waiting_.try_emplace(stream);
  at->second.push_back(seat);
  if (fresh) line_.push_back(stream);
  start_soon();
}

void CatchUps::consumed(CatchUpReader& reader, const std::string& stream,
                        const std::optional<EventRange>& rest) {
  for (const auto& fold : folds_) {
    if (fold->stream != stream) continue;
    const auto seat = std::find_if(fold->seats.begin(), fold->seats.end(), [&](const Waiter& each) {
      return each.reader == &reader && each.reading;
    });
    if (seat == fold->seats.end()) continue;
    seat->reading = false;
    const auto holder = fold;
    return go_on(holder);
  }
  const auto load = loads_.find(&reader);
  if (load != loads_.end() && load->second > 0) --load->second;
  if (rest) return want(reader, stream, *rest);
  start_soon();
}

void CatchUps::forget(CatchUpReader& reader) {
  if (loads_.erase(&reader) == 0) return;
  const auto is_theirs = [&](const Waiter& seat) { return seat.reader == &reader; };
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    std::erase_if(at->second, is_theirs);
    at = at->second.empty() ? waiting_.erase(at) : std::next(at);
  }
  std::erase_if(line_, [&](const std::string& stream) { return !waiting_.contains(stream); });
  for (const auto& fold : std::vector(folds_.begin(), folds_.end())) {
    if (std::erase_if(fold->seats, is_theirs) == 0) continue;
    if (fold->reading) continue;  // what it reads is on its way; took() sees who is left
    fold->seats.empty() ? end(fold) : go_on(fold);
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

void CatchUps::start() {
  const std::size_t each_max = context_.limits.catch_up_a_reader;
  const auto has_room = [&](const Waiter& seat) { return loads_[seat.reader] < each_max; };
  while (running_ < context_.limits.catch_up_folds) {
    const bool any =
        std::any_of(loads_.begin(), loads_.end(), [&](const auto& load) { return load.second < each_max; });
    if (!any) return;
    const auto next = std::find_if(line_.begin(), line_.end(), [&](const std::string& stream) {
      const auto& seats = waiting_.find(stream)->second;
      return std::any_of(seats.begin(), seats.end(), has_room);
    });
    if (next == line_.end()) return;
    const std::string stream = *next;
    const auto at = waiting_.find(stream);
    const auto served = std::stable_partition(at->second.begin(), at->second.end(),
                                              [&](const Waiter& seat) { return !has_room(seat); });
    std::vector<Waiter> seats(served, at->second.end());
    at->second.erase(served, at->second.end());
    if (at->second.empty()) {
      waiting_.erase(at);
      line_.erase(next);
    }
    begin(stream, std::move(seats));
  }
}

void CatchUps::begin(const std::string& stream, std::vector<Waiter> seats) {
  const tail::Stream* found = context_.archive ? context_.archive->find(stream) : nullptr;
  if (!found) {
    for (const Waiter& seat : seats) seat.reader->on_caught(stream, ReplayResult::failed, {});
    return;
  }
  if (folds_.size() >= context_.limits.catch_up_parked) abandon_oldest();
  auto fold = std::make_shared<Fold>(io_, stream, context_.archive->history(*found));
  fold->session = found->session();
  fold->directory = found->directory();
  fold->cold = !found->transcript();
  for (Waiter& seat : seats) {
    ++loads_[seat.reader];
    seat.verified = seat.missing.from == begin_cursor && !seat.missing.inclusive;
    seat.differs = seat.missing.from.offset == 0 && !seat.verified;
  }
  fold->seats = std::move(seats);
  folds_.push_back(fold);
  ++folds_begun;
  read(fold);
}

/// One whose readers all take their time: each reads what it has, then asks again from there.
void CatchUps::abandon_oldest() {
  auto oldest = folds_.end();
  for (auto at = folds_.begin(); at != folds_.end(); ++at) {
    if ((*at)->reading || !(*at)->everybody_reads()) continue;
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
  fold->seats.clear();
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
                               alive = std::weak_ptr<char>(alive_)](const tail::History::Piece& piece) {
    const auto holder = weak.lock();
    if (alive.expired() || !holder || holder->over) return;
    took(holder, piece);
  });
}

void CatchUps::took(const std::shared_ptr<Fold>& fold, const tail::History::Piece& piece) {
  fold->reading = false;
  --running_;
  if (fold->seats.empty()) return end(fold);
  if (piece.error) {
    const auto seats = std::move(fold->seats);
    end(fold);
    for (const Waiter& seat : seats) {
      release(*seat.reader);
      seat.reader->on_caught(fold->stream, ReplayResult::failed, {});
    }
    return;
  }
  bytes_read += piece.bytes.size();
  feed(*fold, piece.bytes);
  publish(fold, piece.end);
}

/// Cut where a reader's cursor is, to see whether it fits, and where a reader has enough.
void CatchUps::feed(Fold& fold, std::span<const char> bytes) {
  Collect collect(*this, fold);
  const auto look = [&] {
    const Cursor end = fold.transcript.end();
    for (Waiter& seat : fold.seats) {
      const EventRange& missing = seat.missing;
      if (!seat.verified && !seat.differs && missing.from.offset == fold.fed) {
        const bool known = missing.from.index <= end.index && (!missing.inclusive || missing.from.index > 0);
        seat.verified =
            end.offset == missing.from.offset && end.prefix_hash == missing.from.prefix_hash && known;
        seat.differs = !seat.verified;
      }
      if (!seat.over && missing.upto_offset <= fold.fed) {
        seat.over = true;
        seat.end = end;
      }
    }
  };
  look();
  while (!bytes.empty()) {
    std::uint64_t next = fold.fed + bytes.size();
    for (const Waiter& seat : fold.seats) {
      for (const std::uint64_t cut : {seat.missing.from.offset, seat.missing.upto_offset})
        if (cut > fold.fed) next = std::min(next, cut);
    }
    const auto part = bytes.first(static_cast<std::size_t>(next - fold.fed));
    bytes = bytes.subspan(part.size());
    fold.transcript.feed(part, workspace_, collect);
    fold.fed = next;
    look();
  }
}

void CatchUps::publish(const std::shared_ptr<Fold>& fold, bool file_over) {
  const auto chunk = fold->chunk;
  if (chunk) {
    chunk->end = fold->transcript.end();
    chunk->session = fold->session.empty() ? fold->transcript.recorded_session() : fold->session;
    const Session* session = context_.sessions.find(chunk->session);
    chunk->project =
        session ? std::string(session->project_or_directory()) : fold->transcript.state().project;
    if (chunk->project.empty()) chunk->project = fold->directory;
    account(chunk);
  }
  struct Ended {
    CatchUpReader* reader;
    ReplayResult how;
    Cursor end;
    bool has_chunk;
  };
  std::vector<Ended> ended;
  std::vector<CatchUpReader*> served;
  std::vector<Waiter> left;
  for (Waiter& seat : fold->seats) {
    const bool gets_chunk = std::exchange(seat.wants_chunk, false) && !seat.differs;
    if (gets_chunk) {
      seat.reading = true;
      served.push_back(seat.reader);
    }
    if (seat.differs || seat.over || file_over) {
      // A file that ends before what was told of it is not the one that it was told of.
      const ReplayResult how =
          seat.differs || !seat.verified || !seat.over ? ReplayResult::differs : ReplayResult::up;
      if (how == ReplayResult::differs) ++resets;
      const bool told = fold->cold && how == ReplayResult::up;
      const tail::Stream* cold = told ? context_.archive->find(fold->stream) : nullptr;
      if (cold) context_.archive->told(*cold, seat.over ? seat.end : fold->transcript.end());
      ended.push_back({seat.reader, how, seat.over ? seat.end : fold->transcript.end(), gets_chunk});
    } else {
      left.push_back(seat);
    }
  }
  fold->seats = std::move(left);
  fold->published = Clock::now();
  for (CatchUpReader* reader : served) reader->on_chunk(fold->stream, chunk);
  for (const Ended& each : ended) {
    if (!each.has_chunk) release(*each.reader);
    each.reader->on_caught(fold->stream, each.how, each.end);
  }
  fold->seats.empty() ? end(fold) : go_on(fold);
  start_soon();
}

/// Reads on when nobody who sits here still has something to read, or when somebody waits and the others had
/// their time.
void CatchUps::go_on(const std::shared_ptr<Fold>& fold) {
  if (fold->over || fold->reading) return;
  if (fold->seats.empty()) return end(fold);
  if (!fold->anybody_reads()) return read(fold);
  if (fold->everybody_reads()) return;
  const auto until = fold->published + context_.limits.catch_up_patience;
  if (Clock::now() >= until) {
    std::erase_if(fold->seats, [](const Waiter& seat) { return seat.reading; });
    return read(fold);
  }
  fold->patience.expires_at(until);
  fold->patience.async_wait([this, weak = std::weak_ptr<Fold>(fold),
                             alive = std::weak_ptr<char>(alive_)](boost::system::error_code ec) {
    const auto holder = weak.lock();
    if (!ec && holder && !alive.expired()) go_on(holder);
  });
}

void CatchUps::release(CatchUpReader& reader) {
  const auto load = loads_.find(&reader);
  if (load != loads_.end() && load->second > 0) --load->second;
}

// --- Memory ---

std::shared_ptr<Chunk> CatchUps::new_chunk() {
  return {new Chunk, [this, alive = std::weak_ptr<char>(alive_)](Chunk* chunk) {
            if (!alive.expired() && !chunk->revoked) bytes_ -= chunk->counted;
            delete chunk;
          }};
}

/// Beyond the limit the oldest chunk is taken back, whoever has not read it yet.
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
      std::erase_if(fold->seats, [](const Waiter& seat) { return seat.reading; });
      boost::asio::post(io_, [this, weak = std::weak_ptr<Fold>(fold), alive = std::weak_ptr<char>(alive_)] {
        const auto holder = weak.lock();
        if (holder && !alive.expired()) go_on(holder);
      });
    }
  }
}

}  // namespace earshot::serve
