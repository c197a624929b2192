#include "status/pending_prompt.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>

#include "base/display_text.hpp"

namespace earshot::status {

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
  if (!text.empty())
    line.append(separator).append(
        text.substr(0, 4 * detail_bytes_max));  // replace_controls() cuts it exactly
  return line;
}

/// `input` is null if it is not an object.
std::string describe(const OpenCall& call, const object* input) {
  const std::string_view reason = prompt_reason(call);
  if (reason == "question") return join("", "", question_in(input));
  if (reason == "plan") return join("plan", ": ", first_line(field(input, "plan")));
  const auto shown = std::find_if(shown_fields.begin(), shown_fields.end(),
                                  [&](const ShownField& row) { return row.tool == call.tool; });
  const std::string_view what = shown == shown_fields.end() ? std::string_view() : field(input, shown->field);
  return join("approve " + call.tool, ": ", what);
}

}  // namespace

std::string_view prompt_reason(const OpenCall& call) {
  for (const PromptTool& row : prompt_tools) {
    if (row.tool == call.tool) return row.reason;
  }
  return {};
}

const OpenCall* newest_prompt(const std::vector<OpenCall>& calls) {
  const auto found = std::find_if(calls.rbegin(), calls.rend(),
                                  [](const OpenCall& call) { return !prompt_reason(call).empty(); });
  return found == calls.rend() ? nullptr : &*found;
}

std::vector<const OpenCall*> calls_to_approve(const std::vector<OpenCall>& calls,
                                              const std::set<std::string>& answered) {
  std::vector<const OpenCall*> found;
  for (const OpenCall& call : calls) {
    const bool needs_none =
        std::find(never_approved.begin(), never_approved.end(), call.tool) != never_approved.end();
    if (!needs_none && !answered.contains(call.call)) found.push_back(&call);
  }
  return found;
}

std::string detail_of(const OpenCall& call) {
  simdjson::dom::parser parser;
  object input;
  if (parser.parse(call.input).get(input) == simdjson::SUCCESS)
    return replace_controls(describe(call, &input), detail_bytes_max);
  return replace_controls(describe(call, nullptr), detail_bytes_max);
}

std::string detail_of(const std::vector<const OpenCall*>& calls) {
  if (calls.size() == 1) return detail_of(*calls.front());
  constexpr std::string_view verb = "approve ";
  std::string text = "approve one of " + std::to_string(calls.size()) + ":";
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    std::string one = detail_of(**call);
    if (one.starts_with(verb)) one.erase(0, verb.size());
    text += (call == calls.rbegin() ? " " : "; ") + one;
  }
  return replace_controls(text, detail_bytes_max);
}

}  // namespace earshot::status
