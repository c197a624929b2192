#include "agents/roots.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "agents/stream_name.hpp"
#include "base/system.hpp"

namespace earshot {
namespace {

namespace fs = std::filesystem;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

std::string absolute(std::string_view directory, const Environment& environment) {
  std::string path(directory);
  if (path == "~" || path.starts_with("~/"))
    if (const auto home = environment("HOME")) path = *home + path.substr(1);
  std::error_code failed;
  if (!path.starts_with('/')) path = (fs::current_path(failed) / path).string();
  path = fs::path(path).lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// The same for all spellings of one directory, whether it exists or not.
std::string canonical(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::weakly_canonical(path, failed);
  return failed ? path : real.string();
}

const Root* find_name(const std::vector<Root>& roots, std::string_view name) {
  const auto found =
      std::find_if(roots.begin(), roots.end(), [&](const Root& root) { return root.name == name; });
  return found == roots.end() ? nullptr : &*found;
}

/// `claude`; if that is taken `config-claude`; if that is taken too `claude-2`.
std::string free_name(const std::vector<Root>& roots, const std::string& path) {
  const std::string name = root_name(path);
  std::string free = name;
  if (find_name(roots, free)) free = root_name(fs::path(path).parent_path().string()) + '-' + name;
  for (int n = 2; find_name(roots, free); ++n) free = name + '-' + std::to_string(n);
  return free;
}

}  // namespace

std::string root_name(std::string_view directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.remove_suffix(1);
  std::string_view last = directory.substr(directory.rfind('/') + 1);
  if (last.starts_with('.')) last.remove_prefix(1);
  std::string name(last);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_name_char(c); }, '-');
  return name.empty() ? "root" : name;
}

std::optional<std::string> process_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

Roots parse_roots(const std::vector<std::string>& arguments, const Environment& environment) {
  Roots result;
  for (const std::string& argument : arguments) {
    Root root;
    std::string_view directory = argument;
    const auto equals = argument.find('=');
    if (equals != std::string::npos && argument.find('/') > equals) {
      root.name = argument.substr(0, equals);
      directory.remove_prefix(equals + 1);
      if (root.name.empty() || root.name.starts_with('.') || root_name(root.name) != root.name) {
        result.error =
            "root " + argument + ": a name consists of letters, digits, _ and -, not \"" + root.name + "\"";
        return result;
      }
    }
    if (directory.empty()) {
      result.error =
          "root " + (argument.empty() ? std::string("\"\"") : argument) + ": no directory is given";
      return result;
    }
    root.path = absolute(directory, environment);
    if (root.name.empty()) root.name = root_name(root.path);
    if (const Root* other = find_name(result.roots, root.name)) {
      result.error = "two roots are called " + root.name + ": " + other->path + " and " + root.path +
                     "; give one of them another name: --root NAME=" + root.path;
      return result;
    }
    result.roots.push_back(std::move(root));
  }
  return result;
}

Roots default_roots(const Environment& environment) {
  Roots result;
  std::vector<std::string> seen;
  for (const AgentProgram* program : agent_programs())
    for (const std::string& directory : program->default_roots(environment)) {
      Root root{{}, absolute(directory, environment), false, program};
      std::string path = canonical(root.path);
      if (std::find(seen.begin(), seen.end(), path) != seen.end()) continue;
      seen.push_back(std::move(path));
      root.name = free_name(result.roots, root.path);
      result.roots.push_back(std::move(root));
    }
  if (result.roots.empty())
    result.error = "no default root is known because HOME is not set: give one with --root DIR";
  return result;
}

std::vector<std::string> transcript_directories(const std::string& root) {
  std::vector<std::string> paths;
  for (const std::string_view name : default_program().transcript_directories())
    paths.push_back(root + "/" + std::string(name));
  return paths;
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

}  // namespace earshot
