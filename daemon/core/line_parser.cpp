#include "core/line_parser.hpp"

namespace earshot {
namespace {

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == line.npos; }

}  // namespace

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
      return decide(line, line_end, root);
    case LineIndex::Verdict::refused:
      break;
  }
  return {Kind::refused};
}

LineParser::Parsed LineParser::decide(std::string_view line, std::uint32_t line_end, std::uint32_t root) {
  if (line.starts_with("\xEF\xBB\xBF")) return {Kind::refused};  // later versions of the DOM skip a mark
  if (!dom_) {
    dom_ = std::make_unique<simdjson::dom::parser>();
    // If it fails, parsing reports it and the line is refused.
    [[maybe_unused]] const auto error = dom_->allocate(4096, nesting_max);
  }
  dom::element element;
  if (dom_->parse(line.data(), line.size(), false).get(element)) return {Kind::refused};
  if (!element.is_object()) return {Kind::other};
  index_.move_to(root);
  if (index_.walk_line(line_end, root, {.any_number = true}) != LineIndex::Verdict::accepted)
    return {Kind::refused};
  return {Kind::object, Value(index_, root)};
}

LineParser::Parsed LineParser::parse(std::string_view line) {
  if (index_.read(line)) return next_line(line, static_cast<std::uint32_t>(line.size()) - 1);
  return {is_blank(line) ? Kind::blank : Kind::refused};
}

LineParser::Parsed LineParser::parse_repaired(std::string_view line) {
  if (!repaired_) repaired_ = std::make_unique<LineIndex>();
  if (!repaired_->read(line)) return {Kind::refused};
  repaired_->forget_decoded();
  std::uint32_t root = 0;
  const auto line_end = static_cast<std::uint32_t>(line.size()) - 1;
  switch (repaired_->walk_line(line_end, root, {.depth_max = nesting_max + 1, .any_number = true})) {
    case LineIndex::Verdict::accepted:
      return {Kind::object, Value(*repaired_, root)};
    case LineIndex::Verdict::in_doubt:
      return {Kind::other};
    case LineIndex::Verdict::refused:
      break;
  }
  return {Kind::refused};
}

void LineParser::release_long() {
  if (dom_ && dom_->capacity() > chunk_bytes_max) dom_.reset();
  index_.release_long();
  if (repaired_) repaired_->release_long();
}

}  // namespace earshot
