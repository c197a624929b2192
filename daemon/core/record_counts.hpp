// What --stats and /metrics count of a transcript.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace earshot {

struct RecordCounts {
  std::uint64_t lines = 0, empty_lines = 0, records = 0, skipped_lines = 0, duplicates = 0, late_results = 0,
                events = 0;
  std::uint64_t repaired_lines = 0;     // kept with U+FFFD, or with a number too large for a double
  std::uint64_t undecided_records = 0;  // before any record proved a dialect
  std::uint64_t dropped = 0;            // calls, agents, results, texts and lists beyond a limit
  std::map<std::string, std::uint64_t, std::less<>> types;          // records by `type`, or `type/subtype`
  std::map<std::string, std::uint64_t, std::less<>> unknown_types;  // a subset of types
};

}  // namespace earshot
