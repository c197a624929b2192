#include "cli/transcript_view.hpp"

#include <algorithm>
#include <iterator>

#include "cli/gauges.hpp"
#include "cli/session_summary.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

struct Pair {
  std::string_view begin, end;
  std::string_view key;  // the field that both have
};
constexpr Pair pairs[] = {
    {"tool.invoked", "tool.finished", "call"},
    {"agent.started", "agent.finished", "call"},
    {"turn.started", "turn.finished", "turn"},
    {"compaction.started", "compaction.finished", ""},
};

// Identifies a pair of begin and end events; empty for other events.
std::string pair_key(const Fields& event, bool is_begin) {
  const std::string_view type = event.text("type");
  const auto* pair = std::find_if(std::begin(pairs), std::end(pairs),
                                  [&](const Pair& p) { return type == (is_begin ? p.begin : p.end); });
  if (pair == std::end(pairs)) return {};
  std::string key(pair->begin);
  for (const std::string_view part : {event.text("stream"), event.text("agent")})
    key += '\n' + std::string(part);
  if (pair->key == "call" && event.text("call").empty()) return {};
  if (pair->key == "call") return key + '\n' + std::string(event.text("call"));
  return key + '\n' + std::to_string(event.count("turn"));
}

constexpr std::size_t text_columns_max = 100;  // longer lines are hard to read
constexpr std::size_t text_lines_max = 200;    // of a message; a frame rarely has more
constexpr std::size_t prompt_lines_max = 40;   // these three limits are doubled with --verbose
constexpr std::size_t error_lines_max = 4;
constexpr std::size_t output_lines_max = 12;
constexpr std::size_t summary_columns_min = 12;  // at least this much of a tool's input is shown

// Events that are shown as in `tail`, one line each.
constexpr std::string_view one_liners[] = {
    "session.updated", "compaction.finished", "compaction.started", "task.finished",     "queue.changed",
    "usage.updated",   "api.failed",          "limits.updated",     "files.snapshotted", "line.skipped",
};

std::string offline_text(const Fields& status) {
  const auto last = parse_time(status.text("since"));
  return "host offline" +
         (last ? ", last seen " + format_local_day(*last) + " " + format_local_clock(*last) : "");
}

}  // namespace

Timeline::Thread& Timeline::thread_of(const Fields& event) {
  const std::string_view stream = event.text("stream"), agent = event.text("agent");
  const auto [place, is_new] =
      thread_at_.try_emplace(std::string(stream) + '\n' + std::string(agent), threads_.size());
  if (is_new) threads_.push_back({std::string(stream), std::string(agent), {}});
  return threads_[place->second];
}

// The last end counts: that of a background agent has more details than the first.
void Timeline::record_end(const Fields& event, std::size_t index) {
  if (const std::string begin = pair_key(event, true); !begin.empty()) begins_[begin] = true;
  const std::string key = pair_key(event, false);
  if (key.empty() || !begins_.contains(key)) return;
  ends_[key] = index;
  items_[index].is_end = true;
}

bool Timeline::add(const Fields& event, std::string_view json) {
  if (text_.size() + json.size() > bytes_max) return false;
  Thread& thread = thread_of(event);
  const std::size_t index = items_.size();
  const std::int64_t before = thread.items.empty() ? no_time : items_[thread.items.back()].ms;
  items_.push_back({text_.size(), json.size(), event.count("turn"),
                    parse_time(event.text("time")).value_or(before), false});
  text_ += json;
  thread.items.push_back(index);
  record_end(event, index);
  const std::string_view type = event.text("type"), subagent = event.text("subagent");
  if ((type == "agent.started" || type == "agent.finished") && !subagent.empty() &&
      !event.text("call").empty())
    call_of_agent_.try_emplace(std::string(subagent), event.text("call"));
  // The call that started an agent may name it before the agent's end does.
  const std::string_view background = event.text("background");
  if (type == "tool.finished" && !background.empty() && starts_agent(event.text("tool")))
    call_of_agent_.try_emplace(std::string(background), event.text("call"));
  return true;
}

