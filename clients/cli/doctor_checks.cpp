#include "cli/doctor_checks.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "agents/roots.hpp"
#include "agents/transcript_file.hpp"
#include "base/hex.hpp"
#include "base/text.hpp"
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
  Finding finding = check_private("token", path, stat_file(path), FileType::regular, own, true);
  if (finding.level != Level::ok) return finding;
  const TextFile file = read_text_file(path);
  if (!file.error.empty() && stat_file(path).ok())
    return {Level::problem, "token", path + ": " + file.error, "chmod 600 " + quote_for_shell(path)};
  const bool fits = file.text.size() == token_bytes && is_hex(file.text);
  if (file.error.empty() && !fits)
    return {Level::problem, "token", path + " contains no token", "earshot token --rotate"};
  return finding;
}

constexpr std::uint64_t free_problem_bytes = 1 << 20;  // the state directory needs a few KiB
constexpr std::uint64_t free_warning_bytes = 64 << 20;
constexpr std::int64_t first_plausible_ms = 1'735'689'600'000;  // 2025: earlier than the first version
constexpr std::int64_t future_ms = 5 * 60'000;                  // tolerated difference
constexpr std::uint64_t watches_spare = 64;        // the roots themselves, their parents, session directories
constexpr std::uint64_t connections_usual = 1100;  // the daemon's default limit
constexpr std::size_t types_shown_max = 5;
constexpr std::uint64_t descriptors_spare = 128;  // transcripts, watches, listeners
constexpr std::uint64_t watches_suggested = 524'288;
constexpr std::size_t processes_max = 4096;  // others are not counted

std::optional<std::uint64_t> number_in(const std::string& path) {
  const TextFile file = read_text_file(path);
  std::uint64_t value = 0;
  const char* const end = file.text.data() + file.text.size();
  const auto [read, failed] = std::from_chars(file.text.data(), end, value);
  if (!file.error.empty() || failed != std::errc() || read != end) return std::nullopt;
  return value;
}

// Processes of other users are not accessible, and their watches count against other limits.
void count_used(Kernel& kernel) {
  std::size_t processes = 0;
  const auto is_number = [](std::string_view name) { return name[0] >= '0' && name[0] <= '9'; };
  Directory("/proc").for_each([&](std::string_view pid, FileType) {
    if (!is_number(pid) || ++processes > processes_max) return;
    const std::string process = "/proc/" + std::string(pid);
    Directory(process + "/fd").for_each([&](std::string_view name, FileType) {
      const std::string fd(name);
      char target[32] = {};
      const ssize_t size = ::readlink((process + "/fd/" + fd).c_str(), target, sizeof target);
      if (size <= 0 || std::string_view(target, static_cast<std::size_t>(size)) != "anon_inode:inotify")
        return;
      ++kernel.instances_used;
      const std::string info = read_text_file(process + "/fdinfo/" + fd).text;
      for (std::size_t at = info.find("inotify wd:"); at != info.npos; at = info.find("inotify wd:", at + 1))
        ++kernel.watches_used;
    });
  });
}

// The soft limit of another process.
std::optional<std::uint64_t> descriptors_of(std::int64_t pid) {
  constexpr std::string_view row = "Max open files";
  const std::string limits = read_text_file("/proc/" + std::to_string(pid) + "/limits").text;
  const std::size_t at = limits.find(row);
  if (at == limits.npos) return std::nullopt;
  const std::size_t digits = limits.find_first_not_of(' ', at + row.size());
  std::uint64_t value = 0;
  if (digits == limits.npos) return std::nullopt;
  if (std::from_chars(limits.data() + digits, limits.data() + limits.size(), value).ec != std::errc())
    return std::nullopt;
  return value;
}

std::uint64_t own_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

struct Limit {
  std::uint64_t value = 0;
  bool of_namespace = false;
};

std::optional<Limit> lower_limit(std::optional<std::uint64_t> user, std::optional<std::uint64_t> name_space) {
  if (!user && !name_space) return std::nullopt;
  if (!user || (name_space && *name_space < *user)) return Limit{*name_space, true};
  return Limit{*user, false};
}

