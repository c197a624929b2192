// Frames from any server: lines on a terminal have no control sequences and fit its width. Input: one frame
// per line, also used as text and as an address.
#include <memory>

#include "base/display_text.hpp"
#include "base/text.hpp"
#include "cli/event_formatter.hpp"
#include "common/endpoint.hpp"
#include "common/format.hpp"
#include "common/frame.hpp"
#include "common/resumer.hpp"
#include "fuzz.hpp"

namespace {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::common;
using fuzz::require;

/// UTF-8 without a character that a terminal obeys: C0, DEL, C1, bidirectional controls.
bool is_safe(std::string_view text, bool ascii) {
  while (!text.empty()) {
    std::size_t bad = 0;
    if (utf8_length(text, bad) == 0) return false;
    const char32_t c = take_code_point(text);
    if (c < 0x20 || (c >= 0x7F && c < 0xA0) || (ascii && c >= 0x80)) return false;
    if ((c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0x200E || c == 0x200F ||
        c == 0x2028 || c == 0x2029 || (c >= 0xE0000 && c <= 0xE007F))
      return false;
  }
  return true;
}

void require_lines(std::string_view lines, const DisplayOptions& display) {
  const bool ascii = display.charset == Charset::ascii;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    require(end != lines.npos, "a line has its end");
    const std::string_view line = lines.substr(0, end);
    require(is_safe(line, ascii), "a line holds no command for the terminal");
    require(display.columns == 0 || display_width(line) <= display.columns,
            "a line is no wider than the terminal");
    lines.remove_prefix(end + 1);
  }
}

void try_frames(std::string_view text) {
  constexpr DisplayOptions looks[] = {{Charset::utf8, Palette::none, 0},
                                      {Charset::utf8, Palette::none, 60},
                                      {Charset::ascii, Palette::none, 23}};
  static FrameParser parser;
  for (const DisplayOptions& display : looks) {
    EventFormatter formatter(display, display.columns != 60);
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      const auto fields = parser.parse(line);
      if (!fields) continue;
      require(fuzz::is_json(std::string(line)), "a frame is JSON");
      std::string out;
      formatter.observe(*fields);
      formatter.format(*fields, out);
      require_lines(out, display);
      for (const StreamCursor& each : stream_cursors(*fields))
        require(each.stream.size() + each.cursor.size() <= line.size(), "a cursor is part of the frame");
    }
  }
}

void try_text(std::string_view text) {
  for (const Charset charset : {Charset::utf8, Charset::ascii}) {
    const bool ascii = charset == Charset::ascii;
    for (const LineBreaks newlines : {LineBreaks::space, LineBreaks::symbol}) {
      const std::string line = to_display_line(text, charset, newlines);
      require(is_safe(line, ascii), "printable text holds no command for the terminal");
      for (const std::size_t columns : {std::size_t{0}, std::size_t{1}, std::size_t{9}}) {
        require(display_width(cut_to_width(line, columns, ".")) <= columns, "a cut text fits");
        require(display_width(cut_start_to_width(line, columns, ".")) <= columns,
                "a text cut at its start fits");
      }
    }
    for (const std::size_t columns : {std::size_t{0}, std::size_t{2}, std::size_t{40}}) {
      const WrappedText lines = wrap_text(text, columns, charset, 100);
      require(lines.lines.size() <= 100, "lines are bounded");
      for (const std::string& line : lines.lines) {
        require(is_safe(line, ascii), "a wrapped line holds no command for the terminal");
        require(columns == 0 || display_width(line) <= columns, "a wrapped line fits");
      }
    }
  }
  simdjson::dom::parser one, other;
  simdjson::dom::element before, after;
  if (one.parse(simdjson::padded_string(text)).get(before)) return;
  const std::string safe = to_display_json(text);
  require(is_safe(safe, false), "JSON on a terminal has no control sequences");
  require(!other.parse(simdjson::padded_string(safe)).get(after), "JSON on a terminal is JSON");
  require(simdjson::to_string(before) == simdjson::to_string(after), "JSON on a terminal is the same JSON");
}

void try_address(std::string_view text) {
  const auto endpoint = parse_endpoint(text);
  if (const auto* found = std::get_if<Endpoint>(&endpoint))
    require(!found->host.empty() && !found->port.empty(), "an address has a host and a port");
  else
    require(!std::get<std::string>(endpoint).empty(), "an invalid address has an error");
  const StreamCursor place = parse_stream_cursor(text);
  require(place.stream.size() + place.cursor.size() <= text.size(), "a place is a part of the text");
  (void)parse_time(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto room = std::make_unique<char[]>(size);  // nothing behind it that a reader could lean on
  std::copy_n(reinterpret_cast<const char*>(data), size, room.get());
  const std::string_view text(room.get(), size);
  try_frames(text);
  try_text(text);
  try_address(text);
  return 0;
}
