// Which events were handled, stream by stream: what `after` says when a connection comes back.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/lru_set.hpp"
#include "common/frame.hpp"

namespace earshot::common {

/// `<stream>:<cursor>`, taken apart at the last colon.
struct StreamPlace {
  std::string_view stream, cursor;
};
StreamPlace parse_place(std::string_view text);

/// A stream as a `session` frame tells of it.
struct SeenStream {
  std::string name, cursor;
  std::int64_t activity_ms = 0;  // of its session; 0: not known
};
void append_seen(const Fields& session_frame, std::vector<SeenStream>& seen);

/// What to ask for, and which of it begins at a transcript's first event, where only what is new is wanted.
struct After {
  std::vector<std::string> places;
  std::set<std::string, std::less<>> from_the_beginning;
  std::size_t left_out = 0;  // streams that there was no room for
};

class Cursors {
 public:
  static constexpr std::size_t streams_max = 65'536;     // of more the first known are forgotten
  static constexpr std::size_t after_places_max = 4096;  // in one message; the least recent are left out
  static constexpr std::size_t after_bytes_max = 512 << 10;

  void handled(std::string_view stream, std::string_view cursor) { known_[stream] = cursor; }
  using Streams = std::set<std::string, std::less<>>;
  /// Takes the `cursors` of a session frame or a bookmark: all of them, or of these streams only.
  void learn(const Fields& frame, const Streams* only = nullptr);
  /// A new history: its first event is the next.
  void restart(std::string_view stream) { known_[stream].clear(); }
  void forget(std::string_view stream) { known_.erase(stream); }
  const std::string* find(std::string_view stream) const { return known_.find(stream); }

  /// Known streams go on where they are. Unknown ones begin at their first event when their session was
  /// active since `cut_ms`, else where they are now.
  After after(std::vector<SeenStream> seen, std::int64_t cut_ms) const;

 private:
  Recent<std::string, streams_max> known_;
};

}  // namespace earshot::common
