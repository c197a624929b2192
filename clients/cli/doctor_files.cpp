// Files that are ours alone, roots, the disk and the clock.
#include <dirent.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/doctor.hpp"
#include "cli/place.hpp"
#include "common/format.hpp"
#include "common/small_file.hpp"

namespace earshot::cli::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t free_problem_bytes = 1 << 20;  // the state directory needs some KiB
constexpr std::uint64_t free_warning_bytes = 64 << 20;
constexpr std::int64_t first_plausible_ms = 1'735'689'600'000;  // 2025: before there was any earshot
constexpr std::int64_t future_ms = 5 * 60'000;                  // a file's time ahead of the clock
constexpr std::size_t token_bytes = 64;

std::string octal(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

// In a command that can be pasted.
std::string quoted(const std::string& path) {
  const bool plain =
      path.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@+,=") ==
      path.npos;
  if (plain && !path.empty()) return path;
  std::string out = "'";
  for (const char c : path) out += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
  return out + "'";
}

Finding token_finding(const std::string& path, uid_t own) {
  Finding finding = check_private("token", stat_private(path), S_IFREG, own, true);
  if (finding.level != Level::ok) return finding;
  const SmallFile file = read_small_file(path);
  if (!file.error.empty() && stat_private(path).error == 0)
    return {Level::problem, "token", path + ": " + file.error, "chmod 600 " + quoted(path)};
  const bool fits =
      file.text.size() == token_bytes && file.text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (file.error.empty() && !fits)
    return {Level::problem, "token", path + " holds no token", "earshot token --rotate"};
  return finding;
}

}  // namespace

PrivatePath stat_private(const std::string& path) {
  PrivatePath file{path};
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    file.error = errno;
    return file;
  }
  file.mode = status.st_mode;
  file.owner = status.st_uid;
  return file;
}

Finding check_private(std::string_view what, const PrivatePath& file, mode_t type, uid_t own,
                      bool may_be_absent) {
  const std::string name(what);
  const char* const wanted = type == S_IFDIR ? "700" : "600";
  if (file.error == ENOENT && may_be_absent)
    return {Level::ok, name, file.path + " is not there yet: the daemon makes it", {}};
  if (file.error != 0)
    return {Level::problem, name, file.path + ": " + std::strerror(file.error),
            "ls -ld " + quoted(file.path)};
  if ((file.mode & S_IFMT) != type)
    return {Level::problem, name, file.path + " is not what it should be",
            "ls -ld " + quoted(file.path) + ", and move it away"};
  if (file.owner != own)
    return {Level::problem, name, file.path + " is another user's (uid " + std::to_string(file.owner) + ")",
            "sudo chown " + std::to_string(own) + " " + quoted(file.path)};
  if ((file.mode & 077) != 0)
    return {Level::problem, name, file.path + " is open to others (" + octal(file.mode) + ")",
            "chmod " + std::string(wanted) + " " + quoted(file.path)};
  if ((file.mode & 0600) != 0600 || (type == S_IFDIR && (file.mode & 0100) == 0))
    return {Level::problem, name, file.path + " is closed to ourselves (" + octal(file.mode) + ")",
            "chmod " + std::string(wanted) + " " + quoted(file.path)};
  return {Level::ok, name, file.path + " (" + octal(file.mode) + ")", {}};
}

Findings check_state(const std::string& state, const std::string& token_file, const std::string& socket,
                     bool running) {
  const uid_t own = ::geteuid();
  Findings findings{check_private("state", stat_private(state), S_IFDIR, own, !running),
                    token_finding(token_file.empty() ? state + "/token" : token_file, own)};
  if (const PrivatePath key = stat_private(state + "/key"); key.error != ENOENT)
    findings.push_back(check_private("key", key, S_IFREG, own, true));
  if (socket.empty()) {
    if (running)
      findings.push_back({Level::warning, "socket", "the daemon has none: this program comes by TCP",
                          "see why in what the daemon said when it started"});
    return findings;
  }
  Finding there = check_private("socket", stat_private(socket), S_IFSOCK, own, !running);
  const std::string directory = fs::path(socket).parent_path().string();
  Finding around = check_private("socket", stat_private(directory), S_IFDIR, own, true);
  findings.push_back(there.level != Level::ok || around.level == Level::ok ? std::move(there)
                                                                           : std::move(around));
  return findings;
}

std::vector<Root> default_roots() {
  std::vector<Root> roots;
  const auto add = [&](const std::string& path, bool expected) {
    std::error_code failed;
    const std::string real = fs::weakly_canonical(path, failed).string();
    for (const Root& root : roots) {
      if (fs::weakly_canonical(root.path, failed).string() == real) return;
    }
    Root root;
    root.path = path;
    root.expected = expected;
    roots.push_back(std::move(root));
  };
  const char* const own = std::getenv("CLAUDE_CONFIG_DIR");
  const char* const home = std::getenv("HOME");
  if (own != nullptr && own[0] != '\0') add(own, true);
  if (home != nullptr && home[0] != '\0') {
    add(std::string(home) + "/.claude", false);
    add(std::string(home) + "/.config/claude", false);
  }
  return roots;
}

