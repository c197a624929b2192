// A record as it is shown to one who asks for it whole.
#pragma once
#include <string>
#include <string_view>

#include "base/text_filter.hpp"

namespace earshot {

/// The line of a transcript, without its LF: its JSON text with every string and key clean, at all depths
/// (`nesting_max`), nothing cut, numbers as they are written. `is_json` is false for a line that is no single
/// JSON value: then its text, clean as well, also of what JSON's escapes hide. Null: nothing is replaced.
std::string redact_record(std::string_view line, const TextFilter* filter, bool& is_json);

}  // namespace earshot
