#include "doorbell.hpp"

#include <algorithm>
#include <utility>

#include "watch/watch_mux.hpp"

namespace earshot::sim {

ChangeCallback::ChangeCallback(Machine& machine, Bell bell, watch::ChangeCallback ring)
    : machine_(machine), bell_(bell), ring_(std::move(ring)) {
  machine_.on_change = [this](const File& directory, const std::string& name) { changed(directory, name); };
}

void ChangeCallback::watch(const std::string& directory) {
  const File node = machine_.find(directory);
  if (node && node->kind == Node::Kind::directory) watches_[node.get()] = {node, directory};
}

void ChangeCallback::unwatch(const std::string& directory) {
  std::erase_if(watches_, [&](const auto& each) { return watch::at_or_below(each.second.path, directory); });
}

void ChangeCallback::changed(const File& directory, const std::string& name) {
  const auto at = watches_.find(directory.get());
  if (at == watches_.end() || at->second.node.lock() != directory) return;
  const auto chance = machine_.dice.below(100);
  if (chance < bell_.lost) return;
  if (queue_.size() >= queue_max || machine_.dice.percent(bell_.overflow)) {
    queue_.clear();
    overflown_ = true;
    return;
  }
  Due due{at->second.path + '/' + name, machine_.now};
  if (machine_.dice.percent(bell_.late)) due.at += std::chrono::milliseconds(machine_.dice.between(10, 3000));
  if (machine_.dice.percent(bell_.doubled)) queue_.push_back(due);
  queue_.push_back(std::move(due));
}

bool ChangeCallback::deliver(bool soon) {
  if (std::exchange(overflown_, false)) {
    ring_({watch::ChangeHint::Where::everything, {}});
    return true;
  }
  const auto due = std::find_if(queue_.begin(), queue_.end(),
                                [&](const Due& each) { return soon || each.at <= machine_.now; });
  if (due == queue_.end()) return false;
  const std::string path = std::move(due->path);
  queue_.erase(due);
  ring_({watch::ChangeHint::Where::path, path});
  return true;
}

}  // namespace earshot::sim
