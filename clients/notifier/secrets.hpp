// Tokens, keys and addresses that are secrets: read when they are needed, never in an argument or a log.
#pragma once
#include <string>
#include <variant>

#include "notifier/rules.hpp"

namespace earshot::notifier {

struct SecretTrouble {
  std::string why;
};
/// What is there now; empty when no place is given. A file that others may read is refused.
std::variant<std::string, SecretTrouble> read_secret(const SecretPlace& place);

/// Hex of HMAC-SHA256.
std::string sign(std::string_view key, std::string_view text);

}  // namespace earshot::notifier
