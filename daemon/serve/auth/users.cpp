#include "serve/auth/users.hpp"

#include <openssl/sha.h>

#include <array>

#include "serve/auth/secrets.hpp"

namespace earshot::serve {

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string out;
  for (const unsigned char byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

const User* find_user_by_token(const std::vector<User>& users, std::string_view token) {
  if (token.empty()) return nullptr;
  const std::string hash = sha256_hex(token);
  const User* found = nullptr;
  for (const User& each : users)
    if (same_secret(hash, each.token_sha256)) found = &each;
  return found;
}

}  // namespace earshot::serve
