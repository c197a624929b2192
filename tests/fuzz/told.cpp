#include "told.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "core/prefix_hash.hpp"
#include "fuzz.hpp"

namespace earshot::fuzz {
namespace {

class Sink final : public EventSink {
 public:
  explicit Sink(Told& told) : told_(told) {}
  void on_event(const Event& event) override {
    Told::One one{std::string(type_name(event.body)), {}, {}, event.turn, event.cursor};
    if (const auto* invoked = std::get_if<event::ToolInvoked>(&event.body)) one.call = invoked->call;
    if (const auto* finished = std::get_if<event::ToolFinished>(&event.body)) one.call = finished->call;
    if (const auto* lines = std::get_if<event::LineSkipped>(&event.body)) told_.skipped.push_back(*lines);
    append_event(one.json, event, {"h", "s", "t"});
    std::string meta;  // in the other view it is JSON as well, and says no more
    append_event(meta, event, {"h", "s", "t"}, {.view = View::meta});
    require(is_json(one.json) && is_json(meta), "an event is JSON");
    told_.events.push_back(std::move(one));
  }

 private:
  Told& told_;
};

void feed(Transcript& transcript, Workspace& workspace, Sink& sink, std::string_view bytes) {
  const auto room = std::make_unique<char[]>(bytes.size() + feed_padding);
  if (!bytes.empty()) std::memcpy(room.get(), bytes.data(), bytes.size());
  std::memset(room.get() + bytes.size(), '"', feed_padding);
  transcript.feed({room.get(), bytes.size()}, workspace, sink);
}

std::string shown(const Transcript& transcript) {
  const RecordCounts& c = transcript.counts();
  const StreamState& s = transcript.state();
  std::string out = to_string(transcript.end()) + " " + to_string(transcript.last_event());
  for (const std::uint64_t n : {c.lines,
                                c.empty_lines,
                                c.records,
                                c.skipped_lines,
                                c.duplicates,
                                c.late_results,
                                c.events,
                                c.repaired_lines,
                                c.undecided_records,
                                transcript.bytes_read(),
                                std::uint64_t{transcript.pending_bytes()},
                                std::uint64_t{s.turn},
                                std::uint64_t{s.turn_open},
                                std::uint64_t{s.started},
                                std::uint64_t{s.warmup},
                                s.usage.input,
                                s.usage.output,
                                s.usage.cache_read,
                                s.usage.cache_write,
                                s.context_tokens,
                                static_cast<std::uint64_t>(s.last_activity_ms)})
    out += " " + std::to_string(n);
  for (const std::string& text :
       {s.dialect, s.version, s.cwd, s.project, s.git_branch, s.title, s.model, s.mode, s.permission_mode,
        s.continues, s.turn_started, s.turn_prompt, s.last_outcome, s.last_finished, s.todos_time,
        s.last_activity, s.last_text, transcript.recorded_session()})
    out += "|" + text;
  for (const OpenTool& tool : s.tools) {
    require(is_json(tool.input.empty() ? "null" : tool.input), "an open call's input is JSON");
    out += "\ntool " + tool.call + " " + tool.tool + " " + tool.agent + " " + tool.input + " " + tool.started;
  }
  for (const RunningAgent& agent : s.agents)
    out += "\nagent " + agent.call + " " + agent.subagent + " " + agent.agent_type + " " + agent.started;
  for (const Todo& todo : s.todos) out += "\ntodo " + todo.id + " " + todo.content + " " + todo.status;
  for (const auto& [type, count] : c.types) out += "\n" + type + " " + std::to_string(count);
  for (const auto& [type, count] : c.unknown_types) out += "\nunknown " + type + " " + std::to_string(count);
  return out;
}

void require_cursors(const Told& told, const TranscriptOptions& options, std::string_view bytes) {
  PrefixHasher prefix(options.hash_key);
  std::size_t marked = 0;
  Cursor last;
  for (const Told::One& event : told.events) {
    const Cursor& cursor = event.cursor;
    require(cursor.offset == last.offset ? cursor.index == last.index + 1
                                         : cursor.offset > last.offset && cursor.index == 1,
            "cursors grow one by one");
    require(cursor.offset > 0 && cursor.offset <= bytes.size() && bytes[cursor.offset - 1] == '\n',
            "a cursor is at a line's end");
    prefix.add(bytes.substr(marked, cursor.offset - marked));
    marked = cursor.offset;
    require(cursor.prefix_hash == prefix.value(), "a mark stands for the bytes before it");
    require(parse_cursor(to_string(cursor)) == cursor, "a cursor can be read again");
    last = cursor;
  }
  prefix.add(bytes.substr(marked));
  require(told.end.offset == 0 || told.end.prefix_hash == prefix.value(),
          "the end's mark is that of all whole lines");
}

void require_turns(const Told& told) {
  std::uint32_t open = 0, last = 0;
  std::set<std::string> invoked, finished, waiting;
  for (const Told::One& event : told.events) {
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

Told told(const TranscriptOptions& options, std::string_view bytes, std::size_t piece_max,
          std::uint64_t seed) {
  static Workspace workspace;
  Told told;
  Sink sink(told);
  Dice dice(seed);
  Transcript transcript(options);
  while (!bytes.empty()) {
    const std::size_t piece = piece_max == 0 ? bytes.size() : 1 + dice.below(piece_max);
    feed(transcript, workspace, sink, bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  told.shown = shown(transcript);
  told.end = transcript.end();
  told.counts = transcript.counts();
  told.pending = transcript.pending_bytes();
  return told;
}

void require_same(const Told& whole, const Told& split) {
  require(whole.events == split.events, "events(split) == events(whole)");
  require(whole.shown == split.shown, "state(split) == state(whole)");
}

void require_sound(const Told& told, const TranscriptOptions& options, std::string_view bytes) {
  require_cursors(told, options, bytes);
  require_turns(told);
  const RecordCounts& counts = told.counts;
  require(counts.events == told.events.size(), "every event is counted");
  require(counts.lines == static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\n')),
          "every line is counted");
  require(told.end.offset + told.pending == bytes.size(), "every byte is read");
  std::uint64_t typed = 0;
  for (const auto& [type, count] : counts.types) typed += count;
  require(counts.lines <= counts.empty_lines + counts.skipped_lines + typed,
          "a line is empty, or skipped, or counted by the type of what it held");
  require(counts.records <= typed, "a record has a type");
}

}  // namespace earshot::fuzz
