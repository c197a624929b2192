#include "base/json_rewrite.hpp"

#include <simdjson.h>

#include <array>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/json_run.hpp"
#include "base/json_scan.hpp"
#include "core/event_json.hpp"

namespace earshot {
namespace {

// Four hex digits at `from`, or -1.
long hex4(std::string_view text, std::size_t from) {
  if (from + 4 > text.size()) return -1;
  unsigned code = 0;
  const auto [next, error] = std::from_chars(&text[from], &text[from] + 4, code, 16);
  return error == std::errc{} && next == &text[from] + 4 ? static_cast<long>(code) : -1;
}

struct Escape {
  std::size_t length = 0;  // of what is written; 0: it is none
  char32_t character = 0;  // U+FFFD for a lone surrogate
  bool lone = false;
};

// What the backslash at `at` begins.
Escape escape_at(std::string_view text, std::size_t at) {
  static constexpr auto meanings = [] {
    std::array<unsigned char, 256> all{};
    constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    for (std::size_t n = 0; n < letters.size(); ++n)
      all[static_cast<unsigned char>(letters[n])] = static_cast<unsigned char>(meant[n]);
    return all;
  }();
  const char c = at + 1 < text.size() ? text[at + 1] : '\0';
  if (c != 'u') {
    const unsigned char meaning = meanings[static_cast<unsigned char>(c)];
    return meaning ? Escape{2, meaning, false} : Escape{};
  }
  const long code = hex4(text, at + 2);
  if (code < 0) return {};
  if (code < 0xD800 || code > 0xDFFF) return {6, static_cast<char32_t>(code), false};
  const long low = code <= 0xDBFF && text.compare(at + 6, 2, "\\u") == 0 ? hex4(text, at + 8) : -1;
  if (low < 0xDC00 || low > 0xDFFF) return {6, 0xFFFD, true};
  return {12, static_cast<char32_t>(0x10000 + (code - 0xD800) * 0x400 + (low - 0xDC00)), false};
}

std::size_t utf8_bytes(char32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

class Copier {
 public:
  Copier(std::string& out, std::string_view json, const CopyOptions& options)
      : out_(out), json_(json), options_(options) {}

  Copied run() {
    copied_.how = value();
    return copied_;
  }

 private:
  using How = Copied::How;
  struct Level {
    bool object = false;
    bool secret = false;  // an array under a secret key
  };

  How value() {
    const std::size_t begin = out_.size();
    std::vector<Level> open;
    bool want_value = true;
    for (;;) {
      space();
      if (pos_ >= options_.enough_bytes && out_.size() - begin >= options_.enough_bytes) return How::enough;
      if (want_value) {
        const char c = at();
        const bool secret = open.empty() ? false : open.back().object ? secret_key_ : open.back().secret;
        if (c == '{' || c == '[') {
          if (open.size() == options_.depth_max) return How::too_deep;
          take(c);
          space();
          if (take(c == '{' ? '}' : ']')) {
            want_value = false;
            continue;
          }
          open.push_back({c == '{', c == '[' && secret});
          if (c == '{' && !key()) return How::invalid;
          continue;
        }
        if (!(c == '"' ? string(false, secret) : scalar())) return How::invalid;
        want_value = false;
      }
      if (open.empty()) break;
      space();
      if (take(',')) {
        space();
        if (open.back().object && !key()) return How::invalid;
        want_value = true;
      } else if (take(open.back().object ? '}' : ']')) {
        open.pop_back();
      } else {
        return How::invalid;
      }
    }
    space();
    return pos_ == json_.size() ? How::whole : How::invalid;
  }

  char at() const { return pos_ < json_.size() ? json_[pos_] : '\0'; }
  void space() {
    while (pos_ < json_.size() && std::strchr(" \t\r\n", json_[pos_]) && json_[pos_]) ++pos_;
  }
  bool take(char c) {
    if (pos_ >= json_.size() || json_[pos_] != c) return false;
    out_ += c;
    ++pos_;
    return true;
  }
  bool key() { return at() == '"' && string(true, false) && (space(), take(':')); }

  bool scalar() {
    for (const std::string_view word : {"true", "false", "null"}) {
      if (json_.compare(pos_, word.size(), word) != 0) continue;
      out_ += word;
      pos_ += word.size();
      return true;
    }
    const std::size_t begin = pos_;
    const auto digits = [&] {
      const std::size_t first = pos_;
      while (at() >= '0' && at() <= '9') ++pos_;
      return pos_ > first;
    };
    if (at() == '-') ++pos_;
    if (at() == '0') {
      ++pos_;
    } else if (!digits()) {
      return false;
    }
    if (at() == '.' && (++pos_, !digits())) return false;
    if (at() == 'e' || at() == 'E') {
      ++pos_;
      if (at() == '+' || at() == '-') ++pos_;
      if (!digits()) return false;
    }
    out_.append(json_, begin, pos_ - begin);
    return true;
  }

  // Escapes stay as they are written, but for lone surrogates. What is cut is decided by the decoded length.
  // The filter sees the decoded text; only when it replaces something is the string written anew.
  bool string(bool is_key, bool secret) {
    const std::size_t begin = out_.size(), first = pos_ + 1;
    const std::size_t bytes_max = is_key ? std::string::npos : options_.text_bytes_max;
    const TextFilter* const filter = options_.filter;
    // So much decoded text the filter is to see; plain_ is it once it differs from what is written.
    const std::size_t seen_max = !filter ? 0
                                 : bytes_max > std::string::npos - filter->reach()
                                     ? bytes_max
                                     : bytes_max + filter->reach();
    bool as_written = true;
    const auto differs = [&] {
      if (as_written && seen_max > 0) plain_.assign(json_, first, std::min(pos_ - first, seen_max));
      as_written = false;
    };
    const auto see = [&](std::string_view decoded_piece) {
      if (!as_written && plain_.size() < seen_max) plain_ += decoded_piece;
    };
    ++pos_;
    out_ += '"';
    std::size_t decoded = 0, kept = std::string::npos;  // kept: where the output is cut, if it is
    const auto unit = [&](std::string_view piece, std::size_t bytes) {
      if (kept == std::string::npos && decoded + bytes > bytes_max) kept = out_.size();
      decoded += bytes;
      if (kept == std::string::npos) out_ += piece;
    };
    for (;;) {
      if (pos_ >= json_.size()) return false;
      const unsigned char c = static_cast<unsigned char>(json_[pos_]);
      if (c == '"') break;
      if (c < 0x20) return false;
      if (c != '\\') {
        bool ascii = true;
        const std::string_view run = json_.substr(pos_, run_end(json_, pos_, ascii) - pos_);
        if (ascii || simdjson::validate_utf8(run.data(), run.size())) {
          if (kept == std::string::npos) {
            const std::string_view shown = cut_utf8(run, bytes_max - decoded);
            out_ += shown;
            if (shown.size() < run.size()) kept = out_.size();
          }
          see(run);
          decoded += run.size();
          pos_ += run.size();
          continue;
        }
        for (const std::size_t end = pos_ + run.size(); pos_ < end;) {
          std::size_t bad = 0;
          const std::size_t length = utf8_length(json_.substr(pos_, end - pos_), bad);
          if (!length) differs();
          const std::string_view piece = length ? json_.substr(pos_, length) : replacement;
          see(piece);
          unit(piece, piece.size());
          pos_ += length ? length : bad;
        }
        continue;
      }
      const Escape escape = escape_at(json_, pos_);
      if (!escape.length) return false;
      differs();
      if (plain_.size() < seen_max) append_utf8(plain_, escape.character);
      unit(escape.lone ? replacement : json_.substr(pos_, escape.length), utf8_bytes(escape.character));
      pos_ += escape.length;
    }
    const std::string_view text = as_written ? json_.substr(first, pos_ - first) : std::string_view(plain_);
    ++pos_;
    if (filter && cleaned(cut_utf8(text, seen_max), is_key, secret, begin, bytes_max, decoded)) return true;
    if (kept == std::string::npos) {
      out_ += '"';
      return true;
    }
    out_.resize(kept);
    out_ += "\",\"bytes\":" + std::to_string(decoded) + ",\"truncated\":true}";
    out_.insert(begin, "{\"text\":");
    return true;
  }

  // Whether the filter replaced something; then what it made of the text stands from `begin` on.
  bool cleaned(std::string_view text, bool is_key, bool secret, std::size_t begin, std::size_t bytes_max,
               std::size_t decoded_bytes) {
    const TextFilter& filter = *options_.filter;
    if (is_key) secret_key_ = filter.is_secret_key(text);
    std::string_view shown = secret ? filter.replace_whole(text, clean_) : std::string_view{};
    if (shown.empty()) {
      shown = filter.clean(text, std::min(bytes_max, text.size()), clean_);
      if (shown.data() == text.data()) return false;
    }
    copied_.redacted = true;
    out_.resize(begin);
    if (decoded_bytes <= bytes_max && shown.size() <= bytes_max)
      append_string(out_, shown);
    else
      append_cut(out_, cut_utf8(shown, bytes_max), decoded_bytes);
    return true;
  }

  std::string& out_;
  std::string_view json_;
  const CopyOptions& options_;
  Copied copied_;
  std::size_t pos_ = 0;
  bool secret_key_ = false;  // the key read last is one
  std::string plain_, clean_;
};

}  // namespace

Copied copy_json(std::string& out, std::string_view json, const CopyOptions& options) {
  return Copier(out, json, options).run();
}

std::string_view json_beginning(std::string_view json, std::size_t bytes_max, const TextFilter* filter,
                                std::string& scratch) {
  if (!filter) return cut_utf8(json, bytes_max);
  scratch.clear();
  const Copied copied =
      copy_json(scratch, json, {.depth_max = nesting_max, .enough_bytes = bytes_max, .filter = filter});
  if (copied.how == Copied::How::whole || copied.how == Copied::How::enough)
    return cut_utf8(copied.redacted ? std::string_view(scratch) : json, bytes_max);
  return cut_utf8(clean_fragment(json, bytes_max, *filter, scratch), bytes_max);
}

std::string_view clean_fragment(std::string_view text, std::size_t shown_bytes, const TextFilter& filter,
                                std::string& scratch) {
  constexpr std::size_t escape_bytes_max = 6;  // of one that stands for one byte
  const std::size_t limit = std::string::npos / (2 * escape_bytes_max);
  if (shown_bytes < limit) text = cut_utf8(text, escape_bytes_max * (shown_bytes + filter.reach()));
  // As it stands first: undoing escapes may end a string before its end.
  std::string cleaned;
  text = filter.clean(text, cleaned);
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t back = std::min(text.find('\\', at), text.size());
    plain.append(text, at, back - at);
    at = back;
    if (at == text.size()) break;
    const Escape escape = escape_at(text, at);
    if (escape.length)
      append_utf8(plain, escape.character);
    else
      plain += text[at];
    at += std::max<std::size_t>(escape.length, 1);
  }
  std::string undone;
  const std::string_view shown = filter.clean(plain, std::min(shown_bytes, plain.size()), undone);
  // What the text is with its escapes undone is shown only when it had to be changed.
  scratch = shown.data() != plain.data() ? shown : cut_utf8(text, shown_bytes);
  return scratch;
}

}  // namespace earshot
