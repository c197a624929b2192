// Secret tokens, keys and URLs: read for each use, never in an argument or a log.
#pragma once
#include <string>
#include <variant>

#include "notifier/rules.hpp"

namespace earshot::notifier {

struct SecretError {
  std::string why;
};
/// The current value; empty if no source is set. A file that others can read is refused.
std::variant<std::string, SecretError> read_secret(const SecretSource& source);

/// HMAC-SHA256 in hex.
std::string sign(std::string_view key, std::string_view text);

}  // namespace earshot::notifier
