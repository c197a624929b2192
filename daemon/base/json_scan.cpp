#include "base/json_scan.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/utf8.hpp"

namespace earshot {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// ---- Walking text that is known to be valid
// -------------------------------------------------------------------------

class Walker {
 public:
  explicit Walker(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  char peek() {
    while (at_ < end_ && is_space(*at_)) ++at_;
    return at_ < end_ ? *at_ : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  /// The string's text between its quotes.
  std::string_view string() {
    const char* begin = ++at_;
    while (at_ < end_) {
      at_ = static_cast<const char*>(std::memchr(at_, '"', static_cast<std::size_t>(end_ - at_)));
      if (!at_) {
        at_ = end_;
        break;
      }
      const char* back = at_;
      while (back > begin && back[-1] == '\\') --back;
      if ((at_ - back) % 2 == 0) return {begin, static_cast<std::size_t>(at_++ - begin)};
      ++at_;
    }
    return {begin, static_cast<std::size_t>(end_ - begin)};
  }
  std::string_view value() {
    peek();
    const char* begin = at_;
    std::size_t depth = 0;
    do {
      switch (peek()) {
        case '"':
          string();
          break;
        case '{':
        case '[':
          ++depth, ++at_;
          break;
        case '}':
        case ']':
          --depth, ++at_;
          break;
        case ',':
        case ':':
          ++at_;
          break;
        case '\0':
          at_ = end_;
          depth = 0;
          break;
        default:
          while (at_ < end_ && !is_space(*at_) && !std::strchr(",]}", *at_)) ++at_;
      }
    } while (depth > 0 && at_ < end_);
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }

 private:
  const char* at_;
  const char* end_;
};

bool same_key(std::string_view written, std::string_view key) {
  if (written.find('\\') == std::string_view::npos) return written == key;
  const std::string quoted = '"' + std::string(written) + '"';
  std::string plain;  // only ASCII keys are asked for: \uXXXX above that can be no match
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i] != '\\' || i + 1 >= written.size()) {
      plain += written[i];
    } else if (written[++i] == 'u' && i + 4 < written.size()) {
      unsigned code = 0;
      std::from_chars(written.data() + i + 1, written.data() + i + 5, code, 16);
      append_utf8(plain, code);
      i += 4;
    } else {
      plain += written[i];
    }
  }
  return plain == key;
}

// ---- Repairing text that may be anything
// ----------------------------------------------------------------------------

class Repairer {
 public:
  explicit Repairer(std::string_view text) : text_(text) {}

  Repaired run() {
    space();
    out_.object = at() == '{';
    out_.error = value();
    out_.bytes = pos_;
    return std::move(out_);
  }

 private:
  char at() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }
  void space() {
    while (pos_ < text_.size() && is_space(text_[pos_])) ++pos_;
  }
  void put(std::string_view piece) {
    out_.text += piece;
    out_.for_dom += piece;
  }
  bool copy(char c) {
    if (at() != c || pos_ >= text_.size()) return false;
    put({&text_[pos_++], 1});
    return true;
  }

  // One value. Objects and arrays without recursion: `open` holds what each level is.
  Json_error value() {
    std::vector<bool> open;  // true: an object
    bool want_value = true;
    for (;;) {
      space();
      if (want_value) {
        const char c = at();
        if (c == '{' || c == '[') {
          if (open.size() == nesting_max) return Json_error::too_deep;
          copy(c);
          space();
          open.push_back(c == '{');
          if (copy(c == '{' ? '}' : ']')) {
            open.pop_back();
          } else if (c == '{') {
            if (!key()) return Json_error::invalid;
            continue;
          } else {
            continue;
          }
        } else if (!(c == '"' ? string() : scalar())) {
          return Json_error::invalid;
        }
        want_value = false;
      }
      if (open.empty()) return Json_error::none;
      space();
      if (copy(',')) {
        space();
        if (open.back() && !key()) return Json_error::invalid;
        want_value = true;
      } else if (copy(open.back() ? '}' : ']')) {
        open.pop_back();
      } else {
        return Json_error::invalid;
      }
    }
  }

  bool key() { return at() == '"' && string() && (space(), copy(':')); }

  bool scalar() {
    for (const std::string_view word : {"true", "false", "null"}) {
      if (text_.compare(pos_, word.size(), word) != 0) continue;
      put(word);
      pos_ += word.size();
      return true;
    }
    return number();
  }

  bool number() {
    const std::size_t begin = pos_;
    const auto digits = [&] {
      const std::size_t first = pos_;
      while (is_digit(at())) ++pos_;
      return pos_ > first;
    };
    bool whole = true;
    if (at() == '-') ++pos_;
    if (at() == '0') {
      ++pos_;
    } else if (!digits()) {
      return false;
    }
    if (at() == '.') {
      whole = false;
      ++pos_;
      if (!digits()) return false;
    }
    if (at() == 'e' || at() == 'E') {
      whole = false;
      ++pos_;
      if (at() == '+' || at() == '-') ++pos_;
      if (!digits()) return false;
    }
    const std::string written(text_.substr(begin, pos_ - begin));
    out_.text += written;
    bool fits = true;
    if (whole) {
      std::int64_t small = 0;
      std::uint64_t large = 0;
      const char* last = written.data() + written.size();
      fits = std::from_chars(written.data(), last, small).ec == std::errc{} ||
             std::from_chars(written.data(), last, large).ec == std::errc{};
    } else {
      fits = std::isfinite(std::strtod(written.c_str(), nullptr));
    }
    out_.for_dom += fits ? std::string_view(written) : std::string_view("null");
    out_.changed |= !fits;
    return true;
  }

  // Four hex digits at `from`, or -1.
  long hex(std::size_t from) const {
    if (from + 4 > text_.size()) return -1;
    unsigned code = 0;
    const auto [next, error] = std::from_chars(&text_[from], &text_[from] + 4, code, 16);
    return error == std::errc{} && next == &text_[from] + 4 && text_[from] != '-' ? static_cast<long>(code)
                                                                                  : -1;
  }

  bool string() {
    copy('"');
    while (pos_ < text_.size()) {
      const unsigned char c = static_cast<unsigned char>(text_[pos_]);
      if (c < 0x20) return false;
      if (c == '"') return copy('"');
      if (c == '\\') {
        if (!escape()) return false;
        continue;
      }
      std::size_t bad = 0;
      const std::size_t length = utf8_length(text_.substr(pos_), bad);
      put(length ? text_.substr(pos_, length) : replacement);
      pos_ += length ? length : bad;
      out_.changed |= length == 0;
    }
    return false;
  }

  bool escape() {
    if (pos_ + 1 >= text_.size()) return false;
    const char c = text_[pos_ + 1];
    if (c != 'u') {
      if (!std::strchr("\"\\/bfnrt", c) || c == '\0') return false;
      put(text_.substr(pos_, 2));
      pos_ += 2;
      return true;
    }
    const long code = hex(pos_ + 2);
    if (code < 0) return false;
    std::size_t length = 6;
    bool lone = code >= 0xD800 && code <= 0xDFFF;
    if (code >= 0xD800 && code <= 0xDBFF && text_.compare(pos_ + 6, 2, "\\u") == 0) {
      const long low = hex(pos_ + 8);
      if (low >= 0xDC00 && low <= 0xDFFF) {
        length = 12;
        lone = false;
      }
    }
    put(lone ? replacement : text_.substr(pos_, length));
    out_.changed |= lone;
    pos_ += length;
    return true;
  }

  std::string_view text_;
  std::size_t pos_ = 0;
  Repaired out_;
};