std::string raise(const char* what, std::uint64_t to, bool of_namespace) {
  if (of_namespace)
    return "limited by this user namespace (container); run outside of it:  sudo sysctl user.max_inotify_" +
           std::string(what) + "=" + std::to_string(to);
  return "sudo sysctl fs.inotify.max_user_" + std::string(what) + "=" + std::to_string(to) +
         "   (permanently: add the setting to /etc/sysctl.d/60-earshot.conf)";
}

}  // namespace

Findings check_daemon(const Probe& probe, std::string_view own_version) {
  if (probe.health) {
    const Health& health = *probe.health;
    Findings findings;
    std::string text = "earshotd " + health.version + " is running";
    if (health.pid > 0) text += ", pid " + std::to_string(health.pid);
    text += ", for " + format_duration(Ms(health.uptime_s * 1000)) + ", with " +
            plural(health.sessions, "session");
    findings.push_back({Level::ok, "daemon", text});
    if (health.version != own_version)
      findings.push_back(
          {Level::warning, "version",
           "the daemon is " + health.version + ", this program " + std::string(own_version),
           "restart the daemon" +
               (health.pid > 0 ? ":  kill " + std::to_string(health.pid) + " && earshotd" : "")});
    findings.push_back({Level::ok, "address", probe.address});
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

namespace {

Finding check_search(const Health::Search& search) {
  if (!search.on) return {Level::ok, "search", "off: `search = false` in earshot.toml"};
  const std::string size = plural(search.documents, "document") + ", " + format_bytes(search.bytes);
  if (!search.problem.empty())
    return {Level::warning, "search", "the index cannot be written: " + search.problem,
            "free space in the state directory; the daemon retries"};
  if (search.building)
    return {Level::ok, "search",
            "the index is being built: " + std::to_string(search.indexed) + " of " +
                std::to_string(search.total) + " transcripts, " + size};
  return {Level::ok, "search", "all transcripts are indexed: " + size};
}

}  // namespace

Findings check_health(const Health& health) {
  Findings findings;
  if (health.redaction && *health.redaction)
    findings.push_back(
        {Level::ok, "redaction",
         "on: secrets in " + std::to_string(health.redaction_rules) + " known formats are redacted"});
  if (health.redaction && !*health.redaction)
    findings.push_back({Level::warning, "redaction", "off: secrets in transcripts are shown",
                        "set `redact = true` in earshot.toml"});
  if (health.search) findings.push_back(check_search(*health.search));
  for (std::size_t i = 0; i < std::min(health.problems.size(), problems_max); ++i) {
    const Health::Problem& problem = health.problems[i];
    findings.push_back({Level::warning, "problem", problem.path + ": " + problem.reason, problem.advice});
  }
  if (health.problems.size() > problems_max)
    findings.push_back({Level::warning, "problem",
                        "and " + std::to_string(health.problems.size() - problems_max) + " more"});
  for (const Health::Unknown& unknown : health.unknown_records) {
    std::string types;
    for (std::size_t i = 0; i < std::min<std::size_t>(unknown.types.size(), types_shown_max); ++i)
      types += (i == 0 ? "" : ", ") + unknown.types[i];
    if (unknown.types.size() > types_shown_max) types += ", …";
    const std::string program = unknown.program + (unknown.version.empty() ? "" : " " + unknown.version);
    findings.push_back({Level::warning, "records",
                        program + " writes " + plural(unknown.types.size(), "record type") +
                            " that earshot does not know: " + types,
                        "nothing is lost but their events; a newer earshot may know them"});
  }
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
        {Level::warning, "host", "and " + std::to_string(offline - hosts_max) + " more are offline"});
  if (online > hosts_max) names += ", …";
  if (online > 0)
    findings.insert(
        findings.begin(),
        {Level::ok, "hosts", std::to_string(online) + (online == 1 ? " is online" : " are online") + names});
  return findings;
}

Finding check_private(std::string_view what, const std::string& path, const FileStat& file, FileType type,
                      uid_t own, bool may_be_absent) {
  const std::string name(what);
  const char* const wanted = type == FileType::directory ? "700" : "600";
  if (file.error == ENOENT && may_be_absent)
    return {Level::ok, name, path + " does not exist yet: the daemon creates it"};
  if (file.error != 0)
    return {Level::problem, name, path + ": " + std::strerror(file.error), "ls -ld " + quote_for_shell(path)};
  if (file.type != type)
    return {Level::problem, name, path + " has the wrong file type",
            "move it away:  ls -ld " + quote_for_shell(path)};
  if (file.owner != own)
    return {Level::problem, name, path + " belongs to another user (uid " + std::to_string(file.owner) + ")",
            "sudo chown " + std::to_string(own) + " " + quote_for_shell(path)};
  if ((file.mode & 077) != 0)
    return {Level::problem, name, path + " is accessible to other users (" + octal(file.mode) + ")",
            "chmod " + std::string(wanted) + " " + quote_for_shell(path)};
  if ((file.mode & 0600) != 0600 || (type == FileType::directory && (file.mode & 0100) == 0))
    return {Level::problem, name, path + " is not accessible to its owner (" + octal(file.mode) + ")",
            "chmod " + std::string(wanted) + " " + quote_for_shell(path)};
  return {Level::ok, name, path + " (" + octal(file.mode) + ")"};
}

Findings check_state(const std::string& state, const std::string& token_file, const std::string& socket,
                     bool running) {
  const uid_t own = ::geteuid();
  Findings findings{check_private("state", state, stat_file(state), FileType::directory, own, !running),
                    token_finding(token_file.empty() ? state + "/token" : token_file, own)};
  const std::string key_path = state + "/key";
  if (const FileStat key = stat_file(key_path); key.error != ENOENT)
    findings.push_back(check_private("key", key_path, key, FileType::regular, own, true));
  if (socket.empty()) {
    if (running)
      findings.push_back({Level::warning, "socket",
                          "the daemon has no socket: this program connects through TCP",
                          "read the daemon's log from its start"});
    return findings;
  }
  Finding of_socket = check_private("socket", socket, stat_file(socket), FileType::other, own, !running);
  const std::string directory = fs::path(socket).parent_path().string();
  Finding of_directory =
      check_private("socket", directory, stat_file(directory), FileType::directory, own, true);
  findings.push_back(of_socket.level != Level::ok || of_directory.level == Level::ok
                         ? std::move(of_socket)
                         : std::move(of_directory));
  return findings;
}

std::vector<Root> default_roots() {
  std::vector<Root> roots;
  for (const earshot::Root& each : earshot::default_roots().roots) {
    Root root;
    root.name = each.name;
    root.path = each.path;
    root.program = each.program;
    roots.push_back(std::move(root));
  }
  return roots;
}

std::vector<Root> unmonitored_roots(const std::vector<std::string>& monitored,
                                    const Environment& environment) {
  const auto home_only = [&](const char* name) {
    return std::string_view(name) == "HOME" ? environment(name) : std::nullopt;
  };
  std::vector<std::string> usual;
  for (const AgentProgram* program : agent_programs())
    for (std::string& path : program->default_roots(home_only)) usual.push_back(std::move(path));
  const auto is_in = [](const std::vector<std::string>& paths, const std::string& path) {
    return std::find(paths.begin(), paths.end(), path) != paths.end();
  };
  std::vector<Root> roots;
  for (const earshot::Root& each : earshot::default_roots(environment).roots) {
    if (is_in(usual, each.path) || is_in(monitored, each.path)) continue;
    Root root;
    root.path = each.path;
    root.program = each.program;
    roots.push_back(std::move(root));
  }
  return roots;
}

Findings check_unmonitored(const std::vector<Root>& roots) {
  Findings findings;
  for (const Root& root : roots)
    if (root.transcripts > 0)
      findings.push_back({Level::warning, "root",
                          "the daemon does not monitor " + root.path + ", where this shell's " +
                              std::string(program_label(root.program->program())) + " keeps " +
                              plural(root.transcripts, "transcript"),
                          "install the service again from this shell, or add the directory to `roots` of "
                          "earshot.toml, and restart it"});
  return findings;
}

void scan_root(Root& root) {
  if (const Directory directory(root.path, Symlinks::follow); directory.error() != 0) {
    root.exists = directory.error() != ENOENT;
    if (root.exists) root.error = std::strerror(directory.error());
    return;
  }
  root.exists = true;
  const auto cannot_read = [&](const std::string& path) {
    ++root.unreadable;
    root.unreadable_example = path;
  };
  const TranscriptSearch found = transcripts_of({root.name, root.path, true, root.program});
  root.directories = 1 + found.directories;
  root.transcripts = found.files.size();
  for (const auto& [path, error] : found.errors)
    if (error == EACCES) cannot_read(path);
  for (const std::string& path : found.files) {
    root.newest_ms = std::max(root.newest_ms, stat_transcript(path).modified_ms());
    if (::access(path.c_str(), R_OK) == 0) continue;
    TranscriptFile file;  // compressed, or unreadable
    char first = 0;
    const int error = file.open(path);
    if (error == EACCES) cannot_read(path);
    if (error == 0 && file.read_at(&first, 1, 0) < 0)
      root.damaged.push_back(path + std::string(compressed_suffix));
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
                          "allow this user to read it:  chmod u+rx " + quote_for_shell(root.path)});
    } else if (!root.exists) {
      if (root.expected)
        findings.push_back({Level::warning, "root", name + " does not exist",
                            "it is monitored once it exists; check the path (--root, earshot.toml)"});
    } else {
      std::string text = name + ": " + plural(root.transcripts, "transcript");
      if (!root.is_mixed && (root.transcripts > 0 || root.program != &default_program()))
        text += " of " + std::string(root.program->program());
      if (root.transcripts > 0) text += ", the newest " + format_age(Ms(now_ms - root.newest_ms)) + " old";
      findings.push_back({Level::ok, "root", text});
    }
    if (root.unreadable > 0)
      findings.push_back(
          {Level::warning, "root",
           std::to_string(root.unreadable) + " below " + root.path + " cannot be read, for example " +
               root.unreadable_example,
           "allow this user to read it:  chmod u+rX " + quote_for_shell(root.unreadable_example)});
  }
  for (const Root& root : roots)
    if (!root.damaged.empty())
      findings.push_back(
          {Level::warning, "root",
           plural(root.damaged.size(), "compressed transcript") + " below " + root.path +
               " cannot be unpacked, for example " + root.damaged.front(),
           "unpack it by hand, if zstd can:  zstd -d --long=31 " + quote_for_shell(root.damaged.front())});
  if (!any && findings.empty()) {
    std::string places;
    for (const Root& root : roots) places += (places.empty() ? "" : ", ") + root.path;
    findings.push_back({Level::warning, "root", "no agent program has written to " + places + " yet",
                        "start one, or configure its directory:  earshotd --root DIR"});
  }
  return findings;
}

