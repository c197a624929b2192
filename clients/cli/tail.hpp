// `earshot tail`: the points in time that it starts from, and what it prints for the frames of one connection
// after the other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/containers.hpp"
#include "cli/commands.hpp"
#include "cli/event_formatter.hpp"
#include "common/resumer.hpp"

namespace earshot::cli {

/// Sorts the missed events of several streams by time. The order within a stream is kept, also where its
/// times run backwards.
class Backfill {
 public:
  static constexpr std::size_t bytes_max = 128 << 20;  // when is_full(), drain: order starts anew

  /// `offset_ms` is added to its time.
  void add(const Fields& event, std::string_view json, std::int64_t offset_ms);
  bool is_full() const { return bytes_ > bytes_max; }

  /// Passes all events to `take`, oldest first, and removes them.
  void drain(const std::function<void(std::string_view json)>& take);

 private:
  static constexpr std::int64_t untimed = std::numeric_limits<std::int64_t>::min();
  struct Stream {
    std::optional<std::int64_t> first_ms, last_ms;
  };
  struct Entry {
    std::int64_t ms;  // never less than that of the stream's previous event; untimed: none had a time yet
    const Stream* stream;
    std::size_t offset, size;  // in text_
  };
  std::unordered_map<std::string, Stream> streams_;
  std::vector<Entry> entries_;
  std::string text_;
  std::size_t bytes_ = 0;
};

/// `90s`, `10m`, `1h30m`, `3d`: that long before `now_ms`; `14:03[:07]`: the last such time of day;
/// `2026-11-24`, `2026-11-24 14:03[:07]`: local time; or RFC 3339 with a zone. Milliseconds since 1970;
/// nothing for other text.
std::optional<std::int64_t> parse_since(std::string_view text, std::int64_t now_ms);

class TailPrinter {
 public:
  /// `options` must outlive this.
  explicit TailPrinter(const TailOptions& options);

  /// A connection was opened: returns the request to send.
  std::string begin();
  /// Returns false to end the connection.
  bool receive(std::string_view json);
  /// The connection was lost.
  void end(std::int64_t now_ms);

  bool failed() const { return failed_; }
  void flush() { out_.flush(); }
  Output& output() { return out_; }

 private:
  struct SnapshotEntry {
    std::string json;
    std::int64_t activity_ms;
    bool active;  // working or waiting
  };

  bool receive_error(const Fields& frame);
  void receive_session(const Fields& frame, std::string_view json);
  void receive_event(const Fields& frame, std::string_view json);
  void print_missed();
  void print_changed_sessions();
  void print_snapshot();
  void print_if_empty();
  void print_line(const Fields& frame);
  bool is_status_new(const Fields& session_frame) const;
  void remember_status(std::string_view session, const Fields& status);
  void print(const Fields& frame, std::string_view json);

  const TailOptions& options_;
  bool pretty_;
  bool failed_ = false;
  bool is_first_ = true;  // connection
  bool snapshot_printed_ = false;
  bool is_since_empty_;  // --since was given, and nothing was printed yet
  StreamResumer resumer_;
  Backfill backfill_;
  std::vector<std::string> bookmarks_;         // received while catching up, printed after the events
  std::vector<std::string> changed_sessions_;  // session frames whose status differs from the printed one
  BoundedMap<std::string, NameResolver::sessions_max> statuses_;
  FrameParser parser_, stored_parser_;  // the latter for frames that were stored
  EventFormatter formatter_;
  Output out_;
  std::vector<SnapshotEntry> snapshot_;
};

}  // namespace earshot::cli
