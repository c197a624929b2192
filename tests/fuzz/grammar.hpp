// Records of any dialect from choices: what a mutation of plain text seldom makes.
#pragma once
#include <string>

#include "fuzz.hpp"

namespace earshot::fuzz {

/// The lines of a session. Each begins with a byte that says what comes: `{` a line that stands there as it
/// is, an LF nothing, else a template whose holes the bytes after it fill: known words in known places, and
/// any word, number, text or structure in any of them. `dialect` (0 to 2) leaves out the other eras' records,
/// 3 mixes them.
std::string session(Input& input, std::size_t dialect);

}  // namespace earshot::fuzz
