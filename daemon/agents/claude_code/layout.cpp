#include <algorithm>
#include <array>

#include "agents/claude_code/program.hpp"
#include "agents/claude_code/reader.hpp"
#include "agents/stream_name.hpp"

namespace earshot::claude_code {
namespace {

constexpr std::array<std::string_view, 2> directories = {"projects", "conversations"};
constexpr std::array<std::string_view, 2> list_directories = {"todos", "tasks"};
constexpr std::string_view meta_suffix = ".meta.json";
constexpr std::string_view agent_prefix = "agent-";
constexpr std::string_view todo_suffix = ".json";

/// True for a name of one directory entry: 1 to 255 bytes, no separator, not `.` or `..`.
bool is_entry_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

/// The session of `<session>-agent-<session>.json`; empty for other names, such as subagents' lists.
std::string_view session_of_todo_file(std::string_view name) {
  constexpr std::string_view middle = "-agent-";
  if (!name.ends_with(todo_suffix)) return {};
  name.remove_suffix(todo_suffix.size());
  if (name.size() <= middle.size() || (name.size() - middle.size()) % 2 != 0) return {};
  const std::size_t length = (name.size() - middle.size()) / 2;
  const std::string_view session = name.substr(0, length);
  const bool is_main_list =
      name.substr(length, middle.size()) == middle && name.substr(length + middle.size()) == session;
  return is_main_list ? session : std::string_view();
}

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

const ClaudeCode& program() {
  static const ClaudeCode claude_code;
  return claude_code;
}

std::string_view ClaudeCode::program() const { return program_name; }
const RecordFormat& ClaudeCode::format() const { return claude_code::format(); }
std::span<const std::string_view> ClaudeCode::transcript_directories() const { return directories; }
std::string_view ClaudeCode::registry_directory() const { return "sessions"; }
std::span<const std::string_view> ClaudeCode::todo_directories() const { return list_directories; }

std::vector<std::string> ClaudeCode::default_roots(const Environment& environment) const {
  std::vector<std::string> roots;
  if (const auto directory = environment("CLAUDE_CONFIG_DIR"); directory && !directory->empty())
    roots.push_back(*directory);
  if (const auto home = environment("HOME"); home && !home->empty()) {
    roots.push_back(*home + "/.claude");
    roots.push_back(*home + "/.config/claude");
  }
  return roots;
}

bool ClaudeCode::is_root_entry(std::string_view path) const {
  constexpr std::string_view registry = "sessions/";
  if (path.starts_with(registry)) return is_registry_file(path.substr(registry.size()));
  return std::find(directories.begin(), directories.end(), path) != directories.end() ||
         std::find(list_directories.begin(), list_directories.end(), path) != list_directories.end();
}

FileKind ClaudeCode::classify(std::string_view directory, std::string_view name) const {
  if (name.ends_with(meta_suffix))
    return name.starts_with(agent_prefix) ? FileKind::subagent_meta : FileKind::other;
  if (!name.ends_with(transcript_suffix) || name.size() == transcript_suffix.size()) return FileKind::other;
  if (name.starts_with("agent-acompact-")) return FileKind::compaction_marker;
  if (name.starts_with("agent-aprompt_suggestion-") || name == "history.jsonl") return FileKind::other;
  if (name == "journal.jsonl" && directory.find("/workflows/") != directory.npos) return FileKind::other;
  return FileKind::transcript;
}

bool ClaudeCode::may_contain_transcripts(std::size_t depth, std::string_view name) const {
  if (depth < 2) return true;
  return name != "tool-results" && name != "scripts";  // below a session: tool output, one file each
}

StreamIdentity ClaudeCode::identify(std::string_view below) const {
  StreamIdentity identity;
  const auto slash = below.rfind('/');
  const std::string_view stem = last_component(below);
  if (slash != below.npos) identity.directory = percent_encode(below.substr(0, below.find('/')));
  if (!stem.starts_with(agent_prefix) || stem.size() == agent_prefix.size()) {
    identity.session = percent_encode(stem);
    return identity;
  }
  identity.agent = percent_encode(stem.substr(agent_prefix.size()));
  // `<session>/subagents/**/agent-<id>`: the directory above the first `subagents`.
  std::string_view before, rest = below;
  for (auto end = rest.find('/'); end != rest.npos; end = rest.find('/')) {
    const std::string_view component = rest.substr(0, end);
    if (component == "subagents" && !before.empty()) {
      identity.session = percent_encode(before);
      break;
    }
    before = component;
    rest.remove_prefix(end + 1);
  }
  return identity;
}

std::string ClaudeCode::meta_file(std::string_view stem) const {
  if (!last_component(stem).starts_with(agent_prefix)) return {};
  return std::string(stem).append(meta_suffix);
}

std::string_view ClaudeCode::stem_of(std::string_view name) const {
  for (const std::string_view suffix : {transcript_suffix, meta_suffix})
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  return name;
}

std::vector<TodoSource> ClaudeCode::todo_sources(std::string_view session) const {
  if (!is_entry_name(session)) return {};
  const std::string name(session);
  return {{"todos", "todos/" + name + "-agent-" + name + ".json", false}, {"tasks", "tasks/" + name, true}};
}

std::string ClaudeCode::session_of_todo_path(std::string_view path) const {
  const auto slash = path.find('/');
  if (slash == path.npos) return {};
  const std::string_view directory = path.substr(0, slash), rest = path.substr(slash + 1);
  if (directory == "todos") return std::string(session_of_todo_file(rest));
  if (directory == "tasks") return std::string(rest.substr(0, rest.find('/')));
  return {};
}

std::span<const std::string_view> ClaudeCode::resume_command() const {
  static constexpr std::string_view words[] = {"claude", "--resume"};
  return words;
}

bool ClaudeCode::matches_process(std::span<const std::string> arguments) const {
  if (arguments.empty()) return false;
  const auto is_program = [](std::string_view path) {
    return last_component(path) == "claude" || path.ends_with("/claude-code/cli.js");
  };
  if (is_program(arguments[0])) return true;
  const std::string_view runtime = last_component(arguments[0]);
  return (runtime == "node" || runtime == "bun") && arguments.size() > 1 && is_program(arguments[1]);
}

}  // namespace earshot::claude_code
