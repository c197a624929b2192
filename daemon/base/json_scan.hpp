// JSON as text: what a parser's tree no longer shows (numbers as they were written, where a value stood), and
// lines that a strict parser refuses.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace earshot {

constexpr std::size_t nesting_max = 1024;  // a line nested deeper is skipped whole

/// The value of the last member called `key` of an object, as text; empty when there is none. The text must
/// be valid JSON.
std::string_view member_text(std::string_view object, std::string_view key);

/// The element at `index` of an array, as text; empty when there is none. The text must be valid JSON.
std::string_view element_text(std::string_view array, std::size_t index);

enum class Json_error { none, invalid, too_deep };

/// A value that a strict parser takes, made from one that it may refuse: invalid UTF-8 and lone surrogates in
/// strings become U+FFFD. Raw control characters, bad escapes and anything else that is no JSON stay errors.
struct Repaired {
  std::string text;       // numbers as they stand
  std::string for_dom;    // the same, numbers that fit neither 64 bits nor a double are null
  std::size_t bytes = 0;  // of the original, white space before it included
  bool object = false;
  bool changed = false;  // text or for_dom differs from the original
  Json_error error = Json_error::none;
};
Repaired repair(std::string_view text);

/// What one refused line holds.
struct Split {
  std::vector<Repaired> records;  // whole objects: those before the broken part, then the salvaged ones
  bool broken = false;            // some of the line could not be used
  bool salvaged = false;          // but whole objects with a `type` end it
  bool too_deep = false;          // nothing of the line is used
};
Split split_line(std::string_view line);

}  // namespace earshot
