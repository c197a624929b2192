#include "cli/event_formatter.hpp"

#include <iterator>

#include "cli/gauges.hpp"
#include "cli/session_summary.hpp"

namespace earshot::cli {
namespace {

bool is_shown_by_events(std::string_view tool) { return starts_agent(tool) || has_own_events(tool); }

// By this machine's clock.
std::optional<std::int64_t> time_of(const FormatterState& state, const Fields& frame) {
  // Since when a host is offline is the hub's time.
  const std::int64_t offset_ms = is_host_offline(frame) ? 0 : state.clocks.offset_ms(frame.text("host"));
  for (const char* key : {"time", "since", "last_activity"}) {
    if (const auto ms = parse_time(frame.text(key))) return *ms + offset_ms;
  }
  return std::nullopt;
}

std::string clock_of(const FormatterState& state, const Fields& frame) {
  const auto ms = time_of(state, frame);
  return ms ? format_local_clock(*ms) : std::string(8, ' ');
}

// A frame and its line under construction.
struct EventLine {
  FormatterState& state;
  const Fields& frame;
  Fields end;                      // of an agent.started, if it is shown on the same line
  const std::string_view* margin;  // null: the time and the label
  Line line = {};

  std::string clean(std::string_view key) const { return state.clean(frame.text(key)); }
  bool of_agent() const { return !frame.text("agent").empty(); }
  Details details() { return Details(line, state.display.charset); }
};

// Appends the margin, or the time, the label and the subagent's name, and the symbol.
Line& begin_line(EventLine& t, Glyph mark, Style style) {
  FormatterState& p = t.state;
  if (t.margin != nullptr) return t.line.add(*t.margin, Style::dim).add(p.glyph(mark), style).space(1);
  const std::string label = p.clean(p.names.label(t.frame));
  const std::string_view project = p.names.project(t.frame.text("session"));
  const std::string_view ellipsis = p.glyph(Glyph::ellipsis);
  const std::size_t room = std::min(p.label_columns, p.label_columns_limit());
  // Until the project is known its directory's name is shown; the end of that is the more specific part.
  const std::string shown =
      project.empty() ? cut_start_to_width(label, room, ellipsis) : cut_to_width(label, room, ellipsis);
  t.line.add(clock_of(p, t.frame), Style::dim).space(1);
  t.line.add(shown, style_of_name(project.empty() ? std::string_view(label) : project));
  t.line.space(room - display_width(shown) + 1).add(p.glyph(mark), style).space(1);
  if (t.of_agent()) {
    const std::string_view agent = t.frame.text("agent");
    t.line.add(p.glyph(Glyph::agent), Style::dim).space(1);
    t.line.add(p.clean(p.names.agent(agent)), style_of_name(agent)).space(2);
  }
  return t.line;
}

std::string media_of(const FormatterState& state, const Fields& media) {
  std::string text =
      state.clean(media.text("media_type").empty() ? media.text("kind") : media.text("media_type"));
  if (const std::uint64_t bytes = media.count("bytes"); bytes > 0) text += " " + format_bytes(bytes);
  return text;
}

// Removes the tag that some versions of Claude Code put around an error.
std::string_view unwrapped(std::string_view output) {
  constexpr std::string_view open_tag = "<tool_use_error>", close_tag = "</tool_use_error>";
  if (!output.starts_with(open_tag)) return output;
  output.remove_prefix(open_tag.size());
  return output.substr(0, output.find(close_tag));
}

// Each shows one type of frame and returns false if it is not shown.

bool show_session_started(EventLine& t) {
  if (t.of_agent() && !t.state.verbose) return false;
  begin_line(t, Glyph::session, Style::bold)
      .add("session ")
      .add(t.state.clean(short_id(t.frame.text("session"))));
  Details facts = t.details();
  facts.add(t.clean("title"), Style::plain).add(t.clean("git_branch"));
  facts.add(t.state.clean(other_program(t.frame))).add(t.clean("version"));
  for (const char* key : {"agent_type", "permission_mode", "sandbox", "source"})
    if (t.state.verbose) facts.add(t.clean(key));
  return true;
}

bool show_session_updated(EventLine& t) {
  if (t.of_agent() && !t.state.verbose) return false;
  constexpr std::string_view shown[] = {"title", "model", "permission_mode", "sandbox", "git_branch"};
  constexpr std::string_view more[] = {"mode", "cwd", "version"};
  const auto has = [&](std::string_view key) { return !t.frame.text(key).empty(); };
  const bool notable = std::any_of(std::begin(shown), std::end(shown), has);
  if (!notable && !(t.state.verbose && std::any_of(std::begin(more), std::end(more), has))) return false;
  begin_line(t, Glyph::session, Style::dim);
  bool first = true;
  const auto add = [&](std::string_view key) {
    if (!has(key)) return;
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

bool show_turn_started(EventLine& t) {
  if (!t.of_agent()) t.state.turn_open[t.frame.text("session")] = true;
  if (t.of_agent() && !t.state.verbose) return false;  // shown by agent.started
  begin_line(t, Glyph::turn, Style::bold).add("turn " + std::to_string(t.frame.count("turn")), Style::bold);
  const std::string_view origin = t.frame.text("origin");
  if (!origin.empty() && origin != "human" && origin != "unknown")
    t.line.add(" " + t.state.clean(origin), Style::dim);
  t.details().add(t.state.clean(notification_summary(t.frame.text("prompt"))), Style::plain);
  return true;
}

bool show_turn_finished(EventLine& t) {
  if (!t.of_agent()) t.state.turn_open[t.frame.text("session")] = false;
  if (t.of_agent() && !t.state.verbose) return false;
  const std::string_view outcome = t.frame.text("outcome");
  const Style style = style_of_outcome(outcome);
  begin_line(t, Glyph::finished, style)
      .add("turn " + std::to_string(t.frame.count("turn")) + " " + t.clean("outcome"), style);
  Details facts = t.details();
  const std::string_view reason = t.frame.text("stop_reason");
  constexpr std::string_view usual[] = {"end_turn", "stop_sequence", "stop"};
  if (outcome != "completed" || std::find(std::begin(usual), std::end(usual), reason) == std::end(usual))
    facts.add(t.clean("stop_reason"), Style::note);
  facts.duration(t.frame);
  facts.waited(t.frame);
  facts.tools_and_tokens(t.frame, new_tokens(t.frame.object("usage")));
  return true;
}

bool show_message_added(EventLine& t) {
  const std::string_view role = t.frame.text("role"), kind = t.frame.text("kind");
  const bool quiet = kind == "thinking" || role == "summary" || t.of_agent();
  if (quiet && !t.state.verbose) return false;
  const Style style = is_conversation(t.frame) ? Style::plain : Style::dim;
  begin_line(t, glyph_of_message(t.frame), Style::dim);
  const std::string text = t.clean("text");
  if (kind != "text" || role == "summary")
    t.line.add(t.state.clean(role == "summary" ? role : kind), Style::dim).space(text.empty() ? 0 : 2);
  t.line.add(text, style);
  if (const Fields media = t.frame.object("media")) t.line.space(2).add(media_of(t.state, media), Style::dim);
  return kind != "text" || !text.empty() || t.state.verbose;
}

bool show_tool_invoked(EventLine& t) {
  const std::string_view tool = t.frame.text("tool");
  const std::string summary = t.state.invoked(t.frame);
  if (is_shown_by_events(tool) && !t.state.verbose) return false;
  begin_line(t, Glyph::tool, Style::dim).add(tool_name(tool, t.state.display.charset));
  t.details().add(summary, Style::plain);
  t.state.last_call = t.frame.text("call");
  return true;
}

bool show_tool_finished(EventLine& t) {
  const std::string_view call = t.frame.text("call"), outcome = t.frame.text("outcome");
  const FormatterState::Call* const invoked = t.state.calls.find(call);
  std::string_view tool = t.frame.text("tool");
  if (tool.empty() && invoked != nullptr) tool = invoked->tool;
  const bool ok = outcome == "ok";
  if (ok && is_shown_by_events(tool) && !t.state.verbose) return false;
  const Style style = style_of_outcome(outcome);
  begin_line(t, glyph_of_outcome(outcome), style)
      .add(tool_name(tool, t.state.display.charset), ok ? Style::plain : style);
  Details facts = t.details();
  if (!ok && outcome != "error") facts.add(t.clean("outcome"), style);
  if (t.frame.text("background").empty()) {
    facts.duration(t.frame);
  } else {
    facts.add("continues in the background");
  }
  if (outcome == "error") facts.add(t.state.clean(unwrapped(t.frame.text("output"))), Style::bad);
  // With other lines in between, the name alone does not identify the call.
  if (outcome != "error" && invoked != nullptr && t.state.last_call != call) facts.add(invoked->summary);
  return true;
}

bool show_todo_updated(EventLine& t) {
  const TodoSummary todo = todo_summary(t.frame, t.state.display.charset);
  begin_line(t, Glyph::todo, todo.complete ? Style::good : Style::dim).add("todo ");
  if (todo.progress.empty()) {
    t.line.add("cleared", Style::dim);
    return true;
  }
  t.line.add(todo.progress, todo.complete ? Style::good : Style::bold);
  t.details().add(todo.current, Style::plain);
  return true;
}

bool show_wait(EventLine& t, const Fields& status) {
  begin_line(t, Glyph::waiting, Style::loud).add("needs you", Style::loud);
  const std::string reason = t.state.clean(status.text("reason"));
  const std::string detail = t.state.clean(status.text("detail"));
  if (!reason.empty()) t.line.add(": " + reason, Style::loud);
  const char* const dash = t.state.display.charset == Charset::utf8 ? " — " : " - ";
  if (!detail.empty()) t.line.add(dash + detail, Style::loud);
  return true;
}

bool show_compaction_started(EventLine& t) {
  begin_line(t, Glyph::compaction, Style::note).add("compacting");
  t.details().add(t.clean("trigger"));
  return true;
}

bool show_compaction_finished(EventLine& t) {
  begin_line(t, Glyph::compaction, Style::note).add("compacted");
  Details facts = t.details();
  const std::uint64_t before = t.frame.count("pre_tokens"), after = t.frame.count("post_tokens");
  if (before > 0 && after > 0) {
    facts.add(format_count(before) + " " + std::string(t.state.glyph(Glyph::arrow)) + " " +
                  format_count(after) + " tokens",
              Style::plain);
  } else if (before > 0) {
    facts.add("from " + format_count(before) + " tokens", Style::plain);
  }
  facts.duration(t.frame).add(t.clean("trigger"));
  if (t.frame.text("kind") == "micro") facts.add("micro");
  return true;
}

bool show_agent_started(EventLine& t) {
  const std::string type = t.clean("agent_type");
  begin_line(t, Glyph::agent, Style::bold).add(type.empty() ? "agent" : type, Style::bold);
  Details facts = t.details();
  facts.add(t.clean("description"), Style::plain);
  if (t.frame.flag("background")) facts.add("in the background");
  if (!t.end) return true;
  const std::string_view outcome = t.end.text("outcome");
  t.line.space(2).add(t.state.glyph(glyph_of_outcome(outcome)), style_of_outcome(outcome));
  Details result = t.details();
  if (outcome != "completed") result.add(t.state.clean(outcome), style_of_outcome(outcome));
  result.duration(t.end).tools_and_tokens(t.end, t.end.count("tokens"));
  return true;
}

bool show_agent_finished(EventLine& t) {
  const std::string_view outcome = t.frame.text("outcome");
  const Style style = style_of_outcome(outcome);
  const std::string type = t.clean("agent_type");
  begin_line(t, glyph_of_outcome(outcome), style)
      .add(type.empty() ? "agent" : type, outcome == "completed" ? Style::plain : style);
  Details facts = t.details();
  if (outcome != "completed") facts.add(t.clean("outcome"), style);
  facts.duration(t.frame);
  facts.tools_and_tokens(t.frame, t.frame.count("tokens"));
  facts.add(t.clean("description"));
  return true;
}

bool show_task_finished(EventLine& t) {
  const FormatterState::Call* const invoked = t.state.calls.find(t.frame.text("call"));
  const bool is_agent = invoked != nullptr && starts_agent(invoked->tool);
  if (is_agent && !t.state.verbose) return false;  // agent.finished has more details
  const std::string_view outcome = t.frame.text("outcome");
  const Style style = style_of_outcome(outcome);
  begin_line(t, glyph_of_outcome(outcome), style).add("background task ").add(t.clean("outcome"), style);
  const std::string summary = t.clean("summary");
  t.details().add(summary.empty() ? t.clean("task") : summary, Style::plain);
  return true;
}

bool show_queue_changed(EventLine& t) {
  const bool queued = t.frame.text("operation") == "enqueue";
  const std::string_view text = t.frame.text("text");
  const bool* const busy = t.state.turn_open.find(t.frame.text("session"));
  // Outside of a turn a queued prompt starts at once. Notifications have events of their own.
  const bool is_waiting = queued && busy != nullptr && *busy && !text.starts_with("<task-notification>");
  if (!is_waiting && !t.state.verbose) return false;
  begin_line(t, Glyph::queue, Style::dim).add(queued ? "queued" : t.clean("operation"), Style::dim);
  t.details().add(t.state.clean(notification_summary(text)), Style::plain);
  return true;
}

bool show_usage_updated(EventLine& t) {
  if (!t.state.verbose) return false;
  begin_line(t, Glyph::dot, Style::dim).add("tokens", Style::dim);
  const Fields total = t.frame.object("total");
  Details facts = t.details();
  if (const std::uint64_t own = new_tokens(t.frame); own > 0) facts.add(format_count(own));
  if (const std::uint64_t all = new_tokens(total); all > 0) facts.add(format_count(all) + " in total");
  if (const std::uint64_t read = total.count("cache_read"); read > 0)
    facts.add(format_count(read) + " from the cache");
  if (const std::uint64_t reasoning = t.frame.count("reasoning"); reasoning > 0)
    facts.add(format_count(reasoning) + " for reasoning");
  const std::uint64_t context = t.frame.count("context_tokens"), window = t.frame.count("context_window");
  if (context > 0) facts.add("context " + context_sizes_text(context, window, t.state.display.charset));
  facts.add(t.clean("model"));
  return true;
}

// Without --verbose only if little is left.
bool show_limits_updated(EventLine& t) {
  constexpr double notable_percent = 90;
  const std::string reached = t.clean("reached");
  bool notable = !reached.empty();
  for (const Fields& window : t.frame.objects("windows"))
    notable = notable || window.as<double>("used_percent").value_or(0) >= notable_percent;
  if (!notable && !t.state.verbose) return false;
  const Style style = !reached.empty() ? Style::bad : notable ? Style::note : Style::dim;
  begin_line(t, notable ? Glyph::api : Glyph::dot, style)
      .add(reached.empty() ? "limits" : "limit reached: " + reached, style);
  Details facts = t.details();
  const auto time = parse_time(t.frame.text("time"));
  const std::int64_t at = time.value_or(now_ms());
  for (const LimitPeriod& period : current_periods(limit_periods(t.frame, t.state.display.charset), at))
    facts.add(limit_text(period, at), Style::plain);
  facts.add(t.clean("plan"));
  return true;
}

bool show_api_failed(EventLine& t) {
  const bool fatal = t.frame.flag("fatal");
  const Style style = fatal ? Style::bad : Style::note;
  begin_line(t, Glyph::api, style).add(fatal ? "API request failed" : "API error", style);
  Details facts = t.details();
  const auto status = t.frame.integer("status");
  facts.add(t.clean("kind"), style);
  const bool error_has_it = status && t.frame.text("error").starts_with(std::to_string(*status));
  if (status && !error_has_it) facts.add(std::to_string(*status), style);
  if (const auto attempt = t.frame.integer("attempt")) {
    const auto most = t.frame.integer("max_attempts");
    facts.add("attempt " + std::to_string(*attempt) + (most ? "/" + std::to_string(*most) : std::string()),
              Style::plain);
  }
  if (const auto wait = t.frame.integer("retry_in_ms"))
    facts.add("retry in " + format_duration(Ms(*wait)), Style::plain);
  facts.add(t.clean("error"));
  return true;
}

bool show_files_snapshotted(EventLine& t) {
  if (!t.state.verbose) return false;
  begin_line(t, Glyph::dot, Style::dim)
      .add("checkpoint of " +
               plural(std::max<std::uint64_t>(t.frame.array_size("files"), t.frame.count("files_count")),
                      "file"),
           Style::dim);
  return true;
}

bool show_line_skipped(EventLine& t) {
  begin_line(t, Glyph::skipped, Style::note);
  const std::string amount =
      plural(t.frame.count("lines"), "line") + ", " + format_bytes(t.frame.count("bytes"));
  t.line.add((t.frame.flag("salvaged") ? "partly recovered: " : "skipped ") + amount, Style::dim);
  t.details().add(t.clean("reason")).add("at byte " + std::to_string(t.frame.count("line")));
  return true;
}

// One line for all sessions of the host. Its time is that of the host's last sign of life.
bool show_host(EventLine& t, bool offline) {
  bool& known = t.state.offline_hosts[t.frame.text("host")];
  if (known == offline) return false;
  known = offline;
  begin_line(t, offline ? Glyph::unknown : Glyph::dot, Style::note)
      .add("host " + t.clean("host") + (offline ? " is offline" : " is online again"), Style::note);
  return true;
}

bool show_status_change(EventLine& t) {
  const std::string_view state = t.frame.text("state");
  FormatterState::Waiting now;
  if (state == "waiting") now = {std::string(t.frame.text("reason")), std::string(t.frame.text("detail"))};
  FormatterState::Waiting& before = t.state.waiting[t.frame.text("session")];
  const bool again = state == "waiting" && now == before;
  before = now;
  if (again && !t.state.verbose) return false;
  if (state == "waiting") return show_wait(t, t.frame);
  if (state != "ended" && !t.state.verbose) return false;  // other changes are visible from the events
  begin_line(t, Glyph::dot, Style::dim).add(t.clean("state"), Style::dim);
  t.details().add(t.clean("reason")).add(t.clean("detail")).add(t.clean("source"));
  return true;
}

bool show_status(EventLine& t) {
  if (is_host_offline(t.frame)) return show_host(t, true);  // a wait may continue, that is unknown
  const bool* const offline = t.state.offline_hosts.find(t.frame.text("host"));
  const bool is_online_again = offline != nullptr && *offline;
  if (!show_status_change(t)) return is_online_again && show_host(t, false);
  if (is_online_again) t.state.offline_hosts[t.frame.text("host")] = false;  // this line already shows it
  return true;
}

// A session of the snapshot.
bool show_session(EventLine& t) {
  const Fields status = t.frame.object("status"), turn = t.frame.object("turn");
  const std::string_view state = status.text("state");
  if (state == "waiting") {
    t.state.waiting[t.frame.text("session")] = {std::string(status.text("reason")),
                                                std::string(status.text("detail"))};
    show_wait(t, status);
    if (t.state.verbose) t.details().numbers(t.frame, now_ms());
    return true;
  }
  const bool working = state == "working", offline = is_host_offline(status);
  if (offline) t.state.offline_hosts[t.frame.text("host")] = true;
  begin_line(t,
             working            ? Glyph::working
             : state == "idle"  ? Glyph::idle
             : state == "ended" ? Glyph::ended
                                : Glyph::unknown,
             working ? Style::good : Style::dim);
  t.line.add(offline ? std::string("host offline") : t.state.clean(state.empty() ? "unknown" : state),
             working ? Style::good : Style::dim);
  Details facts = t.details();
  facts.add(t.state.clean(other_program(t.frame)));
  if (const std::uint64_t number = turn.count("number"); number > 0)
    facts.add("turn " + std::to_string(number));
  if (t.frame.flag("unseen")) facts.add("unseen", Style::bold);
  if (t.state.verbose) facts.numbers(t.frame, now_ms());
  const std::string title = t.clean("title");
  facts.add(title.empty() ? t.state.clean(turn.text("prompt")) : title, Style::plain);
  return true;
}

bool show_lagged(EventLine& t) {
  t.line.add("some events were skipped: this client read too slowly", Style::note);
  return true;
}

bool show_reset(EventLine& t) {
  begin_line(t, Glyph::skipped, Style::note)
      .add("the transcript was rewritten; its events are sent again", Style::note);
  t.details().add(t.clean("reason"));
  return true;
}

bool show_stream_renamed(EventLine& t) {
  if (!t.state.verbose) return false;
  begin_line(t, Glyph::dot, Style::dim).add("transcript moved", Style::dim);
  t.details().add(t.clean("to"));
  return true;
}

bool show_stream_removed(EventLine& t) {
  if (!t.state.verbose) return false;
  begin_line(t, Glyph::dot, Style::dim).add("transcript removed", Style::dim);
  return true;
}

struct EventRule {
  std::string_view type;
  bool (*show)(EventLine&);
};

constexpr EventRule event_rules[] = {
    {"session.started", show_session_started},
    {"session.updated", show_session_updated},
    {"turn.started", show_turn_started},
    {"turn.finished", show_turn_finished},
    {"message.added", show_message_added},
    {"tool.invoked", show_tool_invoked},
    {"tool.finished", show_tool_finished},
    {"todo.updated", show_todo_updated},
    {"compaction.started", show_compaction_started},
    {"compaction.finished", show_compaction_finished},
    {"agent.started", show_agent_started},
    {"agent.finished", show_agent_finished},
    {"task.finished", show_task_finished},
    {"queue.changed", show_queue_changed},
    {"usage.updated", show_usage_updated},
    {"api.failed", show_api_failed},
    {"limits.updated", show_limits_updated},
    {"files.snapshotted", show_files_snapshotted},
    {"line.skipped", show_line_skipped},
    {"status", show_status},
    {"session", show_session},
    {"lagged", show_lagged},
    {"reset", show_reset},
    {"stream.renamed", show_stream_renamed},
    {"stream.removed", show_stream_removed},
};

// Nothing if the frame is not shown or its type is unknown.
Line make_line(EventLine event) {
  const auto* const rule =
      std::find_if(std::begin(event_rules), std::end(event_rules),
                   [type = event.frame.text("type")](const EventRule& each) { return each.type == type; });
  if (rule == std::end(event_rules) || !rule->show(event)) return {};
  return std::move(event.line);
}

// A separator with the date if the day differs from that of the previous line.
void append_day(FormatterState& state, const Fields& frame, std::string& out) {
  const auto ms = time_of(state, frame);
  if (!ms) return;
  std::string day = format_local_day(*ms);
  if (day == state.day) return;
  state.day = std::move(day);
  const std::string rule(state.glyph(Glyph::rule));
  out += Line().add(rule + rule + " " + state.day + " " + rule + rule, Style::dim).str(state.display) + "\n";
}

}  // namespace

std::string FormatterState::invoked(const Fields& call) {
  const std::string_view tool = call.text("tool"), id = call.text("call");
  std::string summary =
      tool_summary(tool, call.get("input"), names.project(call.text("session")), display.charset);
  if (!id.empty()) calls[id] = {std::string(tool), summary};
  return summary;
}

std::vector<std::string_view> event_types() {
  std::vector<std::string_view> types;
  for (const EventRule& each : event_rules)
    if (each.type.find('.') != each.type.npos && !each.type.starts_with("stream."))
      types.push_back(each.type);
  return types;
}

Line event_line(FormatterState& state, const Fields& frame, std::string_view margin, const Fields& end) {
  return make_line({state, frame, end, &margin});
}

void EventFormatter::observe(const Fields& frame) {
  state_.names.observe(frame);
  state_.clocks.observe(frame);
  const std::string_view session = frame.text("session");
  if (frame.text("type") == "session") state_.turn_open[session] = frame.object("turn").flag("open");
  if (state_.names.project(session).empty()) return;  // provisional labels do not widen the column
  const std::size_t columns = display_width(state_.clean(state_.names.label(frame)));
  state_.label_columns = std::max(state_.label_columns, std::min(columns, state_.label_columns_limit()));
}

void EventFormatter::format(const Fields& frame, std::string& out) {
  observe(frame);
  const Line line = make_line({state_, frame, {}, nullptr});
  if (line.empty()) return;
  append_day(state_, frame, out);
  if (frame.text("type") != "tool.invoked") state_.last_call.clear();
  out += line.str(state_.display) + "\n";
}

}  // namespace earshot::cli
