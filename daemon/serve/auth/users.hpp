// Who else than the owner may listen: a token each, and what it lets see.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/event_json.hpp"
#include "serve/stream/filter.hpp"

namespace earshot::serve {

struct User {
  std::string name;
  std::string token_sha256;  // 64 hex digits: the token itself is kept nowhere
  Filter allowed;            // hosts and projects; empty lists: all (the configuration has none)
  View view = View::meta;    // at most this much
};

std::string sha256_hex(std::string_view text);

/// Whose token it is; null: nobody's, as no token at all is. In a time that does not depend on whose.
const User* find_user_by_token(const std::vector<User>& users, std::string_view token);

}  // namespace earshot::serve
