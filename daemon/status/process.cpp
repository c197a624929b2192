#include "status/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <fstream>
#include <utility>

#ifdef __linux__
#include <sys/syscall.h>
#endif

namespace earshot::status {

namespace {

constexpr std::size_t stat_bytes_max = 4096;  // a line of 52 numbers and a name of at most 64 bytes
constexpr std::size_t machine_id_bytes_max = 256;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const auto first = text.find_first_not_of(blank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string link_target(const std::string& path) {
  std::array<char, 256> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

/// The name in parentheses may hold anything, more parentheses too: fields are counted after the last one.
std::string start_in(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == stat.npos) return {};
  stat.remove_prefix(name_end + 1);
  for (int field = 3; field <= 22; ++field) {
    const auto begin = stat.find_first_not_of(' ');
    if (begin == stat.npos) return {};
    const auto length = std::min(stat.find_first_of(" \n", begin), stat.size()) - begin;
    const std::string_view value = stat.substr(begin, length);
    if (field == 3 && (value == "Z" || value == "X" || value == "x"))
      return {};  // dead, only not yet waited for
    if (field == 22) return std::string(value);
    stat.remove_prefix(begin + length);
  }
  return {};
}

bool answers(std::int64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM; }

}  // namespace

Processes::Processes(std::string proc_dir, const std::string& machine_id_path)
    : proc_dir_(std::move(proc_dir)) {
#ifdef __linux__
  std::string machine(machine_id_bytes_max, '\0');  // may be a symlink; absent: empty, as the program has it
  std::ifstream file(machine_id_path, std::ios::binary);
  file.read(machine.data(), static_cast<std::streamsize>(machine.size()));
  machine.resize(static_cast<std::size_t>(file.gcount()));
  domain_ = "linux:" + std::string(trimmed(machine)) + ":" + link_target(proc_dir_ + "/self/ns/pid");
#else
  (void)machine_id_path;
#endif
}

std::optional<std::string> Processes::stat_of(std::int64_t pid, int& error) const {
  // Not read_small_file: the reason of a failure matters here, and files of proc have no size.
  error = 0;
  const int fd =
      ::open((proc_dir_ + "/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    error = errno;
    return std::nullopt;
  }
  std::string text(stat_bytes_max, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(fd, text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  ::close(fd);
  if (error) return std::nullopt;
  text.resize(filled);
  return text;
}

std::string Processes::start_of(std::int64_t pid) const {
  int error = 0;
  const auto stat = stat_of(pid, error);
  return stat ? start_in(*stat) : std::string();
}

Liveness Processes::check(std::int64_t pid, std::string_view start, std::string_view domain) const {
  if (pid <= 0 || pid > 0x7FFFFFFF) return Liveness::dead;
#ifdef __linux__
  if (!domain.empty() && domain != domain_) return Liveness::foreign;
  int error = 0;
  const auto stat = stat_of(pid, error);
  if (!stat) {
    if (error == ENOENT || error == ESRCH || error == ENOTDIR) return Liveness::dead;
    return answers(pid) ? Liveness::alive
                        : Liveness::dead;  // out of descriptors, a hidden proc: the pid is all there is
  }
  const std::string now = start_in(*stat);
  if (now.empty()) return Liveness::dead;
  return start.empty() || start == now ? Liveness::alive : Liveness::dead;
#else
  (void)start, (void)domain;
  return answers(pid) ? Liveness::alive : Liveness::dead;
#endif
}

struct DeathWatch::Impl {
  explicit Impl(boost::asio::io_context& io) : descriptor(io) {}
  boost::asio::posix::stream_descriptor descriptor;  // a pidfd: readable once the process is dead
  std::function<void()> died;
};

DeathWatch::DeathWatch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

DeathWatch::~DeathWatch() {
  impl_->died = nullptr;
  boost::system::error_code ignored;
  impl_->descriptor.close(ignored);
}

std::unique_ptr<DeathWatch> DeathWatch::open(boost::asio::io_context& io, std::int64_t pid,
                                             std::function<void()> died) {
#if defined(__linux__) && defined(SYS_pidfd_open)
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
  if (fd < 0) return nullptr;
  auto impl = std::make_shared<Impl>(io);
  boost::system::error_code error;
  impl->descriptor.assign(fd, error);
  if (error) {
    ::close(fd);
    return nullptr;
  }
  impl->died = std::move(died);
  impl->descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read,
                              [weak = std::weak_ptr<Impl>(impl)](const boost::system::error_code& failed) {
                                const auto self = weak.lock();
                                if (failed || !self || !self->died) return;
                                const auto tell = std::move(self->died);  // it may destroy the watch
                                tell();
                              });
  return std::unique_ptr<DeathWatch>(new DeathWatch(std::move(impl)));
#else
  (void)io, (void)pid, (void)died;
  return nullptr;
#endif
}

}  // namespace earshot::status
