// How a browser proves who it is: the challenges, the messages that are signed, and their form in a request.
// Pure: the time is an argument.
#pragma once
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace earshot::serve {

/// The answer to a challenge, in a `hello` or an Authorization header.
struct SignIn {
  std::string browser, nonce, signature;
};

/// Challenges are not stored: a nonce states until when it is valid, and a MAC of this process proves it. A
/// nonce is used once by a browser (Browser::use()), or with a one-time code, which is itself used once.
class Challenges {
 public:
  using Time = Clock::time_point;
  static constexpr std::chrono::seconds good_for{60};
  static constexpr std::size_t nonce_digits = 112;  // 16 of the time, 32 random ones, 64 of the MAC

  Challenges();
  std::string make(Time now) const;
  /// Made by this object, and not expired. Takes the same time for every text of this length.
  bool is_valid(std::string_view nonce, Time now) const;
  /// Until when a valid nonce is valid.
  static Time until(std::string_view nonce);

 private:
  std::string key_;  // new at each start
};

/// What a browser signs: a text of lines, so that it is valid at one daemon and origin, for one purpose.
/// `purpose` is `hello`, or method and target of a request, such as `GET /v1/sessions`.
std::string sign_in_message(std::string_view purpose, std::string_view daemon_id, std::string_view origin,
                            const SignIn& sign_in);

/// A browser that asks to be registered.
struct Registration {
  std::string nonce, key, name, proof, signature;
  bool is_temporary = false;  // the browser does not keep the key
};
/// What it signs with its key, and proves with the code: HMAC-SHA256(code, message).
std::string registration_message(std::string_view daemon_id, std::string_view origin,
                                 const Registration& registration);
/// What the daemon proves with the code in return: that it made the code.
std::string registered_message(std::string_view daemon_id, std::string_view origin, std::string_view browser,
                               std::string_view nonce);

/// The HMAC-SHA256 of this with the code is the secret that the daemon shares with the browser from then on.
std::string secret_message(std::string_view daemon_id, std::string_view origin, std::string_view browser,
                           std::string_view nonce);
/// What the daemon proves with the secret when it sends a challenge. `asked`: a nonce of the browser.
std::string challenge_message(std::string_view daemon_id, std::string_view origin, std::string_view asked,
                              std::string_view nonce);

/// `Earshot BROWSER.NONCE.SIGNATURE`, the value of an Authorization header. Absent: another scheme.
std::optional<SignIn> parse_authorization(std::string_view value);

}  // namespace earshot::serve
