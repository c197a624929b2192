#include "transcript_check.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "core/cursor.hpp"
#include "fuzz.hpp"
#include "unit/support/transcript_summary.hpp"

namespace earshot::fuzz {
namespace {

class Sink final : public EventSink {
 public:
  explicit Sink(Run& run) : run_(run) {}
  void on_event(const Event& event) override {
    Run::Emitted emitted{std::string(type_name(event.body)), {}, {}, event.turn, event.cursor};
    if (const auto* invoked = std::get_if<event::ToolInvoked>(&event.body)) emitted.call = invoked->call;
    if (const auto* finished = std::get_if<event::ToolFinished>(&event.body)) emitted.call = finished->call;
    if (const auto* lines = std::get_if<event::LineSkipped>(&event.body)) run_.skipped.push_back(*lines);
    append_event(emitted.json, event, {"h", "s", "t"});
    std::string meta;
    append_event(meta, event, {"h", "s", "t"}, {.view = View::meta});
    require(is_json(emitted.json) && is_json(meta), "an event is JSON");
    run_.events.push_back(std::move(emitted));
  }

 private:
  Run& run_;
};

void feed(Transcript& transcript, Workspace& workspace, Sink& sink, std::string_view bytes) {
  const auto room = std::make_unique<char[]>(bytes.size() + feed_padding);
  if (!bytes.empty()) std::memcpy(room.get(), bytes.data(), bytes.size());
  std::memset(room.get() + bytes.size(), '"', feed_padding);
  transcript.feed({room.get(), bytes.size()}, workspace, sink);
}

void require_cursors(const Run& run, const TranscriptOptions& options, std::string_view bytes) {
  PrefixHasher prefix(options.hash_key);
  std::size_t hashed = 0;
  Cursor last;
  for (const Run::Emitted& event : run.events) {
    const Cursor& cursor = event.cursor;
    require(cursor.offset == last.offset ? cursor.index == last.index + 1
                                         : cursor.offset > last.offset && cursor.index == 1,
            "cursors grow one by one");
    require(cursor.offset > 0 && cursor.offset <= bytes.size() && bytes[cursor.offset - 1] == '\n',
            "a cursor is at a line's end");
    prefix.add(bytes.substr(hashed, cursor.offset - hashed));
    hashed = cursor.offset;
    require(cursor.prefix_hash == prefix.value(), "the prefix hash is that of the bytes before");
    require(parse_cursor(to_string(cursor)) == cursor, "a cursor can be read again");
    last = cursor;
  }
  prefix.add(bytes.substr(hashed));
  require(run.end.offset == 0 || run.end.prefix_hash == prefix.value(),
          "the end has the hash of all complete lines");
}

/// The sums of times as text.
std::string times_of(const StreamState& state) {
  const TimeSpent spent = state.times.until(state.last_activity_ms);
  std::string text = " times";
  for (const std::int64_t ms :
       {spent.waited, spent.worked, spent.idle, spent.turn_waited, spent.turn_worked}) {
    require(ms >= 0, "a sum of times is not negative");
    text += ' ' + std::to_string(ms);
  }
  return text;
}

void require_turns(const Run& run) {
  std::uint32_t open = 0, last = 0;
  std::set<std::string> invoked, finished, waiting;
  for (const Run::Emitted& event : run.events) {
    if (event.type == "turn.started") {
      require(open == 0, "a turn is finished before the next one starts");
      require(event.turn == last + 1, "turns are 1, 2, …");
      require(waiting.empty(), "calls are finished before the next turn starts");
      open = last = event.turn;
    } else if (event.type == "turn.finished") {
      require(open != 0 && event.turn == open, "a turn is finished once, after it started");
      open = 0;
    } else if (event.type == "tool.invoked") {
      require(invoked.insert(event.call).second, "a call is invoked once");
      if (!finished.contains(event.call)) waiting.insert(event.call);
    } else if (event.type == "tool.finished") {
      require(finished.insert(event.call).second, "a call is finished once");
      waiting.erase(event.call);
    }
  }
}

}  // namespace

Run run(const TranscriptOptions& options, std::string_view bytes, std::size_t piece_max, std::uint64_t seed) {
  static Workspace workspace;
  Run result;
  Sink sink(result);
  Dice dice(seed);
  Transcript transcript(options);
  while (!bytes.empty()) {
    const std::size_t piece = piece_max == 0 ? bytes.size() : 1 + dice.below(piece_max);
    feed(transcript, workspace, sink, bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  result.state = test::summary_of(transcript) + times_of(transcript.state());
  for (const OpenTool& tool : transcript.state().tools)
    require(is_json(tool.input.empty() ? "null" : tool.input), "an open call's input is JSON");
  result.end = transcript.end();
  result.counts = transcript.counts();
  result.pending = transcript.pending_bytes();
  return result;
}

void require_same(const Run& whole, const Run& split) {
  require(whole.events == split.events, "events(split) == events(whole)");
  require(whole.state == split.state, "state(split) == state(whole)");
}

void require_sound(const Run& run, const TranscriptOptions& options, std::string_view bytes) {
  require_cursors(run, options, bytes);
  require_turns(run);
  const RecordCounts& counts = run.counts;
  require(counts.events == run.events.size(), "every event is counted");
  require(counts.lines == static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\n')),
          "every line is counted");
  require(run.end.offset + run.pending == bytes.size(), "every byte is read");
  std::uint64_t typed = 0;
  for (const auto& [type, count] : counts.types) typed += count;
  require(counts.lines <= counts.empty_lines + counts.skipped_lines + typed,
          "a line is empty, skipped, or counted by type");
  require(counts.records <= typed, "a record has a type");
}

}  // namespace earshot::fuzz
