#include "cli/place.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/system.hpp"

namespace earshot::cli {

TranscriptPlace place_of(std::string_view path) {
  if (path == "-") return {.stream = "stdin", .session = "stdin"};
  return place_transcript(default_program(), std::filesystem::absolute(path).lexically_normal().native());
}

TranscriptSearch transcripts_at(const std::string& path) {
  TranscriptSearch search;
  std::vector<std::string> open;
  const bool is_directory = path != "-" && stat_file(path, Symlinks::follow).is_directory();
  (is_directory ? open : search.files).push_back(path);
  while (!open.empty()) {
    const std::string directory = std::move(open.back());
    open.pop_back();
    const Directory entries(directory, search.directories == 0 ? Symlinks::follow : Symlinks::no_follow);
    ++search.directories;
    int error = entries.error();
    if (error == 0)
      error = entries.for_each([&](std::string_view name, FileType type) {
        std::string below = directory + "/" + std::string(name);
        if (type == FileType::unknown) type = entries.stat_entry(name.data()).type;
        if (type == FileType::directory)
          open.push_back(std::move(below));
        else if (type == FileType::regular && is_transcript_path(default_program(), below))
          search.files.push_back(std::move(below));
      });
    if (error != 0) search.errors.push_back({directory, error});
  }
  std::sort(search.files.begin(), search.files.end());
  return search;
}

std::vector<std::string> transcript_directories(const std::string& root) {
  std::vector<std::string> paths;
  for (const std::string_view name : default_program().transcript_directories())
    paths.push_back(root + "/" + std::string(name));
  return paths;
}

std::vector<std::string> default_root_paths() {
  return default_program().default_roots([](const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace earshot::cli