Kernel kernel(std::int64_t daemon_pid) {
  Kernel kernel;
  kernel.watches_max = number_in("/proc/sys/fs/inotify/max_user_watches");
  kernel.instances_max = number_in("/proc/sys/fs/inotify/max_user_instances");
  kernel.namespace_watches_max = number_in("/proc/sys/user/max_inotify_watches");
  kernel.namespace_instances_max = number_in("/proc/sys/user/max_inotify_instances");
  count_used(kernel);
  std::optional<std::uint64_t> descriptors;
  if (daemon_pid > 0) descriptors = descriptors_of(daemon_pid);
  kernel.descriptors_max = descriptors.value_or(own_descriptors());
  return kernel;
}

Findings check_kernel(const Kernel& kernel, std::uint64_t directories, const Health* health) {
  Findings findings;
  if (health != nullptr && !health->watch_problem.empty())
    findings.push_back(
        {Level::warning, "watching",
         health->watch_problem +
             "; directories without a watch are scanned periodically: events are delayed, not lost"});
  if (health != nullptr && health->watch_problem.empty() && !health->watch_mode.empty()) {
    const bool sweeps = health->watch_mode == "sweep";
    findings.push_back({Level::ok, "watching",
                        sweeps ? "directories are scanned periodically (--watch sweep)"
                        : health->inotify_watches == 1
                            ? "1 directory is watched"
                            : std::to_string(health->inotify_watches) + " directories are watched"});
  }
  const std::uint64_t has = health == nullptr ? 0 : health->inotify_watches;
  const std::uint64_t wanted = directories + watches_spare;
  if (const auto bound = lower_limit(kernel.watches_max, kernel.namespace_watches_max)) {
    const std::uint64_t others = kernel.watches_used > has ? kernel.watches_used - has : 0;
    const std::string text = std::to_string(bound->value) + " watches per user, " + std::to_string(others) +
                             " used by other programs, " + std::to_string(wanted) + " needed by earshotd";
    const bool enough = others + wanted <= bound->value;
    findings.push_back(
        {enough ? Level::ok : Level::warning, "inotify", text,
         enough ? ""
                : raise("watches", std::max(watches_suggested, 2 * (others + wanted)), bound->of_namespace)});
  } else {
    findings.push_back(
        {Level::ok, "inotify", "not available on this system: directories are scanned periodically"});
  }
  if (const auto bound = lower_limit(kernel.instances_max, kernel.namespace_instances_max)) {
    const bool enough =
        health != nullptr || kernel.instances_used < bound->value;  // a running daemon has its instance
    if (!enough)
      findings.push_back(
          {Level::warning, "inotify",
           std::to_string(kernel.instances_used) + " of " + std::to_string(bound->value) +
               " inotify instances are used by other programs",
           raise("instances", std::max<std::uint64_t>(512, 2 * bound->value), bound->of_namespace)});
  }
  const std::uint64_t connections =
      health != nullptr && health->connections_max > 0 ? health->connections_max : connections_usual;
  const std::uint64_t needed = connections + descriptors_spare;
  const bool enough = kernel.descriptors_max >= needed;
  findings.push_back(
      {enough ? Level::ok : Level::warning, "files",
       std::to_string(kernel.descriptors_max) + " files may be open at once, " + std::to_string(needed) +
           " are needed for " + std::to_string(connections) + " connections",
       enough ? "" : "run ulimit -n 4096 before earshotd, or set LimitNOFILE=4096 in its unit"});
  return findings;
}

