// The secrets of the state directory: who may listen, and what keys the marks.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace earshot::serve {

struct Secrets {
  std::string token;                   // 256 bits, 64 hex digits: STATE/token
  std::uint64_t hash_key = 0;          // 64 bits: STATE/key; losing it resets all clients
  std::vector<std::string> set_aside;  // for people: damaged files that were replaced
};

struct AuthError {
  std::string text;  // for people: what is wrong and what to do
};

/// Reads both, or makes them: from getrandom, 0600, whole or not at all. Makes `state_directory` (and what is
/// above it) 0700 when it is absent. A secret that others may read, or a directory that they may write, is
/// refused, not repaired: it may be known already. What a crash has torn (some digits, NULs or nothing) is
/// renamed to `<name>.torn` and made anew; any other content is not ours, and is refused. One caller at a
/// time (StateLock).
std::variant<Secrets, AuthError> load_secrets(const std::string& state_directory);

/// Makes the directory 0700 (and what is above it) when it is absent. Empty: it is ours and nobody else can
/// write into it. Otherwise what is wrong with it.
std::string own_directory(const std::string& path);

/// In a time that does not depend on where they differ.
bool same_secret(std::string_view given, std::string_view expected);

/// `count` random bytes as hex digits.
std::string random_hex(std::size_t count);

/// Writes a file whole or not at all, 0600. What was there stays or is replaced. Empty: done. Otherwise what
/// went wrong.
enum class Existing { keep, replace };
std::string write_private_file(const std::string& path, std::string_view content, Existing existing);

}  // namespace earshot::serve
