#include "cli/event_details.hpp"

#include <algorithm>
#include <iterator>

#include "cli/gauges.hpp"
#include "common/format.hpp"

namespace earshot::cli {

Details& Details::add(std::string_view text, Style style) {
  if (text.empty()) return *this;
  if (first_)
    line_.space(line_.empty() ? 0 : 2);
  else
    line_.space(1).add(glyph(Glyph::dot, charset_), Style::dim).space(1);
  first_ = false;
  line_.add(text, style);
  return *this;
}

Details& Details::duration(const Fields& event) {
  const auto ms = event.integer("duration_ms");
  return ms ? add(format_duration(Ms(*ms))) : *this;
}

Details& Details::waited(const Fields& turn) {
  const std::uint64_t ms = turn.count("waited_ms");
  return ms > 0 ? add("waited " + format_duration(Ms(static_cast<std::int64_t>(ms)))) : *this;
}

Details& Details::numbers(const Fields& session, std::int64_t now_ms) {
  const Fields usage = session.object("usage");
  if (const std::uint64_t context = usage.count("context"); context > 0)
    add("context " + context_sizes_text(context, usage.count("context_window"), charset_),
        gauge_style(context_percent(usage).value_or(0)));
  add(cost_text(usage));
  const SessionTimes times = session_times(session, now_ms).value_or(SessionTimes{});
  const auto add_time = [this](std::string_view name, std::int64_t ms) {
    if (ms > 0) add(std::string(name) + " " + format_duration(Ms(ms)));
  };
  add_time("waited", times.waited_ms);
  add_time("worked", times.worked_ms);
  add_time("idle", times.idle_ms);
  return *this;
}

Details& Details::tools_and_tokens(const Fields& event, std::uint64_t tokens) {
  if (const std::uint64_t tools = event.count("tools"); tools > 0) add(plural(tools, "tool"));
  return tokens > 0 ? add(format_count(tokens) + " tokens") : *this;
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

bool has_own_events(std::string_view tool) {
  constexpr std::string_view tools[] = {"TodoWrite", "TaskCreate",  "TaskUpdate", "TaskList",
                                        "TaskGet",   "update_plan", "update_todo"};
  return std::find(std::begin(tools), std::end(tools), tool) != std::end(tools);
}

bool is_conversation(const Fields& message) {
  const std::string_view role = message.text("role"), kind = message.text("kind");
  return role == "user" || (role == "assistant" && (kind == "text" || kind == "plan"));
}

Glyph glyph_of_message(const Fields& message) {
  const std::string_view role = message.text("role");
  if (message.text("kind") == "agent") return Glyph::agent;
  return role == "user" ? Glyph::user : role == "assistant" ? Glyph::assistant : Glyph::dot;
}

std::string_view other_program(const Fields& frame) {
  const std::string_view program = frame.text("program");
  return program == "claude-code" ? std::string_view() : program_label(program);
}

std::string_view notification_summary(std::string_view text) {
  constexpr std::string_view begin = "<summary>", end = "</summary>";
  if (!text.starts_with('<')) return text;
  const std::size_t at = text.find(begin);
  if (at == text.npos) return text;
  const std::string_view rest = text.substr(at + begin.size());
  return rest.substr(0, rest.find(end));
}

}  // namespace earshot::cli
