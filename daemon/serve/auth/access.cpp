#include "serve/auth/access.hpp"

#include <openssl/sha.h>

#include <array>

#include "base/hex.hpp"
#include "serve/auth/secrets.hpp"

namespace earshot::serve {

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return to_hex(digest.data(), digest.size());
}

const User* find_user_by_token(const std::vector<User>& users, std::string_view token) {
  if (token.empty()) return nullptr;
  const std::string hash = sha256_hex(token);
  const User* found = nullptr;
  for (const User& each : users)
    if (same_secret(hash, each.token_sha256)) found = &each;
  return found;
}

Caller AccessPolicy::as_user(const User& user, TransportKind transport_kind) const {
  const bool meta = user.view == View::meta || view_of_transport(transport_kind) == View::meta;
  return {transport_kind, AuthResult::user, meta ? View::meta : View::full, &user};
}

Caller AccessPolicy::identify(const Request& request, TransportKind transport_kind) const {
  const AuthResult result = authenticate(request, transport_kind, token);
  if (result == AuthResult::wrong_token) {
    if (const User* user = find_user_by_token(users, bearer_token(request)))
      return as_user(*user, transport_kind);
  }
  return {transport_kind, result, view_of_transport(transport_kind), nullptr};
}

Caller AccessPolicy::identify(std::string_view given_token, TransportKind transport_kind) const {
  if (same_secret(given_token, token))
    return {transport_kind, AuthResult::owner, view_of_transport(transport_kind), nullptr};
  if (const User* user = find_user_by_token(users, given_token)) return as_user(*user, transport_kind);
  return {transport_kind, AuthResult::wrong_token, view_of_transport(transport_kind), nullptr};
}

Audience AccessPolicy::audience_of(const Caller& caller) const {
  if (caller.view == View::meta) return Audience::meta;
  return !redact && caller.transport_kind == TransportKind::unix_socket ? Audience::raw : Audience::full;
}

}  // namespace earshot::serve
