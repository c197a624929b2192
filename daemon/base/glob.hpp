#pragma once
#include <string_view>

namespace earshot {

/// Whether the pattern matches all of `text`: `*` matches any number of characters, `?` one (a UTF-8
/// sequence). Nothing else is special; case-sensitive. Takes at most pattern × text steps: only the last `*`
/// is retried, because it can match whatever an earlier one could.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace earshot
