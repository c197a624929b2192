// Sessions, turns, messages, tools and todo lists.
#include <algorithm>
#include <iterator>

#include "cli/event_lines.hpp"
#include "cli/tool_summary.hpp"

namespace earshot::cli::formatting {
namespace {

// Their own events tell the same better.
bool is_told_otherwise(std::string_view tool) {
  constexpr std::string_view told[] = {"Task",       "Agent",    "TodoWrite", "TaskCreate",
                                       "TaskUpdate", "TaskList", "TaskGet"};
  return std::find(std::begin(told), std::end(told), tool) != std::end(told);
}

std::string media_of(const FormatterState& state, const Fields& media) {
  std::string text =
      state.clean(media.text("media_type").empty() ? media.text("kind") : media.text("media_type"));
  if (const std::uint64_t bytes = media.count("bytes"); bytes > 0) text += " " + format_bytes(bytes);
  return text;
}

// An error's text without the tag that some versions wrap around it.
std::string_view unwrapped(std::string_view output) {
  constexpr std::string_view open_tag = "<tool_use_error>", close_tag = "</tool_use_error>";
  if (!output.starts_with(open_tag)) return output;
  output.remove_prefix(open_tag.size());
  return output.substr(0, output.find(close_tag));
}

}  // namespace

bool on_session_started(EventLine& t) {
  if (t.of_agent() && !t.state.verbose) return false;
  open(t, Glyph::session, Style::bold).add("session ").add(t.state.clean(short_id(t.frame.text("session"))));
  Details(t).add(t.clean("title"), Style::plain).add(t.clean("git_branch")).add(t.clean("version"));
  return true;
}

bool on_session_updated(EventLine& t) {
  if (t.of_agent() && !t.state.verbose) return false;
  constexpr std::string_view shown[] = {"title", "model", "permission_mode", "git_branch"};
  constexpr std::string_view more[] = {"mode", "cwd", "version"};
  const auto says = [&](std::string_view key) { return !t.frame.text(key).empty(); };
  const bool loud = std::any_of(std::begin(shown), std::end(shown), says);
  if (!loud && !(t.state.verbose && std::any_of(std::begin(more), std::end(more), says))) return false;
  open(t, Glyph::session, Style::dim);
  bool first = true;
  const auto add = [&](std::string_view key) {
    if (!says(key)) return;
    if (!first) t.line.space(2);
    first = false;
    std::string name(key);
    std::replace(name.begin(), name.end(), '_', ' ');
    t.line.add(name, Style::dim).space(1).add(t.clean(key));
  };
  for (const std::string_view key : shown) add(key);
  if (t.state.verbose) {
    for (const std::string_view key : more) add(key);
  }
  return true;
}

bool on_turn_started(EventLine& t) {
  if (!t.of_agent()) t.state.turn_open[t.frame.text("session")] = true;
  if (t.of_agent() && !t.state.verbose) return false;  // agent.started said so
  open(t, Glyph::turn, Style::bold).add("turn " + std::to_string(t.frame.count("turn")), Style::bold);
  const std::string_view origin = t.frame.text("origin");
  if (!origin.empty() && origin != "human" && origin != "unknown")
    t.line.add(" " + t.state.clean(origin), Style::dim);
  Details(t).add(t.state.clean(notification_summary(t.frame.text("prompt"))), Style::plain);
  return true;
}

bool on_turn_finished(EventLine& t) {
  if (!t.of_agent()) t.state.turn_open[t.frame.text("session")] = false;
  if (t.of_agent() && !t.state.verbose) return false;
  const std::string_view outcome = t.frame.text("outcome");
  const Style style = style_of_outcome(outcome);
  open(t, Glyph::finished, style)
      .add("turn " + std::to_string(t.frame.count("turn")) + " " + t.clean("outcome"), style);
  Details facts(t);
  const std::string_view reason = t.frame.text("stop_reason");
  if (outcome != "completed" || (reason != "end_turn" && reason != "stop_sequence"))
    facts.add(t.clean("stop_reason"), Style::note);
  facts.duration();
  if (const std::uint64_t tools = t.frame.count("tools"); tools > 0) facts.add(plural(tools, "tool"));
  if (const std::uint64_t tokens = new_tokens(t.frame.object("usage")); tokens > 0) {
    facts.add(format_count(tokens) + " tokens");
  }
  return true;
}

bool on_message_added(EventLine& t) {
  const std::string_view role = t.frame.text("role"), kind = t.frame.text("kind");
  const bool quiet = kind == "thinking" || role == "summary" || t.of_agent();
  if (quiet && !t.state.verbose) return false;
  const bool said = role == "assistant" && kind == "text";
  const Style style = said || role == "user" ? Style::plain : Style::dim;
  open(t, role == "user" ? Glyph::asked : role == "assistant" ? Glyph::said : Glyph::dot, Style::dim);
  const std::string text = t.clean("text");
  if (kind != "text" || role == "summary")
    t.line.add(t.state.clean(role == "summary" ? role : kind), Style::dim).space(text.empty() ? 0 : 2);
  t.line.add(text, style);
  if (const Fields media = t.frame.object("media")) t.line.space(2).add(media_of(t.state, media), Style::dim);
  return kind != "text" || !text.empty() || t.state.verbose;
}

bool on_tool_invoked(EventLine& t) {
  const std::string_view tool = t.frame.text("tool"), call = t.frame.text("call");
  const std::string_view project = t.state.names.project(t.frame.text("session"));
  const std::string summary = tool_summary(tool, t.frame.get("input"), project, t.state.display.charset);
  if (!call.empty()) t.state.calls[call] = {std::string(tool), summary};
  if (is_told_otherwise(tool) && !t.state.verbose) return false;
  open(t, Glyph::tool, Style::dim).add(tool_name(tool, t.state.display.charset));
  Details(t).add(summary, Style::plain);
  t.state.last_call = call;
  return true;
}

bool on_tool_finished(EventLine& t) {
  const std::string_view call = t.frame.text("call"), outcome = t.frame.text("outcome");
  const Call* begun = t.state.calls.find(call);
  std::string_view tool = t.frame.text("tool");
  if (tool.empty() && begun != nullptr) tool = begun->tool;
  const bool ok = outcome == "ok";
  if (ok && is_told_otherwise(tool) && !t.state.verbose) return false;
  const Style style = style_of_outcome(outcome);
  open(t, glyph_of_outcome(outcome), style)
      .add(tool_name(tool, t.state.display.charset), ok ? Style::plain : style);
  Details facts(t);
  if (!ok && outcome != "error") facts.add(t.clean("outcome"), style);
  if (t.frame.text("background").empty()) {
    facts.duration();
  } else {
    facts.add("goes on in the background");
  }
  if (outcome == "error") facts.add(t.state.clean(unwrapped(t.frame.text("output"))), Style::bad);
  // Where other lines stand between, the name alone would not say which call this was.
  if (outcome != "error" && begun != nullptr && t.state.last_call != call) facts.add(begun->summary);
  return true;
}

bool on_todo_updated(EventLine& t) {
  const TodoSummary todo = todo_summary(t.frame, t.state.display.charset);
  open(t, Glyph::todo, todo.complete ? Style::good : Style::dim).add("todo ");
  if (todo.progress.empty()) {
    t.line.add("cleared", Style::dim);
    return true;
  }
  t.line.add(todo.progress, todo.complete ? Style::good : Style::bold);
  Details(t).add(todo.current, Style::plain);
  return true;
}

}  // namespace earshot::cli::formatting