std::optional<Fields> Timeline::end_of(const Fields& begin) {
  const auto found = ends_.find(pair_key(begin, true));
  if (found == ends_.end()) return std::nullopt;
  return end_parser_.parse(json_of(items_[found->second]));
}

void Timeline::walk(std::uint64_t turn, const Visitor& visit, const AgentVisitor& on_agent) {
  Walk walk{visit, on_agent, turn};
  std::vector<Thread*> main_threads;
  for (Thread& thread : threads_) {
    thread.shown = false;
    if (thread.agent.empty()) main_threads.push_back(&thread);
  }
  // A session that was resumed into another file has several; the oldest comes first.
  std::stable_sort(main_threads.begin(), main_threads.end(), [&](const Thread* a, const Thread* b) {
    return items_[a->items.front()].ms < items_[b->items.front()].ms;
  });
  for (Thread* thread : main_threads) walk_thread(*thread, 0, walk);
  if (turn > 0) return;
  for (Thread& thread : threads_) {
    if (thread.shown || !walk.more) continue;
    on_agent(thread.agent, 1);
    walk_thread(thread, 1, walk);
  }
}

void Timeline::walk_thread(Thread& thread, std::size_t depth, Walk& walk) {
  thread.shown = true;
  FrameParser parser;  // one per thread: the event must stay valid while the subagents below it are visited
  const bool is_main = thread.agent.empty();
  for (const std::size_t index : thread.items) {
    const Item& item = items_[index];
    if (is_main && walk.turn > 0 && item.turn != walk.turn) continue;
    if (is_main && walk.begin_ms == no_time) walk.begin_ms = item.ms;
    if (is_main) walk_unlinked(thread, item, walk);
    if (!walk.more) return;
    const auto event = parser.parse(json_of(item));
    if (!event) continue;
    walk.more = walk.visit({*event, json_of(item), std::min(depth, depth_max), item.is_end});
    if (!walk.more) return;
    if (event->text("type") == "agent.started") walk_call(event->text("call"), depth + 1, walk);
  }
}

void Timeline::walk_call(std::string_view call, std::size_t depth, Walk& walk) {
  if (call.empty()) return;
  for (Thread& thread : threads_) {
    if (thread.shown || thread.agent.empty() || !walk.more) continue;
    const auto known = call_of_agent_.find(thread.agent);
    if (known != call_of_agent_.end() && known->second == call) walk_thread(thread, depth, walk);
  }
}

// A subagent without a known call is placed where it began: by the offset in the same file, else by time.
void Timeline::walk_unlinked(const Thread& main, const Item& until, Walk& walk) {
  for (Thread& thread : threads_) {
    if (thread.shown || thread.agent.empty() || !walk.more || is_linked(thread)) continue;
    const Item& first = items_[thread.items.front()];
    const bool before = thread.stream == main.stream ? first.offset < until.offset
                                                     : first.ms != no_time && first.ms < until.ms;
    if (!before) continue;
    const bool in_turn = thread.stream == main.stream ? first.turn == walk.turn : first.ms >= walk.begin_ms;
    if (walk.turn > 0 && !in_turn) continue;
    walk.on_agent(thread.agent, 1);
    walk_thread(thread, 1, walk);
  }
}

std::string TranscriptView::margin(std::size_t depth) const {
  std::string margin = "  ";
  const char* const rule = state_.display.charset == Charset::utf8 ? "│ " : "| ";
  for (std::size_t i = 0; i < depth; ++i) margin += rule;
  return margin;
}

Line TranscriptView::begin(const Row& row, Glyph mark, Style style) const {
  return std::move(Line().add(row.margin, Style::dim).add(state_.glyph(mark), style).space(1));
}

void TranscriptView::one_line(const Row& row, const Fields& end) {
  if (const Line line = event_line(state_, row.event, row.margin, end); !line.empty()) print(row, line);
}

