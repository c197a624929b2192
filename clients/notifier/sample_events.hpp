// A sample frame of each type, for `test`.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::notifier {

/// The names that `test` accepts: event types, `status`, and the reasons `permission`, `question`, `plan`.
std::vector<std::string_view> sample_names();

/// The frame with the given time; empty: unknown name.
std::string sample_event(std::string_view name, std::int64_t now_ms);

}  // namespace earshot::notifier
