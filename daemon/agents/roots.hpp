// The directories that agent programs write to, and their names.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/agent.hpp"

namespace earshot {

struct Root {
  std::string name;      // [A-Za-z0-9_-]+
  std::string path;      // absolute, without a slash at the end
  bool expected = true;  // false: a default directory, which may be missing
  const AgentProgram* program = &default_program();
  friend bool operator==(const Root&, const Root&) = default;
};

struct Roots {
  std::vector<Root> roots;
  std::string error;  // for users; empty: none
};

std::optional<std::string> process_environment(const char* name);

/// The last component of a directory without a leading dot, with other characters than [A-Za-z0-9_-] replaced
/// by `-`.
std::string root_name(std::string_view directory);

/// Each argument is `[NAME=]DIR`. A leading `~/` is the home directory; a relative path starts at the working
/// directory. The default name is root_name(DIR). Two roots of one name, or an invalid NAME, are an error.
Roots parse_roots(const std::vector<std::string>& arguments,
                  const Environment& environment = process_environment);

/// The default directories of all programs, whether they exist or not; each directory once.
Roots default_roots(const Environment& environment = process_environment);

}  // namespace earshot
