// The live log: each event encoded once, as ready-to-send WebSocket frames in contiguous segments. Readers
// are positions in it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/cursor.hpp"
#include "core/event_json.hpp"

namespace earshot::serve {

// --- Frames ---

/// A complete WebSocket text frame of a server (header and payload, unmasked), shared by its recipients.
using Frame = std::shared_ptr<const std::string>;

constexpr std::size_t frame_header_bytes_max = 10;

/// Writes the header of an unfragmented text frame; returns its length (RFC 6455, 5.2).
std::size_t write_frame_header(std::array<char, frame_header_bytes_max>& header, std::size_t payload_bytes);

/// The size of the largest payload: `limits.outbound_bytes`. Instead of a longer one an `error` is sent.
constexpr std::size_t outbound_bytes_max = 16 << 20;

Frame make_frame(std::string_view payload);

/// Removes the first of the adjacent server frames from `frames` and returns its payload.
std::string_view take_payload(std::string_view& frames);

// --- One log ---

using Position = std::uint64_t;  // number of a frame since the start

/// What readers select frames by.
struct Tags {
  std::uint32_t session = 0;  // Session::id
  std::uint16_t type = 0;     // type_of(), type_always, …
  std::uint32_t stream = 0;   // Member::id, for frames about a stream; 0: none
  Cursor cursor = {};         // of an event
  std::int64_t time_ms = 0;   // of an event that was read from a file: its time for `since`
};

class LiveLog {
 public:
  static constexpr std::size_t bytes_max_default = 16 << 20;  // beyond it the oldest segment is evicted
  static constexpr std::size_t segment_bytes = 256 << 10;     // a longer frame has its own segment

  explicit LiveLog(std::size_t bytes_max = bytes_max_default, std::size_t segment = segment_bytes)
      : bytes_max_(bytes_max), segment_bytes_(segment) {}

  /// Copies the payload behind a frame header, evicting segments as needed. Returns the frame's position.
  Position append(std::string_view payload, Tags tags);
  /// Advances the head without storing a frame, and drops all segments: for a log without readers.
  void skip();
  /// Called before the frames before `next` are evicted; they are still readable during the call.
  std::function<void(Position next)> on_evict;

  Position first() const { return segments_.empty() ? head_ : segments_.front().first; }
  Position head() const { return head_; }  // of the next frame
  bool holds(Position position) const { return position >= first(); }
  std::size_t bytes() const { return bytes_; }  // capacity of all segments, without sizeof(Entry) per frame
  const Tags& tags(Position position) const { return segment_of(position).at(position).tags; }
  std::string_view frame(Position position) const;  // header and payload

  /// Consecutive frames, contiguous in memory. Valid until the next append().
  struct Run {
    Position first = 0, next = 0;  // frames [first, next); none when equal
    std::span<const char> bytes;
  };

  /// Complete frames of [from, until) in one segment: at most `bytes_max`, but at least one frame.
  /// Requires first() <= from < until <= head().
  Run contiguous(Position from, Position until, std::size_t bytes_max) const;

  /// The same for frames for which `wanted(Tags)` is true, starting at the first such frame of [from, until)
  /// in any segment. Returns an empty run at `until` if there is none.
  template <class Wanted>
  Run matching(Position from, Position until, std::size_t bytes_max, Wanted&& wanted) const;

  /// After `sent` bytes of a run were written: the first frame that was not started, and the unsent rest of
  /// the frame before it.
  struct Cut {
    Position next = 0;
    std::span<const char> rest;
  };
  Cut cut(const Run& run, std::size_t sent) const;

 private:
  struct Entry {
    std::uint32_t offset, length;
    Tags tags;
  };
  struct Segment {
    Position first = 0;
    std::size_t capacity = 0, used = 0;
    std::unique_ptr<char[]> data;
    std::vector<Entry> entries;
    Position next() const { return first + entries.size(); }
    const Entry& at(Position position) const { return entries[position - first]; }
  };

  const Segment& segment_of(Position position) const;
  Segment& room_for(std::size_t bytes);
  static Run run_of(const Segment& segment, Position from, Position next);

  std::size_t bytes_max_, segment_bytes_;
  std::size_t bytes_ = 0;
  Position head_ = 0;
  std::deque<Segment> segments_;
  std::unique_ptr<char[]> spare_;  // memory of the last evicted segment, for reuse
};

template <class Wanted>
LiveLog::Run LiveLog::matching(Position from, Position until, std::size_t bytes_max, Wanted&& wanted) const {
  while (from < until) {
    const Segment& segment = segment_of(from);
    const Position end = segment.next() < until ? segment.next() : until;
    while (from < end && !wanted(segment.at(from).tags)) ++from;
    if (from == end) continue;
    Position next = from + 1;
    std::size_t bytes = segment.at(from).length;
    while (next < end && bytes + segment.at(next).length <= bytes_max && wanted(segment.at(next).tags)) {
      bytes += segment.at(next++).length;
    }
    return run_of(segment, from, next);
  }
  return {until, until, {}};
}

// --- The logs of all audiences ---

/// How much a connection may see, and whether secrets are redacted.
enum class Audience : std::uint8_t {
  full,  // everything, redacted
  meta,  // no text, no inputs, no outputs
  raw,   // everything, unredacted: only for the owner on the Unix socket
};
constexpr std::size_t audience_count = 3;
constexpr std::array<Audience, audience_count> all_audiences = {Audience::full, Audience::meta,
                                                                Audience::raw};

inline View view_of(Audience audience) { return audience == Audience::meta ? View::meta : View::full; }

class EvictionListener {
 public:
  virtual ~EvictionListener() = default;
  /// Frames before `next` are about to be evicted; they are still readable during the call.
  virtual void on_evict(Position next) = 0;
};

/// The live log of one audience, and who reads it.
struct AudienceLog {
  static constexpr std::size_t evicted_names_max = 4096;   // older ones are not repeated
  static constexpr std::size_t first_events_max = 65'536;  // beyond it the index is dropped, and a resumed
                                                           // stream may repeat events

