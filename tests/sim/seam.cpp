// The system calls of base/clock.hpp, base/file_system.hpp, tail/files.hpp and watch/directory.hpp, on the
// simulated machine. Linked before the modules' libraries, so that their own definitions are not used.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/file_system.hpp"
#include "machine.hpp"
#include "tail/files.hpp"
#include "watch/directory.hpp"

using earshot::sim::File;
using earshot::sim::Machine;
using earshot::sim::Node;

namespace earshot {
namespace {

FileType type_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::regular:
      return FileType::regular;
    case Node::Kind::directory:
      return FileType::directory;
    case Node::Kind::link:
      return FileType::symlink;
    case Node::Kind::other:
      break;
  }
  return FileType::other;
}

FileStat stat_of(const File& node) {
  Machine& machine = Machine::the();
  FileStat stat;
  if (!node || machine.fails(machine.faults.facts_error)) {
    stat.error = node ? EIO : ENOENT;
    return stat;
  }
  stat.type = type_of(*node);
  stat.mode = 0600;
  stat.links = node->links;
  stat.device = 1;
  stat.inode = node->inode;
  stat.size = node->bytes.size();
  stat.modified_ns = node->modified_ns;
  stat.changed_ns = node->changed_ns;
  if (machine.tells_births) stat.born_ns = node->born_ns;
  return stat;
}

}  // namespace

Clock::time_point Clock::now() noexcept {
  return time_point(std::chrono::duration_cast<duration>(Machine::the().now));
}

// The loop is polled: it reads the clock each time.
Clock::duration Clock::sleep(duration) noexcept { return duration::zero(); }

std::chrono::nanoseconds wall_now() noexcept { return std::chrono::nanoseconds(Machine::the().file_time()); }

void close_fd(int fd) { Machine::the().close(fd); }

FileStat stat_file(const std::string& path, Symlinks) { return stat_of(Machine::the().find(path)); }

FileStat stat_file(int fd) { return stat_of(Machine::the().opened(fd)); }

Fd open_for_reading(const std::string& path, Symlinks) {
  const int fd = Machine::the().open(path, false);
  if (fd < 0) errno = -fd;
  return Fd(fd);
}

long read_at(int fd, char* buffer, std::size_t size, std::uint64_t offset, ReadMode mode) {
  Machine& machine = Machine::the();
  const File node = machine.opened(fd);
  if (!node) return -EBADF;
  if (node->kind == Node::Kind::directory) return -EISDIR;
  if (mode == ReadMode::no_wait && machine.fails(machine.faults.read_waits)) return -EAGAIN;
  if (machine.fails(machine.faults.read_error)) return machine.dice.percent(50) ? -EIO : -ESTALE;
  if (offset >= node->bytes.size()) return 0;
  std::size_t count = std::min<std::uint64_t>(size, node->bytes.size() - offset);
  if (machine.fails(machine.faults.read_short)) count = machine.dice.between(1, count);
  std::memcpy(buffer, node->bytes.data() + offset, count);
  return static_cast<long>(count);
}

Directory::Directory(const std::string& path, Symlinks) {
  const int fd = Machine::the().open(path, true);
  fd_ = Fd(fd);
  error_ = fd < 0 ? -fd : 0;
}

FileStat Directory::stat() const { return stat_file(fd_.get()); }

FileStat Directory::stat_entry(const char* name, Symlinks) const {
  const File node = Machine::the().opened(fd_.get());
  if (!node) return stat_of(nullptr);
  const auto entry = node->entries.find(std::string_view(name));
  return stat_of(entry == node->entries.end() ? nullptr : entry->second);
}

int Directory::for_each(const std::function<void(std::string_view, FileType)>& visit) const {
  Machine& machine = Machine::the();
  const File node = machine.opened(fd_.get());
  if (!node) return EBADF;
  if (machine.fails(machine.faults.list_error)) return EIO;
  for (const auto& [name, entry] : node->entries) visit(name, type_of(*entry));
  return 0;
}

}  // namespace earshot

