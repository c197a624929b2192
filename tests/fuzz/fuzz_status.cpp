// Registry, todo and metadata files, which are rewritten while they are read: torn files have no result,
// complete ones are within bounds, and a status detail fits one line. The input is parsed as each kind of
// file and as a file name.
#include <algorithm>
#include <memory>

#include "agents/claude_code/registry_file.hpp"
#include "agents/claude_code/subagent_meta.hpp"
#include "agents/claude_code/todo_files.hpp"
#include "fuzz.hpp"
#include "status/derive_status.hpp"
#include "status/pending_prompt.hpp"
#include "status/text.hpp"

namespace {

using namespace earshot;
using namespace earshot::status;
using fuzz::require;

bool one_of(std::string_view word, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), word) != known.end();
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
void require_whole(std::string_view text, Parse&& parse) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  for (const std::size_t cut : {last, last / 2, last / 3})
    require(cut >= text.size() || !parse(text.substr(0, cut)), "a torn file is none");
}

void require_status(const Evidence& evidence, const TranscriptSummary& said) {
  const Status status = decide(evidence, said);
  require(one_of(status.state, {"working", "waiting", "idle", "ended", "unknown"}), "a state is known");
  require(one_of(status.reason, {"", "permission", "question", "plan", "dialog", "background", "compaction"}),
          "a reason is known");
  require(one_of(status.source, {"registry", "transcript", "clock"}), "a source is known");
  require(status.detail.size() <= detail_bytes_max && is_plain(status.detail), "a detail is a short line");
  require(evidence.life != Life::foreign || !evidence.entry || status.state != "ended",
          "another machine's process has not ended");
  require(status.state != "waiting" || status.source == "registry" || newest_asking(said.calls),
          "`waiting` has evidence");
  const Status settled = settle(status, decide(evidence, said));
  require(settled == status, "the same evidence is the same status, since then");
}

void try_decide(const std::optional<Entry>& entry, std::string_view text) {
  for (const Life life : {Life::alive, Life::dead, Life::foreign}) {
    Evidence evidence;
    evidence.entry = entry ? &*entry : nullptr;
    evidence.life = life;
    evidence.had_entry = entry.has_value() || text.size() % 2 == 0;
    evidence.seen_alive = text.size() % 3 == 0;
    evidence.ended_ms = text.size() % 5 == 0 ? 1'770'000'000'000 : 0;
    evidence.compacting_ms = text.size() % 7 == 0 ? 1'770'000'000'001 : 0;
    evidence.quiet = text.size() % 2 ? std::chrono::hours(1) : std::chrono::hours(0);
    TranscriptSummary said;
    require_status(evidence, said);
    said.known = true;
    said.turn_open = text.size() % 4 != 0;
    said.turn_started = text.substr(0, 24);
    require_status(evidence, said);
    const std::string input(text.substr(text.find('{') == text.npos ? 0 : text.find('{')));
    for (const char* tool : {"Bash", "Write", "AskUserQuestion", "ExitPlanMode", "Task", "mcp__a__b"})
      said.calls.push_back({"c", tool, input, "", ""});
    said.calls.push_back({"d", std::string(text), input, "a", "2026-01-02T03:04:05Z"});
    require_status(evidence, said);
    said.calls.erase(said.calls.begin(), said.calls.end() - 1);
    require_status(evidence, said);
  }
}

void try_lists(std::string_view text) {
  if (const auto todos = parse_todos(text)) {
    require(todos->size() <= tasks_max, "a list is bounded");
    for (const Todo& todo : *todos) require(!todo.status.empty(), "a todo has a status");
    require_whole(text, parse_todos);
    require(!parse_entry(text) && !parse_task(text), "a list is no object");
  }
  if (const auto task = parse_task(text)) {
    require(!task->content.empty() && !task->status.empty(), "a task has a subject and a status");
    require_whole(text, parse_task);
  }
  if (const auto session = session_of_todo_name(text); !session.empty())
    require(std::string(session) + "-agent-" + std::string(session) + ".json" == text,
            "a todo file's name is its session, twice");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto room = std::make_unique<char[]>(size);  // nothing behind it that a reader could lean on
  std::copy_n(reinterpret_cast<const char*>(data), size, room.get());
  const std::string_view text(room.get(), size);

  const std::optional<Entry> entry = parse_entry(text);
  if (entry) require_whole(text, parse_entry);
  try_decide(entry, text);
  try_lists(text);
  if (const auto pid = pid_of_name(text))
    require(*pid > 0 && text.ends_with(std::to_string(*pid) + ".json"), "a registry file's name is its pid");
  if (is_entry_name(text))
    require(text.find('/') == text.npos && text != "..", "a name stays in its directory");
  const tail::AgentMeta meta = tail::parse_meta(text);
  require(meta.depth >= 0 && meta.depth <= 1000, "a depth is bounded");
  for (const std::size_t bytes_max : {std::size_t{0}, std::size_t{7}, size}) {
    const std::string line = one_line(text, bytes_max);
    require(line.size() <= bytes_max && is_plain(line), "one line is one line");
  }
  return 0;
}
