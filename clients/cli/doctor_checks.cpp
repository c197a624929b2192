#include "cli/doctor_checks.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/place.hpp"
#include "common/format.hpp"

namespace earshot::cli::doctor {
namespace {

constexpr std::size_t problems_max = 20;  // of more only the number is listed
constexpr std::size_t hosts_max = 20;     // the same
namespace fs = std::filesystem;

constexpr std::size_t token_bytes = 64;

std::string octal(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

Finding token_finding(const std::string& path, uid_t own) {
  Finding finding = check_private("token", stat_private(path), S_IFREG, own, true);
  if (finding.level != Level::ok) return finding;
  const TextFile file = read_text_file(path);
  if (!file.error.empty() && stat_private(path).error == 0)
    return {Level::problem, "token", path + ": " + file.error, "chmod 600 " + quoted(path)};
  const bool fits =
      file.text.size() == token_bytes && file.text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (file.error.empty() && !fits)
    return {Level::problem, "token", path + " contains no token", "earshot token --rotate"};
  return finding;
}

}  // namespace

std::string quoted(const std::string& path) {
  const bool plain =
      path.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@+,=") ==
      path.npos;
  if (plain && !path.empty()) return path;
  std::string out = "'";
  for (const char c : path) out += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
  return out + "'";
}

Findings check_daemon(const Probe& probe, std::string_view own_version) {
  if (probe.health) {
    const Health& health = *probe.health;
    Findings findings;
    std::string text = "earshotd " + health.version + " is running";
    if (health.pid > 0) text += ", pid " + std::to_string(health.pid);
    text += ", for " + format_duration(Ms(health.uptime_s * 1000)) + ", with " +
            std::to_string(health.sessions) + (health.sessions == 1 ? " session" : " sessions");
    findings.push_back({Level::ok, "daemon", text, {}});
    if (health.version != own_version)
      findings.push_back(
          {Level::warning, "version",
           "the daemon is " + health.version + ", this program " + std::string(own_version),
           "restart the daemon" +
               (health.pid > 0 ? ":  kill " + std::to_string(health.pid) + " && earshotd" : "")});
    findings.push_back({Level::ok, "address", probe.address, {}});
    return findings;
  }
  if (probe.http_status == 0)
    return {{Level::problem, "daemon", "not running, or cannot be reached: " + probe.error, "earshotd"}};
  if (probe.http_status == 404)
    return {{Level::warning, "daemon",
             "a daemon runs at " + probe.address + ", but it is older than this program",
             "restart it with the installed version:  earshotd"}};
  if (probe.http_status == 401 || probe.http_status == 403)
    return {{Level::problem, "daemon",
             "a daemon runs at " + probe.address + ", but refuses access: " + probe.error,
             "pass its state directory:  earshot doctor --state DIR"}};
  return {{Level::problem, "daemon",
           "the server at " + probe.address + " does not respond like earshotd: " + probe.error,
           "find out which program listens there:  ss -ltnp"}};
}

Findings check_health(const Health& health) {
  Findings findings;
  if (health.redaction && *health.redaction)
    findings.push_back(
        {Level::ok,
         "redaction",
         "on: secrets in " + std::to_string(health.redaction_rules) + " known formats are redacted",
         {}});
  if (health.redaction && !*health.redaction)
    findings.push_back({Level::warning, "redaction", "off: secrets in transcripts are shown",
                        "set `redact = true` in earshot.toml"});
  for (std::size_t i = 0; i < std::min(health.problems.size(), problems_max); ++i) {
    const Health::Problem& problem = health.problems[i];
    findings.push_back({Level::warning, "problem", problem.path + ": " + problem.reason, problem.advice});
  }
  if (health.problems.size() > problems_max)
    findings.push_back({Level::warning,
                        "problem",
                        "and " + std::to_string(health.problems.size() - problems_max) + " more",
                        {}});
  if (health.connections_max > 0 && health.connections * 10 >= health.connections_max * 9)
    findings.push_back({Level::warning, "clients",
                        std::to_string(health.connections) + " of " + std::to_string(health.connections_max) +
                            " connections are in use",
                        "increase `connections` in [limits] of earshot.toml"});
  return findings;
}

Findings check_hosts(const Health& health, std::int64_t now_ms) {
  Findings findings;
  std::string names;
  std::size_t online = 0, offline = 0;
  for (const Health::Host& host : health.hosts) {
    if (host.online) {
      if (online++ < hosts_max) names += (names.empty() ? ": " : ", ") + host.name;
      continue;
    }
    if (offline++ >= hosts_max) continue;
    std::string text = host.name + " is offline";
    if (const auto since = parse_time(host.last_seen))
      text += ", last seen " + format_age(Ms(now_ms - *since)) + " ago, " + format_local_day(*since) + ", " +
              format_local_clock(*since);
    findings.push_back({Level::warning, "host", text, "on that host:  earshot doctor"});
  }
  if (offline > hosts_max)
    findings.push_back(
        {Level::warning, "host", "and " + std::to_string(offline - hosts_max) + " more are offline", {}});
  if (online > hosts_max) names += ", …";
  if (online > 0)
    findings.insert(findings.begin(),
                    {Level::ok,
                     "hosts",
                     std::to_string(online) + (online == 1 ? " is online" : " are online") + names,
                     {}});
  return findings;
}

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
    return {Level::ok, name, file.path + " does not exist yet: the daemon creates it", {}};
  if (file.error != 0)
    return {Level::problem, name, file.path + ": " + std::strerror(file.error),
            "ls -ld " + quoted(file.path)};
  if ((file.mode & S_IFMT) != type)
    return {Level::problem, name, file.path + " has the wrong file type",
            "move it away:  ls -ld " + quoted(file.path)};
  if (file.owner != own)
    return {Level::problem, name,
            file.path + " belongs to another user (uid " + std::to_string(file.owner) + ")",
            "sudo chown " + std::to_string(own) + " " + quoted(file.path)};
  if ((file.mode & 077) != 0)
    return {Level::problem, name, file.path + " is accessible to other users (" + octal(file.mode) + ")",
            "chmod " + std::string(wanted) + " " + quoted(file.path)};
  if ((file.mode & 0600) != 0600 || (type == S_IFDIR && (file.mode & 0100) == 0))
    return {Level::problem, name, file.path + " is not accessible to its owner (" + octal(file.mode) + ")",
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
      findings.push_back({Level::warning, "socket",
                          "the daemon has no socket: this program connects through TCP",
                          "read the daemon's log from its start"});
    return findings;
  }
  Finding of_socket = check_private("socket", stat_private(socket), S_IFSOCK, own, !running);
  const std::string directory = fs::path(socket).parent_path().string();
  Finding of_directory = check_private("socket", stat_private(directory), S_IFDIR, own, true);
  findings.push_back(of_socket.level != Level::ok || of_directory.level == Level::ok
                         ? std::move(of_socket)
                         : std::move(of_directory));
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
        root.exists = errno != ENOENT;
        if (root.exists) root.error = std::strerror(errno);
      } else if (errno == EACCES) {
        ++root.unreadable;
        root.unreadable_example = directory;
      }
      continue;
    }
    root.exists = true;
    ++root.directories;
    while (const dirent* const entry = ::readdir(entries)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      const std::string path = directory + "/" + std::string(name);
      // Transcripts are below these two directories; the rest of a root is not read.
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
    any = any || root.exists;
    const std::string name = (root.name.empty() ? "" : root.name + ": ") + root.path;
    if (!root.error.empty()) {
      findings.push_back({Level::problem, "root", name + ": " + root.error,
                          "allow this user to read it:  chmod u+rx " + quoted(root.path)});
    } else if (!root.exists) {
      if (root.expected)
        findings.push_back({Level::warning, "root", name + " does not exist",
                            "it is monitored once it exists; check the path (--root, earshot.toml)"});
    } else {
      std::string text = name + ": " + std::to_string(root.transcripts) +
                         (root.transcripts == 1 ? " transcript" : " transcripts");
      if (root.transcripts > 0) text += ", the newest " + format_age(Ms(now_ms - root.newest_ms)) + " old";
      findings.push_back({Level::ok, "root", text, {}});
    }
    if (root.unreadable > 0)
      findings.push_back({Level::warning, "root",
                          std::to_string(root.unreadable) + " below " + root.path +
                              " cannot be read, for example " + root.unreadable_example,
                          "allow this user to read it:  chmod u+rX " + quoted(root.unreadable_example)});
  }
  if (!any && findings.empty()) {
    std::string places;
    for (const Root& root : roots) places += (places.empty() ? "" : ", ") + root.path;
    findings.push_back({Level::warning, "root", "no agent program has written to " + places + " yet",
                        "start one, or configure its directory:  earshotd --root DIR"});
  }
  return findings;
}

}  // namespace earshot::cli::doctor
