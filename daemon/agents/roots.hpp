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
/// by `-`; a program's own rule for its directories (`~/.pi/agent` is `pi`).
std::string root_name(std::string_view directory);

/// `[PROGRAM:][NAME=]DIR` as it is written; parts that are not given are empty.
struct RootArgument {
  std::string_view program, name, directory;
  bool has_name = false;
};
RootArgument split_root(std::string_view argument);

/// Each argument is `[PROGRAM:][NAME=]DIR`. A leading `~/` is the home directory; a relative path starts at
/// the working directory. The default name is root_name(DIR). Without PROGRAM, the directory's content
/// decides; one that is empty, missing or does not answer in time (base/bounded_calls.hpp, whose directories
/// this replaces) is the default program's. Errors: two roots of one name, an invalid NAME, an unknown
/// PROGRAM, a directory of no or of several programs.
Roots parse_roots(const std::vector<std::string>& arguments,
                  const Environment& environment = process_environment);

/// The default directories of all programs, whether they exist or not, and those that their settings name;
/// each directory once.
Roots default_roots(const Environment& environment = process_environment);

/// The programs that the content of a directory proves. Lists at most some thousand entries.
struct RootPrograms {
  std::vector<const AgentProgram*> programs;
  bool is_empty = true;  // it is missing, cannot be read or has no entry
};
RootPrograms programs_of_root(const std::string& directory);

/// The directories of a root that contain transcripts, by index into its program's transcript_directories().
std::vector<std::string> transcript_directories(const Root& root);
std::string transcript_directory(const Root& root, std::size_t index);

struct TranscriptSearch {
  struct Error {
    std::string path;
    int error;  // of errno
  };
  std::vector<std::string> files;  // sorted; for TranscriptFile::open()
  std::vector<Error> errors;       // directories that cannot be read
  std::size_t directories = 0;
};
/// The transcripts below a directory, without following links: those of its program where what is in it
/// proves one, otherwise whatever has the name of a transcript. Another path is returned as it is. Opens no
/// file.
TranscriptSearch transcripts_at(const std::string& path);
/// Whether a search returns transcripts that the daemon does not follow: those of a program's internal calls.
enum class Unfollowed { skip, include };
/// The transcripts of a root. Opens no file.
TranscriptSearch transcripts_of(const Root& root, Unfollowed unfollowed = Unfollowed::skip);

}  // namespace earshot
