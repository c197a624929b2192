// Notifications of an overloaded kernel: lost, late, repeated, reordered, or replaced by an overflow.
#pragma once
#include <deque>
#include <map>
#include <string>

#include "machine.hpp"
#include "watch/watcher.hpp"

namespace earshot::sim {

struct NotificationFaults {
  unsigned lost = 0, doubled = 0, late = 0, overflow = 0;  // in percent of the notifications
};

class UnreliableWatcher final : public watch::Watcher {
 public:
  static constexpr std::size_t queue_max = 64;  // more: overflow

  UnreliableWatcher(Machine& machine, NotificationFaults faults, watch::ChangeCallback on_change);
  ~UnreliableWatcher() override { machine_.on_change = nullptr; }

  void watch(const std::string& directory) override;
  void unwatch(const std::string& directory) override;

  /// Delivers one notification that is due; `soon` makes late ones due. False: none.
  bool deliver(bool soon = false);

 private:
  struct Due {
    std::string path;
    std::chrono::nanoseconds at;
  };
  void changed(const NodePtr& directory, const std::string& name);

  Machine& machine_;
  const NotificationFaults notification_faults_;
  const watch::ChangeCallback on_change_;
  struct Watch {
    std::weak_ptr<Node> node;
    std::string path;
  };
  std::map<const Node*, Watch> watches_;  // by the directory itself, whatever its present path
  std::deque<Due> queue_;
  bool overflown_ = false;
};

}  // namespace earshot::sim
