// [hub.users.NAME] of the configuration file: who may look beside the owner.
#pragma once
#include <string>
#include <vector>

#include "base/toml.hpp"
#include "serve/auth/access.hpp"

namespace earshot {

/// Throws Failure (options_file.hpp) where somebody would be shown more than was meant: no token at all, one
/// token for two, an empty list of hosts or projects.
std::vector<serve::User> read_users(const std::string& file, const toml::node& node);

}  // namespace earshot
