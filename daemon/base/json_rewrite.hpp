// JSON written again: without blanks, with secrets replaced and long strings cut, or repaired so that a
// strict parser accepts it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_scan.hpp"
#include "base/text_filter.hpp"

namespace earshot {

struct RewriteOptions {
  std::size_t text_bytes_max = std::string::npos;  // longer strings are cut on a character boundary
  std::size_t depth_max = 64;                      // levels of nesting
  std::size_t enough_bytes = std::string::npos;    // stop once so much was both read and written
  const TextFilter* filter = nullptr;              // for every string and key
  TruncatedPaths* truncated = nullptr;             // gets the paths of the strings that are cut
  bool is_utf8 = false;                            // known: the text is valid UTF-8
};

struct Rewritten {
  JsonResult result = JsonResult::invalid;
  bool is_redacted = false;  // the filter replaced something
};

/// Appends one value. Only if the result is `complete` is it valid JSON. Numbers and escapes stay as they are
/// written; bytes that are not UTF-8 and lone surrogates become U+FFFD.
Rewritten rewrite_json(std::string& out, std::string_view json, const RewriteOptions& options);

/// The first `bytes_max` bytes of JSON that is shown as text, with the secrets in its strings replaced,
/// however they are escaped and nested. A view of `json` or of `scratch`.
std::string_view json_prefix(std::string_view json, std::size_t bytes_max, const TextFilter* filter,
                             std::string& scratch);

/// The first `bytes_max` bytes of text that is not JSON but may be a part of it, with the secrets replaced
/// that are found in it as it is and with JSON's escapes undone. A view of `scratch`.
std::string_view redact_fragment(std::string_view text, std::size_t bytes_max, const TextFilter& filter,
                                 std::string& scratch);

/// A line of a transcript, without its LF: the JSON text with every string and key filtered, up to
/// `nesting_max` levels, nothing cut. `is_json` is false if the line is not a single JSON value: then its
/// text, filtered as a fragment. Without a filter nothing is replaced.
std::string redact_record(std::string_view line, const TextFilter* filter, bool& is_json);

/// A value that a strict parser accepts, made from one that it may refuse: invalid UTF-8 and lone surrogates
/// in strings become U+FFFD. Raw control characters, malformed escapes and other text that is not JSON remain
/// errors.
struct RepairedJson {
  std::string text;       // numbers as they are written, also those that fit neither 64 bits nor a double
  std::size_t bytes = 0;  // of the input that were used, white space included
  bool is_object = false;
  bool is_changed = false;  // `text` has other values than the input, or a number that does not fit
  JsonResult result = JsonResult::invalid;
};
/// The first value of the text.
RepairedJson repair_json(std::string_view text);

/// The usable parts of a line that a strict parser refused. Complete objects behind the broken part are found
/// within salvage_bytes_max bytes of reading.
constexpr std::size_t salvage_bytes_max = 4 << 20;
struct SplitLine {
  std::vector<RepairedJson>
      records;               // complete objects: those before the broken part, then the salvaged ones
  bool is_broken = false;    // some of the line cannot be used
  bool is_salvaged = false;  // the line is broken but ends with complete objects that have a `type`
  bool is_too_deep = false;  // nothing of the line is used
};
SplitLine split_line(std::string_view line);

}  // namespace earshot
