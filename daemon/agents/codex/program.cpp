#include "agents/codex/program.hpp"

#include <algorithm>

#include "agents/codex/records.hpp"
#include "agents/content.hpp"
#include "agents/stream_name.hpp"
#include "core/nested_json.hpp"

namespace earshot::codex {
namespace {

class Format final : public RecordFormat {
 public:
  std::string_view program() const override { return program_name; }
  const Dialect* detect(const Value& json) const override {
    static constexpr Dialect items{"codex-items"}, events{"codex-events"}, paginated{"codex-paginated"};
    const auto era = era_of(json);
    if (!era) return nullptr;
    return *era == Era::items ? &items : *era == Era::events ? &events : &paginated;
  }
  std::unique_ptr<RecordReader> make_reader(bool) const override { return codex::make_reader(); }
};

constexpr std::string_view rollout_prefix = "rollout-", title_index = "session_index.jsonl";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The thread's id at the end of a rollout's stem, a UUID; the whole stem if there is none. A part of a
/// thread that was rewound has the part's id after it: `<thread>_<part>`.
std::string_view thread_of(std::string_view stem) {
  constexpr std::string_view shape = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
  if (const auto part = stem.rfind('_'); part != stem.npos && stem.size() - part - 1 == shape.size())
    stem = stem.substr(0, part);
  if (stem.size() < shape.size()) return stem;
  const std::string_view id = stem.substr(stem.size() - shape.size());
  for (std::size_t at = 0; at < shape.size(); ++at) {
    const bool is_hex =
        is_digit(id[at]) || (id[at] >= 'a' && id[at] <= 'f') || (id[at] >= 'A' && id[at] <= 'F');
    if (shape[at] == '-' ? id[at] != '-' : !is_hex) return stem;
  }
  return id;
}

// `<root>/sessions/YYYY/MM/DD/rollout-<local time>-<thread id>.jsonl`; `archived_sessions/rollout-….jsonl`
class Codex final : public AgentProgram, public TitleFiles, public Writers, public Requests {
 public:
  std::string_view program() const override { return program_name; }
  const RecordFormat& format() const override {
    static const Format format;
    return format;
  }
  const TitleFiles* title_files() const override { return this; }
  const Writers& writers() const override { return *this; }
  const Requests& requests() const override { return *this; }

  std::vector<std::string> default_roots(const Environment& environment) const override {
    if (const auto directory = environment("CODEX_HOME"); directory && !directory->empty())
      return {*directory};
    if (const auto home = environment("HOME"); home && !home->empty()) return {*home + "/.codex"};
    return {};
  }

  std::span<const std::string_view> transcript_directories() const override {
    static constexpr std::string_view directories[] = {"sessions", "archived_sessions"};
    return directories;
  }
  bool is_root_entry(std::string_view path) const override {
    constexpr std::string_view years = "sessions/";
    if (path == "archived_sessions" || path == "thread-writer-locks" || path == title_index) return true;
    return path.size() == years.size() + 4 && path.starts_with(years) &&
           std::all_of(path.begin() + years.size(), path.end(), is_digit);
  }
  FileKind classify(std::string_view, std::string_view name) const override {
    return name.starts_with(rollout_prefix) && name.ends_with(transcript_suffix) ? FileKind::transcript
                                                                                 : FileKind::other;
  }
  // The records name the session: a subagent's is its parent's.
  StreamIdentity identify(std::string_view below) const override {
    StreamIdentity identity;
    identity.session = percent_encode(thread_of(below.substr(below.rfind('/') + 1)));
    identity.is_likely = true;
    return identity;
  }

  bool keeps_transcript_open() const override { return true; }
  // Since 0.150. The file stays after SIGKILL: that it is locked is what proves.
  std::string writer_lock(std::string_view transcript) const override {
    std::string_view stem = transcript.substr(transcript.rfind('/') + 1);
    stem.remove_suffix(std::min(stem.size(), transcript_suffix.size()));
    return std::string(lock_directory()) + '/' + std::string(thread_of(stem)) + ".lock";
  }
  std::string_view lock_directory() const override { return "thread-writer-locks"; }
  // A line for each time that the user renames a thread: `{"id","thread_name","updated_at"}`.
  std::string_view title_path() const override { return title_index; }
  std::string title_file(std::string_view) const override { return std::string(title_index); }
  std::vector<SessionTitle> parse_titles(std::string_view text) const override {
    std::vector<SessionTitle> titles;
    NestedJson json;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      const Value entry = json.parse(line).value;
      const std::string_view id = entry.text_of("id"), title = entry.text_of("thread_name");
      if (!id.empty() && !title.empty()) titles.push_back({percent_encode(id), std::string(title)});
    }
    return titles;
  }
  bool hides_permissions(std::string_view mode) const override { return mode != "never"; }
  std::string_view prompt_reason(std::string_view tool) const override {
    return tool == "request_user_input" ? "question" : "";
  }
  bool may_need_permission(std::string_view tool) const override {
    constexpr std::string_view asked[] = {"shell",        "local_shell", "shell_command", "exec_command",
                                          "unified_exec", "apply_patch", "exec"};
    return tool.starts_with("mcp__") ||
           std::find(std::begin(asked), std::end(asked), tool) != std::end(asked);
  }
  std::string describe_prompt(std::string_view tool, std::string_view input) const override {
    return describe_call(tool, input, prompt_reason(tool));
  }

  std::span<const std::string_view> resume_command() const override {
    static constexpr std::string_view words[] = {"codex", "resume"};
    return words;
  }
  bool matches_process(std::span<const std::string> arguments) const override {
    return !arguments.empty() && arguments[0].substr(arguments[0].rfind('/') + 1) == "codex";
  }
};

}  // namespace

const AgentProgram& program() {
  static const Codex codex;
  return codex;
}

}  // namespace earshot::codex
