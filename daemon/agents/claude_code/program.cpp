#include "agents/claude_code/program.hpp"

#include "agents/claude_code/evidence.hpp"
#include "agents/claude_code/layout.hpp"
#include "agents/claude_code/reader.hpp"

namespace earshot::claude_code {
namespace {

class ClaudeCode final : public AgentProgram {
 public:
  std::string_view program() const override { return program_name; }
  const RecordReader& reader() const override { return claude_code::reader(); }

  std::vector<std::string> default_roots(const Environment& environment) const override {
    return claude_code::default_roots(environment);
  }

  std::span<const std::string_view> transcript_directories() const override {
    return claude_code::transcript_directories;
  }
  FileKind classify(std::string_view directory, std::string_view file_name) const override {
    return claude_code::classify(directory, file_name);
  }
  bool may_contain_transcripts(std::size_t depth, std::string_view directory_name) const override {
    return claude_code::may_contain_transcripts(depth, directory_name);
  }
  StreamIdentity identify(std::string_view below) const override { return claude_code::identify(below); }
  std::string meta_file(std::string_view stem) const override { return claude_code::meta_file(stem); }
  std::string_view stem_of(std::string_view file_name) const override {
    return claude_code::stem_of(file_name);
  }
  SubagentMeta parse_subagent_meta(std::string_view text) const override {
    return claude_code::parse_subagent_meta(text);
  }

  std::string_view registry_directory() const override { return claude_code::registry_directory; }
  bool is_registry_file(std::string_view file_name) const override {
    return registry_pid(file_name).has_value();
  }
  std::optional<RegistryEntry> parse_registry_file(std::string_view file_name,
                                                   std::string_view text) const override {
    return claude_code::parse_registry_file(file_name, text);
  }

  std::span<const std::string_view> todo_directories() const override {
    return claude_code::todo_directories;
  }
  std::vector<TodoSource> todo_sources(std::string_view session) const override {
    return claude_code::todo_sources(session);
  }
  std::string session_of_todo_path(std::string_view path) const override {
    return claude_code::session_of_todo_path(path);
  }
  std::optional<std::vector<Todo>> parse_todo_list(std::string_view text) const override {
    return claude_code::parse_todo_list(text);
  }
  std::optional<std::uint64_t> todo_number(std::string_view file_name) const override {
    return claude_code::todo_number(file_name);
  }
  std::optional<Todo> parse_todo(std::string_view text) const override {
    return claude_code::parse_todo(text);
  }

  bool matches_process(std::span<const std::string> arguments) const override {
    return claude_code::matches_process(arguments);
  }
};

}  // namespace

const AgentProgram& program() {
  static const ClaudeCode claude_code;
  return claude_code;
}

}  // namespace earshot::claude_code