bool blank(std::string_view text) {
  for (const char c : text)
    if (!is_space(c)) return false;
  return true;
}

// Objects with a `type`, one after the other, to the end of the text. `work` is what may still be read.
std::vector<Repaired> whole_suffix(std::string_view text, std::size_t& work) {
  std::vector<Repaired> found;
  while (!blank(text)) {
    Repaired one = repair(text);
    work -= std::min(work, one.bytes + 1);
    if (one.error != Json_error::none || !one.object) return {};
    const std::string_view type = member_text(one.text, "type");
    if (type.size() < 2 || type.front() != '"') return {};
    text.remove_prefix(one.bytes);
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace

std::string_view member_text(std::string_view object, std::string_view key) {
  Walker walk(object);
  std::string_view found;
  if (!walk.take('{')) return found;
  while (walk.peek() == '"') {
    const std::string_view name = walk.string();
    walk.take(':');
    const std::string_view value = walk.value();
    if (same_key(name, key)) found = value;
    if (!walk.take(',')) break;
  }
  return found;
}

std::string_view element_text(std::string_view array, std::size_t index) {
  Walker walk(array);
  if (!walk.take('[') || walk.peek() == ']') return {};
  for (std::size_t i = 0;; ++i) {
    const std::string_view value = walk.value();
    if (i == index) return value;
    if (!walk.take(',')) return {};
  }
}

Repaired repair(std::string_view text) { return Repairer(text).run(); }

Split split_line(std::string_view line) {
  Split split;
  std::string_view rest = line;
  while (!blank(rest)) {
    Repaired one = repair(rest);
    if (one.error == Json_error::too_deep)
      return {.records = {}, .broken = true, .salvaged = false, .too_deep = true};
    if (one.error != Json_error::none || !one.object) {
      // A lone scalar or array is valid JSON, only no record: the caller counts it.
      if (split.records.empty() && one.error == Json_error::none && blank(rest.substr(one.bytes))) {
        split.records.push_back(std::move(one));
        return split;
      }
      split.broken = true;
      break;
    }
    rest.remove_prefix(one.bytes);
    split.records.push_back(std::move(one));
  }
  if (!split.broken) return split;
  // Each candidate may have to be read to its end: a line made to be slow is given up instead.
  std::size_t work = 16 * line.size() + 4096;
  for (std::size_t at = rest.find('{', 1); at != std::string_view::npos && work > 0;
       at = rest.find('{', at + 1)) {
    std::vector<Repaired> suffix = whole_suffix(rest.substr(at), work);
    if (suffix.empty()) continue;
    for (Repaired& one : suffix) split.records.push_back(std::move(one));
    split.salvaged = true;
    break;
  }
  return split;
}

}  // namespace earshot
