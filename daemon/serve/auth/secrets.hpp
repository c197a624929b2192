// The secrets of the state directory, its lock, and one-time codes.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/file.hpp"

namespace earshot::serve {

struct Secrets {
  std::string token;           // 256 bits as 64 hex digits: STATE/token
  std::string metrics_token;   // likewise, in a file of its own; empty: none
  std::uint64_t hash_key = 0;  // 64 bits, keys the prefix hashes: STATE/key; without it all clients reset
  std::vector<std::string> set_aside;  // for users: damaged files that were replaced
};

struct AuthError {
  std::string text;  // for users: what is wrong and what to do
};

/// Reads the token and the key, or creates them (mode 0600), and creates `state_directory` (0700). A secret
/// that others can read, or a directory that they can write, is refused: it may be known already. A file
/// truncated by a crash (fewer digits, or NULs) is renamed to `<name>.torn` and replaced; other content is
/// refused. Requires the StateLock.
std::variant<Secrets, AuthError> load_secrets(const std::string& state_directory,
                                              const std::string& metrics_token_file = {});

/// As 64 hex digits.
std::string sha256_hex(std::string_view text);
/// Takes the same time wherever the texts differ.
bool same_secret(std::string_view given, std::string_view expected);

/// HMAC-SHA256 as 64 hex digits.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// A one-time code signs a browser in: it proves that it has the code, without sending it. Pure: the time is
/// an argument.
class OneTimeCodes {
 public:
  using Time = Clock::time_point;
  static constexpr std::size_t outstanding_max = 16;  // per identity; one more replaces its oldest
  static constexpr std::chrono::seconds good_for{60};
  static constexpr std::chrono::minutes remembered_for{10};  // to explain why it is refused

  /// 256 random bits as 64 hex digits. `user`: whose browser it signs in; empty: the owner's.
  std::string make(Time now, std::string_view user = {});

  enum class Result { taken, used, expired, unknown };
  struct Taken {
    Result result = Result::unknown;
    std::string code, user;
  };
  /// Takes the code whose HMAC of `message` is `proof`: once, while it is valid. Takes the same time for
  /// every proof.
  Taken take(std::string_view message, std::string_view proof, Time now);
  std::size_t outstanding(Time now) const;
  void revoke(std::string_view user);

 private:
  struct Code {
    std::string text, user;
    Time until;
    bool is_used = false;
  };
  std::deque<Code> codes_;  // oldest first
};

/// Proves to a client that this daemon has the owner's token: the HMAC-SHA256 of `nonce` and `endpoint`
/// (`address:port` of the connection at this end), as 64 hex digits.
std::string token_proof(std::string_view token, std::string_view nonce, std::string_view endpoint);

/// One daemon per state directory. Held during its lifetime; the kernel releases it when the process ends.
class StateLock {
 public:
  /// On a full or read-only file system there is no lock, as no other daemon can write there either:
  /// warning() has the reason.
  static std::variant<StateLock, AuthError> acquire(const std::string& state_directory);
  const std::string& warning() const { return warning_; }  // for users; empty: the lock is held

 private:
  explicit StateLock(Fd fd, std::string warning = {}) : fd_(std::move(fd)), warning_(std::move(warning)) {}
  Fd fd_;
  std::string warning_;
};

}  // namespace earshot::serve