  explicit AudienceLog(std::size_t log_bytes_max);
  AudienceLog(const AudienceLog&) = delete;
  AudienceLog& operator=(const AudienceLog&) = delete;

  using FirstEvents = std::unordered_map<std::uint32_t, Cursor>;

  /// Start positions of event subscriptions: first_events() answers for these.
  void add_start(Position since) { starts_.insert(since); }
  void remove_start(Position since);
  /// By stream, the first event at or after `since` (which must have been added), evicted events included;
  /// begin_cursor if a new history began there.
  FirstEvents first_events(Position since) const;

  /// Appends to the log, or, if all readers are patient, keeps the frame for settle(): writing to a second
  /// log takes longer than to encode for it, and would delay the readers of the first one.
  void append(std::string_view payload, const Tags& tags);
  /// Appends the frames that append() kept.
  void settle();
  bool is_settled() const { return late_tags_.empty(); }

  LiveLog log;                      // REQUIRES, to read: is_settled()
  std::size_t readers = 0;          // connections with an event subscription; 0: nothing is encoded
  std::size_t patient_readers = 0;  // of these: they read later than in the batch that appended
  std::vector<EvictionListener*> catch_up_subscribers;   // receive evicted events from the files
  std::deque<std::pair<Position, Frame>> evicted_names;  // `stream.removed` and `stream.renamed` frames

 private:
  static constexpr std::size_t late_bytes_max = 64 << 10;  // above it they are appended

  struct FirstEvent {
    Position at;
    Cursor cursor;
  };
  struct LateFrame {
    Tags tags;
    std::size_t bytes;
  };
  void index_evicted(Position next);

  std::multiset<Position> starts_;
  std::unordered_map<std::uint32_t, std::vector<FirstEvent>> first_events_;  // by stream, evicted ones only
  std::size_t first_event_count_ = 0;
  std::string late_payloads_;
  std::vector<LateFrame> late_tags_;
};

/// One log per audience; positions are the same in all of them.
class LogSet {
 public:
  explicit LogSet(std::size_t log_bytes_max)
      : logs_{AudienceLog(log_bytes_max), AudienceLog(log_bytes_max), AudienceLog(log_bytes_max)} {}

  /// With all its frames.
  AudienceLog& of(Audience audience) {
    AudienceLog& found = logs_[static_cast<std::size_t>(audience)];
    found.settle();
    return found;
  }
  /// After the clients were woken: appends what was kept for patient readers.
  void settle() {
    for (AudienceLog& each : logs_) each.settle();
  }
  Position head() const { return head_; }  // position of the next frame
  Position first() const;                  // oldest frame in any log
  std::size_t readers() const;             // connections with an event subscription
  bool has_readers(Audience audience) const { return logs_[static_cast<std::size_t>(audience)].readers > 0; }
  std::size_t bytes() const;

  /// The next frame says that a stream has another name than `from`.
  void add_renamed(std::uint32_t stream, std::string_view from);
  /// The name that frames before `at` use; null: the present one.
  const std::string* former_name(std::uint32_t stream, Position at) const;

  /// Appends one frame: `encode(Audience, std::string&)` is called once for each audience with readers.
  template <class Encode>
  void append(const Tags& tags, Encode&& encode) {
    ++head_;
    for (const Audience audience : all_audiences) {
      AudienceLog& to = logs_[static_cast<std::size_t>(audience)];
      if (to.readers == 0) {
        to.settle();
        to.log.skip();
        continue;
      }
      scratch_.clear();
      encode(audience, scratch_);
      to.append(scratch_, tags);
    }
  }

 private:
  static constexpr std::size_t renamed_max = 4096;  // beyond it the streams are reset for clients that lag

  struct Renamed {
    Position at;
    std::uint32_t stream;
  };
  struct FormerName {
    Position until;
    std::string name;
  };

  std::array<AudienceLog, audience_count> logs_;
  Position head_ = 0;
  std::deque<Renamed> renamed_;                                             // the oldest first
  std::unordered_map<std::uint32_t, std::deque<FormerName>> former_names_;  // the same, by stream
  std::string scratch_;
};

}  // namespace earshot::serve
