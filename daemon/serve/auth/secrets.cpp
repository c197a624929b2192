#include "serve/auth/secrets.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/hex.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t token_bytes = 32;
constexpr std::size_t key_bytes = 8;
constexpr std::size_t code_bytes = 32;
constexpr std::size_t file_bytes_max = 256;  // a secret file has one line; a longer one is refused

std::string describe(const std::string& path, int error) { return path + ": " + std::strerror(error); }

/// What a crash leaves of a secret: fewer digits, none, or NULs.
bool is_torn(std::string_view line, std::size_t digits) {
  const bool is_ours = line.find_first_not_of(std::string_view("0123456789abcdef\n\0", 18)) == line.npos;
  return is_ours && line.size() <= digits + 1 && !(line.size() == digits && is_hex(line));
}

PrivateFile read_line(const std::string& path) {
  PrivateFile file = read_private_file(path, file_bytes_max);
  if (file.text && !file.text->empty() && file.text->back() == '\n') file.text->pop_back();
  return file;
}

/// The secret of `bytes` bytes in this file, as hex digits; created if there is none.
PrivateFile load_or_create(const std::string& path, std::size_t bytes, std::vector<std::string>& set_aside) {
  PrivateFile file = read_line(path);
  if (!file.error.empty()) return file;
  if (file.text && is_torn(*file.text, 2 * bytes)) {
    const std::string torn = path + ".torn";
    if (std::rename(path.c_str(), torn.c_str()) != 0) return {{}, describe(torn, errno)};
    set_aside.push_back(path + " was truncated: it was renamed to " + torn + ", and a new one created");
    file.text.reset();
  }
  if (!file.text) {
    const std::string fresh = random_hex(bytes) + "\n";
    if (std::string error = write_private_file(path, fresh, IfExists::keep); !error.empty())
      return {{}, std::move(error)};
    file = read_line(path);
    if (!file.error.empty()) return file;
    if (!file.text) return {{}, path + ": was deleted while it was created"};
  }
  if (file.text->size() != 2 * bytes || !is_hex(*file.text)) {
    return {{},
            path + ": does not contain " + std::to_string(2 * bytes) +
                " hex digits; delete it to have a new one created"};
  }
  return file;
}

}  // namespace

std::variant<Secrets, AuthError> load_secrets(const std::string& state_directory,
                                              const std::string& metrics_token_file) {
  if (std::string error = make_private_directory(state_directory); !error.empty())
    return AuthError{std::move(error)};
  Secrets secrets;
  PrivateFile token = load_or_create(state_directory + "/token", token_bytes, secrets.set_aside);
  if (!token.error.empty()) return AuthError{std::move(token.error)};
  const PrivateFile key = load_or_create(state_directory + "/key", key_bytes, secrets.set_aside);
  if (!key.error.empty()) return AuthError{key.error};
  if (!metrics_token_file.empty()) {
    PrivateFile metrics = load_or_create(metrics_token_file, token_bytes, secrets.set_aside);
    if (!metrics.error.empty()) return AuthError{"metrics_token_file: " + metrics.error};
    secrets.metrics_token = std::move(*metrics.text);
  }
  secrets.token = std::move(*token.text);
  secrets.hash_key = parse_hex(*key.text).value_or(0);
  return secrets;
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return to_hex(digest.data(), digest.size());
}

bool same_secret(std::string_view given, std::string_view expected) {
  return given.size() == expected.size() &&
         CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(), mac.data(), &size);
  return to_hex(mac.data(), size);
}

std::string OneTimeCodes::make(Time now, std::string_view user) {
  std::erase_if(codes_, [&](const Code& code) { return code.until + remembered_for <= now; });
  const auto is_theirs = [&](const Code& code) { return code.user == user; };
  if (std::count_if(codes_.begin(), codes_.end(), is_theirs) == outstanding_max)
    codes_.erase(std::find_if(codes_.begin(), codes_.end(), is_theirs));
  codes_.push_back({random_hex(code_bytes), std::string(user), now + good_for});
  return codes_.back().text;
}

OneTimeCodes::Taken OneTimeCodes::take(std::string_view message, std::string_view proof, Time now) {
  Code* found = nullptr;
  for (Code& code : codes_) {  // constant time
    if (same_secret(proof, hmac_sha256(code.text, message))) found = &code;
  }
  if (found == nullptr) return {};
  if (found->is_used) return {Result::used, {}, {}};
  if (found->until <= now) return {Result::expired, {}, {}};
  found->is_used = true;
  return {Result::taken, found->text, found->user};
}

std::size_t OneTimeCodes::outstanding(Time now) const {
  return static_cast<std::size_t>(std::count_if(
      codes_.begin(), codes_.end(), [&](const Code& code) { return !code.is_used && code.until > now; }));
}

void OneTimeCodes::revoke(std::string_view user) {
  std::erase_if(codes_, [&](const Code& code) { return code.user == user; });
}

std::string token_proof(std::string_view token, std::string_view nonce, std::string_view endpoint) {
  return hmac_sha256(token, std::string(nonce) + std::string(endpoint));
}

std::variant<StateLock, AuthError> StateLock::acquire(const std::string& state_directory) {
  const std::string path = state_directory + "/lock";
  FileLock lock = lock_file(path);
  if (lock.fd) return StateLock(std::move(lock.fd));
  if (lock.error == EWOULDBLOCK) {
    return AuthError{"another earshotd" + (lock.holder.empty() ? "" : " (process " + lock.holder + ")") +
                     " uses the state directory " + state_directory +
                     ": stop that one, or choose another directory with --state"};
  }
  std::string error = describe(path, lock.error);
  if (lock.error == EROFS || lock.error == ENOSPC || lock.error == EDQUOT)
    return StateLock(Fd(), std::move(error));
  return AuthError{std::move(error)};
}

}  // namespace earshot::serve
