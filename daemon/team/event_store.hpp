// The hub's event files: one per stream, with the events in published order. Each line is the published JSON
// with its origin as the first member:
//   {"received":"<store>:<sequence>:<ns>","type":"turn.started","host":…,"stream":…,"session":…,"cursor":…,…}
// The files are a cache of JetStream: deleted files are fetched again. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/agent.hpp"
#include "base/file.hpp"
#include "core/cursor.hpp"
#include "serve/auth/access.hpp"

namespace earshot::team {

/// A message as delivered by the broker.
struct ReceivedMessage {
  std::string store;           // identifies the broker's stream; changes if it is recreated
  std::uint64_t sequence = 0;  // in the store
  std::int64_t time_ns = 0;    // when it was stored, of the broker's clock
  std::string host, stream, session, type, payload;
  std::string from;              // of stream.renamed: the former name
  std::optional<Cursor> cursor;  // events only
  std::optional<Cursor> after;   // of the previous event, begin_cursor for the first; nullopt: unknown
  bool is_first = false;         // the first message that was published for the stream
};

/// The state of a stored file.
struct StoredPosition {
  bool exists = false;
  std::string store;           // of the last message
  std::uint64_t sequence = 0;  // of the last message
  std::int64_t time_ns = 0;    // of the last message
  Cursor last = begin_cursor;  // of the last event; begin_cursor: none since the last reset
};

/// An event in a stored file.
struct StoredEvent {
  Cursor cursor;
  std::uint64_t end = 0;  // byte offset of the end of its line
};

enum class IngestAction {
  append,
  drop,     // the file has the event
  restart,  // another history: the file restarts, with this event if it is one
  remove,   // the transcript was deleted; the file is, too
  rename,   // the transcript has another name; the file has, too
};
struct IngestDecision {
  IngestAction action = IngestAction::append;
  std::size_t kept_events = 0;  // of a restart: the number of events at the start of the file that remain
};

/// True if the broker redelivers a message that `position` includes. A store that lost messages in a power
/// failure reuses their sequences with later times; those are new messages.
bool is_redelivered(const StoredPosition& position, const ReceivedMessage& message);

/// Decides what to do with a message, so that a file has each event once and in order despite redelivery,
/// republication and loss. Pure.
/// `entries` returns the file's events in order, or null if they cannot be read now; it is called only if the
/// message does not follow the last one.
IngestDecision decide(const StoredPosition& position, const ReceivedMessage& message,
                      const std::function<const std::vector<StoredEvent>*()>& entries);

/// One file: the events of one stream, one per line.
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
  bool is_replacing() const { return is_replacing_; }
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
  std::string rename(std::string path);

  static constexpr std::string_view suffix = ".jsonl", temporary_suffix = ".fresh";

 private:
  std::string write_replacement();
  std::uint64_t end() const { return (is_replacing_ ? kept_bytes_ : bytes_) + pending_.size(); }

  std::string path_;
  std::uint64_t bytes_ = 0;
  Fd file_;              // for appending; opened on demand
  std::string pending_;  // lines to append
  // The next write replaces the file atomically with its first `kept_bytes_` bytes and the pending lines.
  bool is_replacing_ = false;
  std::uint64_t kept_bytes_ = 0;
  bool entries_read_ = false;
  std::vector<StoredEvent> entries_;
};

struct EventStoreLimits {
  std::size_t hosts_max = 1000;                   // events of further hosts are dropped
  std::size_t host_files_max = 20'000;            // events of further streams of a host are dropped
  std::uint64_t bytes_max = 20ULL << 30;          // above it, the largest host's oldest files are deleted
  std::int64_t age_ms = 30LL * 24 * 3600 * 1000;  // older files are deleted
  std::size_t open_files_max = 256;               // above it, all are closed
  std::size_t entries_bytes_max = 64 << 20;       // memory for event indexes; above it, they are reloaded
  // Repairs of a host's files after a gap or a different history: each reads or copies a file, and counts
  // once per MiB. Above the rate, an event that does not follow the file's last one is appended if it is
  // newer, else dropped.
  std::size_t repairs_burst = 100, repairs_per_second = 10;
  std::size_t removed_max = 4096;  // deleted streams whose redelivered events are recognized
};

struct EventStoreMetrics {
  std::size_t hosts = 0, files = 0;
  std::uint64_t bytes = 0, appended = 0, dropped = 0, restarted = 0, removed = 0, retired = 0;
  std::uint64_t hosts_refused = 0, files_refused = 0;  // events that were dropped because of a limit
  std::uint64_t repairs_refused = 0;                   // repairs above the rate
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
  IngestAction rename(const std::string& name, const ReceivedMessage& message);
  std::string write_file(Files::iterator found);
  bool has_room(const std::string& name) const;
  bool may_repair(const std::string& name, const StreamFile& file);
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
  std::map<std::string, serve::TokenBucket> repairs_;  // by escaped host
  std::vector<std::string> dirty_;                     // names of files with pending lines
  std::size_t entries_bytes_ = 0, open_files_ = 0;
  bool was_truncated_ = false;
  EventStoreMetrics metrics_;
};

}  // namespace earshot::team

namespace earshot {

/// Reads the store's files: transcripts whose lines are events that other daemons published.
const RecordFormat& relayed_format();

/// The program of a hub's root.
const AgentProgram& relayed_program();

}  // namespace earshot
