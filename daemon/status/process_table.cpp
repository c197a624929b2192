#include "status/process_table.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <charconv>
#include <climits>
#include <filesystem>
#include <utility>

#include "base/bounded_calls.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

#ifdef __linux__
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#endif

namespace earshot::status {
namespace {

constexpr std::size_t stat_bytes_max = 4096;  // 52 numbers and a name of at most 64 bytes
constexpr std::size_t machine_id_bytes_max = 256;
constexpr std::size_t command_line_bytes_max = 4096;  // the rest is not examined
constexpr std::size_t mounts_bytes_max = 1 << 20;
constexpr std::size_t locks_bytes_max = 4 << 20;  // of the list of locks; a longer one is not read
constexpr std::size_t processes_max = 65536;      // examined by a scan; with more it is incomplete
constexpr std::size_t descriptors_max = 1024;     // examined of a process
/// PROC_PID_INIT_INO: all processes of the machine are visible in this namespace.
constexpr std::string_view initial_namespace = ":pid:[4026531836]";

std::string link_target(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

/// The name in parentheses may contain parentheses: fields are counted from the last one.
std::string start_time(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == stat.npos) return {};
  stat.remove_prefix(name_end + 1);
  for (int field = 3; field <= 22; ++field) {
    const auto begin = stat.find_first_not_of(' ');
    if (begin == stat.npos) return {};
    const auto length = std::min(stat.find_first_of(" \n", begin), stat.size()) - begin;
    const std::string_view value = stat.substr(begin, length);
    if (field == 3 && (value == "Z" || value == "X" || value == "x")) return {};  // a zombie
    if (field == 22) return std::string(value);
    stat.remove_prefix(begin + length);
  }
  return {};
}

SmallFile read_stat(const std::string& proc_dir, std::int64_t pid) {
  return read_small_file(proc_dir + "/" + std::to_string(pid) + "/stat", stat_bytes_max);
}

bool accepts_signals(std::int64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM; }

/// `path`: of the process's directory. Empty: a kernel thread, or it has exited.
std::vector<std::string> command_line(const std::string& path) {
  std::vector<std::string> arguments;
  const Fd fd = open_for_reading(path + "/cmdline");
  std::array<char, command_line_bytes_max> buffer;
  const long got = fd ? read_at(fd.get(), buffer.data(), buffer.size(), 0) : 0;
  std::string_view rest(buffer.data(), static_cast<std::size_t>(std::max(got, 0L)));
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\0'), rest.size());
    arguments.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return arguments;
}

/// The kernel marks the link to a removed directory.
std::string without_deleted(std::string path) {
  constexpr std::string_view mark = " (deleted)";
  if (path.ends_with(mark)) path.resize(path.size() - mark.size());
  return path;
}

bool has_open(const std::string& descriptors, std::string_view path) {
  bool found = false;
  std::size_t seen = 0;
  const Directory directory(descriptors, Symlinks::follow);
  if (directory.error()) return false;
  directory.for_each([&](std::string_view name, FileType) {
    if (!found && seen++ < descriptors_max)
      found = link_target(descriptors + '/' + std::string(name)) == path;
  });
  return found;
}

std::vector<std::string> open_transcripts(const std::string& descriptors) {
  std::vector<std::string> files;
  const Directory directory(descriptors, Symlinks::follow);
  if (directory.error()) return files;
  std::size_t seen = 0;
  directory.for_each([&](std::string_view name, FileType) {
    if (seen++ >= descriptors_max) return;
    std::string file = link_target(descriptors + '/' + std::string(name));
    if (file.ends_with(transcript_suffix)) files.push_back(std::move(file));
  });
  return files;
}

/// `fe:00:10952939`: major and minor number in hexadecimal digits, inode.
bool parse_file(std::string_view text, FileLocks::Lock& lock) {
  std::uint32_t major_number = 0, minor_number = 0;
  const auto first = text.find(':'), second = text.rfind(':');
  if (first == text.npos || first == second) return false;
  const auto number = [](std::string_view digits, auto& to, int base) {
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), to, base);
    return failed == std::errc() && end == digits.data() + digits.size();
  };
  if (!number(text.substr(0, first), major_number, 16) ||
      !number(text.substr(first + 1, second - first - 1), minor_number, 16) ||
      !number(text.substr(second + 1), lock.inode, 10))
    return false;
  lock.device = makedev(major_number, minor_number);
  return true;
}

}  // namespace