Findings check_notifier(const NotifierHealth& health) {
  Findings findings;
  std::string working;
  for (const auto& [name, sink] : health.sinks) {
    if (!sink.is_failing()) {
      working += (working.empty() ? "" : ", ") + name;
      continue;
    }
    findings.push_back({Level::warning, "notices",
                        "the sink " + name + " failed " +
                            plural(static_cast<std::uint64_t>(sink.failures), "time") +
                            " in a row, the last time on " + format_local_day(sink.failed_ms) + " at " +
                            format_local_clock(sink.failed_ms) + ": " + sink.why,
                        "earshot-notify why"});
  }
  if (!health.rules_problem.empty())
    findings.push_back({Level::warning, "notices",
                        "earshot-notify uses its earlier rules: " + health.rules_problem,
                        "earshot-notify check"});
  if (!working.empty()) findings.push_back({Level::ok, "notices", "earshot-notify delivers to " + working});
  return findings;
}

std::optional<std::uint64_t> bytes_free(std::string path) {
  struct statvfs status {};
  while (::statvfs(path.c_str(), &status) != 0) {
    const std::size_t slash = path.rfind('/');
    if (errno != ENOENT || slash == path.npos || path == "/") return std::nullopt;
    path.resize(std::max<std::size_t>(slash, 1));  // the nearest existing directory
  }
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

Finding check_disk(const std::string& path, std::optional<std::uint64_t> free) {
  if (!free)
    return {Level::warning, "disk", path + ": the free space cannot be determined",
            "df -h " + quote_for_shell(path)};
  const std::string text = format_bytes(*free) + " free for " + path;
  if (*free < free_problem_bytes)
    return {Level::problem, "disk", text, "free some space:  df -h " + quote_for_shell(path)};
  return {*free < free_warning_bytes ? Level::warning : Level::ok, "disk", text,
          *free < free_warning_bytes ? "free some space:  df -h " + quote_for_shell(path) : ""};
}

Finding check_clock(std::int64_t now_ms, std::int64_t newest_ms) {
  if (now_ms < first_plausible_ms)
    return {Level::problem, "clock", "the clock is wrong: " + format_local_day(now_ms),
            "sudo timedatectl set-ntp true"};
  if (newest_ms > now_ms + future_ms)
    return {Level::warning, "clock",
            "a transcript is " + format_duration(Ms(newest_ms - now_ms)) +
                " ahead of the clock: displayed ages are wrong",
            "timedatectl status"};
  return {Level::ok, "clock", format_local_day(now_ms) + ", " + format_local_clock(now_ms)};
}

}  // namespace earshot::cli::doctor
