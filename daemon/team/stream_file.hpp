// One file of a hub's shelf: the events of one stream, a line each, as they were published.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "team/ingest_action.hpp"

namespace earshot::team {

class StreamFile {
 public:
  explicit StreamFile(std::string path) : path_(std::move(path)) {}
  ~StreamFile() { close(); }
  StreamFile(const StreamFile&) = delete;
  StreamFile& operator=(const StreamFile&) = delete;

  /// How far the file has come. A line without an end, left by a crash, is cut off: then it is true. Throws
  /// std::runtime_error, for people.
  bool load();

  Kept kept;
  std::int64_t used_ms = 0;  // when it grew

  std::uint64_t bytes() const { return bytes_; }  // on the disk
  bool is_waiting() const { return fresh_ || !waiting_.empty(); }
  bool is_open() const { return descriptor_ >= 0; }

  /// Its events, in order. Read from the file when nobody asked before.
  const std::vector<Entry>& entries();
  bool has_entries() const { return entries_read_; }
  std::size_t entries_bytes() const { return entries_.capacity() * sizeof(Entry); }
  void forget_entries();

  // Nothing of these reaches the disk before write().
  void append(const Received& event);
  /// The history goes on otherwise behind its first `keep` events.
  void restart(const Received& received, std::size_t keep);

  /// Empty: done. Otherwise what went wrong: nothing of it is lost, call again.
  std::string write();
  void close();
  void remove();

  static constexpr std::string_view suffix = ".jsonl", fresh_suffix = ".fresh";

 private:
  std::string write_fresh();
  std::uint64_t end() const { return (fresh_ ? copied_ : bytes_) + waiting_.size(); }

  const std::string path_;
  std::uint64_t bytes_ = 0;
  int descriptor_ = -1;
  std::string waiting_;  // lines to append
  // It begins anew: in another file, of the first `copied_` bytes of this one and what waits, which takes its
  // place. So nobody reads half of it.
  bool fresh_ = false;
  std::uint64_t copied_ = 0;
  bool entries_read_ = false;
  std::vector<Entry> entries_;
};

}  // namespace earshot::team
