#include "base/json_rewrite.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

#include "base/json_writer.hpp"

namespace earshot {
namespace {

// ---- Rewriting

// A visitor of scan_json_value().
class Rewriter {
 public:
  Rewriter(std::string& out, std::string_view json, const RewriteOptions& options)
      : out_(out), json_(json), options_(options), begin_(out.size()) {}

  Rewritten run() {
    std::size_t at = 0;
    JsonResult result = scan_json_value(json_, at, options_.depth_max, *this);
    if (result == JsonResult::complete && json_.find_first_not_of(" \t\r\n", at) != json_.npos)
      result = JsonResult::invalid;
    return {result, is_redacted_};
  }

  void put(char c) {
    out_ += c;
    if (c == ',') ++levels_.back().index;
  }
  void enter(bool is_object) {
    const auto place = secret_place();
    levels_.push_back({.is_object = is_object, .place = is_object && place ? SecretPlace::member : place});
  }
  void leave() { levels_.pop_back(); }
  void scalar(std::string_view written) {
    const bool is_number = written.front() == '-' || (written.front() >= '0' && written.front() <= '9');
    std::string_view whole;
    if (options_.filter && is_number && secret_place() == SecretPlace::value)
      whole = options_.filter->replace_whole(
          written, levels_.back().is_object ? SecretPlace::number : SecretPlace::list_number, clean_);
    if (whole.empty()) {
      out_ += written;
    } else {
      append_json_string(out_, whole);
      is_redacted_ = true;
    }
  }
  bool is_done(std::size_t at) const {
    return at >= options_.enough_bytes && out_.size() - begin_ >= options_.enough_bytes;
  }

  // Escapes stay as they are written. The length of the decoded text decides whether the string is cut. The
  // filter gets the decoded text; only if it replaces something is the string written anew.
  bool string(std::string_view text, std::size_t& at, bool is_key) {
    const std::size_t out_begin = out_.size(), first = at + 1;
    const std::size_t bytes_max = is_key ? text.npos : options_.text_bytes_max;
    const std::size_t filter_bytes = filter_bytes_of(bytes_max);
    std::size_t decoded_bytes = 0,
                cut_at = text.npos;  // cut_at: where the output ends if the string is too long
    bool is_verbatim = true;         // so far the decoded text is the input
    out_ += '"';
    const auto add = [&](const JsonStringPiece& piece) {
      if (is_verbatim && !piece.is_plain) {
        is_verbatim = false;
        if (filter_bytes > 0) decoded_.assign(text, first, std::min(piece.offset - first, filter_bytes));
      }
      if (!is_verbatim && decoded_.size() < filter_bytes) decoded_ += piece.decoded;
      if (cut_at == text.npos) {
        const std::size_t room = bytes_max - decoded_bytes;
        if (piece.decoded.size() <= room) {
          out_ += piece.written;
        } else {
          if (piece.is_plain) out_ += cut_utf8(piece.written, room);
          cut_at = out_.size();
        }
      }
      decoded_bytes += piece.decoded.size();
    };
    if (!scan_json_string(text, at, add, options_.is_utf8)) return false;
    if (options_.filter) {
      std::string_view decoded =
          is_verbatim ? text.substr(first, at - 1 - first) : std::string_view(decoded_);
      decoded = cut_utf8(decoded, filter_bytes);
      if (is_key) key_place_ = options_.filter->secret_place(decoded);
      if (const auto replaced = filtered(decoded, bytes_max, is_key ? std::nullopt : secret_place())) {
        is_redacted_ = true;
        out_.resize(out_begin);
        const std::string_view shown = cut_utf8(*replaced, bytes_max);
        const bool is_cut = decoded_bytes > bytes_max || shown.size() < replaced->size();
        append_json_string(out_, shown);
        if (is_key) set_key(out_begin);
        if (is_cut) add_truncated(decoded_bytes);
        return true;
      }
    }
    out_ += '"';
    if (is_key) set_key(out_begin);
    if (cut_at != text.npos) add_truncated(decoded_bytes);
    return true;
  }

 private:
  struct Level {
    bool is_object = false;
    std::optional<SecretPlace> place;  // of its values; a key of this object can narrow it
    std::size_t index = 0;             // of the current element
    std::size_t key_begin = 0;         // of the current member's key in the output, without quotes
    std::size_t key_bytes = 0;
  };

