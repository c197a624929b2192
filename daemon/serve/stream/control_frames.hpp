// Small frames that name a subscription.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace earshot::serve {

/// {"type":…,"id":…}
std::string control_frame(std::string_view type, std::string_view id);

/// `bookmark` frames for these `<stream>:<cursor>`. `complete`: there is at least one, and the last says so;
/// otherwise none for no places.
std::vector<std::string> bookmark_frames(std::string_view id, const std::vector<std::string>& places,
                                         bool complete);

/// {"type":"reset",…} in answer to `after`, or (no id) to a client that fell behind. Empty fields are left
/// out.
std::string reset_frame(std::string_view id, std::string_view host, std::string_view session,
                        std::string_view stream, std::string_view reason);

/// {"type":"stream.removed",…} to a client that fell behind.
std::string removed_frame(std::string_view host, std::string_view stream);

}  // namespace earshot::serve
