// How sessions and projects are called where there is little room. Pure functions.
#pragma once
#include <string_view>

namespace earshot::common {

/// The first eight characters of a session's or an agent's id.
std::string_view short_id(std::string_view id);

/// `api` of /home/u/api; the text itself when it has no component.
std::string_view last_component(std::string_view path);

}  // namespace earshot::common
