// What a call that waits for the user asks, by tool.
#include <simdjson.h>

#include <algorithm>
#include <array>

#include "agents/claude_code/program.hpp"

namespace earshot::claude_code {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

struct PromptTool {
  std::string_view tool, reason;
};
constexpr std::array prompt_tools = {
    PromptTool{"AskUserQuestion", "question"},
    PromptTool{"ExitPlanMode", "plan"},
};

/// Tools that need no permission: those that start subagents, whose own calls are listed too, and todo lists.
constexpr std::array<std::string_view, 9> never_approved = {"Agent",    "Task",       "TodoWrite",
                                                            "TodoRead", "TaskCreate", "TaskUpdate",
                                                            "TaskList", "TaskGet",    "TaskOutput"};

/// The input field that describes the call.
struct ShownField {
  std::string_view tool, field;
};
constexpr std::array shown_fields = {
    ShownField{"Bash", "command"},
    ShownField{"PowerShell", "command"},
    ShownField{"Write", "file_path"},
    ShownField{"Edit", "file_path"},
    ShownField{"MultiEdit", "file_path"},
    ShownField{"Read", "file_path"},
    ShownField{"NotebookEdit", "notebook_path"},
    ShownField{"WebFetch", "url"},
    ShownField{"WebSearch", "query"},
    ShownField{"Glob", "pattern"},
    ShownField{"Grep", "pattern"},
    ShownField{"LS", "path"},
    ShownField{"Skill", "skill"},
    ShownField{"SlashCommand", "command"},
};

/// A string, or a shortened one: {"text": …, "bytes": …, "truncated": true}.
std::string_view text_of(const element& value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return text;
  if (value["text"].get(text) == simdjson::SUCCESS) return text;
  return {};
}

std::string_view field(const object* input, std::string_view key) {
  element value;
  return input && (*input)[key].get(value) == simdjson::SUCCESS ? text_of(value) : std::string_view();
}

std::string_view question_in(const object* input) {
  array questions;
  if (input && (*input)["questions"].get(questions) == simdjson::SUCCESS) {
    for (const element question : questions) {
      object one;
      if (question.get(one) == simdjson::SUCCESS) return field(&one, "question");
    }
  }
  return field(input, "question");
}

std::string_view first_line(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n#");  // a plan is Markdown: skip the marks of its heading
  if (begin == text.npos) return {};
  text.remove_prefix(begin);
  return text.substr(0, text.find_first_of("\r\n"));
}

std::string join(std::string_view head, std::string_view separator, std::string_view text) {
  std::string line(head);
  if (!text.empty()) line.append(separator).append(text.substr(0, Requests::prompt_bytes_max));
  return line;
}

}  // namespace

std::string_view ClaudeCode::prompt_reason(std::string_view tool) const {
  const auto found = std::find_if(prompt_tools.begin(), prompt_tools.end(),
                                  [&](const PromptTool& row) { return row.tool == tool; });
  return found == prompt_tools.end() ? std::string_view() : found->reason;
}

bool ClaudeCode::may_need_permission(std::string_view tool) const {
  return std::find(never_approved.begin(), never_approved.end(), tool) == never_approved.end();
}

std::string ClaudeCode::describe_prompt(std::string_view tool, std::string_view json) const {
  simdjson::dom::parser parser;
  object parsed;
  const object* input =
      parser.parse(json.data(), json.size()).get(parsed) == simdjson::SUCCESS ? &parsed : nullptr;
  const std::string_view reason = prompt_reason(tool);
  if (reason == "question") return join("", "", question_in(input));
  if (reason == "plan") return join("plan", ": ", first_line(field(input, "plan")));
  const auto shown = std::find_if(shown_fields.begin(), shown_fields.end(),
                                  [&](const ShownField& row) { return row.tool == tool; });
  const std::string_view what = shown == shown_fields.end() ? std::string_view() : field(input, shown->field);
  return join("approve " + std::string(tool), ": ", what);
}

}  // namespace earshot::claude_code
