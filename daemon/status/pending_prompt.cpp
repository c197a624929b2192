#include "status/pending_prompt.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>

#include "status/text.hpp"

namespace earshot::status {

namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

struct Asking {
  std::string_view tool, reason;
};
constexpr std::array asking_tools = {
    Asking{"AskUserQuestion", "question"},
    Asking{"ExitPlanMode", "plan"},
};

/// Subagents' own calls stand beside the call that launched them; lists need no permission.
constexpr std::array<std::string_view, 9> never_asked = {"Agent",    "Task",       "TodoWrite",
                                                         "TodoRead", "TaskCreate", "TaskUpdate",
                                                         "TaskList", "TaskGet",    "TaskOutput"};

/// Which field of the input says what is asked for.
struct Shown {
  std::string_view tool, field;
};
constexpr std::array shown_fields = {
    Shown{"Bash", "command"},
    Shown{"PowerShell", "command"},
    Shown{"Write", "file_path"},
    Shown{"Edit", "file_path"},
    Shown{"MultiEdit", "file_path"},
    Shown{"Read", "file_path"},
    Shown{"NotebookEdit", "notebook_path"},
    Shown{"WebFetch", "url"},
    Shown{"WebSearch", "query"},
    Shown{"Glob", "pattern"},
    Shown{"Grep", "pattern"},
    Shown{"LS", "path"},
    Shown{"Skill", "skill"},
    Shown{"SlashCommand", "command"},
};

/// A string, or one that was cut: {"text": …, "bytes": …, "truncated": true}.
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
  const auto begin =
      text.find_first_not_of(" \t\r\n#");  // a plan is Markdown: its heading's marks say nothing here
  if (begin == text.npos) return {};
  text.remove_prefix(begin);
  return text.substr(0, text.find_first_of("\r\n"));
}

std::string joined(std::string_view head, std::string_view colon, std::string_view text) {
  std::string line(head);
  if (!text.empty())
    line.append(colon).append(text.substr(0, 4 * detail_bytes_max));  // one_line() cuts it properly
  return line;
}

/// `input` is null when it is not an object.
std::string worded(const OpenCall& call, const object* input) {
  const std::string_view reason = asking_reason(call);
  if (reason == "question") return joined("", "", question_in(input));
  if (reason == "plan") return joined("plan", ": ", first_line(field(input, "plan")));
  const auto shown = std::find_if(shown_fields.begin(), shown_fields.end(),
                                  [&](const Shown& row) { return row.tool == call.tool; });
  const std::string_view what = shown == shown_fields.end() ? std::string_view() : field(input, shown->field);
  return joined("approve " + call.tool, ": ", what);
}

}  // namespace

std::string_view asking_reason(const OpenCall& call) {
  for (const Asking& row : asking_tools) {
    if (row.tool == call.tool) return row.reason;
  }
  return {};
}

const OpenCall* newest_asking(const std::vector<OpenCall>& calls) {
  const auto found = std::find_if(calls.rbegin(), calls.rend(),
                                  [](const OpenCall& call) { return !asking_reason(call).empty(); });
  return found == calls.rend() ? nullptr : &*found;
}

std::vector<const OpenCall*> askable(const std::vector<OpenCall>& calls,
                                     const std::set<std::string>& answered) {
  std::vector<const OpenCall*> found;
  for (const OpenCall& call : calls) {
    const bool never = std::find(never_asked.begin(), never_asked.end(), call.tool) != never_asked.end();
    if (!never && !answered.contains(call.call)) found.push_back(&call);
  }
  return found;
}

std::string detail_of(const OpenCall& call) {
  simdjson::dom::parser parser;
  object input;
  if (parser.parse(call.input).get(input) == simdjson::SUCCESS)
    return one_line(worded(call, &input), detail_bytes_max);
  return one_line(worded(call, nullptr), detail_bytes_max);
}

std::string detail_of(const std::vector<const OpenCall*>& calls) {
  if (calls.size() == 1) return detail_of(*calls.front());
  constexpr std::string_view word = "approve ";
  std::string several = "approve one of " + std::to_string(calls.size()) + ":";
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    std::string one = detail_of(**call);
    if (one.starts_with(word)) one.erase(0, word.size());
    several += (call == calls.rbegin() ? " " : "; ") + one;
  }
  return one_line(several, detail_bytes_max);
}

}  // namespace earshot::status
