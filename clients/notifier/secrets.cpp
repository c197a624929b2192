#include "notifier/secrets.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdlib>

#include "base/hex.hpp"
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

std::variant<std::string, SecretError> read_secret(const SecretSource& source) {
  if (!source.is_set()) return std::string();
  if (!source.variable.empty()) {
    const char* const value = std::getenv(source.variable.c_str());
    if (value == nullptr || !is_usable(value))
      return SecretError{"the environment has no valid " + source.variable};
    return std::string(value);
  }
  const common::TextFile file = common::read_text_file(source.file);
  if (!file.error.empty()) return SecretError{source.file + ": " + file.error};
  if ((file.mode & 077) != 0)
    return SecretError{"others can read or change " + source.file + ": chmod 600 " + source.file};
  if (!is_usable(file.text))
    return SecretError{source.file + ": must be one line of visible ASCII characters"};
  return file.text;
}

std::string sign(std::string_view key, std::string_view text) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes, &size);
  return to_hex(bytes, size);
}

}  // namespace earshot::notifier