void TranscriptView::write_header(const Fields& session, std::string& out) {
  state_.names.observe(session);
  state_.clocks.observe(session);
  const auto clean = [&](std::string_view key) { return state_.clean(session.text(key)); };
  std::string title = clean("title");
  if (title.empty()) title = state_.clean(last_component(session.text("project")));
  if (title.empty()) title = clean("directory");
  print(Line().add(title, Style::bold), out);
  const auto facts = [&](std::initializer_list<std::string> texts) {
    Line line;
    Details details(line, state_.display.charset);
    for (const std::string& each : texts) details.add(each);
    if (!line.empty()) print(line, out);
  };
  const std::string branch = clean("git_branch");
  facts({clean("session"), clean("project") + (branch.empty() ? "" : " (" + branch + ")"),
         state_.clean(other_program(session)), clean("model"), clean("sandbox")});
  const Fields usage = session.object("usage"), status = session.object("status");
  const std::uint64_t tokens = new_tokens(usage), turns = session.object("turn").count("number");
  const std::string reason = state_.clean(status.text("reason"));
  facts({plural(turns, "turn"), tokens > 0 ? format_count(tokens) + " tokens" : "",
         is_host_offline(status)
             ? offline_text(status)
             : state_.clean(status.text("state")) + (reason.empty() ? "" : ": " + reason)});
  Line numbers;
  Details(numbers, state_.display.charset).numbers(session, now_ms());
  if (!numbers.empty()) print(numbers, out);
  LimitSummary limits(state_.display.charset);
  limits.add(session);
  out += limits.lines(state_.display, now_ms());
}

void TranscriptView::write_footer(const Fields& session, std::string& out) {
  const Fields status = session.object("status");
  const std::string_view state = status.text("state");
  if (state != "waiting" && state != "working") return;
  Line last;
  last.add(state_.glyph(state == "waiting" ? Glyph::waiting : Glyph::working),
           state == "waiting" ? Style::loud : Style::good);
  const std::string reason = state_.clean(status.text("reason")),
                    detail = state_.clean(status.text("detail"));
  last.add(state == "waiting" ? " needs you" : " working", state == "waiting" ? Style::loud : Style::good);
  if (!reason.empty()) last.add(": " + reason, Style::plain);
  if (const auto since = status_since(session); since && *since <= now_ms())
    last.add(" for " + format_duration(Ms(now_ms() - *since)), Style::plain);
  if (!detail.empty()) last.space(2).add(detail);
  out += "\n";
  print(last, out);
}

void TranscriptView::write_unlinked_agent(std::string_view agent, std::size_t depth, std::string& out) {
  Line heading;
  heading.add(margin(depth == 0 ? 0 : depth - 1), Style::dim).add(state_.glyph(Glyph::agent), Style::bold);
  heading.space(1).add("subagent " + state_.clean(state_.names.agent(agent)), Style::bold);
  print(heading, out);
}

void TranscriptView::write(const Timeline::Step& step, Timeline& timeline, std::string& out) {
  state_.names.observe(step.event);
  struct Writer {
    std::string_view type;
    void (TranscriptView::*write)(const Row&);
  };
  constexpr Writer writers[] = {
      {"turn.started", &TranscriptView::turn_started},   {"message.added", &TranscriptView::message_added},
      {"tool.invoked", &TranscriptView::tool_invoked},   {"tool.finished", &TranscriptView::tool_finished},
      {"agent.started", &TranscriptView::agent_started}, {"agent.finished", &TranscriptView::agent_finished},
      {"todo.updated", &TranscriptView::todo_updated},
  };
  const Row row{step.event, timeline, margin(step.depth), step.depth, step.is_end, out};
  const std::string_view type = step.event.text("type");
  if (step.depth == 0 && type.starts_with("turn."))
    state_.turn_open[step.event.text("session")] = type == "turn.started";
  for (const Writer& writer : writers) {
    if (writer.type == type) return (this->*writer.write)(row);
  }
  if (type == "compaction.started" && row.timeline.end_of(row.event)) return;
  if (type == "session.updated" && !state_.verbose) return;  // the header shows the current values
  const bool shown = std::find(std::begin(one_liners), std::end(one_liners), type) != std::end(one_liners);
  if (shown) one_line(row);
}

