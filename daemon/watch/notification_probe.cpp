#include "watch/notification_probe.hpp"

#include <algorithm>
#include <functional>

namespace earshot::watch {
namespace {

std::size_t bit_of(std::string_view path) {
  return std::hash<std::string_view>{}(path) % NotificationProbe::heard_bits;
}

}  // namespace

void NotificationProbe::heard(std::string_view path) {
  heard_.set(bit_of(path));
  if (!suspects_.empty())
    std::erase_if(suspects_, [&](const Suspect& suspect) { return suspect.path == path; });
}

void NotificationProbe::lost(Clock::duration amnesty, Clock::time_point now) {
  suspects_.clear();
  amnesty_until_ = now + amnesty;
}

void NotificationProbe::found(std::string_view path, bool entry, Clock::time_point now) {
  if (now < amnesty_until_) return;
  if (heard_.test(bit_of(path)) || suspects_.size() >= suspects_max) return;
  if (std::any_of(suspects_.begin(), suspects_.end(),
                  [&](const Suspect& suspect) { return suspect.path == path; }))
    return;
  suspects_.push_back({std::string(path), now, entry});
}

bool NotificationProbe::suspicious() const {
  return std::any_of(suspects_.begin(), suspects_.end(),
                     [](const Suspect& suspect) { return suspect.entry; });
}

bool NotificationProbe::deaf(Clock::time_point now) const {
  const auto waited = [&](const Suspect& suspect) { return now - suspect.since >= patience; };
  return static_cast<std::size_t>(std::count_if(suspects_.begin(), suspects_.end(), waited)) >= deaf_from;
}

std::string NotificationProbe::problem(Clock::time_point now) const {
  if (!deaf(now)) return {};
  return "changes of some files are not notified (a network mount, or links from elsewhere), such as " +
         suspects_.front().path + "; they are looked at in turn";
}

}  // namespace earshot::watch
