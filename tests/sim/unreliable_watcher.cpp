#include "unreliable_watcher.hpp"

#include <algorithm>
#include <utility>

#include "watch/watchers.hpp"

namespace earshot::sim {

UnreliableWatcher::UnreliableWatcher(Machine& machine, NotificationFaults faults,
                                     watch::ChangeCallback on_change)
    : machine_(machine), notification_faults_(faults), on_change_(std::move(on_change)) {
  machine_.on_change = [this](const NodePtr& directory, const std::string& name) {
    changed(directory, name);
  };
}

void UnreliableWatcher::watch(const std::string& directory) {
  const NodePtr node = machine_.find(directory);
  if (node && node->type == FileType::directory) watches_[node.get()] = {node, directory};
}

void UnreliableWatcher::unwatch(const std::string& directory) {
  std::erase_if(watches_, [&](const auto& each) { return watch::at_or_below(each.second.path, directory); });
}

void UnreliableWatcher::changed(const NodePtr& directory, const std::string& name) {
  const auto at = watches_.find(directory.get());
  if (at == watches_.end() || at->second.node.lock() != directory) return;
  const auto chance = machine_.random.below(100);
  if (chance < notification_faults_.lost) return;
  if (queue_.size() >= queue_max || machine_.random.percent(notification_faults_.overflow)) {
    queue_.clear();
    overflown_ = true;
    return;
  }
  Due due{at->second.path + '/' + name, machine_.now};
  if (machine_.random.percent(notification_faults_.late))
    due.at += std::chrono::milliseconds(machine_.random.between(10, 3000));
  if (machine_.random.percent(notification_faults_.doubled)) queue_.push_back(due);
  queue_.push_back(std::move(due));
}

bool UnreliableWatcher::deliver(bool soon) {
  if (std::exchange(overflown_, false)) {
    on_change_({watch::ChangeHint::Where::everything, {}});
    return true;
  }
  const auto due = std::find_if(queue_.begin(), queue_.end(),
                                [&](const Due& each) { return soon || each.at <= machine_.now; });
  if (due == queue_.end()) return false;
  const std::string path = std::move(due->path);
  queue_.erase(due);
  on_change_({watch::ChangeHint::Where::path, path});
  return true;
}

}  // namespace earshot::sim
