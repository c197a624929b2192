#include "cli/event_formatter.hpp"

#include <algorithm>

#include "cli/event_lines.hpp"

namespace earshot::cli {
namespace {

using namespace formatting;

struct Rule {
  std::string_view type;
  bool (*tell)(EventLine&);
};

constexpr Rule rules[] = {
    {"session.started", on_session_started},
    {"session.updated", on_session_updated},
    {"turn.started", on_turn_started},
    {"turn.finished", on_turn_finished},
    {"message.added", on_message_added},
    {"tool.invoked", on_tool_invoked},
    {"tool.finished", on_tool_finished},
    {"todo.updated", on_todo_updated},
    {"compaction.started", on_compaction_started},
    {"compaction.finished", on_compaction_finished},
    {"agent.started", on_agent_started},
    {"agent.finished", on_agent_finished},
    {"task.finished", on_task_finished},
    {"queue.changed", on_queue_changed},
    {"usage.updated", on_usage_updated},
    {"api.failed", on_api_failed},
    {"files.snapshotted", on_files_snapshotted},
    {"line.skipped", on_line_skipped},
    {"status", on_status},
    {"session", on_session},
    {"lagged", on_lagged},
    {"reset", on_reset},
    {"stream.removed", on_stream_removed},
};

// A dim rule with the date where the day is another than that of the line above.
void say_day(FormatterState& state, const Fields& frame, std::string& out) {
  const auto ms = parse_time(frame.text("time"));
  if (!ms) return;
  std::string day = format_local_day(*ms);
  if (day == state.day) return;
  state.day = std::move(day);
  const std::string rule(state.glyph(Glyph::rule));
  out += Line().add(rule + rule + " " + state.day + " " + rule + rule, Style::dim).str(state.look) + "\n";
}

}  // namespace

EventFormatter::EventFormatter(DisplayOptions display, bool verbose)
    : state_(new FormatterState{display, verbose}) {}
EventFormatter::~EventFormatter() = default;

void EventFormatter::set_columns(std::size_t columns) { state_->display.columns = columns; }

void EventFormatter::learn(const Fields& frame) {
  state_->names.learn(frame);
  if (frame.text("type") == "session")
    state_->turn_open[frame.text("session")] = frame.object("turn").flag("open");
  if (state_->names.project(frame.text("session")).empty()) return;  // a name for the meantime widens nothing
  const std::size_t columns = display_width(state_->clean(state_->names.label(frame)));
  state_->label_columns = std::max(state_->label_columns, std::min(columns, state_->label_columns_limit()));
}

void EventFormatter::tell(const Fields& frame, std::string& out) {
  learn(frame);
  const std::string_view type = frame.text("type");
  for (const Rule& rule : rules) {
    if (rule.type != type) continue;
    EventLine telling{*state_, frame, {}};
    if (!rule.tell(telling)) return;
    say_day(*state_, frame, out);
    if (type != "tool.invoked") state_->last_call.clear();
    out += telling.line.str(state_->display) + "\n";
    return;
  }
}

}  // namespace earshot::cli
