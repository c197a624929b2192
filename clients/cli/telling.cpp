#include "cli/event_lines.hpp"

namespace earshot::cli::formatting {
namespace {

std::string time_of(const Fields& frame) {
  for (const char* key : {"time", "since", "last_activity"}) {
    if (const auto ms = parse_time(frame.text(key))) return format_local_clock(*ms);
  }
  return std::string(8, ' ');
}

}  // namespace

Line& open(EventLine& t, Glyph mark, Style style) {
  FormatterState& p = t.state;
  if (p.margin) return t.line.add(*p.margin, Style::dim).add(p.glyph(mark), style).space(1);
  const std::string label = p.clean(p.names.label(t.frame));
  const std::string_view project = p.names.project(t.frame.text("session"));
  const std::string_view ellipsis = p.glyph(Glyph::ellipsis);
  const std::size_t room = std::min(p.label_columns, p.label_columns_limit());
  // Of a directory's name, which stands for the project until that is known, the end says more.
  const std::string shown =
      project.empty() ? cut_start_to_width(label, room, ellipsis) : cut_to_width(label, room, ellipsis);
  t.line.add(time_of(t.frame), Style::dim).space(1);
  t.line.add(shown, style_of_name(project.empty() ? std::string_view(label) : project));
  t.line.space(room - display_width(shown) + 1).add(p.glyph(mark), style).space(1);
  if (t.of_agent()) {
    const std::string_view agent = t.frame.text("agent");
    t.line.add(p.glyph(Glyph::agent), Style::dim).space(1);
    t.line.add(p.clean(p.names.agent(agent)), style_of_name(agent)).space(2);
  }
  return t.line;
}

Details& Details::add(std::string_view text, Style style) {
  if (text.empty()) return *this;
  if (first_) {
    t_.line.space(2);
  } else {
    t_.line.space(1).add(t_.state.glyph(Glyph::dot), Style::dim).space(1);
  }
  first_ = false;
  t_.line.add(text, style);
  return *this;
}

Details& Details::duration() {
  const auto ms = t_.frame.integer("duration_ms");
  return ms ? add(format_duration(*ms)) : *this;
}

std::string plural(std::uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::uint64_t new_tokens(const Fields& usage) {
  return usage.count("input") + usage.count("output") + usage.count("cache_write");
}

Style style_of_outcome(std::string_view outcome) {
  if (outcome == "completed" || outcome == "ok") return Style::good;
  if (outcome == "failed" || outcome == "error") return Style::bad;
  if (outcome == "interrupted" || outcome == "denied" || outcome == "stopped" || outcome == "killed")
    return Style::note;
  return Style::dim;
}

Glyph glyph_of_outcome(std::string_view outcome) {
  if (outcome == "completed" || outcome == "ok") return Glyph::ok;
  return outcome == "failed" || outcome == "error" ? Glyph::error : Glyph::stopped;
}

std::string_view notification_summary(std::string_view text) {
  constexpr std::string_view begin = "<summary>", end = "</summary>";
  if (!text.starts_with('<')) return text;
  const std::size_t at = text.find(begin);
  if (at == text.npos) return text;
  const std::string_view rest = text.substr(at + begin.size());
  return rest.substr(0, rest.find(end));
}

}  // namespace earshot::cli::formatting
