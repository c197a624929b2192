// The interface of the watch backends. A change hint names a path to check again. It does not say what
// happened, and it may be lost, late or repeated.
#pragma once
#include <functional>
#include <string>

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

/// A watch backend (inotify, the sweep) or one client's handle of a WatchMux.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// Sends hints for entries of this directory that are created, grow, move or disappear, but not for the
  /// content of its subdirectories. Idempotent.
  virtual void watch(const std::string& directory) = 0;
  /// Stops hints for this directory and everything below it.
  virtual void unwatch(const std::string& directory) = 0;
  /// For users: what is not watched, and why. Empty: no problem.
  virtual std::string problem() const { return {}; }
};

}  // namespace earshot::watch
