// The small files beside the transcripts, which are rewritten while they are read: an incomplete text is
// refused, a complete one is within its bounds, and a status detail fits a line.
// One text is read as each kind of file, and as a file's name.
#include <algorithm>
#include <memory>

#include "agents/claude_code/program.hpp"
#include "base/display_text.hpp"
#include "fuzz.hpp"
#include "status/status.hpp"

namespace {

using namespace earshot;
using namespace earshot::status;
using fuzz::require;

const claude_code::ClaudeCode& claude = claude_code::program();

bool one_of(std::string_view word, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), word) != known.end();
}

std::optional<RegistryEntry> parse_entry(std::string_view text) {
  return claude.parse_registry_file("0.json", text);
}

/// No control character that a terminal could obey.
bool is_plain(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte == 0x7F) return false;
    const auto next = static_cast<unsigned char>(at + 1 < text.size() ? text[at + 1] : '\0');
    if (byte == 0xC2 && next >= 0x80 && next < 0xA0) return false;  // C1
  }
  return true;
}

/// A beginning of a file, caught while it was written, is no file of its kind.
template <class Parse>
void require_complete(std::string_view text, Parse&& parse) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  for (const std::size_t cut : {last, last / 2, last / 3})
    require(cut >= text.size() || !parse(text.substr(0, cut)), "an incomplete file is refused");
}

bool asks(const std::vector<OpenCall>& calls) {
  return std::any_of(calls.begin(), calls.end(),
                     [](const OpenCall& call) { return !claude.prompt_reason(call.tool).empty(); });
}

void require_status(const Evidence& evidence, const TranscriptSummary& summary) {
  const Status status = derive_status(evidence, summary);
  require(one_of(status.state, {"working", "waiting", "idle", "ended", "unknown"}), "a state is known");
  require(one_of(status.reason, {"", "permission", "question", "plan", "dialog", "background", "compaction"}),
          "a reason is known");
  require(one_of(status.source, {"registry", "transcript", "process", "clock"}), "a source is known");
  require(status.detail.size() <= detail_bytes_max && is_plain(status.detail), "a detail is a short line");
  require(evidence.liveness != Liveness::foreign || !evidence.entry || status.state != "ended",
          "another machine's process has not ended");
  require(status.state != "waiting" || status.source == "registry" || asks(summary.calls),
          "a wait is proven");
  const Status settled = keep_since(status, status, derive_status(evidence, summary));
  require(settled == status, "the same evidence yields the same status and since");
}

void try_decide(const std::optional<RegistryEntry>& entry, std::string_view text) {
  for (const Liveness liveness : {Liveness::alive, Liveness::dead, Liveness::foreign}) {
    Evidence evidence;
    evidence.entry = entry ? &*entry : nullptr;
    evidence.liveness = liveness;
    evidence.had_entry = entry.has_value() || text.size() % 2 == 0;
    evidence.seen_alive = text.size() % 3 == 0;
    evidence.ended_ms = text.size() % 5 == 0 ? 1'770'000'000'000 : 0;
    evidence.compacting_ms = text.size() % 7 == 0 ? 1'770'000'000'001 : 0;
    evidence.quiet = text.size() % 2 ? std::chrono::hours(1) : std::chrono::hours(0);
    TranscriptSummary summary;
    require_status(evidence, summary);
    summary.known = true;
    summary.turn_open = text.size() % 4 != 0;
    summary.turn_started = text.substr(0, 24);
    require_status(evidence, summary);
    const std::string input(text.substr(text.find('{') == text.npos ? 0 : text.find('{')));
    for (const char* tool : {"Bash", "Write", "AskUserQuestion", "ExitPlanMode", "Task", "mcp__a__b"})
      summary.calls.push_back({"c", tool, input, "", ""});
    summary.calls.push_back({"d", std::string(text), input, "a", "2026-01-02T03:04:05Z"});
    require_status(evidence, summary);
    summary.calls.erase(summary.calls.begin(), summary.calls.end() - 1);
    require_status(evidence, summary);
  }
}

void try_lists(std::string_view text) {
  if (const auto todos = claude.parse_todo_list(text)) {
    require(todos->size() <= TodoFiles::todos_max, "a list is bounded");
    for (const Todo& todo : *todos) require(!todo.status.empty(), "a todo has a status");
    require_complete(text, [](std::string_view cut) { return claude.parse_todo_list(cut); });
    require(!parse_entry(text) && !claude.parse_todo(text), "a list is not an object");
  }
  if (const auto task = claude.parse_todo(text)) {
    require(!task->content.empty() && !task->status.empty(), "a task has a subject and a status");
    require_complete(text, [](std::string_view cut) { return claude.parse_todo(cut); });
  }
  if (const auto session = claude.session_of_todo_path("todos/" + std::string(text)); !session.empty())
    require(session + "-agent-" + session + ".json" == text, "a todo file's name is its session, twice");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto room = std::make_unique<char[]>(size);  // so that reading past its end is detected
  std::copy_n(reinterpret_cast<const char*>(data), size, room.get());
  const std::string_view text(room.get(), size);

  const std::optional<RegistryEntry> entry = parse_entry(text);
  if (entry) require_complete(text, parse_entry);
  try_decide(entry, text);
  try_lists(text);
  if (claude.is_registry_file(text))
    require(claude.parse_registry_file(text, "{}")->pid > 0, "a registry file's name is its pid");
  for (const TodoSource& source : claude.todo_sources(text))
    require(source.path.find("/../") == source.path.npos && !source.path.ends_with("/.."),
            "a source is below its root");
  const SubagentMeta meta = claude.parse_subagent_meta(text);
  require(meta.depth >= 0 && meta.depth <= 1000, "a depth is bounded");
  for (const std::size_t bytes_max : {std::size_t{0}, std::size_t{7}, size}) {
    const std::string line = replace_controls(text, bytes_max);
    require(line.size() <= bytes_max && is_plain(line), "one line is one line");
  }
  return 0;
}
