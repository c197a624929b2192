// The watch backends of the daemon and the multiplexer that shares them.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "watch/inotify.hpp"
#include "watch/notification_probe.hpp"
#include "watch/sweep.hpp"
#include "watch/watcher.hpp"

namespace earshot::watch {

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
  /// paths), and `everything`. Use the returned handle to add and remove directories; it is valid for the
  /// lifetime of the mux. A directory stays watched while any client wants it.
  Watcher& add_client(std::vector<std::string> prefixes, ChangeCallback on_change);

  /// Forwards a backend's hint to the clients it concerns.
  void notify(const ChangeHint& hint) const;

  /// The problems of all backends, separated by semicolons.
  std::string problem() const;

 private:
  class Client;
  void watch(std::size_t client, const std::string& directory);
  void unwatch(std::size_t client, const std::string& directory);

  std::vector<Watcher*> backends_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::map<std::string, std::uint32_t, std::less<>> watched_;  // directory → a bit per client that wants it
};

enum class Mode { inotify, sweep, both };

// Connects the backends: inotify finds changes at once, the sweep finds what inotify does not report, and the
// probe decides how often the sweep has to run.
class Watchers {
 public:
  /// `disk` runs the sweep's file system calls; join it before `io` is destroyed.
  Watchers(boost::asio::io_context& io, boost::asio::any_io_executor disk, Mode mode = Mode::both,
           SweepIntervals intervals = {});
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

  WatchMux& mux() { return mux_; }
  /// For users: what is not watched, why, and which limit to raise. Empty: no problem.
  std::string problem() const;
  /// Number of directories watched by inotify.
  std::size_t watches() const { return inotify_ ? inotify_->watches() : 0; }

 private:
  bool notifications_unreliable() const;

  WatchMux mux_;
  NotificationProbe probe_;
  const Clock::duration grace_;  // by then everything has been swept once more
  std::unique_ptr<Inotify> inotify_;
  std::unique_ptr<Sweep> sweep_;
};

}  // namespace earshot::watch
