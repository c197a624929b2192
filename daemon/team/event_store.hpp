// The hub's files: what each host told, one file a stream, in the order in which it was told. Lines as they
// were published, with where they were received put first:
//   {"received":"<store>:<sequence>:<ns>","type":"turn.started","host":…,"stream":…,"session":…,"cursor":…,…}
// The files can be thrown away: they are filled again from JetStream. One thread at a time.
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
  std::size_t hosts_max = 1000;           // what a further one tells is not kept
  std::size_t host_files_max = 20'000;    // likewise of a further stream of one host
  std::uint64_t bytes_max = 20ULL << 30;  // beyond it the files that rested longest go, of who has most
  std::int64_t age_ms = 30LL * 24 * 3600 * 1000;  // a file that rested longer goes
  std::size_t open_files_max = 256;               // more are opened again when they grow
  std::size_t entries_bytes_max =
      64 << 20;                 // what is remembered of files; more is read again when it is asked for
  std::size_t gone_max = 4096;  // removed streams of which late repetitions are known
};

struct EventStoreMetrics {
  std::size_t hosts = 0, files = 0;
  std::uint64_t bytes = 0, appended = 0, dropped = 0, restarted = 0, removed = 0, retired = 0;
  std::uint64_t hosts_refused = 0, files_refused = 0;  // events that are not kept
};

class EventStore {
 public:
  /// `directory` is made; files lie in `<directory>/projects/<word of the host>/<word of the stream>.jsonl`.
  /// Throws std::runtime_error, for people.
  EventStore(std::string directory, EventStoreLimits limits);

  /// Some file had a line without an end, left by a crash: it was cut off, and should be fetched again.
  bool lost_something() const { return lost_something_; }
  /// Of all that was taken from this store, what came last; sequence 0: nothing.
  Kept newest(const std::string& store) const;

  /// What became of it. Nothing reaches the disk before write().
  IngestAction take(const Received& received);
  /// Appends what was taken. Empty: done. Otherwise what went wrong: nothing of it is lost, call again.
  std::string write();
  /// What was written before the call is on the disk when it returns. Empty: done. From any thread.
  std::string sync() const;
  /// Lets go of what is too old or too much.
  void retire(std::int64_t now_ms);
  const EventStoreMetrics& figures() const { return figures_; }

 private:
  struct Host {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
  };
  using Files = std::map<std::string, StreamFile>;  // by path below projects/, without .jsonl

  void load();
  Files::iterator add(const std::string& name);
  bool has_room(const std::string& name) const;
  std::string path_of(const std::string& name) const {
    return directory_ + "/projects/" + name + std::string(StreamFile::suffix);
  }
  void grew(const std::string& name, std::uint64_t before, std::uint64_t now);
  void remember_gone(const std::string& name, const Received& received);
  void bound_entries(const StreamFile& used);
  void let_go(Files::iterator file);  // it, and what is on the disk of it

  const std::string directory_;
  const EventStoreLimits limits_;
  Files files_;
  std::map<std::string, Host> hosts_;  // by word
  std::map<std::string, Kept> gone_;   // by name: what removed it
  std::deque<std::string> gone_order_;
  std::vector<std::string> due_;  // names with something to write
  std::size_t entries_bytes_ = 0, open_ = 0;
  bool lost_something_ = false;
  EventStoreMetrics figures_;
};

}  // namespace earshot::team
