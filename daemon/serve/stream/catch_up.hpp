// Events from the files, for clients that resume. One fold of a transcript serves all readers that wait for
// it. No positions are stored: a reader of a revoked chunk requests the rest from its own cursor.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cursor.hpp"
#include "core/transcript.hpp"
#include "serve/server_context.hpp"
#include "serve/stream/live_log.hpp"
#include "tail/history.hpp"

namespace earshot::serve {

/// A range of a stream's events.
struct EventRange {
  static constexpr std::int64_t any_time = INT64_MIN;

  Cursor from;                            // the reader has everything before it: the prefix hash must match
  bool inclusive = false;                 // the event of `from` is part of the range
  std::uint64_t upto_offset = 0;          // end of the last line
  std::uint32_t upto_index = UINT32_MAX;  // last event of that line
  std::int64_t since_ms = any_time;       // events at or after this time, since 1970

  bool contains(const Cursor& cursor) const {
    const bool is_after =
        cursor.offset > from.offset || (cursor.offset == from.offset &&
                                        (inclusive ? cursor.index >= from.index : cursor.index > from.index));
    return is_after &&
           (cursor.offset < upto_offset || (cursor.offset == upto_offset && cursor.index <= upto_index));
  }
  bool contains(const Cursor& cursor, std::int64_t time_ms) const {
    return contains(cursor) && (since_ms == any_time || time_ms >= since_ms);
  }
};

/// Consecutive encoded events of one stream. May be revoked between any two calls.
struct Chunk {
  static constexpr std::size_t segment_bytes = 64 << 10;

  LiveLog& log(Audience audience) { return *logs[static_cast<std::size_t>(audience)]; }
  std::size_t bytes() const;

  std::array<std::unique_ptr<LiveLog>, audience_count> logs;  // null: no reader of this audience
  Cursor end;                                                 // position of the fold
  std::string session, project, program;                      // for filters
  bool revoked = false;
  std::size_t counted = 0;  // bytes included in CatchUps::bytes()
};

/// The name that its readers know a stream by, and the one that it has now.
struct StreamNames {
  std::string known, present;
  auto operator<=>(const StreamNames&) const = default;
};

enum class ReplayResult {
  up,       // everything requested was delivered
  differs,  // the prefix hash does not match the file: another history
  failed,   // the file is missing or unreadable
};

class Subscriber;

class CatchUps {
 public:
  CatchUps(boost::asio::io_context& io, ServerContext& context);
  ~CatchUps();
  CatchUps(const CatchUps&) = delete;
  CatchUps& operator=(const CatchUps&) = delete;

  /// Once per reader and stream, which has its known name in the answers. Never answers during the call.
  void want(Subscriber& reader, const StreamNames& stream, const EventRange& missing);
  /// Once per chunk: it was sent, or found revoked. `rest` is still missing; empty after the last chunk.
  void consumed(Subscriber& reader, const StreamNames& stream, const std::optional<EventRange>& rest);
  void stream_renamed(std::string_view from, const std::string& to);
  /// Cancels all requests of this reader; no call follows.
  void forget(Subscriber& reader);

  std::size_t folds() const { return folds_.size(); }
  std::size_t reading() const { return running_; }         // folds, with one buffer each
  std::size_t waiting() const { return waiting_.size(); }  // streams
  std::size_t bytes() const { return bytes_; }             // of chunks with readers
  std::uint64_t folds_begun = 0, bytes_read = 0, revoked = 0, resets = 0;

 private:
  struct Waiter {
    Subscriber* reader;
    EventRange missing;
    bool verified = false, differs = false;
    bool reading = false;  // a chunk is being sent
    bool wants_chunk = false;
    bool over = false;  // the fold has reached the end of its range
    Cursor end = {};    // there
  };
  struct Fold;
  class Collect;
  using Folds = std::list<std::shared_ptr<Fold>>;

  void start();
  void begin(const StreamNames& stream, std::vector<Waiter> waiters);
  void read(const std::shared_ptr<Fold>& fold);
  void on_piece(const std::shared_ptr<Fold>& fold, tail::History::Piece piece);
  void fold_slice(const std::shared_ptr<Fold>& fold);
  void feed(Fold& fold, std::span<const char> bytes, bool file_over);
  void publish(const std::shared_ptr<Fold>& fold, bool over);
  void advance(const std::shared_ptr<Fold>& fold);
  void abandon_oldest();
  void end(const std::shared_ptr<Fold>& fold);
  void release(Subscriber& reader);
  std::shared_ptr<Chunk> new_chunk();
  void account(const std::shared_ptr<Chunk>& chunk);
  void start_soon();

  boost::asio::io_context& io_;
  ServerContext& context_;
  Workspace workspace_;
  struct Reader {
    std::size_t busy = 0;             // requests in folds, and unread chunks
    std::deque<StreamNames> streams;  // wanted, in order; those served with another reader are skipped
  };
  std::map<StreamNames, std::vector<Waiter>> waiting_;  // without a fold
  std::map<Subscriber*, Reader> readers_;
  std::deque<Subscriber*> turns_;  // readers that want streams: they take turns
  Folds folds_;
  std::size_t running_ = 0;  // folds with a piece that is read or folded
  std::deque<std::weak_ptr<Chunk>> chunks_;
  std::size_t bytes_ = 0;
  bool starting_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace earshot::serve
