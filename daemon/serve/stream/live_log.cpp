#include "serve/stream/live_log.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace earshot::serve {

Position LiveLog::append(std::string_view payload, Tags tags) {
  std::array<char, frame_header_bytes_max> header;
  const std::size_t header_bytes = write_frame_header(header, payload.size());
  const std::size_t length = header_bytes + payload.size();
  Segment& segment = room_for(length);
  char* to = segment.data.get() + segment.used;
  std::memcpy(to, header.data(), header_bytes);
  if (!payload.empty()) std::memcpy(to + header_bytes, payload.data(), payload.size());
  segment.entries.push_back(
      {static_cast<std::uint32_t>(segment.used), static_cast<std::uint32_t>(length), tags});
  segment.used += length;
  return head_++;
}

void LiveLog::skip() {
  if (!segments_.empty()) {
    segments_.clear();
    spare_.reset();
    bytes_ = 0;
  }
  ++head_;
}

std::string_view LiveLog::frame(Position position) const {
  const Segment& segment = segment_of(position);
  const Entry& entry = segment.at(position);
  return {segment.data.get() + entry.offset, entry.length};
}

LiveLog::Segment& LiveLog::room_for(std::size_t bytes) {
  if (!segments_.empty() && segments_.back().capacity - segments_.back().used >= bytes)
    return segments_.back();

  Segment fresh;
  fresh.first = head_;
  fresh.capacity = std::max(bytes, segment_bytes_);
  while (!segments_.empty() && bytes_ + fresh.capacity > bytes_max_) {
    if (on_evict) on_evict(segments_.front().next());
    Segment& oldest = segments_.front();
    bytes_ -= oldest.capacity;
    if (oldest.capacity == segment_bytes_) spare_ = std::move(oldest.data);
    segments_.pop_front();
  }
  if (fresh.capacity == segment_bytes_ && spare_) {
    fresh.data = std::move(spare_);
  } else {
    fresh.data = std::make_unique_for_overwrite<char[]>(fresh.capacity);
  }
  bytes_ += fresh.capacity;
  segments_.push_back(std::move(fresh));
  return segments_.back();
}

const LiveLog::Segment& LiveLog::segment_of(Position position) const {
  assert(holds(position) && position < head_);
  if (position >= segments_.back().first) return segments_.back();  // most readers are near the head
  auto after = std::upper_bound(segments_.begin(), segments_.end(), position,
                                [](Position p, const Segment& segment) { return p < segment.first; });
  return *std::prev(after);
}

LiveLog::Run LiveLog::run_of(const Segment& segment, Position from, Position next) {
  const Entry& front = segment.at(from);
  const Entry& back = segment.at(next - 1);
  return {from, next, {segment.data.get() + front.offset, back.offset + back.length - front.offset}};
}

LiveLog::Run LiveLog::contiguous(Position from, Position until, std::size_t bytes_max) const {
  const Segment& segment = segment_of(from);
  const auto begin = segment.entries.begin() + static_cast<std::ptrdiff_t>(from - segment.first);
  const auto end =
      segment.entries.begin() + static_cast<std::ptrdiff_t>(std::min(until, segment.next()) - segment.first);
  const std::size_t limit = begin->offset + bytes_max;
  auto stop =
      std::partition_point(begin + 1, end, [limit](const Entry& e) { return e.offset + e.length <= limit; });
  return run_of(segment, from, segment.first + static_cast<Position>(stop - segment.entries.begin()));
}

LiveLog::Cut LiveLog::cut(const Run& run, std::size_t sent) const {
  const Segment& segment = segment_of(run.first);
  const std::size_t at = segment.at(run.first).offset + sent;
  const auto begin = segment.entries.begin() + static_cast<std::ptrdiff_t>(run.first - segment.first);
  const auto end = segment.entries.begin() + static_cast<std::ptrdiff_t>(run.next - segment.first);
  // The first frame that does not begin before the cut; the one before it is the frame that may be torn.
  const auto next = std::partition_point(begin, end, [at](const Entry& e) { return e.offset < at; });
  Cut result{segment.first + static_cast<Position>(next - segment.entries.begin()), {}};
  if (next != begin) {
    const Entry& torn = *std::prev(next);
    result.rest = {segment.data.get() + at, torn.offset + torn.length - at};
  }
  return result;
}

}  // namespace earshot::serve
