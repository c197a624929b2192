#include "cli/terminal_process.hpp"

#include <sys/stat.h>
#include <sys/types.h>
#ifdef __linux__
#include <sys/sysmacros.h>
#endif

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/file.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t stat_bytes_max = 4096, environment_bytes_max = 1 << 20;

std::string proc_path(std::int64_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

// The numbers of /proc/<pid>/stat behind the name and the state.
std::vector<std::int64_t> numbers_of(std::string_view text) {
  constexpr std::size_t wanted = 5;
  std::vector<std::int64_t> numbers;
  while (!text.empty() && numbers.size() < wanted) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == text.npos) break;
    text.remove_prefix(begin);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) break;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return numbers;
}

// A terminal's device number as the kernel writes it into `stat`.
std::string tty_of_device(std::int64_t device) {
#ifdef __linux__
  const auto bits = static_cast<std::uint64_t>(device);
  const unsigned major_number = (bits >> 8) & 0xfff;
  const unsigned minor_number = static_cast<unsigned>((bits & 0xff) | ((bits >> 12) & 0xfff00));
  constexpr unsigned console = 4, first_pts = 136, last_pts = 143, minors = 1 << 20, serial = 64;
  std::string path;
  if (major_number >= first_pts && major_number <= last_pts)
    path = "/dev/pts/" + std::to_string((major_number - first_pts) * minors + minor_number);
  else if (major_number == console)
    path = minor_number < serial ? "/dev/tty" + std::to_string(minor_number)
                                 : "/dev/ttyS" + std::to_string(minor_number - serial);
  struct stat found {};
  if (path.empty() || ::stat(path.c_str(), &found) != 0 || !S_ISCHR(found.st_mode) ||
      found.st_rdev != makedev(major_number, minor_number))
    return {};
  return path;
#else
  static_cast<void>(device);
  return {};
#endif
}

std::string tty_of_streams(std::int64_t pid) {
  for (const char* name : {"fd/0", "fd/1", "fd/2"}) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(proc_path(pid, name), error).string();
    if (!error && (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty"))) return target;
  }
  return {};
}

}  // namespace

std::optional<TerminalProcess> parse_process_stat(std::string_view stat) {
  TerminalProcess process;
  const std::size_t open = stat.find(" ("), close = stat.rfind(") ");
  if (open == stat.npos || close == stat.npos || close < open + 2 || close + 3 > stat.size())
    return std::nullopt;
  if (std::from_chars(stat.data(), stat.data() + open, process.pid).ptr != stat.data() + open)
    return std::nullopt;
  process.name = stat.substr(open + 2, close - open - 2);
  const std::vector<std::int64_t> numbers =
      numbers_of(stat.substr(close + 3));  // parent, group, session, tty, …
  if (numbers.size() < 4) return std::nullopt;
  process.parent = numbers[0];
  if (numbers[3] != 0) process.tty = tty_of_device(numbers[3]);
  return process;
}

std::optional<TerminalProcess> read_process(std::int64_t pid) {
  const SmallFile file = read_small_file(proc_path(pid, "stat"), stat_bytes_max);
  auto process = file.ok() ? parse_process_stat(file.text) : std::nullopt;
  if (process && process->tty.empty()) process->tty = tty_of_streams(pid);
  return process;
}

std::vector<TerminalProcess> process_and_ancestors(std::int64_t pid) {
  std::vector<TerminalProcess> chain;
  while (pid > 1 && chain.size() < ancestors_max) {
    auto process = read_process(pid);
    if (!process) break;
    pid = process->parent;
    chain.push_back(std::move(*process));
  }
  return chain;
}

ProcessEnvironment read_process_environment(std::int64_t pid) {
  const SmallFile file = read_small_file(proc_path(pid, "environ"), environment_bytes_max);
  ProcessEnvironment variables;
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    const std::size_t equals = entry.find('=');
    if (equals != entry.npos) variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
  }
  return variables;
}

}  // namespace earshot::cli
