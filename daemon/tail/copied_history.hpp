// The records at the beginning of a new file that another transcript has: the history of a fork, a branch or
// a resumed copy.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/system.hpp"
#include "core/transcript.hpp"
#include "tail/io_thread.hpp"

namespace earshot::tail {

/// Reads a new file from its beginning, without delivering anything.
class NewFileReader final : private EventSink {
 public:
  NewFileReader(std::string path, TranscriptOptions options)
      : path_(std::move(path)), transcript_(std::move(options)) {}

  /// Reads up to `bytes` more. Returns the records with an id in them. On the disk thread.
  std::vector<RecordPlace> read(std::size_t bytes);
  /// The same for the beginning of the file if it is in memory, on any thread; absent: read() it.
  std::optional<std::vector<RecordPlace>> read_first(std::size_t bytes);
  int error() const { return error_; }  // of errno; ESTALE: another file is there now
  const FileStat& stat() const { return stat_; }
  bool is_at_end() const { return is_at_end_; }
  /// It has more than records that say nothing: an event, or a broken line.
  bool has_content() const { return has_events_ || transcript_.counts().skipped_lines > 0; }
  /// Its header says that it continues another session; that says nothing of its own.
  bool is_fork() const { return is_fork_; }
  std::uint64_t bytes_read() const { return offset_; }
  /// As its records name it; empty: none does.
  const std::string& session() const { return transcript_.recorded_session(); }

 private:
  void on_event(const Event& event) override {
    const auto* const started = std::get_if<event::SessionStarted>(&event.body);
    const bool continues = started && !started->continues.empty();
    (continues ? is_fork_ : has_events_) = true;
  }

  std::optional<std::vector<RecordPlace>> read(std::size_t bytes, ReadMode mode);

  const std::string path_;
  Transcript transcript_;
  FileStat stat_;
  std::uint64_t offset_ = 0;
  int error_ = 0;
  bool is_at_end_ = false, has_events_ = false, is_fork_ = false;
};

/// Calls `done` on this thread with the end of the last line before the first record that `is_known` is false
/// for; `is_all`: there is none. `records` were read before; the rest is read on the disk thread, in slices.
void find_copied_end(IoThread& disk, std::shared_ptr<NewFileReader> reader, std::vector<RecordPlace> records,
                     std::function<bool(const RecordPlace&)> is_known,
                     std::function<void(std::uint64_t end, bool is_all)> done);

}  // namespace earshot::tail
