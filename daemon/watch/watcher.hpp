// Doorbells: "look at this path again". A ring says where to look, never what happened, and may be lost, late
// or doubled.
#pragma once
#include <functional>
#include <string>

namespace earshot::watch {

struct ChangeHint {
  enum class Where {
    path,        // one file or directory was named
    directory,   // something in this directory: list it again
    everything,  // notifications were lost: look everywhere
  };
  Where where = Where::path;
  std::string path;    // absolute; empty for everything
  bool entry = false;  // said by the sweep: the name came or went, which a mount that notifies tells of
  bool last = false;   // of those that came together: whoever gathers them may look now
};

using ChangeCallback = std::function<void(const ChangeHint&)>;

/// One operating system mechanism, or the sweep. Either alone is sufficient.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// Rings for entries of this directory that are created, grow, move or go. Not for what lies in its
  /// subdirectories. Idempotent.
  virtual void watch(const std::string& directory) = 0;
  /// No more rings from this directory or from below it.
  virtual void unwatch(const std::string& directory) = 0;
  /// Empty: all is well. Otherwise what is not watched and why, for people ("inotify: the limit of … watches
  /// is reached: …").
  virtual std::string problem() const { return {}; }
};

}  // namespace earshot::watch
