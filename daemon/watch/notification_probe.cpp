#include "watch/notification_probe.hpp"

#include <algorithm>
#include <functional>

namespace earshot::watch {
namespace {

std::size_t bit_of(std::string_view path) {
  return std::hash<std::string_view>{}(path) % NotificationProbe::notified_bits;
}

}  // namespace

void NotificationProbe::notified(std::string_view path) {
  notified_.set(bit_of(path));
  if (!suspects_.empty())
    std::erase_if(suspects_, [&](const Suspect& suspect) { return suspect.path == path; });
}

void NotificationProbe::notifications_lost(Clock::duration grace, Clock::time_point now) {
  suspects_.clear();
  grace_until_ = now + grace;
}

void NotificationProbe::swept(std::string_view path, bool entry, Clock::time_point now) {
  if (now < grace_until_) return;
  if (notified_.test(bit_of(path)) || suspects_.size() >= suspects_max) return;
  if (std::any_of(suspects_.begin(), suspects_.end(),
                  [&](const Suspect& suspect) { return suspect.path == path; }))
    return;
  suspects_.push_back({std::string(path), now, entry});
}

bool NotificationProbe::is_suspicious() const {
  return std::any_of(suspects_.begin(), suspects_.end(),
                     [](const Suspect& suspect) { return suspect.entry; });
}

bool NotificationProbe::is_silent(Clock::time_point now) const {
  const auto waited = [&](const Suspect& suspect) { return now - suspect.since >= patience; };
  return static_cast<std::size_t>(std::count_if(suspects_.begin(), suspects_.end(), waited)) >= silent_from;
}

std::string NotificationProbe::problem(Clock::time_point now) const {
  if (!is_silent(now)) return {};
  return "the system does not report changes of some files (a network mount, or hard links), such as " +
         suspects_.front().path + "; these files are polled";
}

}  // namespace earshot::watch
