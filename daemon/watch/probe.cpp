#include "watch/probe.hpp"

#include <algorithm>
#include <functional>

namespace earshot::watch {
namespace {

std::uint64_t hash_of(std::string_view path) {
  return std::hash<std::string_view>{}(path) | 1;
}  // 0 is an empty place

}  // namespace

void Probe::heard(std::string_view path) {
  const std::uint64_t hash = hash_of(path);
  heard_[hash / 2 % heard_max] = hash;
  if (!suspects_.empty())
    std::erase_if(suspects_, [&](const Suspect& suspect) { return suspect.path == path; });
}

void Probe::found(std::string_view path, Clock::time_point now) {
  const std::uint64_t hash = hash_of(path);
  if (heard_[hash / 2 % heard_max] == hash || suspects_.size() >= suspects_max) return;
  if (std::any_of(suspects_.begin(), suspects_.end(),
                  [&](const Suspect& suspect) { return suspect.path == path; }))
    return;
  suspects_.push_back({std::string(path), now});
}

bool Probe::deaf(Clock::time_point now) const {
  const auto waited = [&](const Suspect& suspect) { return now - suspect.since >= patience; };
  return static_cast<std::size_t>(std::count_if(suspects_.begin(), suspects_.end(), waited)) >= deaf_from;
}

std::string Probe::trouble(Clock::time_point now) const {
  if (!deaf(now)) return {};
  return "changes of some files are not notified (a network mount, or links from elsewhere), such as " +
         suspects_.front().path + "; they are looked at in turn";
}

}  // namespace earshot::watch
