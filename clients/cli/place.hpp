// Transcripts and roots by their paths, by the same rules as the daemon. Opens no file.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "agents/stream_name.hpp"

namespace earshot::cli {

/// `path` may be relative; `-` is stdin.
TranscriptPlace place_of(std::string_view path);

struct TranscriptSearch {
  struct Error {
    std::string path;
    int error;  // of errno
  };
  std::vector<std::string> files;  // sorted
  std::vector<Error> errors;       // directories that cannot be read
  std::size_t directories = 0;
};
/// The transcripts below a directory, without following links. Another path is returned as it is.
TranscriptSearch transcripts_at(const std::string& path);

/// The directories of a root that contain transcripts.
std::vector<std::string> transcript_directories(const std::string& root);
/// Where agent programs write by default.
std::vector<std::string> default_root_paths();

}  // namespace earshot::cli