namespace earshot::watch {
namespace {

std::uint64_t signature(const File& node) {
  if (!node) return 1;
  const std::uint64_t kind = node->kind == Node::Kind::directory ? 1 : 2;
  std::uint64_t hash = node->inode * 4 + kind;
  if (kind == 2)
    for (const auto value :
         {static_cast<std::uint64_t>(node->bytes.size()), static_cast<std::uint64_t>(node->modified_ns),
          static_cast<std::uint64_t>(node->changed_ns)})
      hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash < 2 ? 2 : hash;
}

}  // namespace

std::uint64_t signature_of(const std::string& path) { return signature(Machine::the().find(path)); }

OpenDirectory::OpenDirectory(const std::string& path) : fd_(Machine::the().open(path, true)) {}

OpenDirectory::~OpenDirectory() { Machine::the().close(fd_); }

std::optional<std::int64_t> OpenDirectory::modified_ns() const {
  const File node = Machine::the().opened(fd_);
  if (!node || Machine::the().fails(Machine::the().faults.facts_error)) return std::nullopt;
  return node->modified_ns;
}

bool OpenDirectory::list(const std::function<void(std::string_view, std::uint64_t)>& visit) const {
  const File node = Machine::the().opened(fd_);
  if (!node || Machine::the().fails(Machine::the().faults.list_error)) return false;
  for (const auto& [name, entry] : node->entries) visit(name, signature(entry));
  return true;
}

std::uint64_t OpenDirectory::signature_of(const char* name) const {
  const File node = Machine::the().opened(fd_);
  if (!node) return 1;
  const auto entry = node->entries.find(std::string_view(name));
  return signature(entry == node->entries.end() ? nullptr : entry->second);
}

}  // namespace earshot::watch

namespace earshot::tail {
namespace {

Facts facts_or_fault(const File& node) {
  Machine& machine = Machine::the();
  if (!machine.fails(machine.faults.facts_error)) return machine.facts(node);
  Facts facts;
  facts.error = EIO;
  return facts;
}

}  // namespace

void Descriptor::close() {
  if (fd_ >= 0) Machine::the().close(fd_);
  fd_ = -1;
}

bool Facts::gone() const { return error == ENOENT || error == ENOTDIR; }

Facts facts_of(const std::string& path, bool) { return facts_or_fault(Machine::the().find(path)); }

Facts facts_of(int fd) { return facts_or_fault(Machine::the().opened(fd)); }

Descriptor open_transcript(const std::string& path) {
  const int fd = Machine::the().open(path, false);
  if (fd < 0) errno = -fd;
  return Descriptor(fd < 0 ? -1 : fd);
}

long read_at(int fd, char* into, std::size_t bytes, std::uint64_t offset, bool at_once) {
  Machine& machine = Machine::the();
  const File node = machine.opened(fd);
  if (!node) return -EBADF;
  if (node->kind == Node::Kind::directory) return -EISDIR;
  if (at_once && machine.fails(machine.faults.read_waits)) return -EAGAIN;
  if (machine.fails(machine.faults.read_error)) return machine.dice.percent(50) ? -EIO : -ESTALE;
  if (offset >= node->bytes.size()) return 0;
  std::size_t got = std::min<std::uint64_t>(bytes, node->bytes.size() - offset);
  if (machine.fails(machine.faults.read_short)) got = machine.dice.between(1, got);
  std::memcpy(into, node->bytes.data() + offset, got);
  return static_cast<long>(got);
}

std::optional<std::string> read_small(const std::string& path, std::size_t bytes_max) {
  const File node = Machine::the().find(path);
  if (!node || node->kind != Node::Kind::regular || node->denied || node->bytes.size() > bytes_max)
    return std::nullopt;
  return node->bytes;
}

Listing list(const std::string& directory, Links, const std::function<bool(const std::string&)>& wanted) {
  Machine& machine = Machine::the();
  Listing listing{directory, {}, {}};
  const int fd = machine.open(directory, true);
  if (fd < 0 || machine.fails(machine.faults.list_error)) {
    listing.self.error = fd < 0 ? -fd : EIO;
    machine.close(fd);
    return listing;
  }
  const File node = machine.opened(fd);
  machine.close(fd);
  listing.self = machine.facts(node);
  for (const auto& [name, entry] : node->entries)
    if (entry->kind == Node::Kind::directory || wanted(name))
      listing.entries.push_back({name, facts_or_fault(entry)});
  return listing;
}

}  // namespace earshot::tail
