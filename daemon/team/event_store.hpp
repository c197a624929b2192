// The hub's event files: one per stream, with the events in published order. Each line is the published JSON
// with its origin as the first member:
//   {"received":"<store>:<sequence>:<ns>","type":"turn.started","host":…,"stream":…,"session":…,"cursor":…,…}
// The files are a cache of JetStream: deleted files are fetched again. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "team/ingest_action.hpp"
#include "team/stream_file.hpp"

namespace earshot::team {

struct EventStoreLimits {
  std::size_t hosts_max = 1000;                   // events of further hosts are dropped
  std::size_t host_files_max = 20'000;            // events of further streams of a host are dropped
  std::uint64_t bytes_max = 20ULL << 30;          // above it, the largest host's oldest files are deleted
  std::int64_t age_ms = 30LL * 24 * 3600 * 1000;  // older files are deleted
  std::size_t open_files_max = 256;               // above it, all are closed
  std::size_t entries_bytes_max = 64 << 20;       // memory for event indexes; above it, they are reloaded
  std::size_t removed_max = 4096;                 // deleted streams whose redelivered events are recognized
};

struct EventStoreMetrics {
  std::size_t hosts = 0, files = 0;
  std::uint64_t bytes = 0, appended = 0, dropped = 0, restarted = 0, removed = 0, retired = 0;
  std::uint64_t hosts_refused = 0, files_refused = 0;  // events that were dropped because of a limit
};

class EventStore {
 public:
  /// Creates `directory`. Files are `<directory>/projects/<escaped host>/<escaped stream>.jsonl`. Throws
  /// std::runtime_error with a message for users.
  EventStore(std::string directory, EventStoreLimits limits);

  /// A file had an incomplete last line, left by a crash. It was removed; fetch the events again.
  bool was_truncated() const { return was_truncated_; }
  /// The last message that was stored of `store`; sequence 0: none.
  StoredPosition last_received(const std::string& store) const;

  /// Buffers the message until write(). Returns what was done with it.
  IngestAction add(const ReceivedMessage& message);
  /// Appends the buffered messages. Returns an error message, or an empty string. After an error no message
  /// is lost; call again.
  std::string write();
  /// Makes all earlier writes durable. Returns an error message, or an empty string. Thread-safe.
  std::string sync() const;
  /// Deletes files beyond the age and size limits.
  void apply_retention(std::int64_t now_ms);
  const EventStoreMetrics& metrics() const { return metrics_; }

 private:
  struct Host {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
  };
  using Files = std::map<std::string, StreamFile>;  // by path below projects/, without .jsonl

  void load();
  Files::iterator add_file(const std::string& name);
  bool has_room(const std::string& name) const;
  std::string path_of(const std::string& name) const {
    return directory_ + "/projects/" + name + std::string(StreamFile::suffix);
  }
  void update_bytes(const std::string& name, std::uint64_t before, std::uint64_t now);
  void remember_removed(const std::string& name, const ReceivedMessage& message);
  void limit_index_bytes(const StreamFile& used);
  void delete_file(Files::iterator file);

  const std::string directory_;
  const EventStoreLimits limits_;
  Files files_;
  std::map<std::string, Host> hosts_;              // by escaped name
  std::map<std::string, StoredPosition> removed_;  // by file name: the message that removed it
  std::deque<std::string> removed_order_;
  std::vector<std::string> dirty_;  // names of files with pending lines
  std::size_t entries_bytes_ = 0, open_files_ = 0;
  bool was_truncated_ = false;
  EventStoreMetrics metrics_;
};

}  // namespace earshot::team
