#pragma once
#include <vector>

#include "config/config_file.hpp"
#include "serve/auth/users.hpp"

namespace earshot::config {

/// [hub.users.NAME]: users in addition to the owner. Throws Error for anything that could show more than
/// intended: no token, a token of two users, an empty list of hosts or projects.
std::vector<serve::User> read_users(const TomlValue& section);

}  // namespace earshot::config
