#include "serve/stream/live_log.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "serve/stream/subscription.hpp"

namespace earshot::serve {

// --- Frames ---

namespace {

std::string_view within_limit(std::string_view payload) {
  constexpr std::string_view too_long =
      R"({"type":"error","code":"limit","message":"a frame longer than limits.outbound_bytes was omitted","retry":false})";
  return payload.size() <= outbound_bytes_max ? payload : too_long;
}

}  // namespace

std::size_t write_frame_header(std::array<char, frame_header_bytes_max>& header, std::size_t payload_bytes) {
  constexpr char text_and_final = static_cast<char>(0x81);
  const std::uint64_t size = payload_bytes;
  std::size_t length_bytes = 0;
  header[0] = text_and_final;
  if (size < 126) {
    header[1] = static_cast<char>(size);
  } else if (size < 65536) {
    header[1] = 126;
    length_bytes = 2;
  } else {
    header[1] = 127;
    length_bytes = 8;
  }
  for (std::size_t i = 0; i < length_bytes; ++i)
    header[2 + i] = static_cast<char>((size >> (8 * (length_bytes - 1 - i))) & 0xff);
  return 2 + length_bytes;
}

Frame make_frame(std::string_view payload) {
  payload = within_limit(payload);
  std::array<char, frame_header_bytes_max> header;
  const std::size_t header_bytes = write_frame_header(header, payload.size());
  std::string bytes;
  bytes.reserve(header_bytes + payload.size());
  bytes.append(header.data(), header_bytes).append(payload);
  return std::make_shared<const std::string>(std::move(bytes));
}

std::string_view take_payload(std::string_view& frames) {
  assert(frames.size() >= 2 && static_cast<unsigned char>(frames[0]) == 0x81);
  std::uint64_t length = static_cast<unsigned char>(frames[1]) & 0x7f;
  const std::size_t length_bytes = length == 127 ? 8 : length == 126 ? 2 : 0;
  if (length_bytes > 0) length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i)
    length = length << 8 | static_cast<unsigned char>(frames[2 + i]);
  const std::string_view payload = frames.substr(2 + length_bytes, static_cast<std::size_t>(length));
  frames.remove_prefix(2 + length_bytes + payload.size());
  return payload;
}

// --- One log ---

Position LiveLog::append(std::string_view payload, Tags tags) {
  payload = within_limit(payload);
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
  if (position >= segments_.back().first) return segments_.back();    // most readers are near the head
  if (position < segments_.front().next()) return segments_.front();  // and eviction reads the oldest
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
  // The first frame that starts at or after the cut; the one before it may be partly sent.
  const auto next = std::partition_point(begin, end, [at](const Entry& e) { return e.offset < at; });
  Cut result{segment.first + static_cast<Position>(next - segment.entries.begin()), {}};
  if (next != begin) {
    const Entry& partial = *std::prev(next);
    result.rest = {segment.data.get() + at, partial.offset + partial.length - at};
  }
  return result;
}

// --- The logs of all audiences ---

AudienceLog::AudienceLog(std::size_t log_bytes_max) : log(log_bytes_max) {
  log.on_evict = [this](Position next) {
    for (EvictionListener* listener : catch_up_subscribers) listener->on_evict(next);
    index_evicted(next);
  };
}

void AudienceLog::append(std::string_view payload, const Tags& tags) {
  if (patient_readers < readers) {
    settle();
    log.append(payload, tags);
    return;
  }
  late_payloads_ += payload;
  late_tags_.push_back({tags, payload.size()});
  if (late_payloads_.size() > late_bytes_max) settle();
}

void AudienceLog::settle() {
  if (late_tags_.empty()) return;
  // Listeners of an eviction use this log: nothing is kept for them any more.
  const std::string kept = std::exchange(late_payloads_, {});
  const std::vector<LateFrame> frames = std::exchange(late_tags_, {});
  std::string_view payloads = kept;
  for (const LateFrame& each : frames) {
    log.append(payloads.substr(0, each.bytes), each.tags);
    payloads.remove_prefix(each.bytes);
  }
}

void AudienceLog::remove_start(Position since) {
  starts_.extract(since);
  if (!starts_.empty()) return;
  first_events_.clear();
  first_event_count_ = 0;
}

/// Keeps the events that are the first one of their stream after some subscription's start: the log can no
/// longer tell.
void AudienceLog::index_evicted(Position next) {
  for (Position at = log.first(); at < next; ++at) {
    const Tags& tags = log.tags(at);
    if (is_about_names(tags.type)) {
      evicted_names.emplace_back(at, std::make_shared<const std::string>(log.frame(at)));
      if (evicted_names.size() > evicted_names_max) evicted_names.pop_front();
    }
    if (tags.type == type_removed) {
      const auto found = first_events_.find(tags.stream);
      if (found == first_events_.end()) continue;
      first_event_count_ -= found->second.size();
      first_events_.erase(found);
    }
    const bool is_reset = tags.type == type_reset;
    if ((tags.type >= event_types && !is_reset) || starts_.empty() || *starts_.begin() > at) continue;
    std::vector<FirstEvent>& kept = first_events_[tags.stream];
    if (is_reset) {
      first_event_count_ -= kept.size();
      kept.clear();
    } else if (!kept.empty()) {
      const auto start = starts_.upper_bound(kept.back().at);
      if (start == starts_.end() || *start > at) continue;
    }
    kept.push_back({at, is_reset ? begin_cursor : tags.cursor});
    ++first_event_count_;
  }
  if (first_event_count_ <= first_events_max) return;
  first_events_.clear();
  first_event_count_ = 0;
}

AudienceLog::FirstEvents AudienceLog::first_events(Position since) const {
  FirstEvents first;
  for (const auto& [stream, events] : first_events_) {
    const auto event = std::find_if(events.begin(), events.end(),
                                    [since](const FirstEvent& each) { return each.at >= since; });
    if (event != events.end()) first.emplace(stream, event->cursor);
  }
  for (Position at = std::max(since, log.first()); at < log.head(); ++at) {
    const Tags& tags = log.tags(at);
    if (tags.type < event_types) first.emplace(tags.stream, tags.cursor);
    if (tags.type == type_reset) first[tags.stream] = begin_cursor;
  }
  return first;
}

Position LogSet::first() const {
  Position first = head();
  for (const AudienceLog& each : logs_) first = std::min(first, each.log.first());
  return first;
}

void LogSet::add_renamed(std::uint32_t stream, std::string_view from) {
  while (!renamed_.empty() && (renamed_.front().at < first() || renamed_.size() == renamed_max)) {
    const auto oldest = former_names_.find(renamed_.front().stream);
    oldest->second.pop_front();
    if (oldest->second.empty()) former_names_.erase(oldest);
    renamed_.pop_front();
  }
  renamed_.push_back({head_, stream});
  former_names_[stream].push_back({head_, std::string(from)});
}

const std::string* LogSet::former_name(std::uint32_t stream, Position at) const {
  const auto names = former_names_.find(stream);
  if (names == former_names_.end()) return nullptr;
  const auto next = std::find_if(names->second.begin(), names->second.end(),
                                 [&](const FormerName& each) { return each.until >= at; });
  return next == names->second.end() ? nullptr : &next->name;
}

std::size_t LogSet::readers() const {
  std::size_t sum = 0;
  for (const AudienceLog& each : logs_) sum += each.readers;
  return sum;
}

std::size_t LogSet::bytes() const {
  std::size_t sum = 0;
  for (const AudienceLog& each : logs_) sum += each.log.bytes();
  return sum;
}

}  // namespace earshot::serve
