// How names of other machines become one word that a file system and a message broker take: a directory, a
// file, a token of a subject. One way for all, so that a place can be found from either side.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "agents/claude_code/layout.hpp"

namespace earshot::tail {

constexpr std::size_t escaped_bytes_max = 160;  // of what escape() writes; a longer one ends in its hash

/// Letters, digits, `-` and `_` stay; every other byte becomes `=XX`. Two texts never give one word: what is
/// too long is cut, and ends in `==` and 128 bits of hash; nothing at all is `=`.
std::string escape(std::string_view text);
/// Nothing when escape() did not write it, or cut it.
std::optional<std::string> unescape(std::string_view word);

/// What divides a session's name from its host's, where sessions of many hosts are told.
constexpr char host_separator = '@';
std::string session_on_host(std::string_view session, std::string_view host);

/// Who a file `<word of the host>/<word of the stream>` speaks of. Without a session where only its lines
/// tell.
Identity relayed_identity(std::string_view below);

}  // namespace earshot::tail
