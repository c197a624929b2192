#include "tail/roots.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace earshot::tail {
namespace {

namespace fs = std::filesystem;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_name_char);
}

std::string as_name(std::string_view text) {
  if (text.starts_with('.')) text.remove_prefix(1);
  std::string name(text);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_name_char(c); }, '-');
  return name.empty() ? "root" : name;
}

std::string absolute(std::string_view word, const Environment& environment) {
  std::string path(word);
  if (path == "~" || path.starts_with("~/"))
    if (const auto home = environment("HOME")) path = *home + path.substr(1);
  std::error_code failed;
  if (!path.starts_with('/')) path = (fs::current_path(failed) / path).string();
  path = fs::path(path).lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// The same for two spellings of one directory, whether it exists or not.
std::string real_path(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::weakly_canonical(path, failed);
  return failed ? path : real.string();
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::string root_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return as_name(path.substr(path.rfind('/') + 1));
}

Roots parse_roots(const std::vector<std::string>& words, const Environment& environment) {
  Roots result;
  for (const std::string& word : words) {
    Root root;
    std::string_view directory = word;
    const auto equals = word.find('=');
    if (equals != std::string::npos && word.find('/') > equals) {
      root.name = word.substr(0, equals);
      directory.remove_prefix(equals + 1);
      if (!is_name(root.name)) {
        result.error = "root " + word + ": a name is letters, digits, _ and -, not \"" + root.name + "\"";
        return result;
      }
    }
    if (directory.empty()) {
      result.error = "root " + (word.empty() ? std::string("\"\"") : word) + ": no directory is given";
      return result;
    }
    root.path = absolute(directory, environment);
    if (root.name.empty()) root.name = root_name(root.path);
    for (const Root& other : result.roots) {
      if (other.name != root.name) continue;
      result.error = "two roots are called " + root.name + ": " + other.path + " and " + root.path +
                     "; give one a name of its own: --root NAME=" + root.path;
      return result;
    }
    result.roots.push_back(std::move(root));
  }
  return result;
}

Roots default_roots(const Environment& environment) {
  std::vector<std::string> paths;
  if (const auto directory = environment("CLAUDE_CONFIG_DIR"); directory && !directory->empty())
    paths.push_back(*directory);
  if (const auto home = environment("HOME"); home && !home->empty()) {
    paths.push_back(*home + "/.claude");
    paths.push_back(*home + "/.config/claude");
  }
  Roots result;
  std::vector<std::string> seen;
  for (const std::string& each : paths) {
    Root root{{}, absolute(each, environment), false};
    const std::string real = real_path(root.path);
    if (std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
    seen.push_back(real);
    const auto taken = [&](const std::string& name) {
      return std::any_of(result.roots.begin(), result.roots.end(),
                         [&](const Root& other) { return other.name == name; });
    };
    // The second `claude` is called after its directory as well: `config-claude`.
    root.name = root_name(root.path);
    if (taken(root.name)) root.name = root_name(fs::path(root.path).parent_path().string()) + '-' + root.name;
    for (int n = 2; taken(root.name); ++n) root.name = root_name(root.path) + '-' + std::to_string(n);
    result.roots.push_back(std::move(root));
  }
  if (result.roots.empty()) result.error = "neither HOME nor CLAUDE_CONFIG_DIR is set: say --root DIR";
  return result;
}

}  // namespace earshot::tail