// proc(5): `1: FLOCK  ADVISORY  WRITE 6104 fe:00:10952939 0 EOF`
FileLocks::FileLocks(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::array<std::string_view, 6> fields;
    std::size_t count = 0;
    while (count < fields.size()) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      if (line.empty()) break;
      fields[count] = line.substr(0, line.find(' '));
      line.remove_prefix(fields[count++].size());
    }
    Lock lock;
    if (count < fields.size() || fields[1] != "FLOCK" || !parse_file(fields[5], lock))
      continue;  // `->`: waits
    const auto [end, failed] =
        std::from_chars(fields[4].data(), fields[4].data() + fields[4].size(), lock.pid);
    if (failed == std::errc() && lock.pid > 0) locks_.push_back(lock);
  }
}

ProcessTable::ProcessTable(std::string proc_dir, const std::string& machine_id_path)
    : proc_dir_(std::move(proc_dir)) {
#ifdef __linux__
  // May be a symlink; if it is missing, agent programs write an empty id too.
  const SmallFile machine = read_small_file(machine_id_path, machine_id_bytes_max, Symlinks::follow);
  pid_domain_ = "linux:" + std::string(trim(machine.text)) + ":" + link_target(proc_dir_ + "/self/ns/pid");
#else
  (void)machine_id_path;
#endif
}

std::string ProcessTable::start_of(std::int64_t pid) const {
  const SmallFile stat = read_stat(proc_dir_, pid);
  return stat.ok() ? start_time(stat.text) : std::string();
}

std::int64_t ProcessTable::time_of(std::string_view start) const {
#ifdef __linux__
  std::int64_t ticks = 0;
  const auto [end, failed] = std::from_chars(start.data(), start.data() + start.size(), ticks);
  const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  timespec now{}, since_boot{};
  if (failed != std::errc() || end != start.data() + start.size() || ticks_per_second <= 0 ||
      ::clock_gettime(CLOCK_REALTIME, &now) != 0 || ::clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0)
    return 0;
  const auto to_ms = [](const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
  };
  return to_ms(now) - to_ms(since_boot) + ticks * 1000 / ticks_per_second;
#else
  (void)start;
  return 0;
#endif
}

Liveness ProcessTable::check(std::int64_t pid, std::string_view start, std::string_view domain) const {
  if (pid <= 0 || pid > 0x7FFFFFFF) return Liveness::dead;
#ifdef __linux__
  if (!domain.empty() && domain != pid_domain_) return Liveness::foreign;
  const SmallFile stat = read_stat(proc_dir_, pid);
  if (!stat.ok()) {
    if (stat.is_missing() || stat.error == ESRCH) return Liveness::dead;
    return accepts_signals(pid) ? Liveness::alive : Liveness::dead;  // no descriptor left, or hidepid
  }
  const std::string actual = start_time(stat.text);
  if (actual.empty()) return Liveness::dead;
  return start.empty() || start == actual ? Liveness::alive : Liveness::dead;
#else
  (void)start, (void)domain;
  return accepts_signals(pid) ? Liveness::alive : Liveness::dead;
#endif
}

/// True if processes of other users are hidden, or that is unknown.
bool ProcessTable::hides_processes() const {
  const SmallFile mounts = read_small_file(proc_dir_ + "/self/mounts", mounts_bytes_max);
  const std::string at =
      ' ' + std::filesystem::path(proc_dir_ + "/.").lexically_normal().parent_path().string() + " proc ";
  const auto found = mounts.text.rfind(at);  // the last one mounted there is visible
  if (found == std::string::npos) return true;
  const std::string_view line =
      std::string_view(mounts.text).substr(found, mounts.text.find('\n', found) - found);
  const auto option = line.find("hidepid=");
  if (option == line.npos) return false;
  const std::string_view value = line.substr(option + 8);
  return !value.starts_with('0') && !value.starts_with("off");
}

