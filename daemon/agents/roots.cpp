#include "agents/roots.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "agents/stream_name.hpp"
#include "agents/transcript_file.hpp"
#include "base/bounded_calls.hpp"
#include "base/file.hpp"
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
  for (const AgentProgram* program : agent_programs())
    if (const std::string_view own = program->root_name(directory); !own.empty()) return std::string(own);
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

RootArgument split_root(std::string_view argument) {
  RootArgument split;
  const auto mark_before_path = [&](char mark, std::string_view stops) {
    const auto at = argument.find(mark);
    return at != argument.npos && argument.find_first_of(stops) > at ? at : argument.npos;
  };
  if (const auto colon = mark_before_path(':', "/=~"); colon != argument.npos) {
    split.program = argument.substr(0, colon);
    argument.remove_prefix(colon + 1);
  }
  if (const auto equals = mark_before_path('=', "/"); equals != argument.npos) {
    split.has_name = true;
    split.name = argument.substr(0, equals);
    argument.remove_prefix(equals + 1);
  }
  split.directory = argument;
  return split;
}

RootPrograms programs_of_root(const std::string& directory) {
  constexpr std::size_t entries_max = 4096;  // examined in each directory
  RootPrograms found;
  std::set<const AgentProgram*> owners;
  const auto examine = [&](const std::string& path, std::string_view prefix, const auto& then) {
    std::size_t seen = 0;
    const Directory entries(path, Symlinks::follow);
    if (entries.error()) return;
    entries.for_each([&](std::string_view name, FileType) {
      if (seen++ >= entries_max) return;
      const std::string entry = std::string(prefix).append(name);
      for (const AgentProgram* program : agent_programs())
        if (program->is_root_entry(entry)) owners.insert(program);
      then(entry);
    });
  };
  std::vector<std::string> below;
  examine(directory, "", [&](const std::string& entry) {
    found.is_empty = false;
    below.push_back(entry);
  });
  for (const AgentProgram* program : agent_programs())
    for (const std::string_view each : program->transcript_directories()) {
      const auto at = std::find(below.begin(), below.end(), each);
      if (at == below.end()) continue;
      below.erase(at);  // of several programs: examined once
      const std::string name(each);
      examine(directory + '/' + name, name + '/', [](const std::string&) {});
    }
  for (const AgentProgram* program : agent_programs())  // not in the order of the directory
    if (owners.contains(program)) found.programs.push_back(program);
  return found;
}

namespace {

std::string names_of(const auto& programs, std::string_view separator) {
  std::string names;
  for (const AgentProgram* program : programs)
    names.append(names.empty() ? "" : separator).append(program->program());
  return names;
}

/// The program whose default directory has this name: `/srv/ada/.codex`; null: none.
const AgentProgram* program_by_name(std::string_view path) {
  constexpr std::string_view home = "/home";
  const Environment only_home = [&](std::string_view name) {
    return name == "HOME" ? std::optional<std::string>(home) : std::nullopt;
  };
  for (const AgentProgram* program : agent_programs())
    for (const std::string& directory : program->default_roots(only_home))
      if (path.ends_with(std::string_view(directory).substr(home.size()))) return program;
  return nullptr;
}

/// The program that is named, or whose files are there; otherwise `error` is set.
const AgentProgram* program_for(const RootArgument& given, const std::string& path, std::string& error) {
  if (!given.program.empty()) {
    if (const AgentProgram* program = find_agent_program(given.program)) return program;
    error = "root " + path + ": there is no agent program \"" + std::string(given.program) +
            "\"; known are " + names_of(agent_programs(), ", ");
    return nullptr;
  }
  bound_calls_below({path}, [](const std::string&) {});  // no answer: no evidence
  const RootPrograms found = programs_of_root(path);
  bound_calls_below({}, {});
  if (found.programs.size() == 1) return found.programs.front();
  if (const AgentProgram* program = found.programs.empty() ? program_by_name(path) : nullptr) return program;
  if (found.is_empty) return &default_program();
  error = "root " + path + ": " +
          (found.programs.empty()
               ? std::string("no agent program's files are in it")
               : "the files of several agent programs are in it (" + names_of(found.programs, ", ") + ")") +
          "; say whose it is: --root PROGRAM:" + path + " (" + names_of(agent_programs(), ", ") + ")";
  return nullptr;
}

}  // namespace

