#include "notifier/secrets.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdlib>

#include "common/endpoint.hpp"

namespace earshot::notifier {
namespace {

// Secrets are sent in HTTP headers and URLs: only visible ASCII.
bool is_usable(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c > '~') return false;
  }
  return !text.empty();
}

}  // namespace

std::variant<std::string, SecretTrouble> read_secret(const SecretPlace& place) {
  if (!place.given()) return std::string();
  if (!place.variable.empty()) {
    const char* const value = std::getenv(place.variable.c_str());
    if (value == nullptr || !is_usable(value))
      return SecretTrouble{"the environment has no valid " + place.variable};
    return std::string(value);
  }
  const common::TextFile file = common::read_text_file(place.file);
  if (!file.error.empty()) return SecretTrouble{place.file + ": " + file.error};
  if ((file.mode & 077) != 0)
    return SecretTrouble{"others can read or change " + place.file + ": chmod 600 " + place.file};
  if (!is_usable(file.text)) return SecretTrouble{place.file + ": must be one line of visible ASCII characters"};
  return file.text;
}

std::string sign(std::string_view key, std::string_view text) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes, &size);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    out += digits[bytes[i] >> 4];
    out += digits[bytes[i] & 15];
  }
  return out;
}

}  // namespace earshot::notifier