ProcessScan ProcessTable::scan() const {
  ProcessScan scan;
#ifdef __linux__
  scan.shows_all = pid_domain_.ends_with(initial_namespace) && !hides_processes();
  const Directory proc(proc_dir_, Symlinks::follow);
  std::size_t seen = 0;
  const int error = proc.for_each([&](std::string_view name, FileType) {
    AgentProcess process;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), process.pid);
    if (failed != std::errc() || end != name.data() + name.size()) return;
    if (++seen > processes_max) return;
    const std::string path = proc_dir_ + '/' + std::string(name);
    const std::vector<std::string> arguments = command_line(path);
    for (const AgentProgram* program : agent_programs())
      if (program->matches_process(arguments)) process.program = program;
    if (!process.program) return;
    process.is_headless = process.program->is_headless(arguments);
    process.cwd = without_deleted(link_target(path + "/cwd"));
    process.open_files = open_transcripts(path + "/fd");
    process.start = start_of(process.pid);
    if (process.start.empty()) return;  // it has exited
    scan.processes.push_back(std::move(process));
  });
  if (error != 0 || proc.error() != 0 || seen > processes_max) scan.shows_all = false;
#endif
  return scan;
}

FileLocks ProcessTable::locks() const {
  return FileLocks(read_small_file(proc_dir_ + "/locks", locks_bytes_max).text);
}

std::vector<std::int64_t> ProcessTable::holders(const std::string& path, const FileLocks& locks) const {
  std::vector<std::int64_t> pids;
  const FileStat file = stat_file(path);
  if (file.error) return pids;
  for (const FileLocks::Lock& lock : locks.all()) {
    if (lock.inode != file.inode) continue;
    // Btrfs and overlayfs have another device there than in stat().
    if (lock.device == file.device || has_open(proc_dir_ + '/' + std::to_string(lock.pid) + "/fd", path))
      pids.push_back(lock.pid);
  }
  return pids;
}

bool is_on_local_file_system(const std::string& path) {
#ifdef __linux__
  if (bounded_directory_of(path)) return false;
  // ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, overlayfs, ZFS, F2FS, bcachefs
  constexpr std::uint32_t local_types[] = {0xEF53,     0x58465342, 0x9123683E, 0x01021994, 0x858458F6,
                                           0x794C7630, 0x2FC12FC1, 0xF2F52010, 0xCA451A4E};
  struct statfs file_system {};
  if (::statfs(path.c_str(), &file_system) != 0) return false;
  const auto type = static_cast<std::uint32_t>(file_system.f_type);
  return std::find(std::begin(local_types), std::end(local_types), type) != std::end(local_types);
#else
  (void)path;
  return false;
#endif
}

struct ExitWatch::Impl {
  explicit Impl(boost::asio::io_context& io) : descriptor(io) {}
  boost::asio::posix::stream_descriptor descriptor;  // a pidfd: readable once the process has exited
  std::function<void()> on_exit;
};

ExitWatch::ExitWatch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

ExitWatch::~ExitWatch() {
  impl_->on_exit = nullptr;
  boost::system::error_code ignored;
  impl_->descriptor.close(ignored);
}

std::unique_ptr<ExitWatch> ExitWatch::open(boost::asio::io_context& io, std::int64_t pid,
                                           std::function<void()> on_exit) {
#if defined(__linux__) && defined(SYS_pidfd_open)
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
  if (!fd) return nullptr;
  auto impl = std::make_shared<Impl>(io);
  boost::system::error_code error;
  impl->descriptor.assign(fd.get(), error);
  if (error) return nullptr;
  fd.release();
  impl->on_exit = std::move(on_exit);
  impl->descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read,
                              [weak = std::weak_ptr<Impl>(impl)](const boost::system::error_code& failed) {
                                const auto self = weak.lock();
                                if (failed || !self || !self->on_exit) return;
                                const auto callback = std::move(self->on_exit);  // may destroy the watch
                                callback();
                              });
  return std::unique_ptr<ExitWatch>(new ExitWatch(std::move(impl)));
#else
  (void)io, (void)pid, (void)on_exit;
  return nullptr;
#endif
}

}  // namespace earshot::status
