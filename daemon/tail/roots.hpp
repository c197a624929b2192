// Where agent programs write, and what those places are called.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace earshot {
class AgentProgram;
}

namespace earshot::tail {

struct Root {
  std::string name;      // [A-Za-z0-9_-]+
  std::string path;      // absolute, no slash at the end
  bool expected = true;  // false: one of the default places; that it is not there is no trouble
  bool told = false;     // its transcripts are what other daemons told: told_names.hpp
  const AgentProgram* program = nullptr;  // null: Claude Code
  friend bool operator==(const Root&, const Root&) = default;
};

struct Roots {
  std::vector<Root> roots;
  std::string error;  // for people; empty: all is well
};

/// Reads one environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_environment(const char* name);

/// Each word is `[NAME=]DIR`. A leading `~/` is the home directory; a relative one is below the working
/// directory. Without NAME a root is called by its last component less a leading dot. Two roots of one name,
/// or an unfit NAME, are an error.
Roots parse_roots(const std::vector<std::string>& words,
                  const Environment& environment = process_environment);

/// `$CLAUDE_CONFIG_DIR`, `~/.claude`, `~/.config/claude`, whether they exist or not; the same directory once.
Roots default_roots(const Environment& environment = process_environment);

/// The last component less a leading dot, other characters replaced by `-`.
std::string root_name(std::string_view path);

}  // namespace earshot::tail
