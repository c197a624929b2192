// What a daemon sent on one connection, taken apart by a reader of its own.
#pragma once
#include <string_view>

namespace earshot::fuzz {

/// Aborts unless these are whole HTTP answers, and behind a 101 whole frames of JSON (RFC 6455: final, not
/// masked). The last of either may be cut: the client may have gone.
void require_answers(std::string_view bytes);

}  // namespace earshot::fuzz
