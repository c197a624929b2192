// Replaces the calls on files, clocks and timers: defines base/system.hpp and base/clock.hpp on the simulated
// machine. This library is linked before earshot_base, so the linker does not use the real ones.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "machine.hpp"

using earshot::sim::Machine;
using earshot::sim::Node;
using earshot::sim::NodePtr;

/// Without this descriptor the event loop looks at its timers in each turn: as with one that has always
/// expired, in a tenth of the time.
extern "C" int timerfd_create(int, int) {
  errno = ENOSYS;
  return -1;
}

namespace earshot {

Clock::time_point Clock::now() noexcept {
  return time_point(std::chrono::duration_cast<duration>(Machine::current().now));
}

/// The loop is polled and reads the time in each turn.
Clock::duration Clock::sleep(duration) noexcept { return duration::zero(); }

std::chrono::nanoseconds wall_now() noexcept {
  return std::chrono::nanoseconds(Machine::current().file_time());
}

namespace {

FileStat stat_or_fault(const NodePtr& node) {
  Machine& machine = Machine::current();
  if (!machine.fails(machine.faults.stat_error)) return machine.stat(node);
  FileStat failed;
  failed.error = EIO;
  return failed;
}

}  // namespace

void close_fd(int fd) {
  if (fd >= Machine::first_descriptor)
    Machine::current().close(fd);
  else
    ::close(fd);
}

FileStat stat_file(const std::string& path, Symlinks) { return stat_or_fault(Machine::current().find(path)); }

FileStat stat_file(int fd) { return stat_or_fault(Machine::current().opened(fd)); }

std::string real_path(const std::string& path) { return path; }
std::vector<std::string> links_of(const std::string&) { return {}; }  // there are no symbolic links

Fd open_for_reading(const std::string& path, Symlinks) {
  const int fd = Machine::current().open(path, false);
  if (fd < 0) errno = -fd;
  return Fd(fd);
}

long read_at(int fd, char* buffer, std::size_t size, std::uint64_t offset, ReadMode mode) {
  Machine& machine = Machine::current();
  const NodePtr node = machine.opened(fd);
  if (!node) return -EBADF;
  if (node->type == FileType::directory) return -EISDIR;
  if (mode == ReadMode::no_wait && machine.fails(machine.faults.not_cached)) return -EAGAIN;
  if (machine.fails(machine.faults.read_error)) return machine.random.percent(50) ? -EIO : -ESTALE;
  if (offset >= node->bytes.size()) return 0;
  std::size_t got = std::min<std::uint64_t>(size, node->bytes.size() - offset);
  if (machine.fails(machine.faults.read_short)) got = machine.random.between(1, got);
  std::memcpy(buffer, node->bytes.data() + offset, got);
  return static_cast<long>(got);
}

Directory::Directory(const std::string& path, Symlinks) {
  const int fd = Machine::current().open(path, true);
  error_ = fd < 0 ? -fd : 0;
  fd_.reset(fd);
}

FileStat Directory::stat() const { return stat_or_fault(Machine::current().opened(fd_.get())); }

FileStat Directory::stat_entry(const char* name, Symlinks) const {
  const NodePtr node = Machine::current().opened(fd_.get());
  if (!node) return stat_or_fault(nullptr);
  const auto entry = node->entries.find(std::string_view(name));
  return stat_or_fault(entry == node->entries.end() ? nullptr : entry->second);
}

int Directory::for_each(const std::function<void(std::string_view, FileType)>& visit) const {
  Machine& machine = Machine::current();
  const NodePtr node = machine.opened(fd_.get());
  if (!node) return EBADF;
  if (machine.fails(machine.faults.list_error)) return EIO;
  for (const auto& [name, entry] : node->entries) visit(name, entry->type);
  return 0;
}

}  // namespace earshot
