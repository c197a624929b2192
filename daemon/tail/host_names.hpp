// Names of hosts and streams as one token that is valid as a file name and as a token of a NATS subject, and
// the sessions of relayed streams.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "agents/agent.hpp"

namespace earshot::tail {

constexpr std::size_t escaped_bytes_max = 160;  // of a result of escape(); longer ones end in a hash

/// Keeps letters, digits, `-` and `_`; replaces every other byte by `=XX`. Different texts have different
/// results: one that would be too long is cut and ends in `==` and a 128-bit hash; that of the empty text is
/// `=`.
std::string escape(std::string_view text);
/// Absent if `text` is no result of escape(), or one that was cut.
std::optional<std::string> unescape(std::string_view text);

/// Separates a session's name from its host's.
constexpr char host_separator = '@';
std::string session_on_host(std::string_view session, std::string_view host);

/// The identity of a file `<escaped host>/<escaped stream>`. The session is empty where only the records name
/// it. Assumes the layout of the default program.
StreamIdentity relayed_identity(std::string_view below);

}  // namespace earshot::tail