Roots parse_roots(const std::vector<std::string>& arguments, const Environment& environment) {
  Roots result;
  for (const std::string& argument : arguments) {
    const RootArgument given = split_root(argument);
    Root root;
    root.name = given.name;
    if (given.has_name &&
        (root.name.empty() || root.name.starts_with('.') || root_name(root.name) != root.name)) {
      result.error =
          "root " + argument + ": a name consists of letters, digits, _ and -, not \"" + root.name + "\"";
      return result;
    }
    if (given.directory.empty()) {
      result.error =
          "root " + (argument.empty() ? std::string("\"\"") : argument) + ": no directory is given";
      return result;
    }
    root.path = absolute(given.directory, environment);
    root.program = program_for(given, root.path, result.error);
    if (!root.program) return result;
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

namespace {

/// The directory that a program's settings in a default root name; empty: none. Where a relative one is
/// depends on where the program is started.
std::string moved_by_settings(const AgentProgram& program, const std::string& root) {
  constexpr std::size_t settings_bytes_max = 1 << 20;
  if (program.settings_file().empty()) return {};
  const std::string path = root + '/' + std::string(program.settings_file());
  std::string moved = program.moved_transcripts(read_small_file(path, settings_bytes_max).text);
  return moved.starts_with('/') || moved.starts_with("~/") ? moved : std::string();
}

}  // namespace

Roots default_roots(const Environment& environment) {
  Roots result;
  std::set<std::string> seen;
  const auto add = [&](const AgentProgram& program, const std::string& directory) {
    Root root{{}, absolute(directory, environment), false, &program};
    if (!seen.insert(canonical(root.path)).second) return;
    for (const std::string& each : transcript_directories(root)) seen.insert(canonical(each));
    root.name = free_name(result.roots, root.path);
    result.roots.push_back(std::move(root));
  };
  for (const AgentProgram* program : agent_programs())
    for (const std::string& directory : program->default_roots(environment)) {
      add(*program, directory);
      if (const std::string moved = moved_by_settings(*program, absolute(directory, environment));
          !moved.empty())
        add(*program, moved);
    }
  if (result.roots.empty())
    result.error = "no default root is known because HOME is not set: give one with --root DIR";
  return result;
}

std::string transcript_directory(const Root& root, std::size_t index) {
  const std::string_view name = root.program->transcript_directories()[index];
  return name.empty() ? root.path : root.path + '/' + std::string(name);
}

std::vector<std::string> transcript_directories(const Root& root) {
  std::vector<std::string> paths;
  for (std::size_t index = 0; index < root.program->transcript_directories().size(); ++index)
    paths.push_back(transcript_directory(root, index));
  return paths;
}

namespace {

enum class Depth { one, all };

/// Lists the transcripts of `program` in a directory, or below it, depth first.
void search_below(const std::string& top, const AgentProgram& program, TranscriptSearch& search,
                  Unfollowed unfollowed = Unfollowed::skip, Depth depth = Depth::all) {
  const auto is_wanted = [&](std::string_view path) {
    if (depth == Depth::one) return program.classify("", path.substr(top.size() + 1)) == FileKind::transcript;
    return unfollowed == Unfollowed::include ? path.ends_with(transcript_suffix)
                                             : is_transcript_path(program, path);
  };
  std::vector<std::string> open{top};
  for (bool is_top = true; !open.empty(); is_top = false) {
    const std::string directory = std::move(open.back());
    open.pop_back();
    const Directory entries(directory, is_top ? Symlinks::follow : Symlinks::no_follow);
    ++search.directories;
    int error = entries.error();
    if (error == 0)
      error = entries.for_each([&](std::string_view name, FileType type) {
        if (type == FileType::unknown) type = entries.stat_entry(name.data()).type;
        const bool is_file = type == FileType::regular;
        std::string below = directory + "/" + std::string(is_file ? uncompressed_name(name) : name);
        if (type == FileType::directory && depth == Depth::all)
          open.push_back(std::move(below));
        else if (is_file && is_wanted(below))
          search.files.push_back(std::move(below));
      });
    if (error != 0) search.errors.push_back({directory, error});
  }
}

/// In order; one that has a compressed copy, too, once.
void sort(std::vector<std::string>& files) {
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
}

void search_root(const Root& root, Symlinks symlinks, Unfollowed unfollowed, TranscriptSearch& search) {
  for (const std::string& directory : transcript_directories(root))
    if (stat_file(directory, symlinks).is_directory())
      search_below(directory, *root.program, search, unfollowed,
                   directory == root.path ? Depth::one : Depth::all);
}

}  // namespace

TranscriptSearch transcripts_at(const std::string& path) {
  TranscriptSearch search;
  if (path == "-" || !stat_file(path, Symlinks::follow).is_directory()) {
    search.files.push_back(path);
    return search;
  }
  const RootPrograms owners = programs_of_root(path);
  if (owners.programs.size() == 1 && owners.programs.front() != &default_program()) {
    search_root({"", path, true, owners.programs.front()}, Symlinks::follow, Unfollowed::skip, search);
  } else {
    search_below(path, default_program(), search);
  }
  sort(search.files);
  return search;
}

TranscriptSearch transcripts_of(const Root& root, Unfollowed unfollowed) {
  TranscriptSearch search;
  search_root(root, Symlinks::no_follow, unfollowed, search);
  sort(search.files);
  return search;
}

}  // namespace earshot
