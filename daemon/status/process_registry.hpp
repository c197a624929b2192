// Every root's `sessions/` directory: which process speaks for which session, and does it live.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "agents/claude_code/registry_file.hpp"
#include "base/clock.hpp"
#include "status/process.hpp"
#include "watch/watcher.hpp"

namespace earshot::status {

struct ProcessRegistryOptions {
  std::string proc_dir, machine_id_path;
  std::chrono::milliseconds beat, retry;
};

class ProcessRegistry {
 public:
  using Changed = std::function<void(const std::string& session)>;
  using Scanned = std::function<void(const std::string& root)>;  // each of its files was looked at

  static constexpr std::size_t entries_max = 4096;  // of all roots; more files are ignored until others go
  static constexpr std::size_t names_max =
      65536;  // in a directory; what comes after them is found by its ring
  static constexpr std::size_t death_watches_max = 256;  // a descriptor each; the rest is asked on the beat
  static constexpr int retries_max = 7;  // of a torn file, 0.6 s in all; then at its next ring

  ProcessRegistry(boost::asio::io_context& io, boost::asio::any_io_executor disk,
                  std::vector<std::string> roots, watch::Watcher& watcher, ProcessRegistryOptions options,
                  Changed changed, Scanned scanned);

  /// Watches, then lists, then looks at each file.
  void scan(const std::string& root);
  /// `below_sessions`: a path below `sessions/`.
  void on_change(const std::string& root, const std::string& below_sessions);
  /// Asks for every process again.
  void check_all();
  void stop();

  struct RegistrySource {
    const RegistryEntry* entry = nullptr;  // null: no file speaks for it
    Liveness life = Liveness::dead;
  };
  /// Of several files: that of a living process, then the one that spoke last.
  RegistrySource entry_of(const std::string& session) const;
  std::vector<std::string> alive_sessions() const;

 private:
  struct Known {
    RegistryEntry entry;
    Liveness life = Liveness::dead;
    std::unique_ptr<DeathWatch> death;
  };
  using Files = std::map<std::string, Known>;  // by path

  void listed(const std::string& directory, const std::vector<std::string>& names);
  void look(const std::string& path, bool again);
  void apply(const std::string& path, RegistryEntry entry);
  void check(const std::string& path, Known& known);
  void drop(Files::iterator file);
  void died(const std::string& path);
  void retry_later(const std::string& path);
  void arm_beat();

  boost::asio::io_context& io_;
  boost::asio::any_io_executor disk_;
  std::vector<std::string> roots_;
  watch::Watcher& watcher_;
  ProcessRegistryOptions options_;
  Changed changed_;
  Scanned scanned_;
  Processes processes_;
  bool kernel_tells_;  // of deaths: only of real processes, not of a made-up proc directory
  Files files_;
  std::unordered_map<std::string, std::set<std::string>> paths_;  // by session
  std::size_t death_watches_ = 0;
  std::map<std::string, int> torn_;  // path → how often it was read again
  bool retry_armed_ = false, beat_armed_ = false, stopped_ = false;
  watch::Timer retry_timer_, beat_timer_;
  std::shared_ptr<char> here_ = std::make_shared<char>();  // gone: answers from the disk come too late
};

}  // namespace earshot::status
