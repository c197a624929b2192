// What the kernel allows: watches and descriptors.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "cli/doctor.hpp"
#include "common/small_file.hpp"

namespace earshot::cli::doctor {
namespace {

constexpr std::uint64_t watches_spare = 64;        // the roots themselves, their parents, session directories
constexpr std::uint64_t connections_usual = 1100;  // the daemon's bound, when it does not say
constexpr std::uint64_t descriptors_spare = 128;   // files that are read, watches, listeners
constexpr std::uint64_t watches_suggested = 524'288;
constexpr std::size_t processes_max = 4096;  // of more the rest is not counted

std::optional<std::uint64_t> number_in(const std::string& path) {
  const SmallFile file = read_small_file(path);
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

// Other users' processes cannot be looked into, and their watches do not count against ours.
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
      const std::string info = read_small_file(process + "/fdinfo/" + fd).text;
      for (std::size_t at = info.find("inotify wd:"); at != info.npos; at = info.find("inotify wd:", at + 1))
        ++kernel.watches_used;
    });
  });
}

// The soft limit of another process, from its table of limits.
std::optional<std::uint64_t> descriptors_of(std::int64_t pid) {
  constexpr std::string_view row = "Max open files";
  const std::string limits = read_small_file("/proc/" + std::to_string(pid) + "/limits").text;
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

struct Bound {
  std::uint64_t value = 0;
  bool of_namespace = false;
};

std::optional<Bound> tighter(std::optional<std::uint64_t> user, std::optional<std::uint64_t> name_space) {
  if (!user && !name_space) return std::nullopt;
  if (!user || (name_space && *name_space < *user)) return Bound{*name_space, true};
  return Bound{*user, false};
}

std::string raise(const char* what, std::uint64_t to, bool of_namespace) {
  if (of_namespace)
    return "this user namespace (container) allows no more; outside of it:  sudo sysctl user.max_inotify_" +
           std::string(what) + "=" + std::to_string(to);
  return "sudo sysctl fs.inotify.max_user_" + std::string(what) + "=" + std::to_string(to) +
         "   (for good: the same line into /etc/sysctl.d/60-earshot.conf)";
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
  if (health != nullptr && !health->watch_trouble.empty())
    findings.push_back({Level::warning,
                        "watching",
                        health->watch_trouble +
                            "; what is not watched is looked at again and again instead: later, never lost",
                        {}});
  if (health != nullptr && health->watch_trouble.empty() && !health->watch_mode.empty()) {
    const bool sweeps = health->watch_mode == "sweep";
    findings.push_back({Level::ok,
                        "watching",
                        sweeps ? "by looking again and again (--watch sweep)"
                               : std::to_string(health->inotify_watches) + " directories are watched",
                        {}});
  }
  const std::uint64_t has = health == nullptr ? 0 : health->inotify_watches;
  const std::uint64_t wanted = directories + watches_spare;
  if (const auto bound = tighter(kernel.watches_max, kernel.namespace_watches_max)) {
    const std::uint64_t others = kernel.watches_used > has ? kernel.watches_used - has : 0;
    const std::string text = "inotify: " + std::to_string(bound->value) + " watches a user, " +
                             std::to_string(others) + " used by other programs, " + std::to_string(wanted) +
                             " wanted here";
    const bool enough = others + wanted <= bound->value;
    findings.push_back(
        {enough ? Level::ok : Level::warning, "inotify", text,
         enough ? ""
                : raise("watches", std::max(watches_suggested, 2 * (others + wanted)), bound->of_namespace)});
  } else {
    findings.push_back(
        {Level::ok, "inotify", "this system has none: transcripts are looked at again and again", {}});
  }
  if (const auto bound = tighter(kernel.instances_max, kernel.namespace_instances_max)) {
    const bool enough =
        health != nullptr || kernel.instances_used < bound->value;  // a daemon that runs has its own
    if (!enough)
      findings.push_back(
          {Level::warning, "inotify",
           std::to_string(kernel.instances_used) + " of " + std::to_string(bound->value) +
               " inotify instances are taken by other programs",
           raise("instances", std::max<std::uint64_t>(512, 2 * bound->value), bound->of_namespace)});
  }
  const std::uint64_t connections =
      health != nullptr && health->connections_max > 0 ? health->connections_max : connections_usual;
  const std::uint64_t needed = connections + descriptors_spare;
  const bool enough = kernel.descriptors_max >= needed;
  findings.push_back({enough ? Level::ok : Level::warning, "files",
                      std::to_string(kernel.descriptors_max) + " may be open at once, " +
                          std::to_string(needed) + " are needed for " + std::to_string(connections) +
                          " connections",
                      enough ? "" : "ulimit -n 4096 before earshotd, or LimitNOFILE=4096 in its unit"});
  return findings;
}

}  // namespace earshot::cli::doctor
