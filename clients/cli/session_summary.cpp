#include "cli/session_summary.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/text.hpp"
#include "cli/gauges.hpp"
#include "cli/name_resolver.hpp"
#include "common/format.hpp"
#include "common/host_clocks.hpp"

namespace earshot::cli {

// --- tool calls and to-do lists

namespace {

enum class InputFormat { text, command, path };

struct InputRule {
  std::string_view tool;  // empty: any
  std::string_view key;
  InputFormat format;
};

// The first rule that matches the tool and has its key in the input applies.
constexpr InputRule input_rules[] = {
    {"Bash", "command", InputFormat::command},
    {"Grep", "pattern", InputFormat::text},
    {"grep", "pattern", InputFormat::text},
    {"find", "pattern", InputFormat::text},
    {"glob", "pattern", InputFormat::text},
    {"Glob", "pattern", InputFormat::text},
    {"Task", "description", InputFormat::text},
    {"Agent", "description", InputFormat::text},
    {"Skill", "skill", InputFormat::text},
    {"SlashCommand", "command", InputFormat::text},
    {"WebFetch", "url", InputFormat::text},
    {"WebSearch", "query", InputFormat::text},
    {"ToolSearch", "query", InputFormat::text},
    {"ExitPlanMode", "plan", InputFormat::text},
    {"TaskCreate", "subject", InputFormat::text},
    {"SendMessage", "message", InputFormat::text},
    {"", "file_path", InputFormat::path},
    {"", "notebook_path", InputFormat::path},
    {"", "path", InputFormat::path},
    {"", "command", InputFormat::command},
    {"", "cmd", InputFormat::command},
    {"", "pattern", InputFormat::text},
    {"", "query", InputFormat::text},
    {"", "url", InputFormat::text},
    {"", "uri", InputFormat::text},
    {"", "description", InputFormat::text},
    {"", "title", InputFormat::text},
    {"", "question", InputFormat::text},
    {"", "intent", InputFormat::text},
    {"", "task_name", InputFormat::text},
    {"", "name", InputFormat::text},
    {"", "subject", InputFormat::text},
    {"", "prompt", InputFormat::text},
    {"", "text", InputFormat::text},
    {"", "task_id", InputFormat::text},
    {"", "shell_id", InputFormat::text},
    {"", "bash_id", InputFormat::text},
    {"", "id", InputFormat::text},
};

constexpr std::size_t path_columns_max = 60;  // the end of a longer path is shown

std::string relative_path(std::string_view path, std::string_view project) {
  const bool inside = project.size() > 1 && path.size() > project.size() + 1 && path.starts_with(project) &&
                      path[project.size()] == '/';
  return std::string(inside ? path.substr(project.size() + 1) : path);
}

std::string first_question(const Fields& input) {
  const std::vector<Fields> questions = input.objects("questions");
  return questions.empty() ? std::string() : std::string(questions.front().text("question"));
}

// The script of `["bash", "-lc", "make"]`, else the words.
std::string command_of_words(const std::vector<std::string_view>& words) {
  if (words.size() == 3 && (words[1] == "-c" || words[1] == "-lc")) return std::string(words[2]);
  std::string command;
  for (const std::string_view word : words) command.append(command.empty() ? "" : " ").append(word);
  return command;
}

std::string list_paths(const std::vector<std::string_view>& paths, std::string_view project,
                       Charset charset) {
  if (paths.empty()) return {};
  std::string text = cut_start_to_width(to_display_line(relative_path(paths.front(), project), charset),
                                        path_columns_max, glyph(Glyph::ellipsis, charset));
  return paths.size() == 1 ? text : text + " +" + std::to_string(paths.size() - 1);
}

// The files that a patch of the form `*** Update File: PATH` changes.
std::vector<std::string_view> files_of_patch(std::string_view patch) {
  std::vector<std::string_view> files;
  for (std::size_t at = 0; at < patch.size();) {
    const std::string_view line = patch.substr(at, patch.find('\n', at) - at);
    for (const std::string_view mark : {"*** Update File: ", "*** Add File: ", "*** Delete File: "})
      if (line.starts_with(mark)) files.push_back(line.substr(mark.size()));
    at += line.size() + 1;
  }
  return files;
}

}  // namespace

std::string tool_summary(std::string_view tool, const std::optional<simdjson::dom::element>& input,
                         std::string_view project, Charset charset) {
  if (!input) return {};
  std::string_view whole;  // the input of some tools; of more than 64 KiB the beginning of its JSON arrives
  if (input->get(whole) == simdjson::SUCCESS) {
    const std::vector<std::string_view> files = files_of_patch(whole);
    return files.empty() ? to_display_line(whole, charset, LineBreaks::symbol)
                         : list_paths(files, project, charset);
  }
  simdjson::dom::object object;
  if (input->get(object) != simdjson::SUCCESS) return {};
  const Fields fields(object);
  if (const std::string question = first_question(fields); !question.empty())
    return to_display_line(question, charset);
  if (const auto words = fields.texts("command"); !words.empty())
    return to_display_line(command_of_words(words), charset, LineBreaks::symbol);
  if (const auto files = fields.texts("files"); !files.empty()) return list_paths(files, project, charset);
  for (const InputRule& rule : input_rules) {
    if (!rule.tool.empty() && rule.tool != tool) continue;
    const std::string_view value = fields.text(rule.key);
    if (value.empty()) continue;
    if (rule.format == InputFormat::command) return to_display_line(value, charset, LineBreaks::symbol);
    if (rule.format == InputFormat::text) return to_display_line(value, charset);
    return cut_start_to_width(to_display_line(relative_path(value, project), charset), path_columns_max,
                              glyph(Glyph::ellipsis, charset));
  }
  if (object.size() == 0) return {};
  return to_display_line(simdjson::minify(object), charset);
}

bool starts_agent(std::string_view tool) {
  constexpr std::string_view tools[] = {"Task", "Agent", "task", "spawn_agent"};
  const std::string_view name = tool.substr(tool.rfind('.') + 1);  // of `collaboration.spawn_agent`
  return std::find(std::begin(tools), std::end(tools), name) != std::end(tools);
}

std::string tool_name(std::string_view tool, Charset charset) {
  constexpr std::string_view prefix = "mcp__";
  if (tool.starts_with(prefix)) {
    const std::string_view rest = tool.substr(prefix.size());
    const std::size_t split = rest.find("__");
    if (split != rest.npos && split > 0) {
      return to_display_line(rest.substr(0, split), charset) + ": " +
             to_display_line(rest.substr(split + 2), charset);
    }
  }
  return to_display_line(tool.empty() ? "?" : tool, charset);
}

TodoSummary todo_summary(const Fields& frame, Charset charset) {
  TodoSummary summary;
  std::size_t done = 0;
  const std::vector<Fields> todos = frame.objects("todos");
  if (todos.empty()) return summary;
  for (const Fields& todo : todos) {
    const std::string_view status = todo.text("status");
    if (status == "completed") ++done;
    if (status != "in_progress" || !summary.current.empty()) continue;
    const std::string_view active = todo.text("active_form");
    summary.current = to_display_line(active.empty() ? todo.text("content") : active, charset);
  }
  summary.progress = std::to_string(done) + "/" + std::to_string(todos.size());
  summary.complete = done == todos.size();
  return summary;
}

// --- the table

namespace {

struct StateStyle {
  std::string_view name;
  Glyph glyph;
  Style style;
};

// In the order of the rows.
constexpr StateStyle states[] = {
    {"waiting", Glyph::waiting, Style::loud}, {"working", Glyph::working, Style::good},
    {"idle", Glyph::idle, Style::plain},      {"unknown", Glyph::unknown, Style::dim},
    {"ended", Glyph::ended, Style::dim},
};

std::size_t rank_of(std::string_view state) {
  const auto* found = std::find_if(std::begin(states), std::end(states),
                                   [&](const StateStyle& s) { return s.name == state; });
  return found == std::end(states) ? 3 : static_cast<std::size_t>(found - std::begin(states));
}

std::string current_tool(const Fields& session, Charset charset, std::int64_t now_ms) {
  const std::vector<Fields> tools = session.objects("tools");
  if (tools.empty()) return {};
  std::string text = tool_name(tools.front().text("tool"), charset);
  if (const auto started = parse_time(tools.front().text("started")))
    text += " " + format_duration(Ms(now_ms - *started));
  if (tools.size() > 1) text += " +" + std::to_string(tools.size() - 1);
  return text;
}

std::string tokens_column(const Fields& usage) {
  const std::uint64_t total = usage.count("input") + usage.count("output") + usage.count("cache_write");
  return total == 0 ? std::string() : format_count(total);
}

std::string times_column(const Fields& session, std::int64_t now_ms) {
  const auto times = session_times(session, now_ms);
  if (!times) return {};
  return format_age(Ms(times->waited_ms)) + " / " + format_age(Ms(times->worked_ms));
}

std::string last_column(const Fields& session, const SessionRow& row, Charset charset) {
  if (!row.detail.empty()) return row.detail;
  for (const char* key : {"title", "last_text"}) {
    if (std::string text = to_display_line(session.text(key), charset); !text.empty()) return text;
  }
  return to_display_line(session.object("turn").text("prompt"), charset);
}

// The reason of a wait replaces the state: `permission`, not `waiting, permission`; and `failed` is idle.
std::string status_cell(const SessionRow& row, const StateStyle& state, Charset charset) {
  std::string text(glyph(row.turn_failed ? Glyph::error : state.glyph, charset));
  text += ' ';
  if (row.state == "waiting" && !row.reason.empty()) return text + row.reason;
  if (row.host_offline) return text + "offline" + (row.offline_age.empty() ? "" : " " + row.offline_age);
  if (row.turn_failed && row.state == "idle")
    text += "failed";
  else
    text += (row.state.empty() ? "unknown" : row.state) + (row.turn_failed ? ", failed" : "");
  if (!row.reason.empty()) text += ", " + row.reason;
  return row.unseen ? text + ", unseen" : text;
}

std::vector<Cell> cells_of(const SessionRow& row, bool several_hosts, bool several_programs,
                           Charset charset) {
  const StateStyle& state = states[rank_of(row.state)];
  const bool waiting = row.state == "waiting", ended = row.state == "ended";
  const Style body = ended ? Style::dim : Style::plain;
  const Style status = row.turn_failed ? Style::bad : row.unseen ? Style::bold : state.style;
  return {
      {status_cell(row, state, charset), status},
      {several_hosts ? row.host : std::string(), body},
      {several_programs ? row.program : std::string(), body},
      {row.session, Style::dim},
      {row.project, ended ? Style::dim : style_of_name(row.project_path)},
      {row.turn, body},
      {row.tool, body},
      {row.todo, body},
      {row.context, row.context_percent ? gauge_style(*row.context_percent) : Style::dim},
      {row.cost, Style::dim},
      {row.times, Style::dim},
      {row.tokens, Style::dim},
      {row.age, Style::dim},
      {row.last, waiting ? Style::loud : body},
  };
}

}  // namespace

SessionRow make_session_row(const Fields& session, Charset charset, std::int64_t now_ms) {
  SessionRow row;
  const Fields status = session.object("status"), turn = session.object("turn");
  row.state = to_display_line(status.text("state"), charset);
  row.reason = to_display_line(status.text("reason"), charset);
  if (row.state == "waiting" ||
      row.state == "working")  // of a call that may wait: not every program states it
    row.detail = to_display_line(status.text("detail"), charset);
  row.host_offline = is_host_offline(status);
  if (const auto since = parse_time(status.text("since")); since && row.host_offline)
    row.offline_age = format_age(Ms(now_ms - *since));
  row.host = to_display_line(session.text("host"), charset);
  row.program = to_display_line(session.text("program"), charset);
  row.session_id = session.text("session");
  row.session = to_display_line(short_id(row.session_id), charset);
  const std::string_view project = session.text("project"), directory = session.text("directory");
  row.project = to_display_line(project.empty() ? directory : last_component(project), charset);
  row.project_path = project.empty() ? directory : project;
  if (const std::uint64_t number = turn.count("number"); number > 0) row.turn = std::to_string(number);
  const std::int64_t offset_ms = clock_offset_ms(session);
  if (row.state != "ended") row.tool = current_tool(session, charset, now_ms - offset_ms);
  row.todo = todo_summary(session, charset).progress;
  const Fields usage = session.object("usage");
  row.context = context_text(usage, charset);
  row.context_percent = context_percent(usage);
  row.cost = cost_text(usage);
  row.times = times_column(session, now_ms);
  row.tokens = tokens_column(usage);
  const bool is_over = row.state != "waiting" && row.state != "working";
  row.unseen = is_over && session.flag("unseen");
  row.turn_failed = is_over && !row.host_offline && !turn.flag("open") && turn.text("outcome") == "failed";
  if (const auto active = parse_time(session.text("last_activity"))) {
    row.activity_ms = *active + offset_ms;
    row.age = format_age(Ms(now_ms - row.activity_ms));
  }
  row.last = last_column(session, row, charset);
  return row;
}

namespace {

// Ids that begin with the time do not differ in their first characters if sessions begin in the same minute.
void distinguish_ids(std::vector<SessionRow>& sessions, Charset charset) {
  constexpr std::size_t bytes_max = 18;
  std::vector<SessionRow*> by_id;
  for (SessionRow& row : sessions) by_id.push_back(&row);
  std::sort(by_id.begin(), by_id.end(),
            [](const SessionRow* a, const SessionRow* b) { return a->session_id < b->session_id; });
  const auto common = [&](std::size_t a, std::size_t b) -> std::size_t {
    if (b >= by_id.size() || by_id[a]->session_id == by_id[b]->session_id) return 0;
    const std::string &x = by_id[a]->session_id, &y = by_id[b]->session_id;
    return static_cast<std::size_t>(std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin());
  };
  for (std::size_t n = 0; n < by_id.size(); ++n) {
    const std::size_t needed = std::max(n > 0 ? common(n - 1, n) : 0, common(n, n + 1)) + 1;
    const std::string_view id = by_id[n]->session_id;
    if (needed <= short_id(id).size()) continue;
    by_id[n]->session = to_display_line(cut_utf8(id, std::min(needed, bytes_max)), charset);
  }
}

}  // namespace

std::string format_session_table(std::vector<SessionRow> sessions, const DisplayOptions& display) {
  distinguish_ids(sessions, display.charset);
  std::stable_sort(sessions.begin(), sessions.end(), [](const SessionRow& a, const SessionRow& b) {
    const std::size_t rank_a = rank_of(a.state), rank_b = rank_of(b.state);
    if (rank_a != rank_b) return rank_a < rank_b;
    return a.unseen != b.unseen ? a.unseen : a.activity_ms > b.activity_ms;
  });
  std::set<std::string_view> hosts, programs;
  for (const SessionRow& row : sessions) {
    hosts.insert(row.host);
    if (!row.program.empty()) programs.insert(row.program);
  }
  std::vector<std::vector<Cell>> rows;
  for (const SessionRow& row : sessions)
    rows.push_back(cells_of(row, hosts.size() > 1, programs.size() > 1, display.charset));
  static const std::vector<Column> columns = {
      {"STATUS", 0, 32, 0},  // fits every state and reason of the protocol
      {"HOST", 4, 16, 3},        {"PROGRAM", 0, 11, 3},
      {"SESSION", 0, 18, 1},     {"PROJECT", 8, 24, 0},
      {"TURN", 0, 6, 7, true},   {"TOOL", 14, 28, 4},
      {"TODO", 0, 9, 6},         {"CONTEXT", 0, 10, 2, true},
      {"COST", 0, 16, 5, true},  {"WAITED / WORKED", 0, 15, 8, true},
      {"TOKENS", 0, 8, 9, true}, {"AGE", 0, 5, 0, true},
      {"LAST", 20, 0, 1},
  };
  return format_table(columns, rows, display);
}

}  // namespace earshot::cli
