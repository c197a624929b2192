#include "common/text.hpp"

#include <cstdint>
#include <cstdio>

namespace earshot::common {
namespace {

constexpr char32_t replacement = 0xfffd;

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

// What moves, hides or reorders text without being seen.
bool is_deceiving(char32_t c) {
  return c == 0xad || c == 0x61c || c == 0x180e || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

bool is_variation(char32_t c) { return c >= 0xfe00 && c <= 0xfe0f; }
bool is_joiner(char32_t c) { return c == 0x200b || c == 0x200d; }

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

void append_escape(std::string& out, char32_t c) {
  char text[16];
  std::snprintf(text, sizeof text,
                c < 0x100     ? "\\x%02x"
                : c < 0x10000 ? "\\u%04x"
                              : "\\U%08x",
                static_cast<unsigned>(c));
  out += text;
}

// JSON knows only 16 bits a \u: what lies above is a surrogate pair.
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

void append_visible(std::string& out, char32_t c, Charset charset) {
  if (is_control(c) || is_deceiving(c)) {
    append_escape(out, c);
  } else if (is_variation(c) || is_joiner(c)) {
    return;
  } else if (charset == Charset::ascii && c >= 0x80) {
    if (code_point_width(c) > 0) out += '?';
  } else {
    append_utf8(out, c);
  }
}

bool is_space(char32_t c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Takes a run of white space; says whether it held a line end.
bool skip_space(std::string_view& text) {
  bool line_end = false;
  while (!text.empty() && is_space(static_cast<unsigned char>(text.front()))) {
    line_end = line_end || text.front() == '\n';
    text.remove_prefix(1);
  }
  return line_end;
}

}  // namespace

char32_t take_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t size = lead < 0x80                   ? 1
                           : lead >= 0xc2 && lead < 0xe0 ? 2
                           : (lead & 0xf0) == 0xe0       ? 3
                           : lead >= 0xf0 && lead < 0xf5 ? 4
                                                         : 0;
  if (size == 0 || size > text.size()) {
    text.remove_prefix(1);
    return replacement;
  }
  char32_t c = size == 1 ? lead : lead & (0xff >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      text.remove_prefix(1);
      return replacement;
    }
    c = (c << 6) | (byte(i) & 0x3f);
  }
  const bool overlong = (size == 3 && c < 0x800) || (size == 4 && (c < 0x10000 || c > 0x10ffff));
  if (overlong || (c >= 0xd800 && c < 0xe000)) {
    text.remove_prefix(1);
    return replacement;
  }
  text.remove_prefix(size);
  return c;
}

std::string to_display_line(std::string_view text, Charset charset, LineBreaks newlines,
                            std::size_t bytes_max) {
  text = text.substr(0, bytes_max);
  skip_space(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (is_space(static_cast<unsigned char>(text.front()))) {
      const bool line_end = skip_space(text);
      if (text.empty()) break;  // no space at the end
      out += !line_end || newlines == LineBreaks::space ? " " : charset == Charset::utf8 ? " ⏎ " : " | ";
      continue;
    }
    append_visible(out, take_code_point(text), charset);
  }
  return out;
}

std::size_t display_width(std::string_view printable_text) {
  std::size_t columns = 0;
  while (!printable_text.empty())
    columns += static_cast<std::size_t>(code_point_width(take_code_point(printable_text)));
  return columns;
}

std::string cut_to_width(std::string_view printable_text, std::size_t columns, std::string_view ellipsis) {
  if (printable_text.size() <= columns || display_width(printable_text) <= columns)
    return std::string(printable_text);
  if (columns == 0) return {};
  std::size_t used = 0, taken = 0;
  std::string_view rest = printable_text;
  while (!rest.empty()) {
    const std::size_t width = static_cast<std::size_t>(code_point_width(take_code_point(rest)));
    if (used + width > columns - 1) break;
    used += width;
    taken = printable_text.size() - rest.size();
  }
  return std::string(printable_text.substr(0, taken)) + std::string(ellipsis);
}

std::string cut_start_to_width(std::string_view printable_text, std::size_t columns,
                               std::string_view ellipsis) {
  std::size_t width = display_width(printable_text);
  if (width <= columns) return std::string(printable_text);
  if (columns == 0) return {};
  while (width > columns - 1)
    width -= static_cast<std::size_t>(code_point_width(take_code_point(printable_text)));
  return std::string(ellipsis) + std::string(printable_text);
}

std::string to_display_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const char32_t c = take_code_point(json);
    if (c < 0x20) {
      out += ' ';  // valid JSON has it only between tokens
    } else if (is_control(c) || is_deceiving(c)) {
      append_json_escape(out, c);
    } else {
      append_utf8(out, c);
    }
  }
  return out;
}

}  // namespace earshot::common
