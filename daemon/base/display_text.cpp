#include "base/display_text.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.hpp"

namespace earshot {
namespace {

constexpr std::size_t tab_columns = 8;

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

// Invisible characters that move, hide or reorder text.
bool is_deceptive(char32_t c) {
  return c == 0xad || c == 0x61c || c == 0x180e || c == 0x200b || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || (c >= 0xfe00 && c <= 0xfe0d) ||
         c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

constexpr char32_t joiner = 0x200d, keycap = 0x20e3;
bool is_emoji_selector(char32_t c) { return c == 0xfe0e || c == 0xfe0f; }
bool is_skin_tone(char32_t c) { return c >= 0x1f3fb && c <= 0x1f3ff; }
bool is_keycap_base(char32_t c) { return (c >= '0' && c <= '9') || c == '#' || c == '*'; }
bool is_pictograph(char32_t c) {
  return c >= 0x80 && utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->boundclass ==
                          UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC;
}

enum class Visibility { shown, deceptive, part_of_emoji };

// Joiners and variation selectors are invisible, too; within an emoji they are usual. The page has the same
// rules: sanitize.ts.
class Visibilities {
 public:
  /// Of the next code point of a text; `rest` follows it.
  Visibility take(char32_t c, std::string_view rest) {
    const char32_t before = std::exchange(before_, c);
    const bool has_pictograph = pictograph_ > 0;
    pictograph_ = is_pictograph(c)                                                ? 2
                  : pictograph_ == 2 && (is_emoji_selector(c) || is_skin_tone(c)) ? 1
                                                                                  : 0;
    if (is_control(c) || is_deceptive(c)) return Visibility::deceptive;
    if (c != joiner && !is_emoji_selector(c)) return Visibility::shown;
    const char32_t next = rest.empty() ? 0 : take_code_point(rest);
    const bool is_part = c == joiner ? has_pictograph && is_pictograph(next)
                                     : pictograph_ == 1 || (is_keycap_base(before) && next == keycap);
    return is_part ? Visibility::part_of_emoji : Visibility::deceptive;
  }

 private:
  char32_t before_ = 0;
  int pictograph_ = 0;  // 2: the text ends with one; 1: and with a selector or a skin tone
};

void append_escape(std::string& out, char32_t c) {
  char text[16];
  std::snprintf(text, sizeof text,
                c < 0x100     ? "\\x%02x"
                : c < 0x10000 ? "\\u%04x"
                              : "\\U%08x",
                static_cast<unsigned>(c));
  out += text;
}

// JSON's \u has 16 bits: larger code points are a surrogate pair.
void append_json_escape(std::string& out, char32_t c) {
  char text[16];
  if (c < 0x10000) {
    std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(c));
  } else {
    std::snprintf(text, sizeof text, "\\u%04x\\u%04x", static_cast<unsigned>(0xd800 + ((c - 0x10000) >> 10)),
                  static_cast<unsigned>(0xdc00 + ((c - 0x10000) & 0x3ff)));
  }
  out += text;
}

// Punctuation that is usual in prose, in ASCII; empty: another character.
std::string_view ascii_punctuation(char32_t c) {
  switch (c) {
    case 0xa0:
      return " ";
    case 0xb7:
    case 0x2010:
    case 0x2011:
    case 0x2013:
    case 0x2014:
      return "-";
    case 0x2018:
    case 0x2019:
      return "'";
    case 0x201c:
    case 0x201d:
      return "\"";
    case 0x2022:
      return "*";
    case 0x2026:
      return "...";
    case 0x2192:
      return "->";
    default:
      return {};
  }
}

void append_displayable(std::string& out, char32_t c, Visibility visibility, Charset charset) {
  if (visibility == Visibility::deceptive) return append_escape(out, c);
  if (visibility == Visibility::part_of_emoji) return;
  if (charset == Charset::utf8 || c < 0x80) return append_utf8(out, c);
  const std::string_view punctuation = ascii_punctuation(c);
  if (!punctuation.empty())
    out += punctuation;
  else if (code_point_width(c) > 0)
    out += '?';
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Removes a run of white space. Returns whether it contained a line break.
bool skip_space(std::string_view& text) {
  bool line_break = false;
  for (; !text.empty() && is_space(text.front()); text.remove_prefix(1))
    line_break = line_break || text.front() == '\n';
  return line_break;
}

std::size_t leading_blanks(std::string_view text) {
  return std::min(text.find_first_not_of(' '), text.size());
}

std::size_t take_width(std::string_view& text) {
  return static_cast<std::size_t>(code_point_width(take_code_point(text)));
}

// The bytes of `text` that fit into `columns`, up to the end of a word if one ends in the second half; at
// least one character.
std::size_t fitting_bytes(std::string_view text, std::size_t columns) {
  std::size_t used = 0, end = 0, word_end = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const bool is_blank = rest.front() == ' ';
    const std::size_t width = take_width(rest);
    if (used + width > columns && end > 0) break;
    if (is_blank && used > columns / 2) word_end = end;
    used += width;
    end = text.size() - rest.size();
  }
  if (end == text.size() || text[end] == ' ') return end;
  return word_end > 0 ? word_end : end;
}

class Wrapper {
 public:
  Wrapper(std::size_t columns, std::size_t lines_max) : columns_(columns), lines_max_(lines_max) {}