  std::optional<SecretPlace> secret_place() const {
    if (levels_.empty()) return std::nullopt;
    const Level& level = levels_.back();
    return level.is_object && key_place_ ? key_place_ : level.place;
  }

  // How much decoded text the filter gets of a string that is cut after `bytes_max`.
  std::size_t filter_bytes_of(std::size_t bytes_max) const {
    if (!options_.filter) return 0;
    const std::size_t reach = options_.filter->reach();
    return bytes_max > std::string::npos - reach ? bytes_max : bytes_max + reach;
  }

  // The text with its secrets replaced; nothing if there are none.
  std::optional<std::string_view> filtered(std::string_view decoded, std::size_t bytes_max,
                                           std::optional<SecretPlace> place) {
    const TextFilter& filter = *options_.filter;
    if (place)
      if (const std::string_view whole = filter.replace_whole(decoded, *place, clean_); !whole.empty())
        return whole;
    const std::string_view clean = filter.clean(decoded, std::min(bytes_max, decoded.size()), clean_);
    if (clean.data() == decoded.data()) return std::nullopt;
    return clean;
  }

  // The last string written, from `out_begin` on, is the current member's key.
  void set_key(std::size_t out_begin) {
    levels_.back().key_begin = out_begin + 1;
    levels_.back().key_bytes = out_.size() - out_begin - 2;
  }

  // The current value is only the beginning of a text of `bytes` bytes.
  void add_truncated(std::size_t bytes) {
    if (!options_.truncated) return;
    std::string path;
    for (const Level& level : levels_)
      append_path_name(path, level.is_object ? unescape_json(std::string_view(out_).substr(level.key_begin,
                                                                                           level.key_bytes))
                                             : std::to_string(level.index));
    options_.truncated->add(path, bytes);
  }

  std::string& out_;
  std::string_view json_;
  const RewriteOptions& options_;
  const std::size_t begin_;  // of what this writes
  std::vector<Level> levels_;
  bool is_redacted_ = false;
  std::optional<SecretPlace> key_place_;  // of the last key
  std::string decoded_, clean_;
};

// ---- Repairing

bool fits(std::string_view number) {
  const char* const end = number.data() + number.size();
  if (number.find_first_of(".eE") != number.npos)
    return std::isfinite(std::strtod(std::string(number).c_str(), nullptr));
  std::int64_t small = 0;
  std::uint64_t large = 0;
  return std::from_chars(number.data(), end, small).ec == std::errc{} ||
         std::from_chars(number.data(), end, large).ec == std::errc{};
}

// A visitor of scan_json_value().
class Repairer {
 public:
  RepairedJson run(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    json_.is_object = first != text.npos && text[first] == '{';
    json_.result = scan_json_value(text, json_.bytes, nesting_max, *this);
    return std::move(json_);
  }

  void put(char c) { json_.text += c; }
  void enter(bool) {}
  void leave() {}
  void scalar(std::string_view written) {
    const bool is_number = written.front() == '-' || (written.front() >= '0' && written.front() <= '9');
    json_.text += written;
    json_.is_changed |= is_number && !fits(written);
  }
  bool is_done(std::size_t) const { return false; }
  bool string(std::string_view text, std::size_t& at, bool) {
    put('"');
    const bool is_valid = scan_json_string(text, at, [&](const JsonStringPiece& piece) {
      json_.text += piece.written;
      json_.is_changed |= piece.is_repaired;
    });
    put('"');
    return is_valid;
  }

