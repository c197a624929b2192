// Linux's notifications: one instance, directories only. A doorbell that says where to look, and nothing
// else.
#pragma once
#include <sys/inotify.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "watch/watcher.hpp"

namespace earshot::watch {

class Inotify final : public Watcher {
 public:
  static constexpr std::size_t buffer_bytes = 64 << 10;
  static constexpr int reads_max =
      64;  // a wake-up; the rest waits for the next one, so that others run in between

  /// Never throws for the system's limits: without an instance `works()` is false and `problem()` says what
  /// to raise.
  Inotify(boost::asio::io_context& io, ChangeCallback bell);
  ~Inotify() override;

  /// The limit may have been raised, or other watches given up: watches what was refused, while that is
  /// granted, and rings for it later from the loop. Costs one call when nothing has changed.
  void try_again();

  bool works() const { return works_; }
  /// Not everything that was asked for is watched: `problem()` says why.
  bool refused() const { return !trouble_.empty() || !unwatched_.empty(); }
  std::size_t watches() const { return watches_.size(); }
  void watch(const std::string& directory) override;
  void unwatch(const std::string& directory) override;
  std::string problem() const override;

 private:
  using Watches = std::map<std::string, int, std::less<>>;  // directory → watch descriptor
  struct Wakeup;

  void wait();
  void drain();
  void take(const inotify_event& event, const char* name, Wakeup& wakeup);
  void unmap(Watches::iterator at);

  boost::asio::posix::stream_descriptor descriptor_;
  ChangeCallback bell_;
  bool works_ = false;
  std::string trouble_;  // of the instance itself
  Watches watches_;
  // A directory that is reached by two paths has one watch descriptor.
  std::unordered_map<int, std::vector<Watches::iterator>> directories_;
  std::set<std::string> unwatched_;  // the limit of watches refused them
  std::shared_ptr<char> alive_;      // a bell may lead to this object's end
};

}  // namespace earshot::watch
