// Limits of the kernel, the disk and the clock.
#include <dirent.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "cli/doctor_checks.hpp"
#include "common/endpoint.hpp"
#include "common/format.hpp"

namespace earshot::cli::doctor {
namespace {

constexpr std::uint64_t free_problem_bytes = 1 << 20;  // the state directory needs a few KiB
constexpr std::uint64_t free_warning_bytes = 64 << 20;
constexpr std::int64_t first_plausible_ms = 1'735'689'600'000;  // 2025: earlier than the first version
constexpr std::int64_t future_ms = 5 * 60'000;                  // tolerated difference
constexpr std::uint64_t watches_spare = 64;        // the roots themselves, their parents, session directories
constexpr std::uint64_t connections_usual = 1100;  // the daemon's default limit
constexpr std::uint64_t descriptors_spare = 128;   // transcripts, watches, listeners
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

template <class Each>
void for_each_number(const std::string& directory, Each&& each) {
  DIR* const entries = ::opendir(directory.c_str());
  if (entries == nullptr) return;
  while (const dirent* const entry = ::readdir(entries)) {
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') each(std::string(entry->d_name));
  }
  ::closedir(entries);
}

// Processes of other users are not accessible, and their watches count against other limits.
void count_used(Kernel& kernel) {
  std::size_t processes = 0;
  for_each_number("/proc", [&](const std::string& pid) {
    if (++processes > processes_max) return;
    const std::string process = "/proc/" + pid;
    for_each_number(process + "/fd", [&](const std::string& fd) {
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
        {Level::warning,
         "watching",
         health->watch_problem +
             "; directories without a watch are scanned periodically: events are delayed, not lost",
         {}});
  if (health != nullptr && health->watch_problem.empty() && !health->watch_mode.empty()) {
    const bool sweeps = health->watch_mode == "sweep";
    findings.push_back({Level::ok,
                        "watching",
                        sweeps ? "directories are scanned periodically (--watch sweep)"
                               : std::to_string(health->inotify_watches) + " directories are watched",
                        {}});
  }
  const std::uint64_t has = health == nullptr ? 0 : health->inotify_watches;
  const std::uint64_t wanted = directories + watches_spare;
  if (const auto bound = lower_limit(kernel.watches_max, kernel.namespace_watches_max)) {
    const std::uint64_t others = kernel.watches_used > has ? kernel.watches_used - has : 0;
    const std::string text = "inotify: " + std::to_string(bound->value) + " watches per user, " +
                             std::to_string(others) + " used by other programs, " + std::to_string(wanted) +
                             " needed by earshotd";
    const bool enough = others + wanted <= bound->value;
    findings.push_back(
        {enough ? Level::ok : Level::warning, "inotify", text,
         enough ? ""
                : raise("watches", std::max(watches_suggested, 2 * (others + wanted)), bound->of_namespace)});
  } else {
    findings.push_back(
        {Level::ok, "inotify", "not available on this system: directories are scanned periodically", {}});
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
    return {Level::warning, "disk", path + ": the free space cannot be determined", "df -h " + quoted(path)};
  const std::string text = format_bytes(*free) + " free for " + path;
  if (*free < free_problem_bytes)
    return {Level::problem, "disk", text, "free some space:  df -h " + quoted(path)};
  return {*free < free_warning_bytes ? Level::warning : Level::ok, "disk", text,
          *free < free_warning_bytes ? "free some space:  df -h " + quoted(path) : ""};
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
  return {Level::ok, "clock", format_local_day(now_ms) + ", " + format_local_clock(now_ms), {}};
}

}  // namespace earshot::cli::doctor
