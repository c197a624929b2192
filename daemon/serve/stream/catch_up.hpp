// What clients missed, from the files. One fold of a transcript serves all who wait for it; nobody's place is
// kept here: a reader that is let go of asks again with the cursor that it has come to.
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
#include "serve/stream/audience_log.hpp"
#include "tail/archive.hpp"

namespace earshot::serve {

/// A stretch of a stream's events.
struct EventRange {
  Cursor from;             // the reader has all up to here: its mark must fit the file
  bool inclusive = false;  // but not `from` itself
  std::uint64_t upto_offset = 0;
  std::uint32_t upto_index =
      UINT32_MAX;  // of the line that ends at upto_offset: the last event that is wanted

  bool wants(const Cursor& cursor) const {
    const bool behind =
        cursor.offset > from.offset || (cursor.offset == from.offset &&
                                        (inclusive ? cursor.index >= from.index : cursor.index > from.index));
    return behind &&
           (cursor.offset < upto_offset || (cursor.offset == upto_offset && cursor.index <= upto_index));
  }
};

/// Consecutive events of one stream, encoded. It may be taken back at any time while the loop runs.
struct Chunk {
  static constexpr std::size_t segment_bytes = 64 << 10;

  LiveLog& log(Audience audience) { return *logs[static_cast<std::size_t>(audience)]; }
  std::size_t bytes() const;

  std::array<std::unique_ptr<LiveLog>, audience_count> logs;  // null: nobody reads it so
  Cursor end;                                                 // where the fold had come to
  std::string session, project;                               // what filters look at
  bool revoked = false;
  std::size_t counted = 0;  // bytes that CatchUps has counted
};

enum class ReplayResult {
  up,       // all that was asked for has been handed out
  differs,  // the cursor's mark does not fit the file: it names another history
  failed,   // the file is gone, or cannot be read
};

class CatchUpReader {
 public:
  virtual ~CatchUpReader() = default;
  virtual Audience audience() const = 0;
  /// Call CatchUps::consumed() when it is read. The next one of this stream comes only then.
  virtual void on_chunk(const std::string& stream, std::shared_ptr<Chunk> chunk) = 0;
  /// Nothing more comes of this stream. `end`: after up: the place that the reader is at, once it has read
  /// its last chunk.
  virtual void on_caught(const std::string& stream, ReplayResult how, const Cursor& end) = 0;
};

class CatchUps {
 public:
  CatchUps(boost::asio::io_context& io, ServerContext& context);
  ~CatchUps();
  CatchUps(const CatchUps&) = delete;
  CatchUps& operator=(const CatchUps&) = delete;

  /// Once a reader and stream. The answers never come during the call.
  void want(CatchUpReader& reader, const std::string& stream, const EventRange& missing);
  /// To be called once a chunk: the reader has read it, or found it revoked. `rest` is what it has not had;
  /// nothing: it was told on_caught() and had all.
  void consumed(CatchUpReader& reader, const std::string& stream, const std::optional<EventRange>& rest);
  /// Wants nothing any more; no call comes after this.
  void forget(CatchUpReader& reader);

  std::size_t folds() const { return folds_.size(); }
  std::size_t waiting() const { return waiting_.size(); }  // streams
  std::size_t bytes() const { return bytes_; }             // of chunks that somebody may still read
  std::uint64_t folds_begun = 0, bytes_read = 0, revoked = 0, resets = 0;

 private:
  struct Waiter {
    CatchUpReader* reader;
    EventRange missing;
    bool verified = false, differs = false;
    bool reading = false;  // has a chunk
    bool wants_chunk = false;
    bool over = false;  // the fold has come to the end of what it wants
    Cursor end = {};    // there
  };
  struct Fold;
  class Collect;
  using Folds = std::list<std::shared_ptr<Fold>>;

  void start();
  void begin(const std::string& stream, std::vector<Waiter> seats);
  void read(const std::shared_ptr<Fold>& fold);
  void took(const std::shared_ptr<Fold>& fold, const tail::History::Piece& piece);
  void feed(Fold& fold, std::span<const char> bytes);
  void publish(const std::shared_ptr<Fold>& fold, bool over);
  void go_on(const std::shared_ptr<Fold>& fold);
  void abandon_oldest();
  void end(const std::shared_ptr<Fold>& fold);
  void release(CatchUpReader& reader);
  std::shared_ptr<Chunk> new_chunk();
  void account(const std::shared_ptr<Chunk>& chunk);
  void start_soon();

  boost::asio::io_context& io_;
  ServerContext& context_;
  Workspace workspace_;
  std::map<std::string, std::vector<Waiter>, std::less<>> waiting_;  // that no fold serves yet, by stream
  std::deque<std::string> line_;                                     // their order
  Folds folds_;
  std::map<CatchUpReader*, std::size_t> loads_;  // seats in folds, and chunks that are not read yet
  std::size_t running_ = 0;                      // of them: that read
  std::deque<std::weak_ptr<Chunk>> chunks_;
  std::size_t bytes_ = 0;
  bool starting_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace earshot::serve