 private:
  RepairedJson json_;
};

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == text.npos; }

// A visitor of scan_json_value() that writes nothing: is the value an object with a `type` that is a string?
class TypeFinder {
 public:
  explicit TypeFinder(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void put(char c) {
    if (c != '{' && c != '[') return;
    if (depth_ == 0) is_object_ = c == '{';
    set_value(false);
  }
  void enter(bool) { ++depth_; }
  void leave() { --depth_; }
  void scalar(std::string_view) { set_value(false); }
  bool is_done(std::size_t at) const { return at > bytes_max_; }
  bool string(std::string_view text, std::size_t& at, bool is_key) {
    const std::size_t first = at + 1;
    if (!scan_json_string(text, at, [](const JsonStringPiece&) {})) return false;
    if (!is_key)
      set_value(true);
    else if (depth_ == 1)
      is_type_ = unescape_json(text.substr(first, at - 1 - first)) == "type";
    return true;
  }
  bool found() const { return is_object_ && has_type_; }

 private:
  // The last of two members counts.
  void set_value(bool is_text) {
    if (depth_ == 1 && is_type_) has_type_ = is_text;
  }

  const std::size_t bytes_max_;
  std::size_t depth_ = 0;
  bool is_object_ = false, is_type_ = false, has_type_ = false;
};

// True if the text is objects with a `type`, one behind the other. Uses up `work`, the bytes that may still
// be read.
bool is_complete_suffix(std::string_view text, std::size_t& work) {
  constexpr std::size_t try_bytes = 64;  // what a try costs at least
  work -= std::min(work, try_bytes);
  while (!is_blank(text)) {
    TypeFinder finder(work);
    std::size_t at = 0;
    const JsonResult result = scan_json_value(text, at, nesting_max, finder);
    work -= std::min(work, at);
    if (result != JsonResult::complete || !finder.found()) return false;
    text.remove_prefix(at);
  }
  return true;
}

}  // namespace

Rewritten rewrite_json(std::string& out, std::string_view json, const RewriteOptions& options) {
  return Rewriter(out, json, options).run();
}

std::string_view json_prefix(std::string_view json, std::size_t bytes_max, const TextFilter* filter,
                             std::string& scratch) {
  if (!filter) return cut_utf8(json, bytes_max);
  scratch.clear();
  const Rewritten written =
      rewrite_json(scratch, json, {.depth_max = nesting_max, .enough_bytes = bytes_max, .filter = filter});
  if (written.result == JsonResult::complete || written.result == JsonResult::stopped)
    return cut_utf8(written.is_redacted ? std::string_view(scratch) : json, bytes_max);
  return cut_utf8(redact_fragment(json, bytes_max, *filter, scratch), bytes_max);
}

std::string_view redact_fragment(std::string_view text, std::size_t bytes_max, const TextFilter& filter,
                                 std::string& scratch) {
  constexpr std::size_t escape_bytes_max = 6;  // of one that means one byte
  constexpr std::size_t limit = std::string::npos / (2 * escape_bytes_max);
  if (bytes_max < limit) text = cut_utf8(text, escape_bytes_max * (bytes_max + filter.reach()));
  // First as it is: an undone escape may end a secret early.
  std::string clean;
  text = filter.clean(text, clean);
  const std::string plain = unescape_json(text);
  std::string clean_plain;
  const std::string_view shown = filter.clean(plain, std::min(bytes_max, plain.size()), clean_plain);
  // The text without escapes is shown only if a secret was in it.
  scratch = shown.data() != plain.data() ? shown : cut_utf8(text, bytes_max);
  return scratch;
}

std::string redact_record(std::string_view line, const TextFilter* filter, bool& is_json) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  std::string text;
  text.reserve(line.size());
  const Rewritten written = rewrite_json(text, line, {.depth_max = nesting_max, .filter = filter});
  is_json = written.result == JsonResult::complete;
  if (is_json) return text;
  text.clear();
  return std::string(filter ? redact_fragment(line, line.size(), *filter, text) : line);
}

RepairedJson repair_json(std::string_view text) { return Repairer().run(text); }

SplitLine split_line(std::string_view line) {
  SplitLine split;
  std::string_view rest = line;
  while (!is_blank(rest)) {
    RepairedJson one = repair_json(rest);
    if (one.result == JsonResult::too_deep) return {.is_broken = true, .is_too_deep = true};
    if (one.result != JsonResult::complete || !one.is_object) {
      // A lone scalar or array is valid JSON but not a record: the caller counts it.
      if (split.records.empty() && one.result == JsonResult::complete && is_blank(rest.substr(one.bytes))) {
        split.records.push_back(std::move(one));
        return split;
      }
      split.is_broken = true;
      break;
    }
    rest.remove_prefix(one.bytes);
    split.records.push_back(std::move(one));
  }
  if (!split.is_broken) return split;
  // Each candidate may have to be read to its end: beyond this much work the line is given up.
  std::size_t work = salvage_bytes_max;
  for (std::size_t at = rest.find('{', 1); at != rest.npos && work > 0; at = rest.find('{', at + 1)) {
    std::string_view suffix = rest.substr(at);
    if (!is_complete_suffix(suffix, work)) continue;
    while (!is_blank(suffix)) {
      split.records.push_back(repair_json(suffix));
      suffix.remove_prefix(split.records.back().bytes);
    }
    split.is_salvaged = true;
    break;
  }
  return split;
}

}  // namespace earshot