  void add(std::string line) {
    if (columns_ == 0 || display_width(line) <= columns_) return push(std::move(line));
    // At most half of the line, and none if a wide character would not fit behind it.
    const std::size_t indent = columns_ > 2 ? std::min(leading_blanks(line), columns_ / 2) : 0;
    std::string_view rest = line;
    rest.remove_prefix(leading_blanks(line));
    while (!rest.empty()) {
      const std::size_t size = fitting_bytes(rest, columns_ - indent);
      push(std::string(indent, ' ') + std::string(rest.substr(0, size)));
      rest.remove_prefix(size);
      rest.remove_prefix(leading_blanks(rest));
    }
  }

  WrappedText take() {
    while (!text_.lines.empty() && text_.lines.back().empty()) text_.lines.pop_back();
    return std::move(text_);
  }

 private:
  void push(std::string line) {
    const bool is_repeated = line.empty() && (text_.lines.empty() || text_.lines.back().empty());
    if (is_repeated) return;
    if (text_.lines.size() < lines_max_) {
      text_.lines.push_back(std::move(line));
    } else if (!line.empty()) {
      ++text_.omitted;
    }
  }

  std::size_t columns_, lines_max_;
  WrappedText text_;
};

}  // namespace

char32_t take_code_point(std::string_view& text) {
  std::size_t bad = 0;
  const std::size_t length = utf8_length(text, bad);
  if (length == 0) {
    text.remove_prefix(1);
    return 0xfffd;
  }
  utf8proc_int32_t code_point = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(length), &code_point);
  text.remove_prefix(length);
  return static_cast<char32_t>(code_point);
}

int code_point_width(char32_t c) {
  if (c < 0x80) return 1;
  if (c >= 0x1160 && c <= 0x11ff) return 0;  // Hangul letters that join the one before
  const auto code_point = static_cast<utf8proc_int32_t>(c);
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_MC:
      return 1;  // spacing marks: utf8proc has 0, terminals 1
    case UTF8PROC_CATEGORY_CN:
      return c >= 0x1f900 && c <= 0x1faff ? 2 : 1;  // emoji newer than the library
    default:
      return utf8proc_charwidth(code_point);
  }
}

std::string to_display_line(std::string_view text, Charset charset, LineBreaks line_breaks,
                            std::size_t bytes_max) {
  text = text.substr(0, bytes_max);
  skip_space(text);
  const std::string_view symbol = line_breaks == LineBreaks::space ? " "
                                  : charset == Charset::utf8       ? " ⏎ "
                                                                   : " | ";
  std::string out;
  out.reserve(text.size());
  Visibilities visibilities;
  while (!text.empty()) {
    if (!is_space(text.front())) {
      const char32_t c = take_code_point(text);
      append_displayable(out, c, visibilities.take(c, text), charset);
      continue;
    }
    visibilities = {};
    const bool line_break = skip_space(text);
    if (!text.empty()) out += line_break ? symbol : " ";
  }
  return out;
}

std::string to_display_code(std::string_view line, Charset charset) {
  std::string out;
  std::size_t column = 0;
  Visibilities visibilities;
  while (!line.empty()) {
    const std::size_t begin = out.size();
    if (line.front() == '\t') {
      line.remove_prefix(1);
      out.append(tab_columns - column % tab_columns, ' ');
    } else {
      const char32_t c = take_code_point(line);
      append_displayable(out, c, visibilities.take(c, line), charset);
    }
    column += display_width(std::string_view(out).substr(begin));
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

WrappedText wrap_text(std::string_view text, std::size_t columns, Charset charset, std::size_t lines_max) {
  Wrapper wrapper(columns, lines_max);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    wrapper.add(to_display_code(line, charset));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return wrapper.take();
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) columns += take_width(text);
  return columns;
}

std::string cut_to_width(std::string_view text, std::size_t columns, std::string_view ellipsis) {
  if (text.size() <= columns || display_width(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::size_t used = 0, kept_bytes = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    used += take_width(rest);
    if (used > columns - 1) break;
    kept_bytes = text.size() - rest.size();
  }
  return std::string(text.substr(0, kept_bytes)) + std::string(ellipsis);
}

std::string cut_start_to_width(std::string_view text, std::size_t columns, std::string_view ellipsis) {
  std::size_t width = display_width(text);
  if (width <= columns) return std::string(text);
  if (columns == 0) return {};
  while (width > columns - 1) width -= take_width(text);
  return std::string(ellipsis) + std::string(text);
}

std::string to_display_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  Visibilities visibilities;
  while (!json.empty()) {
    const char32_t c = take_code_point(json);
    const Visibility visibility = visibilities.take(c, json);
    if (c < 0x20) {
      out += ' ';
    } else if (visibility == Visibility::deceptive) {
      append_json_escape(out, c);
    } else {
      append_utf8(out, c);
    }
  }
  return out;
}

std::string replace_controls(std::string_view text, std::size_t bytes_max) {
  std::string out(cut_utf8(text, bytes_max));
  for (std::size_t at = 0; at < out.size(); ++at) {
    const auto byte = static_cast<unsigned char>(out[at]);
    if (byte < 0x20 || byte == 0x7F) out[at] = ' ';
    // C1 is two bytes of UTF-8, C2 80 to C2 9F: some terminals execute them as ESC sequences.
    if (byte == 0xC2 && at + 1 < out.size() && static_cast<unsigned char>(out[at + 1]) < 0xA0) {
      out[at] = ' ';
      out[at + 1] = ' ';
    }
  }
  return out;
}

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace earshot