void TranscriptView::turn_started(const Row& row) {
  const std::uint64_t number = row.event.count("turn");
  if (row.depth > 0) {
    if (state_.verbose || number > 1) prompt(row);
    return;
  }
  auto started = parse_time(row.event.text("time"));
  if (started) *started += state_.clocks.offset_ms(row.event.text("host"));
  row.out += "\n";
  const std::string rule(state_.glyph(Glyph::rule));
  if (started && format_local_day(*started) != day_) {
    day_ = format_local_day(*started);
    print(row, Line().add(day_, Style::dim));
  }
  Line heading;
  heading.add(rule + rule + " ", Style::dim).add("turn " + std::to_string(number), Style::bold);
  Details facts(heading, state_.display.charset, false);
  if (started) facts.add(format_local_clock(*started));
  const std::string_view origin = row.event.text("origin");
  if (origin != "human" && origin != "unknown") facts.add(state_.clean(origin));
  if (const auto end = row.timeline.end_of(row.event)) {
    const std::string_view outcome = end->text("outcome"), reason = end->text("stop_reason");
    facts.add(state_.clean(outcome), style_of_outcome(outcome));
    if (outcome != "completed" && !reason.empty()) facts.add(state_.clean(reason), Style::note);
    facts.duration(*end).waited(*end).tools_and_tokens(*end, new_tokens(end->object("usage")));
  } else {
    facts.add("open", Style::note);
  }
  print(row, heading);
  prompt(row);
}

// Of a notification that was delivered as a prompt only the summary is shown.
void TranscriptView::prompt(const Row& row) {
  const std::string_view prompt = row.event.text("prompt"), summary = notification_summary(prompt);
  if (summary.size() == prompt.size())
    return text(row, "prompt", Glyph::user, Style::bold, Style::plain, prompt_lines_max);
  print(row, begin(row, Glyph::user, Style::bold).add(state_.clean(summary)));
}

void TranscriptView::text(const Row& row, std::string_view key, Glyph mark, Style mark_style, Style style,
                          std::size_t lines_max) {
  const std::string_view content = row.event.text(key);
  if (content.empty()) return;
  const std::size_t used = display_width(row.margin) + 2;
  const std::size_t columns = state_.display.columns;
  const std::size_t width =
      columns == 0 ? 0 : std::clamp<std::size_t>(columns > used ? columns - used : 1, 1, text_columns_max);
  WrappedText text = wrap_text(content, width, state_.display.charset, lines_max * (state_.verbose ? 2 : 1));
  bool first = true;
  for (const std::string& each : text.lines) {
    Line made;
    if (row.depth > 0 || !each.empty()) made.add(row.margin, Style::dim);
    if (first) {
      made.add(state_.glyph(mark), mark_style).space(1);
    } else if (!each.empty()) {
      made.space(2);
    }
    first = false;
    print(row, made.add(each, style));
  }
  const std::uint64_t bytes = row.event.truncated_bytes(key);
  const std::string ellipsis(state_.glyph(Glyph::ellipsis));
  if (text.omitted > 0 || bytes > 0) {
    std::string more = ellipsis + " ";
    more += bytes > 0 ? format_bytes(bytes) + " in total" : plural(text.omitted, "more line");
    print(row, Line().add(row.margin, Style::dim).space(2).add(more, Style::dim));
  }
}

void TranscriptView::message_added(const Row& row) {
  const std::string_view role = row.event.text("role"), kind = row.event.text("kind");
  const bool prompt_of_agent = row.depth > 0 && role == "user";
  if ((kind == "thinking" || role == "summary" || prompt_of_agent) && !state_.verbose) return;
  const Glyph mark = glyph_of_message(row.event);
  const bool plain = is_conversation(row.event);
  const bool is_named =
      (kind != "text" && kind != "agent") || role == "summary";  // that is the symbol's kind
  if (is_named || row.event.text("text").empty()) {
    Line what = begin(row, mark, Style::dim);
    what.add(state_.clean(role == "summary" ? role : kind), Style::dim);
    const Fields media = row.event.object("media");
    if (const std::string_view type = media.text("media_type"); !type.empty())
      what.space(1).add(state_.clean(type), Style::dim);
    if (media && media.count("bytes") > 0) what.space(1).add(format_bytes(media.count("bytes")), Style::dim);
    print(row, what);
  }
  text(row, "text", mark, Style::dim, plain ? Style::plain : Style::dim, text_lines_max);
}

