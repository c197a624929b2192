// Plays the sessions of one agent program from its session file (format: README.md).
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "status/process_table.hpp"

namespace earshot::demo {

struct SessionFile {
  std::string_view program, text;
};
/// The *.session files of this directory, by program; CMake generates it.
std::span<const SessionFile> session_files();

class Player {
 public:
  /// Paths of the session file are below the directory `root`. Throws std::invalid_argument if its text is
  /// malformed.
  Player(std::string_view text, std::string root);

  /// Begins another session. Returns the time until its first step in ms.
  int begin();
  /// Plays the step that is due. Returns the time until the next one in ms; absent: the session is over.
  /// Throws std::system_error if a file cannot be written.
  std::optional<int> play();
  /// The files that this session has written and not removed.
  const std::set<std::string>& files() const { return files_; }

 private:
  struct Step {
    int after_ms = 0;
    std::string act, file, text;
  };

  std::string fill(std::string_view text);
  std::string value(std::string_view placeholder);

  std::string root_;
  std::map<std::string, std::string, std::less<>> paths_;  // by the names that steps use
  std::vector<Step> steps_;
  status::ProcessTable processes_;

  std::size_t next_ = 0;                                    // step
  std::map<std::string, std::string, std::less<>> values_;  // of placeholders with an argument
  std::set<std::string> files_;
};

}  // namespace earshot::demo
