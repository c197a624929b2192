// Text of several lines, made to fit.
#include <algorithm>

#include "common/text.hpp"

namespace earshot::common {
namespace {

constexpr std::size_t tab_columns = 8;

std::size_t leading_blanks(std::string_view text) {
  return std::min(text.find_first_not_of(' '), text.size());
}

// As many bytes of `text` as fit into `columns`, to the end of a word where one ends in the second half; at
// least one character.
std::size_t piece_bytes(std::string_view text, std::size_t columns) {
  std::size_t used = 0, end = 0, word_end = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const bool blank = rest.front() == ' ';
    const std::size_t width = static_cast<std::size_t>(code_point_width(take_code_point(rest)));
    if (used + width > columns && end > 0) break;
    if (blank && used > columns / 2) word_end = end;
    used += width;
    end = text.size() - rest.size();
  }
  if (end == text.size() || text[end] == ' ') return end;
  return word_end > 0 ? word_end : end;
}

class Lines {
 public:
  Lines(std::size_t columns, std::size_t lines_max) : columns_(columns), lines_max_(lines_max) {}

  void add(std::string line) {
    if (columns_ == 0 || display_width(line) <= columns_) return put(std::move(line));
    // Not so far that there is no room for a wide character.
    const std::size_t indent = columns_ > 2 ? std::min(leading_blanks(line), columns_ / 2) : 0;
    std::string_view rest = line;
    rest.remove_prefix(leading_blanks(line));
    while (!rest.empty()) {
      const std::size_t size = piece_bytes(rest, columns_ - indent);
      put(std::string(indent, ' ') + std::string(rest.substr(0, size)));
      rest.remove_prefix(size);
      rest.remove_prefix(leading_blanks(rest));
    }
  }

  WrappedText take() {
    while (!out_.lines.empty() && out_.lines.back().empty()) out_.lines.pop_back();
    return std::move(out_);
  }

 private:
  void put(std::string line) {
    const bool again = line.empty() && (out_.lines.empty() || out_.lines.back().empty());
    if (again) return;
    if (out_.lines.size() >= lines_max_) {
      out_.omitted += line.empty() ? 0 : 1;
    } else {
      out_.lines.push_back(std::move(line));
    }
  }

  std::size_t columns_, lines_max_;
  WrappedText out_;
};

}  // namespace

std::string to_display_code(std::string_view line, Charset charset) {
  std::string out;
  std::size_t column = 0;
  while (!line.empty()) {
    const std::size_t stop = std::min(line.find('\t'), line.size());
    for (std::string_view text = line.substr(0, stop); !text.empty();) {
      std::string_view rest = text;
      const char first = text.front();
      take_code_point(rest);
      const std::string_view one = text.substr(0, text.size() - rest.size());
      const std::string shown = first == ' ' ? " " : to_display_line(one, charset);
      out += shown;
      column += display_width(shown);
      text = rest;
    }
    line.remove_prefix(stop);
    if (line.empty()) break;
    const std::size_t blanks = tab_columns - column % tab_columns;
    out.append(blanks, ' ');
    column += blanks;
    line.remove_prefix(1);
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

WrappedText wrap_text(std::string_view text, std::size_t columns, Charset charset, std::size_t lines_max) {
  Lines lines(columns, lines_max);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.add(to_display_code(line, charset));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines.take();
}

}  // namespace earshot::common
