// Transcripts as a store: whatever was told can be read again from its file.
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
#include "tail/stream.hpp"

namespace earshot::tail {

/// A transcript's bytes from the first one on, piece by piece, when they are asked for.
class History {
 public:
  static constexpr std::size_t piece_bytes_max = 256 << 10;

  struct Piece {
    std::span<const char> bytes;  // feed_padding bytes after them are readable; good during the call
    int error = 0;                // of errno
    bool end = false;             // the file has no more now
  };

  virtual ~History() = default;
  /// At most `bytes_max` bytes, and never more than piece_bytes_max. One call at a time; `then` is not called
  /// any more when this object is gone.
  virtual void next(std::size_t bytes_max, std::function<void(const Piece&)> then) = 0;
  /// What a Transcript must be made with, so that its cursors are the stream's.
  virtual const TranscriptOptions& options() const = 0;
};

/// A line of a transcript as it stands there.
struct RecordText {
  enum class Found {
    yes,
    differs,  // the bytes before the cursor are not those that it stands for
    error,    // of errno: see `error`
  } found = Found::error;
  int error = 0;
  std::string text;  // without its LF
};

/// All calls and callbacks on the thread that owns state.
class Archive {
 public:
  virtual ~Archive() = default;
  /// Null: no such transcript. Good until the next call.
  virtual const Stream* find(std::string_view name) const = 0;
  /// Makes a cold one live, silently; null when there is none or it cannot be read.
  virtual void fold(std::string_view name, std::function<void(const Stream*)> then) = 0;
  /// Somebody goes on from what was told of this stream: were its bytes edited under an append, nothing said
  /// so. The whole prefix is compared, once for all that was appended; another history is a reset, as always.
  virtual void doubt(const Stream& stream) = 0;
  /// Somebody was told the events of one that was cold up to here, from its file. When it is looked at next,
  /// these bytes must still be there: else it is a reset.
  virtual void told(const Stream& stream, const Cursor& end) = 0;
  virtual std::unique_ptr<History> history(const Stream& stream) = 0;
  /// The line that ends at `end.offset`, if every byte before it is what `end.prefix_hash` stands for.
  virtual void record(const Stream& stream, const Cursor& end, std::function<void(RecordText)> then) = 0;
};

}  // namespace earshot::tail
