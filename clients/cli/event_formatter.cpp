#include "cli/event_formatter.hpp"

#include <algorithm>

#include "cli/telling.hpp"

namespace earshot::cli {
namespace {

using namespace telling;

struct Rule {
  std::string_view type;
  bool (*tell)(Telling&);
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
void say_day(Parts& parts, const Fields& frame, std::string& out) {
  const auto ms = parse_time(frame.text("time"));
  if (!ms) return;
  std::string day = format_local_day(*ms);
  if (day == parts.day) return;
  parts.day = std::move(day);
  const std::string rule(parts.glyph(Glyph::rule));
  out += Line().add(rule + rule + " " + parts.day + " " + rule + rule, Style::dim).str(parts.look) + "\n";
}

}  // namespace

Narrator::Narrator(Look look, bool verbose) : parts_(new Parts{look, verbose}) {}
Narrator::~Narrator() = default;

void Narrator::set_columns(std::size_t columns) { parts_->look.columns = columns; }

void Narrator::learn(const Fields& frame) {
  parts_->roster.learn(frame);
  if (frame.text("type") == "session")
    parts_->turn_open[frame.text("session")] = frame.object("turn").flag("open");
  if (parts_->roster.project(frame.text("session")).empty())
    return;  // a name for the meantime widens nothing
  const std::size_t columns = display_width(parts_->clean(parts_->roster.label(frame)));
  parts_->label_columns = std::max(parts_->label_columns, std::min(columns, parts_->label_columns_limit()));
}

void Narrator::tell(const Fields& frame, std::string& out) {
  learn(frame);
  const std::string_view type = frame.text("type");
  for (const Rule& rule : rules) {
    if (rule.type != type) continue;
    Telling telling{*parts_, frame, {}};
    if (!rule.tell(telling)) return;
    say_day(*parts_, frame, out);
    if (type != "tool.invoked") parts_->last_call.clear();
    out += telling.line.str(parts_->look) + "\n";
    return;
  }
}

}  // namespace earshot::cli
