// What is new, once: frames that are already encoded, in contiguous segments. Readers are positions; they
// hold no reference.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/cursor.hpp"
#include "serve/stream/frame.hpp"

namespace earshot::serve {

using Position = std::uint64_t;  // the number of a frame, counted since the start

/// What readers look at, without the frame's text.
struct Tags {
  std::uint32_t session = 0;  // Session::id
  std::uint16_t type = 0;     // types.hpp
  std::uint32_t stream = 0;   // Member::id, of an event and of what is said about a stream; 0: of none
  Cursor cursor = {};         // of an event
};

class LiveLog {
 public:
  static constexpr std::size_t bytes_max_default =
      16 << 20;  // the oldest segment goes; who was in it has lagged
  static constexpr std::size_t segment_bytes = 256 << 10;  // a longer frame gets a segment of its own

  explicit LiveLog(std::size_t bytes_max = bytes_max_default, std::size_t segment = segment_bytes)
      : bytes_max_(bytes_max), segment_bytes_(segment) {}

  /// Copies the payload behind its frame header; evicts what no longer fits. Returns the new frame's
  /// position.
  Position append(std::string_view payload, Tags tags);
  /// A frame that nobody reads here: only its number is used. What the log held is let go.
  void skip();
  /// Called before frames up to `next` are let go, while they can still be looked at.
  std::function<void(Position next)> on_evict;

  Position first() const { return segments_.empty() ? head_ : segments_.front().first; }
  Position head() const { return head_; }  // of the next frame
  bool holds(Position position) const { return position >= first(); }
  std::size_t bytes() const {
    return bytes_;
  }  // of all segments, full or not; sizeof(Entry) a frame come on top
  const Tags& tags(Position position) const { return segment_of(position).at(position).tags; }
  std::string_view frame(Position position) const;  // header and payload

  /// Consecutive frames that lie side by side. Valid until the next append().
  struct Run {
    Position first = 0, next = 0;  // frames [first, next); none when equal
    std::span<const char> bytes;
  };

  /// Whole frames from `from` on, before `until`, of one segment: at most `bytes_max`, but at least one
  /// frame. `from` must be held and below `until`, `until` not above head().
  Run contiguous(Position from, Position until, std::size_t bytes_max) const;

  /// The same for the frames that `wanted(Tags)` says: begins at the first such frame of [from, until), may
  /// cross segments to find it. None: an empty run at `until`.
  template <class Wanted>
  Run matching(Position from, Position until, std::size_t bytes_max, Wanted&& wanted) const;

  /// A run of which only `sent` bytes went out: the first frame not begun, and the rest of the one that was
  /// cut.
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
  std::unique_ptr<char[]> spare_;  // the last evicted segment's memory, used again
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

}  // namespace earshot::serve
