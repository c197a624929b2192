// Claude Code, Anthropic's command-line coding agent. Its small files are rewritten in place: a reader may
// find them empty or incomplete.
#pragma once
#include "agents/agent.hpp"

namespace earshot::claude_code {

class ClaudeCode : public AgentProgram,
                   public RegistryFiles,
                   public SubagentFiles,
                   public TodoFiles,
                   public Requests,
                   public StatusLines {
 public:
  std::string_view program() const override;
  const RecordFormat& format() const override;
  const RegistryFiles* registry() const override { return this; }
  const SubagentFiles* subagent_files() const override { return this; }
  const TodoFiles* todo_files() const override { return this; }
  const Requests& requests() const override { return *this; }
  const StatusLines* status_lines() const override { return this; }

  // layout.cpp
  /// `$CLAUDE_CONFIG_DIR`, `~/.claude`, `~/.config/claude`.
  std::vector<std::string> default_roots(const Environment& environment) const override;
  bool is_root_entry(std::string_view path) const override;
  std::span<const std::string_view> transcript_directories() const override;
  FileKind classify(std::string_view directory, std::string_view file_name) const override;
  bool may_contain_transcripts(std::size_t depth, std::string_view directory_name) const override;
  StreamIdentity identify(std::string_view below) const override;
  std::string meta_file(std::string_view stem) const override;
  std::string_view stem_of(std::string_view file_name) const override;
  std::string_view registry_directory() const override;
  std::span<const std::string_view> todo_directories() const override;
  std::vector<TodoSource> todo_sources(std::string_view session) const override;
  std::string session_of_todo_path(std::string_view path) const override;
  bool matches_process(std::span<const std::string> arguments) const override;
  /// `claude --resume ID`
  std::span<const std::string_view> resume_command() const override;

  // evidence.cpp
  /// `agent-<id>.meta.json`.
  SubagentMeta parse_subagent_meta(std::string_view text) const override;
  /// `sessions/<pid>.json`. `.key` files in that directory are secrets.
  bool is_registry_file(std::string_view file_name) const override;
  /// Since 2.1.202.
  bool keeps_registry(std::string_view version) const override;
  /// A missing pid is taken from the name.
  std::optional<RegistryEntry> parse_registry_file(std::string_view file_name,
                                                   std::string_view text) const override;
  /// `todos/<session>-agent-<session>.json`: an array of {content, status, activeForm?, id?, priority?}.
  std::optional<std::vector<Todo>> parse_todo_list(std::string_view text) const override;
  /// `tasks/<session>/<n>.json`: {id, subject, activeForm?, status}.
  std::optional<std::uint64_t> todo_number(std::string_view file_name) const override;
  /// Absent without a subject.
  std::optional<Todo> parse_todo(std::string_view text) const override;

  // status_line.cpp
  /// `context_window`, `cost` and `rate_limits` (seconds since 1970, or RFC 3339) are optional in all
  /// versions.
  std::optional<StatusLine> parse_status_line(std::string_view json) const override;

  // pending_prompt.cpp
  std::string_view prompt_reason(std::string_view tool) const override;
  bool may_need_permission(std::string_view tool) const override;
  bool may_ask(std::string_view tool) const override { return tool.starts_with("mcp__"); }
  std::string describe_prompt(std::string_view tool, std::string_view input) const override;
};

const ClaudeCode& program();

}  // namespace earshot::claude_code
