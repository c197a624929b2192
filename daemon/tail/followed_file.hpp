// Streams: a followed file with what was read of it and its state, a cold one, and the check that a file
// still begins with what was read.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agents/agent.hpp"
#include "base/clock.hpp"
#include "base/system.hpp"
#include "core/cursor.hpp"
#include "tail/io_thread.hpp"
#include "tail/stream.hpp"

namespace earshot::tail {

/// A present problem of a file, for users.
struct FileProblem {
  std::string path;
  std::string reason;  // "Permission denied"
  std::string advice;  // what the user can do; may be empty
};

/// Problems are removed when they are solved.
class FileProblems {
 public:
  static constexpr std::size_t entries_max = 256;  // more are dropped: they have a common cause

  /// Logs the problem if it is new.
  void set(const std::string& path, std::string reason, std::string advice);
  void set(const std::string& path, int error);  // of errno
  void set_irregular(const std::string& path);   // not a regular file
  void clear(std::string_view path);
  void clear_below(const std::string& directory);
  bool contains(std::string_view path) const { return entries_.find(path) != entries_.end(); }
  std::vector<FileProblem> list() const;

 private:
  std::map<std::string, FileProblem, std::less<>> entries_;  // by path
};

/// The bytes a file must begin with.
struct PrefixCheck {
  std::string path;
  std::uint64_t hash_key = 0;
  Cursor end;                    // after the last complete line
  std::uint64_t tail_bytes = 0;  // of the unterminated line that follows
  std::uint64_t tail_hash = 0;

  struct Result {
    int error = 0;  // of errno; if not 0, nothing is known
    bool matches = false;
    bool is_compressed = false;  // only a compressed copy is left
    FileStat stat;               // before the file was read
  };
};

/// Reads the file on the disk thread, in slices, and calls `done` on this one.
void check_prefix(IoThread& disk, PrefixCheck check, std::function<void(const PrefixCheck::Result&)> done);

/// A known file that was not read. Created for a caller and not kept.
class ColdStream final : public Stream {
 public:
  ColdStream(std::string name, std::string path, StreamIdentity identity, std::int64_t modified,
             std::uint64_t bytes)
      : name_(std::move(name)),
        path_(std::move(path)),
        identity_(std::move(identity)),
        modified_ms_(modified),
        bytes_(bytes) {}
  const std::string& name() const override { return name_; }
  const std::string& session() const override { return identity_.session; }
  const StreamIdentity& path_identity() const override { return identity_; }
  const std::string& agent() const override { return identity_.agent; }
  const std::string& directory() const override { return identity_.directory; }
  const std::string& path() const override { return path_; }
  const SubagentMeta& meta() const override { return meta_; }
  const Transcript* transcript() const override { return nullptr; }
  std::int64_t modified_ms() const override { return modified_ms_; }
  std::uint64_t published_bytes() const override { return bytes_; }

 private:
  std::string name_, path_;
  StreamIdentity identity_;
  SubagentMeta meta_;
  std::int64_t modified_ms_;
  std::uint64_t bytes_;
};

/// Discards events.
class NullSink final : public EventSink {
 public:
  void on_event(const Event&) override {}
};

class FollowedFile final : public Stream, public std::enable_shared_from_this<FollowedFile> {
 public:
  FollowedFile(std::string name, std::string path, StreamIdentity identity, TranscriptOptions options,
               const FileStat& stat);

  const std::string& name() const override { return name_; }
  const std::string& session() const override;
  const StreamIdentity& path_identity() const override { return identity_; }
  const std::string& agent() const override;
  const std::string& directory() const override { return identity_.directory; }
  const std::string& path() const override { return path_; }
  const SubagentMeta& meta() const override { return meta_; }
  const Transcript* transcript() const override { return is_added ? &transcript_ : nullptr; }
  std::int64_t modified_ms() const override { return stat.modified_ms(); }
  std::int64_t origin_ns() const override { return stat.origin_ns(); }
  std::uint64_t published_bytes() const override { return is_added ? bytes_read() : fold_bytes; }

  bool reads_relayed() const { return !options_.format || options_.format->program().empty(); }
  std::uint64_t bytes_read() const { return transcript_.bytes_read(); }
  /// How many bytes before bytes_read() are read again to detect a rewrite.
  std::size_t overlap_bytes() const;
  /// True if these overlap bytes are the ones that were read before.
  bool matches_overlap(std::span<const char> overlap) const;
  /// Feeds the next bytes; the first `overlap` of them precede them in the file. True if they completed a
  /// line.
  bool feed(std::span<const char> bytes, std::size_t overlap, Workspace& workspace, EventSink& sink);
  void fit_memory() { transcript_.fit_memory(); }
  /// Begins a new history.
  void restart();
  /// The same file has another path now.
  void rename(std::string name, std::string path, StreamIdentity identity);
  /// Everything that was read.
  PrefixCheck prefix() const;
  void set_meta(SubagentMeta meta) { meta_ = std::move(meta); }

  /// What the I/O threads are doing with the file. Events are delivered in `idle`, `reading` and `draining`
  /// only.
  enum class State : std::uint8_t {
    folding,    // reading history before the stream is announced: the transcript is another thread's
    idle,       // caught up, or waiting for its turn
    reading,    // the disk thread is reading new bytes
    verifying,  // the disk thread is comparing everything that was read with the file
    draining,   // unlinked, but a writer may still have it open
    removed,
  };
  State state = State::idle;
  // Verifications while it is followed: see Follower::Verification.
  bool is_verification_requested = false;     // one waits
  bool is_verification_due = false;           // one that nobody requested waits
  std::size_t requested_verifications = 0;    // wait or are in progress
  std::chrono::milliseconds verify_delay{0};  // since a verification could not read the file
  bool is_busy() const {
    return state == State::folding || state == State::reading || state == State::verifying;
  }
  bool is_removed() const { return state == State::removed; }

  bool is_added = false;         // the observer received on_added()
  bool is_left = false;          // its directory was removed: nothing at this path is the file
  bool check_pending = false;    // a check is queued, or due when the file is no longer busy
  bool retry_scheduled = false;  // a check is due at a later time
  bool disk_queued = false;      // waits for one of Follower::disk_reads_max
  /// The last look was so soon after the last change that a later change may have the same change time.
  bool looked_in_tick = false;
  std::uint32_t history = 0;         // counts restarts
  std::uint64_t verified_bytes = 0;  // prefix known to match the file; bytes after it were appended since
  std::uint64_t fold_bytes = 0;      // while folding: how many bytes precede the first event to deliver
  /// A copy is being unpacked: what is there, and since when it has not grown.
  std::optional<std::pair<std::uint64_t, Clock::time_point>> unpacked;
  int fold_error = 0;             // of errno, of the last fold
  int short_reads = 0;            // in a row: fewer bytes than the file's size promised
  FileStat stat;                  // of the file that was read; its times are those of bytes_read()
  std::shared_ptr<const Fd> fd;   // null: closed; a read on the disk thread shares it
  Clock::time_point used;         // when `fd` was used last
  Clock::time_point drain_until;  // in `draining`
  std::chrono::milliseconds retry_delay{0};
  std::vector<std::function<void(const Stream*)>> waiters;  // for the end of folding

 private:
  std::string name_, path_;
  StreamIdentity identity_;
  TranscriptOptions options_;
  SubagentMeta meta_;
  Transcript transcript_;
  std::uint64_t overlap_hash_ = 0;
  std::optional<LineHash> tail_;  // of the unterminated line
};

}  // namespace earshot::tail
