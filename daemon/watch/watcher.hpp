// The interface of the watch backends, and the multiplexer that shares them. A change hint names a path to
// check again. It does not say what happened, and it may be lost, late or repeated.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"

namespace earshot::watch {

struct ChangeHint {
  enum class Where {
    path,        // one file or directory
    directory,   // something in this directory: list it again
    everything,  // notifications were lost: check all paths
  };
  Where where = Where::path;
  std::string path;    // absolute; empty for `everything`
  bool entry = false;  // set by the sweep: the name was created or removed, which a working mount reports
  bool last = false;   // the last hint of one wake-up: a receiver that batches hints can process them now
};

using ChangeCallback = std::function<void(const ChangeHint&)>;

/// list_directory(), to be called on the disk thread.
using DirectoryLister =
    std::function<DirectoryListing(const std::string& path, ListingSymlinks symlinks,
                                   const std::function<bool(const std::string& name)>& is_wanted)>;

/// A watch backend (inotify, the sweep) or one client's handle of a WatchMux.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// Sends hints for entries of this directory that are created, grow, move or disappear, but not for the
  /// content of its subdirectories. Idempotent.
  virtual void watch(const std::string& directory) = 0;
  /// Of a mux's client: when another directory or none is found at this path, because a link on the way was
  /// changed, sends a hint for it. Idempotent; to be repeated after that hint.
  virtual void watch_links(const std::string& /*path*/) {}
  /// Stops hints for this directory and everything below it.
  virtual void unwatch(const std::string& directory) = 0;
  /// As watch(), for a caller that lists the directory with lister() afterwards, and uses that listing.
  virtual void watch_before_listing(const std::string& directory) { watch(directory); }
  /// Lists for the caller what a backend needs to list too, so that each directory is read once. Empty: it
  /// needs nothing.
  virtual DirectoryLister lister() const { return {}; }
  /// For users: which directories are not watched, and why. Empty: no problem.
  virtual std::string problem() const { return {}; }
};

/// True if `path` is `directory` or lies below it.
bool at_or_below(std::string_view path, std::string_view directory);

// Lets several clients share one set of watch backends.
class WatchMux {
 public:
  static constexpr std::size_t clients_max = 32;  // a directory has one bit per client; exceeding it is a bug

  WatchMux();
  ~WatchMux();
  WatchMux(const WatchMux&) = delete;
  WatchMux& operator=(const WatchMux&) = delete;

  /// Adds a backend, which must outlive the last use of the clients. Add all backends before the first
  /// watch().
  void add_backend(Watcher& backend);

  /// Adds a client. `on_change` receives hints for paths at, below or above any of `prefixes` (absolute
  /// paths), and `everything`; earlier clients receive them first. Use the returned handle to add and remove
  /// directories; it is valid for the lifetime of the mux. A directory stays watched while any client wants
  /// it.
  Watcher& add_client(std::vector<std::string> prefixes, ChangeCallback on_change);

  /// Forwards a backend's hint to the clients it concerns. True: what a watched path leads to may be another
  /// directory now, whose files were changed without a notification.
  bool notify(const ChangeHint& hint) const;

  /// The problems of all backends, separated by semicolons.
  std::string problem() const;

 private:
  class Client;
  void watch(std::size_t client, const std::string& directory, void (Watcher::*how)(const std::string&));
  void watch_links(std::size_t client, const std::string& path);
  DirectoryLister lister() const;
  void unwatch(std::size_t client, const std::string& directory);

  std::vector<Watcher*> backends_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::map<std::string, std::set<std::string>> links_;  // name of a link → the watched paths that it decides
  std::map<std::string, std::uint32_t, std::less<>> watched_;  // directory → a bit per client that watches it
};

}  // namespace earshot::watch
