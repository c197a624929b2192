// A frame of each kind, for `test`.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::notifier {

/// What `test` takes by name: types of events, `status`, and the waits `permission`, `question`, `plan`.
std::vector<std::string_view> sample_names();

/// The frame, as if it had just happened; empty: there is no such name.
std::string sample(std::string_view name, std::int64_t now_ms);

}  // namespace earshot::notifier
