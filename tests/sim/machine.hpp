// A simulated machine: a file system in memory that reuses inodes, has coarse file times and fails randomly,
// and a clock that advances on request. seam.cpp defines base/system.hpp and base/clock.hpp with it, so
// that the code under test is that of the daemon.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.hpp"

namespace earshot::sim {

/// Yields the same numbers on every machine and with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : engine_() % end; }
  std::uint64_t between(std::uint64_t first, std::uint64_t last) { return first + below(last - first + 1); }
  bool percent(unsigned chance) { return below(100) < chance; }
  template <class List>
  auto& one_of(List& list) {
    return list[below(list.size())];
  }

 private:
  std::mt19937_64 engine_;
};

class Machine;

struct Node {
  using Entries = std::map<std::string, std::shared_ptr<Node>, std::less<>>;

  Node(Machine& machine, FileType type);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Machine& machine;
  const FileType type;
  std::uint64_t inode = 0;
  std::uint32_t links = 0;
  std::int64_t born_ns = 0, modified_ns = 0, changed_ns = 0;
  bool denied = false;  // open() fails with EACCES
  bool hidden = false;  // edited without a change of size, possibly followed by appends: found at a resume at
                        // the latest
  std::string bytes;    // of a file
  std::string unwritten;       // the rest of a line whose beginning was written
  Entries entries;             // of a directory
  std::weak_ptr<Node> parent;  // the last directory it was linked in
};
using NodePtr = std::shared_ptr<Node>;

/// Probability of disk faults in percent.
struct Faults {
  unsigned read_error = 0, read_short = 0, not_cached = 0;  // not_cached: RWF_NOWAIT fails
  unsigned open_error = 0, stat_error = 0, list_error = 0;
};

class Machine {
 public:
  static constexpr std::int64_t tick_ns = 4'000'000;  // granularity of file times, as with a 250 Hz kernel

  explicit Machine(std::uint64_t seed);
  ~Machine();

  Random random;
  Faults faults;
  bool has_birth_times = true;  // the file system keeps birth times
  /// Called when an entry of a directory is created, written, moved or removed.
  std::function<void(const NodePtr& directory, const std::string& name)> on_change;

  // Time
  std::chrono::nanoseconds now{std::chrono::hours(1)};  // since the start of the machine
  std::int64_t file_time() const;                       // since 1970, in ticks
  void wait(std::chrono::nanoseconds time) { now += time; }

  // Files, by absolute path. Each change has its own file time.
  NodePtr find(std::string_view path) const;  // null: does not exist
  NodePtr make_directories(const std::string& path);
  NodePtr create(const std::string& path);  // truncates an existing file
  void append(const NodePtr& file, std::string_view bytes);
  void resize(const NodePtr& file, std::size_t bytes);
  void overwrite(const NodePtr& file, std::size_t at, std::string_view bytes);
  bool rename(const std::string& from, const std::string& to);  // replaces an existing file
  bool link(const std::string& from, const std::string& to);
  void remove(const std::string& path);  // recursively
  void deny(const NodePtr& node, bool denied);
  /// Regular files below it, by path.
  std::map<std::string, NodePtr> files(const std::string& directory) const;
  static std::string path_of(const NodePtr& node);

  // Called by seam.cpp
  FileStat stat(const NodePtr& node) const;
  int open(std::string_view path, bool directory);  // below 0: -errno
  void close(int fd) { open_.erase(fd); }
  NodePtr opened(int fd) const;
  std::size_t descriptors() const { return open_.size(); }
  bool fails(unsigned chance) { return chance > 0 && random.percent(chance); }

  /// The machine that seam.cpp uses.
  static Machine& current();
  static constexpr int first_descriptor = 1 << 20;  // smaller ones belong to the real system

 private:
  friend struct Node;
  void touched(const NodePtr& node, bool modified);
  void notify_changed(const NodePtr& node);
  std::pair<NodePtr, std::string> place(std::string_view path) const;  // parent directory and name

  std::vector<std::uint64_t> free_inodes_;
  std::uint64_t inodes_ = 100;
  std::map<int, NodePtr> open_;
  int descriptors_ = first_descriptor;
  NodePtr root_;
};

}  // namespace earshot::sim
