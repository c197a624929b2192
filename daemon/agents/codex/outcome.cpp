#include "agents/codex/outcome.hpp"

#include <algorithm>
#include <charconv>

#include "agents/codex/items.hpp"
#include "base/json_writer.hpp"

namespace earshot::codex {
namespace {

std::string_view trim(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

// What the program writes above the output of a command.
std::string_view head_of(std::string_view text) {
  constexpr std::string_view mark = "Output:";
  if (text.starts_with(mark)) return {};
  const std::size_t at = text.find("\nOutput:");
  return text.substr(0, at == text.npos ? at : at + 1);
}

// The number in a line of the head that begins with `label`.
std::optional<std::int64_t> number_after(std::string_view head, std::string_view label) {
  while (!head.empty()) {
    if (head.starts_with(label)) {
      std::int64_t number = 0;
      const auto [end, error] =
          std::from_chars(head.data() + label.size(), head.data() + head.size(), number);
      if (error == std::errc{}) return number;
    }
    head.remove_prefix(std::min(head.find('\n'), head.size() - 1) + 1);
  }
  return std::nullopt;
}

constexpr std::string_view refusals[] = {
    "rejected by user", "exec command rejected", "command rejected",         "patch rejected",
    "user rejected",    "user cancelled",        "this action was rejected", "approval policy is"};
// Texts of failures that have no exit code.
constexpr std::string_view failures[] = {"unsupported call",
                                         "unsupported custom tool call",
                                         "failed to parse",
                                         "apply_patch verification failed",
                                         "exec_command failed",
                                         "write_stdin failed",
                                         "script failed",
                                         "error:",
                                         "failed",
                                         "execution error",
                                         "tool call error",
                                         "err:",
                                         "unknown process id",
                                         "unable to",
                                         "collab tool failed",
                                         "agent with id",
                                         "invalid",
                                         "missing"};

bool begins_with_any(std::string_view text, const auto& words) {
  return std::any_of(std::begin(words), std::end(words), [&](std::string_view word) {
    std::string_view rest = text;
    return skip_word(rest, word);
  });
}

// As the program writes it: `Aborted` if the system aborts a command.
bool is_abort(std::string_view text) {
  if (std::string_view rest = text; skip_word(rest, "wall time:"))
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.starts_with("aborted");
}

std::string_view text_outcome(std::string_view text, std::optional<std::int64_t> exit_code, bool is_failed) {
  text = trim(text);
  if (is_abort(text)) return "interrupted";
  if (begins_with_any(text, refusals)) return "denied";
  if (text.starts_with("Script failed") && text.find("reject") != text.npos) return "denied";
  const std::string_view head = head_of(text);
  for (const std::string_view label : {"Exit code: ", "Process exited with code "})
    if (!exit_code) exit_code = number_after(head, label);
  if (is_failed || exit_code.value_or(0) != 0) return "error";
  return !exit_code && begins_with_any(text, failures) ? "error" : "ok";
}

}  // namespace

Output read_output(const Value& output, NestedJson& nested) {
  Output found;
  std::optional<std::int64_t> exit_code;
  bool is_failed = false;
  std::string text;
  if (output.is_string()) {
    text = output.as_text();
    if (text.starts_with('{') && text.find("\"metadata\"") != text.npos) {
      const Value json = nested.parse(text).value, metadata = json.member("metadata");
      if (const Value inner = json.member("output"); inner.is_string() && metadata.is_object()) {
        exit_code = metadata.int_of("exit_code");
        text = std::string(inner.as_text());
      }
    }
  } else {
    const Value content = output.member("content");
    const Value& blocks = content ? content : output;
    text = blocks.is_object() ? std::string(blocks.text_of("text")) : content_of(blocks).text.value_or("");
    found.media = images_of(blocks);
    const Value success = output.member("success");
    is_failed = success.is_bool() && !success.as_bool();
  }
  found.outcome = text_outcome(text, exit_code, is_failed);
  const std::string_view head = head_of(trim(text));
  if (const auto process = number_after(head, "Process running with session ID ")) {
    found.background = std::to_string(*process);
    found.is_process = true;
  } else if (const auto cell = number_after(head, "Script running with cell ID ")) {
    found.background = std::to_string(*cell);
  }
  if (!text.empty()) found.text = std::move(text);
  return found;
}

bool is_injected(std::string_view text) {
  text = trim(text);
  if (text.starts_with("# AGENTS.md instructions") || text.starts_with("Warning: ")) return true;
  if (!text.starts_with('<')) return false;
  constexpr std::string_view tags[] = {"environment_context",   "user_instructions",
                                       "INSTRUCTIONS",          "turn_aborted",
                                       "user_shell_command",    "skill",
                                       "subagent_notification", "goal_context",
                                       "hook_prompt",           "permissions instructions",
                                       "model_switch",          "collaboration_mode",
                                       "recommended_plugins",   "codex_internal_context",
                                       "codex_delegation",      "personality_spec",
                                       "realtime_conversation", "user_action",
                                       "token_budget",          "extension_context",
                                       "additional_context"};
  text.remove_prefix(1);
  if (text.starts_with("external_")) return true;
  return std::any_of(std::begin(tags), std::end(tags), [&](std::string_view tag) {
    return text.starts_with(tag) && text.size() > tag.size() &&
           std::string_view("> \t\n\r/").find(text[tag.size()]) != std::string_view::npos;
  });
}

std::string_view own_request(std::string_view prompt) {
  constexpr std::string_view mark = "## My request for Codex:";
  if (!prompt.starts_with("# Context from my IDE")) return prompt;
  const std::size_t at = prompt.find(mark);
  return at == prompt.npos ? prompt : trim(prompt.substr(at + mark.size()));
}

std::string_view tagged(std::string_view text, std::string_view name) {
  const std::string open = std::string("<").append(name) + ">", close = std::string("</").append(name) + ">";
  const std::size_t begin = text.find(open);
  if (begin == text.npos) return {};
  text.remove_prefix(begin + open.size());
  return trim(text.substr(0, text.find(close)));
}

std::string json_string(std::string_view text) {
  std::string json;
  append_json_string(json, text);
  return json;
}

}  // namespace earshot::codex
