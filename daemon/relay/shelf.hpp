// The hub's files: what each host told, one file a stream, in the order in which it was told. Lines as they
// were published, with where they were received put first:
//   {"received":"<store>:<sequence>:<ns>","type":"turn.started","host":…,"stream":…,"session":…,"cursor":…,…}
// The files can be thrown away: they are filled again from JetStream. One thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/cursor.hpp"

namespace earshot::relay {

/// One message as the broker delivered it.
struct Received {
  std::string store;           // another one when the broker's store was made anew
  std::uint64_t sequence = 0;  // in the store
  std::int64_t time_ns = 0;    // when it was stored, by the broker's clock
  std::string host, stream, session, type, payload;
  std::optional<Cursor> cursor;  // of an event
  bool begins = false;           // its publisher found nothing of this stream in the store: its first event
};

/// How far a file has come.
struct Kept {
  bool there = false;
  std::string store;           // of its last line
  std::uint64_t sequence = 0;  // likewise
  std::int64_t time_ns = 0;    // likewise
  Cursor last = begin_cursor;  // of its last event; begin_cursor: its history begins anew
};

/// What is to be done with a message: an event once each, whatever was redelivered, published again or lost.
enum class Fate {
  append,
  drop,     // the file has it
  restart,  // another history: the file begins anew, with this event if it is one
  remove,   // the transcript is gone, and so is the file
};
/// `holds`: the file has an event with this very cursor.
Fate fate_of(const Kept& kept, const Received& received, const std::function<bool(const Cursor&)>& holds);

struct ShelfLimits {
  std::size_t hosts_max = 1000;                       // what a further one tells is not kept
  std::uint64_t bytes_max = std::uint64_t{20} << 30;  // beyond it the files that rested longest go
  std::int64_t age_ms = 30LL * 24 * 3600 * 1000;      // a file that rested longer goes
  std::size_t open_files_max = 256;                   // more are opened again when they grow
};

struct ShelfFigures {
  std::size_t hosts = 0, files = 0;
  std::uint64_t bytes = 0, appended = 0, dropped = 0, restarted = 0, removed = 0, refused = 0, retired = 0;
};

class Shelf {
 public:
  /// `directory` is made; files lie in `<directory>/projects/<word of the host>/<word of the stream>.jsonl`.
  /// Lines without an end, left by a crash, are cut off. Throws std::runtime_error, for people.
  Shelf(std::string directory, ShelfLimits limits);
  ~Shelf();

  /// What became of it. Nothing reaches the disk before write().
  Fate take(const Received& received);
  /// Appends what was taken. Empty: done. Otherwise what went wrong: nothing of it is lost, call again.
  std::string write();
  /// What was written before the call is on the disk when it returns. Empty: done. From any thread.
  std::string sync() const;
  /// Lets go of what is too old or too much.
  void retire(std::int64_t now_ms);
  const ShelfFigures& figures() const { return figures_; }

 private:
  struct File {
    Kept kept;
    std::uint64_t bytes = 0;
    int descriptor = -1;
    std::string waiting;  // lines to append
    bool fresh = false;   // begins anew: in another file, which takes its place
    std::unique_ptr<std::unordered_set<std::string>> cursors;  // that it has; read when somebody asks
    std::int64_t used_ms = 0;
  };
  using Files = std::map<std::string, File>;  // by path below projects/, without .jsonl

  void load();
  void load_file(const std::string& name, File& file);
  bool holds(const std::string& name, File& file, const Cursor& cursor);
  std::string path_of(const std::string& name) const { return directory_ + "/projects/" + name + ".jsonl"; }
  std::string write_file(const std::string& name, File& file);
  void close_some();
  void forget(Files::iterator file);

  const std::string directory_;
  const ShelfLimits limits_;
  Files files_;
  std::map<std::string, std::size_t> hosts_;  // word → files
  std::vector<std::string> due_;              // names with something to write
  std::size_t open_ = 0;
  ShelfFigures figures_;
};

}  // namespace earshot::relay
