// Compaction, subagents, background tasks, usage, trouble, and what a session is doing now.
#include "cli/event_lines.hpp"
#include "cli/session_table.hpp"

namespace earshot::cli::formatting {
namespace {

bool say_waiting(EventLine& t, const Fields& status) {
  open(t, Glyph::waiting, Style::loud).add("needs you", Style::loud);
  const std::string reason = t.state.clean(status.text("reason"));
  const std::string detail = t.state.clean(status.text("detail"));
  if (!reason.empty()) t.line.add(": " + reason, Style::loud);
  const char* const dash = t.state.display.charset == Charset::utf8 ? " — " : " - ";
  if (!detail.empty()) t.line.add(dash + detail, Style::loud);
  return true;
}

}  // namespace

bool on_compaction_started(EventLine& t) {
  open(t, Glyph::compaction, Style::note).add("compacting");
  Details(t).add(t.clean("trigger"));
  return true;
}

bool on_compaction_finished(EventLine& t) {
  open(t, Glyph::compaction, Style::note).add("compacted");
  Details facts(t);
  const std::uint64_t before = t.frame.count("pre_tokens"), after = t.frame.count("post_tokens");
  if (before > 0 && after > 0) {
    facts.add(format_count(before) + " " + std::string(t.state.glyph(Glyph::arrow)) + " " +
                  format_count(after) + " tokens",
              Style::plain);
  } else if (before > 0) {
    facts.add("from " + format_count(before) + " tokens", Style::plain);
  }
  facts.duration().add(t.clean("trigger"));
  if (t.frame.text("kind") == "micro") facts.add("micro");
  return true;
}

bool on_agent_started(EventLine& t) {
  const std::string type = t.clean("agent_type");
  open(t, Glyph::agent, Style::bold).add(type.empty() ? "agent" : type, Style::bold);
  Details facts(t);
  facts.add(t.clean("description"), Style::plain);
  if (t.frame.flag("background")) facts.add("in the background");
  return true;
}

bool on_agent_finished(EventLine& t) {
  const std::string_view outcome = t.frame.text("outcome");
  const Style style = style_of_outcome(outcome);
  const std::string type = t.clean("agent_type");
  open(t, glyph_of_outcome(outcome), style)
      .add(type.empty() ? "agent" : type, outcome == "completed" ? Style::plain : style);
  Details facts(t);
  if (outcome != "completed") facts.add(t.clean("outcome"), style);
  facts.duration();
  if (const std::uint64_t tools = t.frame.count("tools"); tools > 0) facts.add(plural(tools, "tool"));
  if (const std::uint64_t tokens = t.frame.count("tokens"); tokens > 0)
    facts.add(format_count(tokens) + " tokens");
  facts.add(t.clean("description"));
  return true;
}

bool on_task_finished(EventLine& t) {
  const Call* const begun = t.state.calls.find(t.frame.text("call"));
  const bool of_subagent = begun != nullptr && (begun->tool == "Agent" || begun->tool == "Task");
  if (of_subagent && !t.state.verbose) return false;  // agent.finished says more
  const std::string_view outcome = t.frame.text("outcome");
  const Style style = style_of_outcome(outcome);
  open(t, glyph_of_outcome(outcome), style).add("background task ").add(t.clean("outcome"), style);
  const std::string summary = t.clean("summary");
  Details(t).add(summary.empty() ? t.clean("task") : summary, Style::plain);
  return true;
}

bool on_queue_changed(EventLine& t) {
  const bool queued = t.frame.text("operation") == "enqueue";
  const std::string_view text = t.frame.text("text");
  const bool* const busy = t.state.turn_open.find(t.frame.text("session"));
  // Outside a turn what is queued is taken at once; a notification is told by what it notifies of.
  const bool waits = queued && busy != nullptr && *busy && !text.starts_with("<task-notification>");
  if (!waits && !t.state.verbose) return false;
  open(t, Glyph::queue, Style::dim).add(queued ? "queued" : t.clean("operation"), Style::dim);
  Details(t).add(t.state.clean(notification_summary(text)), Style::plain);
  return true;
}

bool on_usage_updated(EventLine& t) {
  if (!t.state.verbose) return false;
  open(t, Glyph::dot, Style::dim).add("tokens", Style::dim);
  const Fields total = t.frame.object("total");
  Details facts(t);
  if (const std::uint64_t own = new_tokens(t.frame); own > 0) facts.add(format_count(own));
  if (const std::uint64_t all = new_tokens(total); all > 0) facts.add(format_count(all) + " in all");
  if (const std::uint64_t read = total.count("cache_read"); read > 0)
    facts.add(format_count(read) + " from the cache");
  facts.add(t.clean("model"));
  return true;
}

bool on_api_failed(EventLine& t) {
  const bool fatal = t.frame.flag("fatal");
  const Style style = fatal ? Style::bad : Style::note;
  open(t, Glyph::api, style).add(fatal ? "API failed" : "API trouble", style);
  Details facts(t);
  const auto status = t.frame.integer("status");
  const bool error_has_it = status && t.frame.text("error").starts_with(std::to_string(*status));
  if (status && !error_has_it) facts.add(std::to_string(*status), style);
  if (const auto attempt = t.frame.integer("attempt")) {
    const auto most = t.frame.integer("max_attempts");
    facts.add("try " + std::to_string(*attempt) + (most ? "/" + std::to_string(*most) : std::string()),
              Style::plain);
  }
  if (const auto wait = t.frame.integer("retry_in_ms"))
    facts.add("again in " + format_duration(*wait), Style::plain);
  facts.add(t.clean("error"));
  return true;
}

bool on_files_snapshotted(EventLine& t) {
  if (!t.state.verbose) return false;
  open(t, Glyph::dot, Style::dim)
      .add("checkpoint of " +
               plural(std::max<std::uint64_t>(t.frame.array_size("files"), t.frame.count("files_count")),
                      "file"),
           Style::dim);
  return true;
}

bool on_line_skipped(EventLine& t) {
  open(t, Glyph::skipped, Style::note);
  const std::string amount =
      plural(t.frame.count("lines"), "line") + ", " + format_bytes(t.frame.count("bytes"));
  t.line.add((t.frame.flag("salvaged") ? "salvaged in part: " : "skipped ") + amount, Style::dim);
  Details(t).add(t.clean("reason")).add("at byte " + std::to_string(t.frame.count("line")));
  return true;
}

namespace {

// A host is away, and back, with all its sessions: one line. Its time is when it was last heard.
bool say_host(EventLine& t, bool away) {
  bool& known = t.state.away[t.frame.text("host")];
  if (known == away) return false;
  known = away;
  open(t, away ? Glyph::unknown : Glyph::dot, Style::note)
      .add("host " + t.clean("host") + (away ? " is away" : " is back"), Style::note);
  return true;
}

bool say_status(EventLine& t) {
  const std::string_view state = t.frame.text("state");
  Waiting now;
  if (state == "waiting") now = {std::string(t.frame.text("reason")), std::string(t.frame.text("detail"))};
  Waiting& before = t.state.waiting[t.frame.text("session")];
  const bool again = state == "waiting" && now == before;
  before = now;
  if (again && !t.state.verbose) return false;
  if (state == "waiting") return say_waiting(t, t.frame);
  if (state != "ended" && !t.state.verbose) return false;  // events tell the rest
  open(t, Glyph::dot, Style::dim).add(t.clean("state"), Style::dim);
  Details(t).add(t.clean("reason")).add(t.clean("source"));
  return true;
}

}  // namespace

bool on_status(EventLine& t) {
  if (is_host_offline(t.frame)) return say_host(t, true);  // who waited waits still, as far as is known
  const bool* const away = t.state.away.find(t.frame.text("host"));
  const bool is_back = away != nullptr && *away;
  if (!say_status(t)) return is_back && say_host(t, false);
  if (is_back) t.state.away[t.frame.text("host")] = false;  // the line shows it
  return true;
}

// One of the snapshot.
bool on_session(EventLine& t) {
  const Fields status = t.frame.object("status"), turn = t.frame.object("turn");
  const std::string_view state = status.text("state");
  if (state == "waiting") {
    t.state.waiting[t.frame.text("session")] = {std::string(status.text("reason")),
                                                std::string(status.text("detail"))};
    return say_waiting(t, status);
  }
  const bool working = state == "working", away = is_host_offline(status);
  if (away) t.state.away[t.frame.text("host")] = true;
  open(t,
       working            ? Glyph::working
       : state == "idle"  ? Glyph::idle
       : state == "ended" ? Glyph::ended
                          : Glyph::unknown,
       working ? Style::good : Style::dim);
  t.line.add(away ? std::string("host away") : t.state.clean(state.empty() ? "unknown" : state),
             working ? Style::good : Style::dim);
  Details facts(t);
  if (const std::uint64_t number = turn.count("number"); number > 0)
    facts.add("turn " + std::to_string(number));
  const std::string title = t.clean("title");
  facts.add(title.empty() ? t.state.clean(turn.text("prompt")) : title, Style::plain);
  return true;
}

bool on_lagged(EventLine& t) {
  t.line.add("fell behind: some events were left out", Style::note);
  return true;
}

bool on_reset(EventLine& t) {
  open(t, Glyph::skipped, Style::note)
      .add("the transcript was rewritten: its events begin again", Style::note);
  Details(t).add(t.clean("reason"));
  return true;
}

bool on_stream_removed(EventLine& t) {
  if (!t.state.verbose) return false;
  open(t, Glyph::dot, Style::dim).add("transcript removed", Style::dim);
  return true;
}

}  // namespace earshot::cli::formatting
