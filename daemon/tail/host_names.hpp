// How names of other machines become one word that a file system and a message broker take: a directory, a
// file, a token of a subject. One way for all, so that a place can be found from either side.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "agents/claude_code/layout.hpp"

namespace earshot::tail {

constexpr std::size_t word_bytes_max = 160;  // of what word() writes; a longer one ends in its hash

/// Letters, digits, `-` and `_` stay; every other byte becomes `=XX`. Two texts never give one word: what is
/// too long is cut, and ends in `==` and 128 bits of hash; nothing at all is `=`.
std::string word(std::string_view text);
/// Nothing when word() did not write it, or cut it.
std::optional<std::string> unword(std::string_view word);

/// What divides a session's name from its host's, where sessions of many hosts are told.
constexpr char at_host = '@';
std::string session_at(std::string_view session, std::string_view host);

/// Who a file `<word of the host>/<word of the stream>` speaks of. Without a session where only its lines
/// tell.
Identity identity_of_told(std::string_view below);

}  // namespace earshot::tail
