#include "otlp/wire_event.hpp"

#include <charconv>

#include "base/json_scan.hpp"
#include "base/quantities.hpp"

namespace earshot::otlp {
namespace {

constexpr std::size_t npos = std::string_view::npos;

/// The position behind the string whose opening quote is at `at`; npos: it is not closed.
std::size_t string_end(std::string_view text, std::size_t at) {
  bool ascii = true;
  for (++at; at < text.size(); at += 2) {  // behind an escape
    at = run_end(text, at, ascii);
    if (at < text.size() && text[at] == '"') return at + 1;
  }
  return npos;
}

/// The position behind the value at `at`; npos: it does not end.
std::size_t value_end(std::string_view text, std::size_t at) {
  if (text[at] == '"') return string_end(text, at);
  if (text[at] != '{' && text[at] != '[') {
    while (at < text.size() && text[at] != ',' && text[at] != '}') ++at;
    return at;
  }
  for (std::size_t depth = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = string_end(text, at);
      continue;
    }
    ++at;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return at;
  }
  return npos;
}

template <class Integer>
std::optional<Integer> integer_of(std::string_view written) {
  Integer number{};
  const char* const end = written.data() + written.size();
  const auto [stop, error] = std::from_chars(written.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

bool FrameParser::read_member(Member& member) {
  const std::string_view text = object_;
  if (at_ >= text.size() || text[at_] != '"') return false;
  const std::size_t colon = string_end(text, at_);
  if (colon == npos || colon + 1 >= text.size() || text[colon] != ':') return false;
  const std::size_t end = value_end(text, colon + 1);
  if (end == npos || end >= text.size()) return false;
  member = {text.substr(at_ + 1, colon - at_ - 2), text.substr(colon + 1, end - colon - 1)};
  at_ = end + 1;  // behind the comma, or at the end
  return true;
}

std::string_view FrameParser::find(std::string_view name) {
  for (Member member; read_member(member);) members_.push_back(member);
  for (auto each = members_.rbegin(); each != members_.rend(); ++each)
    if (each->name == name) return each->written;
  return {};
}

std::string_view FrameParser::decoded(std::string_view written) {
  if (written.empty() || written.front() != '"') return {};
  const std::string_view content = written.substr(1, written.size() - 2);
  if (content.find('\\') == npos) return content;
  return texts_.emplace_back(unescape_json(content));
}

std::optional<WireFrame> FrameParser::parse(std::string_view text) {
  object_ = text;
  at_ = 1;
  members_.clear();
  texts_.clear();
  if (!text.starts_with('{')) return std::nullopt;
  WireFrame frame;
  frame.parser = this;
  // The common members of an event come first, in this order.
  Member next;
  bool is_read = read_member(next);
  const auto take = [&](std::string_view name) -> std::string_view {
    if (!is_read || next.name != name) return {};
    const std::string_view written = next.written;
    is_read = read_member(next);
    return written;
  };
  frame.type = decoded(take("type"));
  frame.host = decoded(take("host"));
  frame.stream = decoded(take("stream"));
  frame.session = decoded(take("session"));
  frame.agent = decoded(take("agent"));
  frame.cursor = parse_cursor(decoded(take("cursor")));
  if (frame.cursor) {
    frame.time_ms = parse_time(decoded(take("time"))).value_or(0);
    frame.turn = integer_of<std::uint64_t>(take("turn")).value_or(0);
  }
  if (is_read) members_.push_back(next);
  if (!frame.cursor) {  // other frames have them in another order
    if (frame.session.empty()) frame.session = frame.text("session");
    if (frame.stream.empty()) frame.stream = frame.text("stream");
  }
  if (frame.type.empty()) return std::nullopt;
  return frame;
}

std::optional<simdjson::dom::element> FrameParser::tree(std::string_view json) {
  if (tree_.capacity() > kept_bytes_max) tree_ = simdjson::dom::parser();
  simdjson::dom::element element;
  if (tree_.parse(json.data(), json.size()).get(element)) return std::nullopt;
  return element;
}

std::string_view WireFrame::text(std::string_view name) const { return parser->decoded(parser->find(name)); }

std::optional<std::int64_t> WireFrame::number(std::string_view name) const {
  const std::string_view written = parser->find(name);
  if (const auto integer = integer_of<std::int64_t>(written)) return integer;
  const auto value = tree(name);
  return value ? dom::as_int(*value) : std::nullopt;
}

std::optional<double> WireFrame::real(std::string_view name) const {
  const auto value = tree(name);
  return value ? dom::as_double(*value) : std::nullopt;
}

bool WireFrame::flag(std::string_view name) const { return parser->find(name) == "true"; }

std::string_view WireFrame::json_text(std::string_view name) const { return parser->find(name); }

std::optional<simdjson::dom::element> WireFrame::tree(std::string_view name) const {
  const std::string_view written = parser->find(name);
  return written.empty() ? std::nullopt : parser->tree(written);
}

}  // namespace earshot::otlp
