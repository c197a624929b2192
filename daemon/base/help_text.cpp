#include "base/help_text.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/display_text.hpp"

namespace earshot {
namespace {

constexpr std::size_t columns_min = 40, columns_max = 120, columns_default = 80;
constexpr std::size_t text_columns_min = 20;  // beside a name
constexpr std::size_t command_indent = 2;

// Where the lines that continue this one begin; npos: it is not broken.
std::size_t continuation_indent(std::string_view line) {
  const std::size_t indent = line.find_first_not_of(' ');
  if (indent == 0) return 0;
  const std::size_t gap = line.find("  ", indent);
  if (gap != line.npos) return line.find_first_not_of(' ', gap);
  return indent == command_indent ? line.npos : indent;
}

void append_wrapped(std::string& out, std::string_view line, std::size_t columns) {
  std::size_t indent = continuation_indent(line);
  if (indent == line.npos || display_width(line) <= columns) {
    out.append(line).append("\n");
    return;
  }
  std::string current(line.substr(0, indent));
  indent = std::min(indent, columns - text_columns_min);
  std::size_t width = display_width(current);
  for (std::string_view rest = line.substr(current.size()); !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.find_first_not_of(' ', word.size()), rest.size()));
    const bool is_first = current.empty() || current.back() == ' ';
    if (!is_first && width + 1 + display_width(word) > columns) {
      out.append(current).append("\n");
      current.assign(indent, ' ');
      width = indent;
    } else if (!is_first) {
      current += ' ';
      ++width;
    }
    current += word;
    width += display_width(word);
  }
  out.append(current).append("\n");
}

// Whether the line goes on with the sentence that the paragraph ends in.
bool continues(std::string_view paragraph, std::string_view line) {
  constexpr std::string_view ends = ".:?!";
  const std::size_t indent = line.find_first_not_of(' ');
  if (paragraph.empty() || indent != continuation_indent(paragraph)) return false;
  line.remove_prefix(indent);
  return ends.find(paragraph.back()) == ends.npos && !line.starts_with("Usage:") &&
         !line.starts_with("Default:") && !line.starts_with("Exit codes:");
}

}  // namespace

std::size_t help_columns() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return columns_default;
  return std::clamp<std::size_t>(size.ws_col, columns_min, columns_max);
}

std::string wrap_help(std::string_view help, std::size_t columns) {
  columns = std::max(columns, columns_min);
  std::string out, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) append_wrapped(out, paragraph, columns);
    paragraph.clear();
  };
  while (!help.empty()) {
    const std::string_view line = help.substr(0, help.find('\n'));
    help.remove_prefix(std::min(line.size() + 1, help.size()));
    if (line.empty()) {
      end_paragraph();
      if (!out.empty() && !out.ends_with("\n\n")) out += '\n';
    } else if (continues(paragraph, line)) {
      paragraph.append(" ").append(line.substr(line.find_first_not_of(' ')));
    } else {
      end_paragraph();
      paragraph = line;
    }
  }
  end_paragraph();
  return out;
}

}  // namespace earshot