// Call and result on one line, the error below.
void TranscriptView::tool_invoked(const Row& row) {
  const std::string_view tool = row.event.text("tool");
  const std::string summary = state_.invoked(row.event);
  const auto end = row.timeline.end_of(row.event);
  const std::string_view outcome = end ? end->text("outcome") : std::string_view();
  const bool hidden = starts_agent(tool) || (has_own_events(tool) && !state_.verbose);
  if (hidden && (!end || outcome == "ok")) return;
  Line result;
  if (end) {
    const Style style = style_of_outcome(outcome);
    result.space(2).add(state_.glyph(glyph_of_outcome(outcome)), style);
    if (outcome != "ok" && outcome != "error") result.space(1).add(state_.clean(outcome), style);
    const auto ms = end->integer("duration_ms");
    if (!end->text("background").empty()) {
      result.space(1).add("continues in the background", Style::dim);
    } else if (ms) {
      result.space(1).add(format_duration(Ms(*ms)), Style::dim);
    }
  } else {
    result.space(2).add("no result yet", Style::note);
  }
  Line made = begin(row, Glyph::tool, Style::dim);
  made.add(tool_name(tool, state_.display.charset), Style::bold).space(2);
  const std::size_t used = made.width() + result.width(), columns = state_.display.columns;
  const std::size_t width = columns == 0 ? display_width(summary)
                                         : std::max(columns > used ? columns - used : 0, summary_columns_min);
  made.add(cut_to_width(summary, width, state_.glyph(Glyph::ellipsis)));
  print(row, made.add(result));
  if (end) output(row, *end);
}

// The output of a failed call is always shown, others with --verbose.
void TranscriptView::output(const Row& row, const Fields& finished) {
  const bool failed = finished.text("outcome") == "error";
  if (!failed && !state_.verbose) return;
  const Row below{finished, row.timeline, row.margin + "  ", row.depth, true, row.out};
  text(below, "output", failed ? Glyph::error : Glyph::dot, failed ? Style::bad : Style::dim,
       failed ? Style::bad : Style::dim, failed ? error_lines_max : output_lines_max / 2);
}

void TranscriptView::tool_finished(const Row& row) {
  if (row.is_end) return;  // shown with its call
  const std::string_view outcome = row.event.text("outcome");
  Line made = begin(row, glyph_of_outcome(outcome), style_of_outcome(outcome));
  made.add(tool_name(row.event.text("tool"), state_.display.charset), Style::bold);
  print(row, made.space(2).add(state_.clean(outcome), style_of_outcome(outcome)));
  output(row, row.event);
}

void TranscriptView::agent_started(const Row& row) {
  const std::string_view call = row.event.text("call");
  if (!call.empty()) agent_turns_[std::string(call)] = row.event.count("turn");
  one_line(row, row.timeline.end_of(row.event).value_or(Fields()));
}

// Shown where it started, and again where it ended if that is in another turn.
void TranscriptView::agent_finished(const Row& row) {
  const auto started = agent_turns_.find(std::string(row.event.text("call")));
  if (row.is_end && started != agent_turns_.end() && started->second == row.event.count("turn")) return;
  one_line(row);
}

void TranscriptView::todo_updated(const Row& row) {
  one_line(row);
  if (!state_.verbose) return;
  for (const Fields& todo : row.event.objects("todos")) {
    const std::string_view status = todo.text("status");
    const Glyph mark = status == "completed"     ? Glyph::ok
                       : status == "in_progress" ? Glyph::working
                                                 : Glyph::idle;
    print(row,
          Line()
              .add(row.margin, Style::dim)
              .space(2)
              .add(state_.glyph(mark), status == "completed" ? Style::good : Style::dim)
              .space(1)
              .add(state_.clean(todo.text("content")), status == "completed" ? Style::dim : Style::plain));
  }
}

}  // namespace earshot::cli
