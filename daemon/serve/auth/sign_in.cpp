#include "serve/auth/sign_in.hpp"

#include <algorithm>
#include <cctype>

#include "base/hex.hpp"
#include "serve/auth/secrets.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t challenge_key_bytes = 32;
constexpr std::size_t time_digits = 16, random_bytes = 16;
constexpr std::size_t signed_digits = time_digits + 2 * random_bytes;  // the MAC follows

/// None of the parts but the last one may contain a line end.
template <class... Parts>
std::string lines(std::string_view first, const Parts&... parts) {
  std::string text(first);
  ((text += '\n', text += parts), ...);
  return text;
}

std::string take_part(std::string_view& text) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  std::string part(text.substr(0, dot));
  text.remove_prefix(std::min(dot + 1, text.size()));
  return part;
}

}  // namespace

Challenges::Challenges() : key_(random_hex(challenge_key_bytes)) {}

std::string Challenges::make(Time now) const {
  const auto until =
      std::chrono::duration_cast<std::chrono::milliseconds>((now + good_for).time_since_epoch());
  std::string nonce;
  append_hex(nonce, static_cast<std::uint64_t>(until.count()), static_cast<int>(time_digits));
  nonce += random_hex(random_bytes);
  return nonce + hmac_sha256(key_, nonce);
}

bool Challenges::is_valid(std::string_view nonce, Time now) const {
  if (nonce.size() != nonce_digits || !is_hex(nonce)) return false;
  const bool is_own =
      same_secret(nonce.substr(signed_digits), hmac_sha256(key_, nonce.substr(0, signed_digits)));
  return is_own && until(nonce) > now;
}

Challenges::Time Challenges::until(std::string_view nonce) {
  const auto ms = static_cast<std::int64_t>(parse_hex(nonce.substr(0, time_digits)).value_or(0));
  return Time(std::chrono::milliseconds(ms));
}

std::string sign_in_message(std::string_view purpose, std::string_view daemon_id, std::string_view origin,
                            const SignIn& sign_in) {
  return lines("earshot sign-in 1", purpose, daemon_id, origin, sign_in.browser, sign_in.nonce);
}

std::string registration_message(std::string_view daemon_id, std::string_view origin,
                                 const Registration& registration) {
  return lines("earshot registration 1", daemon_id, origin, registration.nonce, registration.key,
               std::string_view(registration.is_temporary ? "temporary" : "kept"), registration.name);
}

std::string registered_message(std::string_view daemon_id, std::string_view origin, std::string_view browser,
                               std::string_view nonce) {
  return lines("earshot registered 1", daemon_id, origin, browser, nonce);
}

std::string secret_message(std::string_view daemon_id, std::string_view origin, std::string_view browser,
                           std::string_view nonce) {
  return lines("earshot secret 1", daemon_id, origin, browser, nonce);
}

std::string challenge_message(std::string_view daemon_id, std::string_view origin, std::string_view asked,
                              std::string_view nonce) {
  return lines("earshot challenge 1", daemon_id, origin, asked, nonce);
}

std::optional<SignIn> parse_authorization(std::string_view value) {
  constexpr std::string_view scheme = "earshot ";
  const bool is_ours = value.size() > scheme.size() &&
                       std::equal(scheme.begin(), scheme.end(), value.begin(), [](char expected, char given) {
                         return expected == std::tolower(static_cast<unsigned char>(given));
                       });
  if (!is_ours) return std::nullopt;
  value.remove_prefix(scheme.size());
  SignIn sign_in;
  sign_in.browser = take_part(value);
  sign_in.nonce = take_part(value);
  sign_in.signature = value;  // with anything that follows it: not a signature then
  return sign_in;
}

}  // namespace earshot::serve
