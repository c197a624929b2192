#include "cli/event_formatter.hpp"

#include <algorithm>

#include "cli/event_lines.hpp"

namespace earshot::cli {
namespace {

using namespace formatting;

struct Rule {
  std::string_view type;
  bool (*format)(EventLine&);
};

constexpr Rule rules[] = {
    {"session.started", format_session_started},
    {"session.updated", format_session_updated},
    {"turn.started", format_turn_started},
    {"turn.finished", format_turn_finished},
    {"message.added", format_message_added},
    {"tool.invoked", format_tool_invoked},
    {"tool.finished", format_tool_finished},
    {"todo.updated", format_todo_updated},
    {"compaction.started", format_compaction_started},
    {"compaction.finished", format_compaction_finished},
    {"agent.started", format_agent_started},
    {"agent.finished", format_agent_finished},
    {"task.finished", format_task_finished},
    {"queue.changed", format_queue_changed},
    {"usage.updated", format_usage_updated},
    {"api.failed", format_api_failed},
    {"files.snapshotted", format_files_snapshotted},
    {"line.skipped", format_line_skipped},
    {"status", format_status},
    {"session", format_session},
    {"lagged", format_lagged},
    {"reset", format_reset},
    {"stream.removed", format_stream_removed},
};

// A separator with the date if the day differs from that of the previous line.
void append_day(FormatterState& state, const Fields& frame, std::string& out) {
  const auto ms = parse_time(frame.text("time"));
  if (!ms) return;
  std::string day = format_local_day(*ms);
  if (day == state.day) return;
  state.day = std::move(day);
  const std::string rule(state.glyph(Glyph::rule));
  out += Line().add(rule + rule + " " + state.day + " " + rule + rule, Style::dim).str(state.display) + "\n";
}

}  // namespace

EventFormatter::EventFormatter(DisplayOptions display, bool verbose)
    : state_(new FormatterState{display, verbose}) {}
EventFormatter::~EventFormatter() = default;

void EventFormatter::set_columns(std::size_t columns) { state_->display.columns = columns; }

void EventFormatter::observe(const Fields& frame) {
  state_->names.observe(frame);
  if (frame.text("type") == "session")
    state_->turn_open[frame.text("session")] = frame.object("turn").flag("open");
  if (state_->names.project(frame.text("session")).empty())
    return;  // provisional labels do not widen the column
  const std::size_t columns = display_width(state_->clean(state_->names.label(frame)));
  state_->label_columns = std::max(state_->label_columns, std::min(columns, state_->label_columns_limit()));
}

void EventFormatter::format(const Fields& frame, std::string& out) {
  observe(frame);
  const std::string_view type = frame.text("type");
  for (const Rule& rule : rules) {
    if (rule.type != type) continue;
    EventLine event{*state_, frame, {}};
    if (!rule.format(event)) return;
    append_day(*state_, frame, out);
    if (type != "tool.invoked") state_->last_call.clear();
    out += event.line.str(state_->display) + "\n";
    return;
  }
}

}  // namespace earshot::cli