void scan_root(Root& root) {
  std::vector<std::string> open{root.path};
  while (!open.empty()) {
    const std::string directory = std::move(open.back());
    open.pop_back();
    DIR* const entries = ::opendir(directory.c_str());
    if (entries == nullptr) {
      if (directory == root.path) {
        root.there = errno != ENOENT;
        if (root.there) root.error = std::strerror(errno);
      } else if (errno == EACCES) {
        ++root.unreadable;
        root.unreadable_example = directory;
      }
      continue;
    }
    root.there = true;
    ++root.directories;
    while (const dirent* const entry = ::readdir(entries)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      const std::string path = directory + "/" + std::string(name);
      // Transcripts lie below these two; the rest of a root is looked at by its name only.
      const bool below = directory != root.path || name == "projects" || name == "conversations";
      struct stat status {};
      if (!below || ::lstat(path.c_str(), &status) != 0) continue;
      if (S_ISDIR(status.st_mode)) open.push_back(path);
      if (!S_ISREG(status.st_mode) || !is_transcript_name(name)) continue;
      ++root.transcripts;
      root.newest_ms = std::max<std::int64_t>(
          root.newest_ms, status.st_mtim.tv_sec * 1000LL + status.st_mtim.tv_nsec / 1'000'000);
      if (::access(path.c_str(), R_OK) == 0) continue;
      ++root.unreadable;
      root.unreadable_example = path;
    }
    ::closedir(entries);
  }
}

Findings check_roots(const std::vector<Root>& roots, std::int64_t now_ms) {
  Findings findings;
  bool any = false;
  for (const Root& root : roots) {
    any = any || root.there;
    const std::string name = (root.name.empty() ? "" : root.name + ": ") + root.path;
    if (!root.error.empty()) {
      findings.push_back({Level::problem, "root", name + ": " + root.error,
                          "let this user read it:  chmod u+rx " + quoted(root.path)});
    } else if (!root.there) {
      if (root.expected)
        findings.push_back({Level::warning, "root", name + " is not there",
                            "it is picked up when it appears; is the path right?  (--root, earshot.toml)"});
    } else {
      std::string text = name + ": " + std::to_string(root.transcripts) +
                         (root.transcripts == 1 ? " transcript" : " transcripts");
      if (root.transcripts > 0) text += ", the newest " + format_age(now_ms - root.newest_ms) + " old";
      findings.push_back({Level::ok, "root", text, {}});
    }
    if (root.unreadable > 0)
      findings.push_back({Level::warning, "root",
                          std::to_string(root.unreadable) + " below " + root.path +
                              " cannot be read, such as " + root.unreadable_example,
                          "let this user read it:  chmod u+rX " + quoted(root.unreadable_example)});
  }
  if (!any && findings.empty()) {
    std::string places;
    for (const Root& root : roots) places += (places.empty() ? "" : ", ") + root.path;
    findings.push_back({Level::warning, "root", "no agent program has written to " + places + " yet",
                        "start one, or say where it writes:  earshotd --root DIR"});
  }
  return findings;
}

std::optional<std::uint64_t> bytes_free(std::string path) {
  struct statvfs status {};
  while (::statvfs(path.c_str(), &status) != 0) {
    const std::size_t slash = path.rfind('/');
    if (errno != ENOENT || slash == path.npos || path == "/") return std::nullopt;
    path.resize(std::max<std::size_t>(slash, 1));  // the nearest directory that is there
  }
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

Finding check_disk(const std::string& path, std::optional<std::uint64_t> free) {
  if (!free)
    return {Level::warning, "disk", path + ": how much is free cannot be told", "df -h " + quoted(path)};
  const std::string text = format_bytes(*free) + " free for " + path;
  if (*free < free_problem_bytes) return {Level::problem, "disk", text, "make room:  df -h " + quoted(path)};
  return {*free < free_warning_bytes ? Level::warning : Level::ok, "disk", text,
          *free < free_warning_bytes ? "make room:  df -h " + quoted(path) : ""};
}

Finding check_clock(std::int64_t now_ms, std::int64_t newest_ms) {
  if (now_ms < first_plausible_ms)
    return {Level::problem, "clock", "it is " + format_local_day(now_ms) + " here: the clock is wrong",
            "sudo timedatectl set-ntp true"};
  if (newest_ms > now_ms + future_ms)
    return {
        Level::warning, "clock",
        "a transcript is " + format_duration(newest_ms - now_ms) + " ahead of the clock: ages will be wrong",
        "timedatectl status"};
  return {Level::ok, "clock", format_local_day(now_ms) + ", " + format_local_clock(now_ms), {}};
}

}  // namespace earshot::cli::doctor
