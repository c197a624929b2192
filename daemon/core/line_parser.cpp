#include "core/line_parser.hpp"

namespace earshot {
namespace {

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == line.npos; }

}  // namespace

// If the allocation fails, parsing reports it and the line is refused.
LineParser::Parsed LineParser::parse_dom(std::string_view line, std::size_t depth_max) {
  if (!dom_ || dom_depth_max_ != depth_max) {
    dom_ = std::make_unique<simdjson::dom::parser>();
    dom_depth_max_ = depth_max;
    [[maybe_unused]] const auto error = dom_->allocate(4096, depth_max);
  }
  dom::element element;
  if (dom_->parse(line.data(), line.size(), false).get(element)) return {Kind::refused};
  if (!element.is_object()) return {Kind::other};
#if EARSHOT_LINE_WALK
  return {Kind::object};
#else
  return {Kind::object, Value(element)};
#endif
}

void LineParser::release_long_dom() {
  if (dom_ && dom_->capacity() > chunk_bytes_max) dom_.reset();
}

#if EARSHOT_LINE_WALK

bool LineParser::begin_chunk(std::string_view lines) {
  index_.forget_decoded();
  return index_.read(lines);
}
const std::vector<std::uint32_t>& LineParser::line_ends() const { return index_.line_ends(); }
void LineParser::skip_line(std::uint32_t line_end) { index_.skip_line(line_end); }

LineParser::Parsed LineParser::next_line(std::string_view line, std::uint32_t line_end) {
  if (index_.is_blank_line(line_end)) return {Kind::blank};
  if (!keeps_values_) index_.forget_decoded();
  std::uint32_t root = 0;
  switch (index_.walk_line(line_end, root)) {
    case LineIndex::Verdict::accepted:
      return {Kind::object, Value(index_, root)};
    case LineIndex::Verdict::in_doubt:
      return decide(index_, line, line_end, root, nesting_max);
    case LineIndex::Verdict::refused:
      break;
  }
  return {Kind::refused};
}

LineParser::Parsed LineParser::decide(LineIndex& index, std::string_view line, std::uint32_t line_end,
                                      std::uint32_t root, std::size_t depth_max) {
  Parsed parsed = parse_dom(line, depth_max);
  if (parsed.kind != Kind::object) return parsed;
  index.move_to(root);
  if (index.walk_line(line_end, root, {depth_max, true}) != LineIndex::Verdict::accepted)
    return {Kind::refused};
  return {Kind::object, Value(index, root)};
}

LineParser::Parsed LineParser::parse(std::string_view line) {
  if (index_.read(line)) return next_line(line, static_cast<std::uint32_t>(line.size()) - 1);
  return {is_blank(line) ? Kind::blank : Kind::refused};
}

LineParser::Parsed LineParser::parse_repaired(std::string_view line) {
  if (!repaired_) repaired_ = std::make_unique<LineIndex>();
  if (!repaired_->read(line)) return {Kind::refused};
  repaired_->forget_decoded();
  return decide(*repaired_, line, static_cast<std::uint32_t>(line.size()) - 1, 0, nesting_max + 1);
}

void LineParser::release_long() {
  release_long_dom();
  index_.release_long();
  if (repaired_) repaired_->release_long();
}

#else

bool LineParser::begin_chunk(std::string_view) { return false; }
const std::vector<std::uint32_t>& LineParser::line_ends() const { return no_line_ends_; }
void LineParser::skip_line(std::uint32_t) {}
LineParser::Parsed LineParser::next_line(std::string_view line, std::uint32_t) { return parse(line); }

LineParser::Parsed LineParser::parse(std::string_view line) {
  return is_blank(line) ? Parsed{Kind::blank} : parse_dom(line, nesting_max);
}

LineParser::Parsed LineParser::parse_repaired(std::string_view line) {
  return parse_dom(line, nesting_max + 1);
}

void LineParser::release_long() { release_long_dom(); }

#endif

}  // namespace earshot
