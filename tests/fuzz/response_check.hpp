// Checks the bytes that a daemon sent on one connection with an independent parser.
#pragma once
#include <string_view>

namespace earshot::fuzz {

/// Aborts unless the bytes are HTTP responses and, after a 101, frames of JSON (RFC 6455: final, not masked).
/// The last one may be incomplete, as the client may disconnect.
void require_responses(std::string_view bytes);

}  // namespace earshot::fuzz
