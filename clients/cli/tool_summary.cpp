#include "cli/tool_summary.hpp"

#include "cli/style.hpp"

namespace earshot::cli {
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

}  // namespace earshot::cli
