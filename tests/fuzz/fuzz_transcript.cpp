// Any bytes, cut anywhere, give the events that they give in one piece, and the marks of their prefixes.
// The first eight bytes choose the cuts and whose file it is; the rest is the file.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/event_json.hpp"
#include "core/mark.hpp"
#include "core/transcript.hpp"

namespace {

using namespace earshot;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Sink final : EventSink {
  std::vector<std::string> events;
  Cursor last;
  void on_event(const Event& event) override {
    require(event.cursor.offset == last.offset
                ? event.cursor.index == last.index + 1
                : event.cursor.offset > last.offset && event.cursor.index == 1);
    last = event.cursor;
    events.emplace_back();
    append_event(events.back(), event, {"h", "s", "t"});
  }
};

/// Exactly the bytes and their padding, so that the sanitizer sees a read beyond.
void feed(Transcript& transcript, Workspace& workspace, Sink& sink, std::string_view bytes) {
  const auto room = std::make_unique<char[]>(bytes.size() + feed_padding);
  if (!bytes.empty()) std::memcpy(room.get(), bytes.data(), bytes.size());
  std::memset(room.get() + bytes.size(), '"', feed_padding);
  transcript.feed({room.get(), bytes.size()}, workspace, sink);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 8) return 0;
  std::uint64_t seed = 0;
  std::memcpy(&seed, data, 8);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 8, size - 8);
  TranscriptOptions options;
  options.mark_key = 0x5eed;
  options.line_bytes_max = 1024 + seed % 4096;
  if (seed & 1) options.own_agent = "abc";

  static Workspace workspace;
  Transcript whole(options);
  Sink of_whole;
  feed(whole, workspace, of_whole, bytes);

  Transcript split(options);
  Sink of_split;
  for (std::size_t at = 0; at < bytes.size();) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const std::size_t piece = 1 + (seed >> 33) % (seed & 4 ? 8 : 512);
    feed(split, workspace, of_split, bytes.substr(at, piece));
    at += piece;
  }

  require(of_whole.events == of_split.events);
  require(whole.end() == split.end());
  require(whole.counts().events == of_whole.events.size());
  require(whole.counts().lines == split.counts().lines && whole.counts().records == split.counts().records);
  // Every line is empty, or skipped, or counted by the type of what it held.
  std::uint64_t typed = 0;
  for (const auto& [type, count] : whole.counts().types) typed += count;
  require(whole.counts().lines <= whole.counts().empty_lines + whole.counts().skipped_lines + typed);
  PrefixMark mark(options.mark_key);
  mark.add(bytes);
  require(whole.end().mark == mark.value());
  return 0;
}
