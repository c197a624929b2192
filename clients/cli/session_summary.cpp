#include "cli/session_summary.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "cli/name_resolver.hpp"
#include "common/format.hpp"

namespace earshot::cli {

// --- tool calls and to-do lists

namespace {

enum class Format { text, command, path };

struct Rule {
  std::string_view tool;  // empty: any
  std::string_view key;
  Format format;
};

// The first rule whose tool matches and whose key is in the input applies.
constexpr Rule rules[] = {
    {"Bash", "command", Format::command},
    {"Grep", "pattern", Format::text},
    {"Glob", "pattern", Format::text},
    {"Task", "description", Format::text},
    {"Agent", "description", Format::text},
    {"Skill", "skill", Format::text},
    {"SlashCommand", "command", Format::text},
    {"WebFetch", "url", Format::text},
    {"WebSearch", "query", Format::text},
    {"ToolSearch", "query", Format::text},
    {"ExitPlanMode", "plan", Format::text},
    {"TaskCreate", "subject", Format::text},
    {"SendMessage", "message", Format::text},
    {"", "file_path", Format::path},
    {"", "notebook_path", Format::path},
    {"", "path", Format::path},
    {"", "command", Format::command},
    {"", "pattern", Format::text},
    {"", "query", Format::text},
    {"", "url", Format::text},
    {"", "uri", Format::text},
    {"", "description", Format::text},
    {"", "title", Format::text},
    {"", "name", Format::text},
    {"", "subject", Format::text},
    {"", "prompt", Format::text},
    {"", "text", Format::text},
    {"", "task_id", Format::text},
    {"", "shell_id", Format::text},
    {"", "bash_id", Format::text},
    {"", "id", Format::text},
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

}  // namespace

std::string tool_summary(std::string_view tool, const std::optional<simdjson::dom::element>& input,
                         std::string_view project, Charset charset) {
  if (!input) return {};
  std::string_view cut;  // an input of more than 64 KiB arrives as the beginning of its JSON
  if (input->get(cut) == simdjson::SUCCESS) return to_display_line(cut, charset);
  simdjson::dom::object object;
  if (input->get(object) != simdjson::SUCCESS) return {};
  const Fields fields(object);
  if (tool == "AskUserQuestion") return to_display_line(first_question(fields), charset);
  for (const Rule& rule : rules) {
    if (!rule.tool.empty() && rule.tool != tool) continue;
    const std::string_view value = fields.text(rule.key);
    if (value.empty()) continue;
    if (rule.format == Format::command) return to_display_line(value, charset, LineBreaks::symbol);
    if (rule.format == Format::text) return to_display_line(value, charset);
    return cut_start_to_width(to_display_line(relative_path(value, project), charset), path_columns_max,
                              glyph(Glyph::ellipsis, charset));
  }
  if (object.size() == 0) return {};
  return to_display_line(simdjson::minify(object), charset);
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
  const std::uint64_t context = usage.count("context");
  const std::uint64_t total = usage.count("input") + usage.count("output") + usage.count("cache_write");
  if (context == 0 && total == 0) return {};
  return (context > 0 ? format_count(context) : std::string("-")) + " / " + format_count(total);
}

std::string last_column(const Fields& session, const SessionRow& row, Charset charset) {
  if (!row.detail.empty()) return row.detail;
  for (const char* key : {"title", "last_text"}) {
    if (std::string text = to_display_line(session.text(key), charset); !text.empty()) return text;
  }
  return to_display_line(session.object("turn").text("prompt"), charset);
}

// The reason of a wait replaces the state: `permission`, not `waiting, permission`.
std::string status_text(const SessionRow& row, const StateStyle& state, Charset charset) {
  std::string text(glyph(state.glyph, charset));
  text += ' ';
  if (row.state == "waiting" && !row.reason.empty()) return text + row.reason;
  if (row.host_offline) return text + "offline" + (row.offline_age.empty() ? "" : " " + row.offline_age);
  text += row.state.empty() ? "unknown" : row.state;
  return row.reason.empty() ? text : text + ", " + row.reason;
}

std::vector<Cell> cells_of(const SessionRow& row, bool several_hosts, Charset charset) {
  const StateStyle& state = states[rank_of(row.state)];
  const bool waiting = row.state == "waiting", ended = row.state == "ended";
  const Style body = ended ? Style::dim : Style::plain;
  return {
      {status_text(row, state, charset), state.style},
      {several_hosts ? row.host : std::string(), body},
      {row.session, Style::dim},
      {row.project, ended ? Style::dim : style_of_name(row.project_path)},
      {row.turn, body},
      {row.tool, body},
      {row.todo, body},
      {row.tokens, Style::dim},
      {row.age, Style::dim},
      {row.last, waiting ? Style::loud : body},
  };
}

}  // namespace

bool is_host_offline(const Fields& status) {
  return status.text("state") == "unknown" && status.text("reason") == "host_offline";
}

SessionRow make_session_row(const Fields& session, Charset charset, std::int64_t now_ms) {
  SessionRow row;
  const Fields status = session.object("status"), turn = session.object("turn");
  row.state = to_display_line(status.text("state"), charset);
  row.reason = to_display_line(status.text("reason"), charset);
  row.detail = row.state == "waiting" ? to_display_line(status.text("detail"), charset) : std::string();
  row.host_offline = is_host_offline(status);
  if (const auto since = parse_time(status.text("since")); since && row.host_offline)
    row.offline_age = format_age(Ms(now_ms - *since));
  row.host = to_display_line(session.text("host"), charset);
  row.session = to_display_line(short_id(session.text("session")), charset);
  const std::string_view project = session.text("project"), directory = session.text("directory");
  row.project = to_display_line(project.empty() ? directory : last_component(project), charset);
  row.project_path = project.empty() ? directory : project;
  if (const std::uint64_t number = turn.count("number"); number > 0) row.turn = std::to_string(number);
  row.tool = current_tool(session, charset, now_ms);
  row.todo = todo_summary(session, charset).progress;
  row.tokens = tokens_column(session.object("usage"));
  if (const auto active = parse_time(session.text("last_activity"))) {
    row.activity_ms = *active;
    row.age = format_age(Ms(now_ms - *active));
  }
  row.last = last_column(session, row, charset);
  return row;
}

std::string format_session_table(std::vector<SessionRow> sessions, const DisplayOptions& display) {
  std::stable_sort(sessions.begin(), sessions.end(), [](const SessionRow& a, const SessionRow& b) {
    const std::size_t rank_a = rank_of(a.state), rank_b = rank_of(b.state);
    return rank_a != rank_b ? rank_a < rank_b : a.activity_ms > b.activity_ms;
  });
  std::set<std::string_view> hosts;
  for (const SessionRow& row : sessions) hosts.insert(row.host);
  std::vector<std::vector<Cell>> rows;
  for (const SessionRow& row : sessions) rows.push_back(cells_of(row, hosts.size() > 1, display.charset));
  static const std::vector<Column> columns = {
      {"STATUS", 0, 24, 0},    {"HOST", 4, 16, 3},  {"SESSION", 0, 8, 4}, {"PROJECT", 8, 24, 0},
      {"TURN", 0, 6, 5, true}, {"TOOL", 14, 28, 2}, {"TODO", 0, 9, 3},    {"CONTEXT / TOTAL", 0, 15, 6, true},
      {"AGE", 0, 5, 0, true},  {"LAST", 20, 0, 1},
  };
  return format_table(columns, rows, display);
}

}  // namespace earshot::cli
