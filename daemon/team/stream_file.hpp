// One file of the event store: the events of one stream, one per line.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/system.hpp"
#include "team/ingest_action.hpp"

namespace earshot::team {

class StreamFile {
 public:
  explicit StreamFile(std::string path) : path_(std::move(path)) {}

  /// Reads the position from the file. Returns true if an incomplete last line was removed. Throws
  /// std::runtime_error with a message for users.
  bool load();

  StoredPosition position;
  std::int64_t modified_ms = 0;

  std::uint64_t bytes() const { return bytes_; }  // on disk
  bool has_pending() const { return is_replacing_ || !pending_.empty(); }
  bool is_open() const { return static_cast<bool>(file_); }

  /// The events in order. Loaded at the first call.
  const std::vector<StoredEvent>& entries();
  bool has_entries() const { return entries_read_; }
  std::size_t entries_bytes() const { return entries_.capacity() * sizeof(StoredEvent); }
  void forget_entries();

  // Both buffer until write().
  void append(const ReceivedMessage& event);
  /// Starts another history after the first `kept_events` events.
  void restart(const ReceivedMessage& message, std::size_t kept_events);

  /// Returns an error message, or an empty string. After an error nothing is lost; call again.
  std::string write();
  void close() { file_.reset(); }
  void remove();

  static constexpr std::string_view suffix = ".jsonl", temporary_suffix = ".fresh";

 private:
  std::string write_replacement();
  std::uint64_t end() const { return (is_replacing_ ? kept_bytes_ : bytes_) + pending_.size(); }

  const std::string path_;
  std::uint64_t bytes_ = 0;
  Fd file_;              // for appending; opened on demand
  std::string pending_;  // lines to append
  // The next write replaces the file atomically with its first `kept_bytes_` bytes and the pending lines.
  bool is_replacing_ = false;
  std::uint64_t kept_bytes_ = 0;
  bool entries_read_ = false;
  std::vector<StoredEvent> entries_;
};

}  // namespace earshot::team
