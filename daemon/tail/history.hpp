// Reads published events again from their transcripts.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/cursor.hpp"
#include "core/transcript.hpp"
#include "tail/io_thread.hpp"
#include "tail/stream.hpp"

namespace earshot::tail {

/// Reads a transcript from its first byte, chunk by chunk.
class History {
 public:
  static constexpr std::size_t piece_bytes_max = 256 << 10;

  struct Piece {
    std::unique_ptr<char[]> buffer;
    std::span<const char> bytes;  // of `buffer`; feed_padding bytes after them are readable
    int error = 0;                // of errno
    bool end = false;             // the file has no more bytes now
  };

  virtual ~History() = default;
  /// Reads at most `bytes_max` and at most piece_bytes_max bytes. One call at a time; `then` is not called
  /// after this object was destroyed.
  virtual void next(std::size_t bytes_max, std::function<void(Piece)> then) = 0;
  /// For a Transcript with the cursors of the stream.
  virtual const TranscriptOptions& options() const = 0;
};

/// One line of a transcript as it is in the file.
struct RecordText {
  enum class Found {
    yes,
    differs,  // the bytes before the cursor do not match its hash
    error,    // see `error`
  } found = Found::error;
  int error = 0;     // of errno
  std::string text;  // without its LF
};

/// All calls and callbacks happen on the thread that owns the state.
class Archive {
 public:
  virtual ~Archive() = default;
  /// By its name, or one that it had since the start. Null: no such stream. Valid until the next call.
  virtual const Stream* find(std::string_view name) const = 0;
  /// For a name that is unknown: the one stream whose path names the same session and agent. Its bytes may
  /// differ.
  virtual const Stream* find_moved(std::string_view) const { return nullptr; }
  /// By the first of these that finds it.
  const Stream* find_present(std::string_view name) const {
    const Stream* const found = find(name);
    return found ? found : find_moved(name);
  }
  /// Folds a cold stream without events; `then` receives null if it does not exist or cannot be read.
  virtual void fold(std::string_view name, std::function<void(const Stream*)> then) = 0;
  /// Frees the transcript of a stream that is not in use, see StreamObserver::on_released().
  virtual void release(std::string_view) {}
  /// A client resumed this stream: verifies the whole prefix again, because an edit followed by an append is
  /// not noticed otherwise. Once for everything that was appended; a difference is a reset.
  virtual void request_verify(const Stream& stream) = 0;
  /// A client received the events of a cold stream up to `end` from its file: if those bytes are different
  /// when the file is examined next, the stream is reset.
  virtual void mark_published(const Stream& stream, const Cursor& end) = 0;
  virtual std::unique_ptr<History> history(const Stream& stream) = 0;
  /// The line that ends at `end.offset`, if the bytes before it match `end.prefix_hash`.
  virtual void record(const Stream& stream, const Cursor& end, std::function<void(RecordText)> then) = 0;
};

/// Opens the file with the first chunk and keeps it open: a rename does not change what is read. `known`: as
/// for stat_transcript().
std::unique_ptr<History> open_history(IoThread& disk, std::string path, std::uint64_t known,
                                      TranscriptOptions options);

void read_record(IoThread& disk, std::string path, std::uint64_t hash_key, const Cursor& end,
                 std::size_t line_bytes_max, std::function<void(RecordText)> then);

}  // namespace earshot::tail
