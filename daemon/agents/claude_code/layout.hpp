// Where Claude Code keeps its files below a root, and what their paths mean.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "agents/agent.hpp"

namespace earshot::claude_code {

constexpr std::array<std::string_view, 2> transcript_directories = {"projects", "conversations"};
constexpr std::string_view registry_directory = "sessions";
constexpr std::array<std::string_view, 2> todo_directories = {"todos", "tasks"};

/// `$CLAUDE_CONFIG_DIR`, `~/.claude`, `~/.config/claude`, whether they exist or not.
std::vector<std::string> default_roots(const Environment& environment);

// The rules of AgentProgram's methods of the same names.
FileKind classify(std::string_view directory, std::string_view file_name);
bool may_contain_transcripts(std::size_t depth, std::string_view directory_name);
StreamIdentity identify(std::string_view below);
std::string meta_file(std::string_view stem);
std::string_view stem_of(std::string_view file_name);

std::vector<TodoSource> todo_sources(std::string_view session);
std::string session_of_todo_path(std::string_view path);

bool matches_process(std::span<const std::string> arguments);

}  // namespace earshot::claude_code
