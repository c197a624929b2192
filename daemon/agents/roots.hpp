// The directories that agent programs write to, their names, and the transcripts in them.
#pragma once
#include <cstddef>
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

/// The directories of a root of the default program that contain transcripts.
std::vector<std::string> transcript_directories(const std::string& root);

struct TranscriptSearch {
  struct Error {
    std::string path;
    int error;  // of errno
  };
  std::vector<std::string> files;  // sorted
  std::vector<Error> errors;       // directories that cannot be read
  std::size_t directories = 0;
};
/// The transcripts of the default program below a directory, without following links. Another path is
/// returned as it is. Opens no file.
TranscriptSearch transcripts_at(const std::string& path);

}  // namespace earshot
