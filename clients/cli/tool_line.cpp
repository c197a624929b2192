#include "cli/tool_summary.hpp"

#include "cli/style.hpp"

namespace earshot::cli {
namespace {

enum class Shown { text, command, path };

struct Rule {
  std::string_view tool;  // empty: any
  std::string_view key;
  Shown shown;
};

// The first rule whose tool fits and whose key is in the input.
constexpr Rule rules[] = {
    {"Bash", "command", Shown::command},
    {"Grep", "pattern", Shown::text},
    {"Glob", "pattern", Shown::text},
    {"Task", "description", Shown::text},
    {"Agent", "description", Shown::text},
    {"Skill", "skill", Shown::text},
    {"SlashCommand", "command", Shown::text},
    {"WebFetch", "url", Shown::text},
    {"WebSearch", "query", Shown::text},
    {"ToolSearch", "query", Shown::text},
    {"ExitPlanMode", "plan", Shown::text},
    {"TaskCreate", "subject", Shown::text},
    {"SendMessage", "message", Shown::text},
    {"", "file_path", Shown::path},
    {"", "notebook_path", Shown::path},
    {"", "path", Shown::path},
    {"", "command", Shown::command},
    {"", "pattern", Shown::text},
    {"", "query", Shown::text},
    {"", "url", Shown::text},
    {"", "uri", Shown::text},
    {"", "description", Shown::text},
    {"", "title", Shown::text},
    {"", "name", Shown::text},
    {"", "subject", Shown::text},
    {"", "prompt", Shown::text},
    {"", "text", Shown::text},
    {"", "task_id", Shown::text},
    {"", "shell_id", Shown::text},
    {"", "bash_id", Shown::text},
    {"", "id", Shown::text},
};

constexpr std::size_t path_columns_max = 60;  // of a longer path the end is shown

std::string below(std::string_view path, std::string_view project) {
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
  simdjson::dom::object object;
  if (input->get(object) != simdjson::SUCCESS) return to_display_line(text_of(*input), charset);
  const Fields fields(object);
  if (fields.flag("truncated"))
    return to_display_line(fields.text("text"), charset);  // an input too long was cut as one text
  if (tool == "AskUserQuestion") return to_display_line(first_question(fields), charset);
  for (const Rule& rule : rules) {
    if (!rule.tool.empty() && rule.tool != tool) continue;
    const std::string_view value = fields.text(rule.key);
    if (value.empty()) continue;
    if (rule.shown == Shown::command) return to_display_line(value, charset, LineBreaks::symbol);
    if (rule.shown == Shown::text) return to_display_line(value, charset);
    return cut_start_to_width(to_display_line(below(value, project), charset), path_columns_max,
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

}  // namespace earshot::cli
