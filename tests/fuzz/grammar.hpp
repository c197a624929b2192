// Builds records of any dialect from choices, which mutations of plain text rarely produce.
#pragma once
#include <string>

#include "fuzz.hpp"

namespace earshot::fuzz {

/// The lines of a session. The first byte of each selects: `{` a literal line, LF an empty one, else a
/// template whose holes are filled from the following bytes with known words or any word, number, text or
/// structure. `dialect` 0 to 2 excludes the records of Claude Code's other dialects, 3 mixes them; 4, 5 and 6
/// are those of Codex, Copilot CLI and Pi.
std::string session(Input& input, std::size_t dialect);

}  // namespace earshot::fuzz
