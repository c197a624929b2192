#include "feed.hpp"
#include "agents/claude_code/reader.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace earshot::test {
namespace {

simdjson::dom::object parsed(simdjson::dom::parser& parser, std::string_view event) {
  simdjson::dom::element element = parser.parse(simdjson::padded_string(event));
  return element.get_object();
}

// `"type"` is the first key of every event. Not parsed: an event's input may have numbers that simdjson
// refuses.
std::string_view type_of(std::string_view event) {
  event.remove_prefix(std::string_view("{\"type\":\"").size());
  return event.substr(0, event.find('"'));
}

bool is_of(std::string_view event, std::string_view type) {
  const std::string_view its = type_of(event);
  return its == type || (type.ends_with('.') && its.starts_with(type));
}

std::string text_of(simdjson::dom::element value) {
  if (value.is_string()) return std::string(std::string_view(value.get_string()));
  return simdjson::minify(value);
}

// The fields of each type that summary() lists.
struct SummaryRow {
  std::string_view type;
  std::vector<std::string_view> fields;
};
const std::vector<SummaryRow>& summary_rows() {
  static const std::vector<SummaryRow> table = {
      {"turn.started", {"origin", "prompt"}},
      {"turn.finished", {"outcome", "inferred", "stop_reason"}},
      {"message.added", {"role", "kind", "text"}},
      {"tool.invoked", {"call", "tool"}},
      {"tool.finished", {"call", "outcome", "background"}},
      {"todo.updated", {"source"}},
      {"compaction.started", {"trigger"}},
      {"compaction.finished", {"trigger", "kind"}},
      {"agent.started", {"call", "subagent"}},
      {"agent.finished", {"call", "subagent", "outcome"}},
      {"task.finished", {"task", "outcome"}},
      {"queue.changed", {"operation", "text"}},
      {"api.failed", {"status", "fatal"}},
      {"files.snapshotted", {"files"}},
      {"line.skipped", {"line", "lines", "bytes", "reason", "salvaged"}},
  };
  return table;
}

TranscriptOptions with_reader(TranscriptOptions options) {
  if (!options.format) options.format = &claude_code::format();
  return options;
}

}  // namespace

TranscriptOptions claude_code_options() {
  TranscriptOptions options;
  options.format = &claude_code::format();
  return options;
}

Feed::Feed(TranscriptOptions options) : transcript_(with_reader(std::move(options))) {}

Feed::Feed(std::initializer_list<std::string> lines, TranscriptOptions options)
    : transcript_(with_reader(std::move(options))) {
  for (const std::string& line : lines) write(line);
}

Feed& Feed::write(std::string_view bytes) {
  static Workspace workspace;  // one for all transcripts of a thread, as in the daemon
  return write(bytes, workspace);
}

Feed& Feed::write(std::string_view bytes, Workspace& workspace) {
  bytes_ += bytes;
  const auto room = std::make_unique<char[]>(bytes.size() + feed_padding);
  if (!bytes.empty()) std::memcpy(room.get(), bytes.data(), bytes.size());
  constexpr std::string_view hostile = "}]\"\n{\"type\":\"user\",";
  for (std::size_t i = 0; i < feed_padding; ++i) room[bytes.size() + i] = hostile[i % hostile.size()];
  transcript_.feed({room.get(), bytes.size()}, workspace, *this);
  return *this;
}

Feed& Feed::write_bytewise(std::string_view bytes) {
  for (const char& byte : bytes) write({&byte, 1});
  return *this;
}

Feed& Feed::write_cut(std::string_view bytes, std::uint64_t seed, std::size_t piece_bytes_max) {
  while (!bytes.empty()) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const std::size_t take = std::min<std::size_t>(bytes.size(), (seed >> 33) % piece_bytes_max + 1);
    write(bytes.substr(0, take));
    bytes.remove_prefix(take);
  }
  return *this;
}

void Feed::on_event(const Event& event) {
  std::string out;
  append_event(out, event, {"h", "s", "t"});
  events_.push_back(std::move(out));
  cursors_.push_back(event.cursor);
}

Lines Feed::summary() const {
  Lines lines;
  simdjson::dom::parser parser;
  for (const std::string& event : events_) {
    const auto& table = summary_rows();
    const auto row = std::find_if(table.begin(), table.end(),
                                  [&](const SummaryRow& each) { return each.type == type_of(event); });
    if (row == table.end()) continue;
    const auto object = parsed(parser, event);
    std::string line = std::string(row->type) + " " + text_of(object["turn"]);
    simdjson::dom::element value;
    if (object["agent"].get(value) == simdjson::SUCCESS) line += "@" + text_of(value);
    for (const std::string_view name : row->fields) {
      if (object[name].get(value) != simdjson::SUCCESS) continue;
      if (value.is_bool()) {
        if (bool(value)) line.append(" ").append(name);
      } else {
        line.append(" ").append(text_of(value));
      }
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string field(std::string_view event, std::string_view name) {
  simdjson::dom::parser parser;
  simdjson::dom::element value;
  return parsed(parser, event)[name].get(value) == simdjson::SUCCESS ? text_of(value) : "-";
}

Lines Feed::fields(std::string_view type, std::initializer_list<std::string_view> fields) const {
  Lines lines;
  for (const std::string& event : events_) {
    if (!is_of(event, type)) continue;
    std::string line;
    for (const std::string_view name : fields) line += (line.empty() ? "" : " ") + field(event, name);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::size_t Feed::count(std::string_view type) const {
  return std::count_if(events_.begin(), events_.end(),
                       [&](const std::string& event) { return is_of(event, type); });
}

std::string joined(std::initializer_list<std::string> lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace earshot::test
