// claude-code: user records. Most are no prompts: the first rule that fits says what a record is (read_user,
// in order).
#include <algorithm>
#include <cctype>
#include <charconv>

#include "core/dialects/claude_code.hpp"

namespace earshot::dialects {
namespace {

using std::string_view;

constexpr string_view interruptions[] = {"[Request interrupted by user]",
                                         "[Request interrupted by user for tool use]"};

// Texts of a failed result that say more than "error".
struct Refinement {
  string_view prefix, outcome;
  string_view later{};  // must follow somewhere
};
constexpr Refinement interrupted_texts[] = {
    {"[Request interrupted by user", "interrupted"},
    {"[Tool call interrupted: the session ended", "interrupted"},
};
constexpr Refinement denial_texts[] = {
    {"The user doesn't want to proceed with this tool use", "denied"},
    {"The user doesn't want to take this action", "denied"},
    {"Permission to use ", "denied", "has been denied"},
    {"Permission for this action was denied", "denied"},
    {"Claude requested permissions", "denied"},
};

string_view trim(string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// What stands between `<name>` and `</name>`; nothing when the tag is not there.
std::optional<string_view> tagged(string_view text, string_view name) {
  const std::string open = '<' + std::string(name) + '>';
  const std::size_t from = text.find(open);
  if (from == string_view::npos) return std::nullopt;
  text.remove_prefix(from + open.size());
  const std::size_t to = text.find("</" + std::string(name) + '>');
  if (to == string_view::npos) return std::nullopt;
  return text.substr(0, to);
}

template <class N>
std::optional<N> number(std::optional<string_view> text) {
  if (!text) return std::nullopt;
  const string_view digits = trim(*text);
  N value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

void command(string_view text, Record& out) {
  string_view name = trim(tagged(text, "command-name").value_or(""));
  if (name.empty()) name = trim(tagged(text, "command-message").value_or(""));
  const string_view arguments = trim(tagged(text, "command-args").value_or(""));
  std::string typed(name.starts_with('/') ? "" : "/");
  typed += name;
  if (!arguments.empty()) (typed += ' ') += arguments;
  out.outside = true;
  out.facts.push_back(fact::Command{out.keep(std::move(typed))});
}
void outside(string_view, Record& out) { out.outside = true; }
void from_agent(string_view text, Record& out) { out.facts.push_back(fact::Prompt{text, "agent", {}}); }
void from_task(string_view text, Record& out) { out.facts.push_back(fact::Prompt{text, "task", {}}); }
void notification(string_view text, Record& out) {
  read_notifications(text, out);
  from_task(text, out);
}

// A text that begins so was not typed by a person.
struct Tag {
  string_view prefix;
  void (*read)(string_view, Record&);
};
constexpr Tag tags[] = {
    {"<command-name>", command},         {"<command-message>", command},
    {"<local-command-stdout>", outside}, {"<local-command-stderr>", outside},
    {"<local-command-caveat>", outside}, {"Caveat: The messages below", outside},
    {"<bash-input>", outside},           {"<bash-stdout>", outside},
    {"<bash-stderr>", outside},          {"<task-notification>", notification},
    {"<teammate-message", from_agent},   {"<cross-session-message", from_agent},
    {"<scheduled-task", from_task},      {"<ci-monitor-event", from_task},
};

// A message's content in the parts that matter, whether it is a string or blocks.
struct Content {
  std::vector<string_view> texts;
  std::vector<Media> media;
  std::vector<dom::element> results;
};
Content content_of(const Value& content) {
  Content found;
  if (!content) return found;
  dom::array blocks;
  if (content->is_string()) {
    found.texts.push_back(dom::as_text(*content));
  } else if (!content->get_array().get(blocks)) {
    for (const dom::element block : blocks) {
      const string_view kind = dom::text_of(block, "type");
      if (kind == "tool_result") found.results.push_back(block);
      if (kind == "text") found.texts.push_back(dom::text_of(block, "text"));
      if (kind == "image" || kind == "document") found.media.push_back(media_of(kind, block));
    }
  }
  return found;
}

string_view join(const std::vector<string_view>& texts, Record& out) {
  if (texts.size() == 1) return texts.front();
  std::string joined;
  for (const string_view one : texts) {
    if (!joined.empty() && !one.empty()) joined += '\n';
    joined += one;
  }
  return out.keep(std::move(joined));
}

string_view refine(std::span<const Refinement> table, string_view text) {
  for (const Refinement& one : table)
    if (text.starts_with(one.prefix) && text.find(one.later) != string_view::npos) return one.outcome;
  return {};
}

// ASSEMBLY of an outcome, first match: the program's own kind, interruption, denial, error, ok.
void read_outcome(const Fields& f, const dom::element& block, fact::Result& result) {
  const bool failed = dom::bool_of(block, "is_error") || truth(f.isError);
  const string_view kind = text(f.toolDenialKind);
  const string_view said = result.output.value_or("");
  if (!kind.empty()) {
    result.outcome = kind == "interrupted" ? "interrupted" : "denied";
    const bool rejected = f.permissionDecision && dom::text_of(*f.permissionDecision, "decision") == "reject";
    result.rejected_while_running_if_known =
        kind == "user-rejected" && !truth(f.toolDenialBeforeRun) && !rejected;
    return;
  }
  const bool stopped = f.toolUseResult && (dom::bool_of(*f.toolUseResult, "interrupted") ||
                                           dom::bool_of(*f.toolUseResult, "wasInterrupted"));  // Task, 1.0.51
  result.outcome = failed ? refine(interrupted_texts, said) : string_view{};
  if (stopped) result.outcome = "interrupted";
  if (result.outcome.empty() && failed) result.outcome = refine(denial_texts, said);
  if (result.outcome.empty()) result.outcome = failed ? "error" : "ok";
}

/// The word after `label`, up to white space or a full stop; from results whose toolUseResult was not written
/// (subagents, to 2.1.114).
string_view word_after(string_view text, string_view label) {
  const std::size_t at = text.find(label);
  if (at == string_view::npos) return {};
  text = trim(text.substr(at + label.size()));
  return text.substr(0, text.find_first_of(" \n\t.,("));
}

void read_tool_use_result(const Fields& f, fact::Result& result) {
  const string_view said = result.output.value_or("");
  if (!f.toolUseResult || !f.toolUseResult->is_object()) {
    if (f.toolUseResult) return;
    if (said.starts_with("Command running in background with ID:"))
      result.background = word_after(said, "Command running in background with ID:");
    if (said.starts_with("Async agent launched")) {
      result.launch = true;
      result.subagent = result.background = word_after(said, "agentId:");
    }
    return;
  }
  const dom::element& use = *f.toolUseResult;
  const string_view status = dom::text_of(use, "status");
  result.background = dom::text_of(use, "backgroundTaskId");
  result.subagent = dom::text_of(use, "agentId");
  result.resumed = dom::text_of(use, "resumedAgentId");
  if (status == "async_launched") {
    result.launch = true;
    result.background = result.subagent;
  } else if (status == "teammate_spawned") {
    result.launch = true;
    result.subagent = dom::text_of(use, "agent_id");
    result.background = result.subagent.empty() ? dom::text_of(use, "teammate_id") : result.subagent;
  }
  result.duration_ms = dom::int_of(use, "totalDurationMs");
  result.tokens = dom::count_of(use, "totalTokens");
  result.tools = dom::count_of(use, "totalToolUseCount");

  if (const auto list = dom::member(use, "newTodos"); list && list->is_array())
    result.todo.whole = todos_of(*list);
  if (const auto list = dom::member(use, "tasks"); list && list->is_array())
    result.todo.whole = todos_of(*list);
  if (const auto task = dom::member(use, "task"); task && task->is_object())
    result.todo.item = todo_of(*task);
  if (const auto done = dom::member(use, "success"); done && done->is_bool())
    result.todo.refused = !dom::as_bool(*done);
  if (const auto id = dom::member(use, "taskId"); id && !result.todo.item) {
    Todo item{
        .id = std::string(dom::as_text(*id)), .content = {}, .status = {}, .active_form = {}, .priority = {}};
    if (const auto change = dom::member(use, "statusChange")) item.status = dom::text_of(*change, "to");
    result.todo.item = std::move(item);
  }
}

void read_result(const Fields& f, const dom::element& block, Record& out) {
  fact::Result result;
  result.call = dom::text_of(block, "tool_use_id");
  const Value content = dom::member(block, "content");
  result.output = text_of_content(content, out);
  dom::array parts;
  if (content && !content->get_array().get(parts))
    for (const dom::element part : parts) {
      const string_view kind = dom::text_of(part, "type");
      if (kind == "image" || kind == "document") result.media.push_back(media_of(kind, part));
    }
  read_outcome(f, block, result);
  read_tool_use_result(f, result);
  out.facts.push_back(std::move(result));
}

string_view origin_of(const Fields& f) {
  const string_view kind = f.origin ? dom::text_of(*f.origin, "kind") : string_view{};
  if (text(f.promptSource) == "queued") return "queued";
  if (kind == "task-notification") return "task";
  return "human";
}

void read_prompt(const Fields& f, std::vector<string_view> texts, std::vector<Media> media, Record& out) {
  if (!texts.empty() &&
      (texts.front().starts_with("<ide_opened_file>") || texts.front().starts_with("<ide_selection>"))) {
    const string_view name = texts.front().starts_with("<ide_o") ? "</ide_opened_file>" : "</ide_selection>";
    const std::size_t end = texts.front().find(name);
    const string_view rest =
        end == string_view::npos ? string_view{} : trim(texts.front().substr(end + name.size()));
    if (rest.empty())
      texts.erase(texts.begin());
    else
      texts.front() = rest;
  }
  if (texts.empty() && media.empty()) return;
  const string_view whole = texts.empty() ? string_view{} : join(texts, out);
  const string_view prompt = without_reminders(whole, out);
  // Nothing but what the program put there for the model is no prompt.
  if (prompt.empty() && media.empty() && !whole.empty()) return;
  fact::Prompt made{std::nullopt, origin_of(f), std::move(media)};
  if (!prompt.empty()) made.text = prompt;
  if (made.origin == "task" && !prompt.empty()) read_notifications(prompt, out);
  out.facts.push_back(std::move(made));
}

}  // namespace

string_view without_reminders(string_view text, Record& out) {
  constexpr string_view open = "<system-reminder>", close = "</system-reminder>";
  if (text.find(open) == string_view::npos) return text;
  std::string kept;
  for (std::size_t at; (at = text.find(open)) != string_view::npos;) {
    kept += text.substr(0, at);
    const std::size_t end = text.find(close, at);
    text = end == string_view::npos ? string_view{} : text.substr(end + close.size());
  }
  kept += text;
  return trim(out.keep(std::move(kept)));
}

void read_notifications(string_view text, Record& out) {
  constexpr string_view open = "<task-notification>", close = "</task-notification>";
  for (std::size_t at; (at = text.find(open)) != string_view::npos;) {
    text.remove_prefix(at + open.size());
    const std::size_t end = text.find(close);
    const string_view one = text.substr(0, end);
    fact::Notification told;
    told.task = trim(tagged(one, "task-id").value_or(""));
    told.call = trim(tagged(one, "tool-use-id").value_or(""));
    told.status = trim(tagged(one, "status").value_or(""));
    if (const auto summary = tagged(one, "summary")) told.summary = trim(*summary);
    told.duration_ms = number<std::int64_t>(tagged(one, "duration_ms"));
    told.tokens = number<std::uint64_t>(tagged(one, "subagent_tokens"));
    told.tools = number<std::uint64_t>(tagged(one, "tool_uses"));
    if (!told.task.empty() && !told.status.empty()) out.facts.push_back(told);
    if (end == string_view::npos) return;
    text.remove_prefix(end + close.size());
  }
}

Todo todo_of(const dom::element& item) {
  Todo todo;
  dom::object fields;
  if (item.get_object().get(fields)) return todo;
  for (const auto field : fields) {
    if (field.key == "content" || field.key == "subject")
      todo.content = dom::as_text(field.value);
    else if (field.key == "status")
      todo.status = dom::as_text(field.value);
    else if (field.key == "activeForm")
      todo.active_form = dom::as_text(field.value);
    else if (field.key == "priority")
      todo.priority = dom::as_text(field.value);
    else if (field.key == "id" || field.key == "taskId") {
      todo.id = dom::as_text(field.value);
      if (const auto whole = dom::as_int(field.value)) todo.id = std::to_string(*whole);
    }
  }
  return todo;
}

std::vector<Todo> todos_of(const dom::element& list) {
  std::vector<Todo> todos;
  dom::array items;
  if (list.get_array().get(items)) return todos;
  for (const dom::element item : items)
    if (Todo todo = todo_of(item); item.is_object() && todo.status != "deleted")
      todos.push_back(std::move(todo));
  return todos;
}

void read_user(const Fields& f, string_view, Record& out) {
  out.by = Record::By::user;
  if (f.permissionMode) out.facts.push_back(fact::PermissionMode{text(f.permissionMode)});
  const Content said = content_of(
      f.message ? (f.message->is_object() ? dom::member(*f.message, "content") : f.message) : Value{});
  const string_view first = said.texts.empty() ? string_view{} : said.texts.front();
  out.first_user_text = first;

  if (!said.results.empty()) {
    for (const dom::element& block : said.results) read_result(f, block, out);
    for (const string_view one : said.texts)
      if (const string_view kept = without_reminders(one, out);
          !kept.empty() && std::find(std::begin(interruptions), std::end(interruptions), trim(kept)) ==
                               std::end(interruptions))
        out.facts.push_back(fact::Absorbed{kept, std::nullopt});
    for (const Media& one : said.media) out.facts.push_back(fact::Absorbed{std::nullopt, one});
    return;
  }
  if (truth(f.isCompactSummary)) {
    out.facts.push_back(
        fact::Summary{said.texts.empty() ? std::nullopt : std::optional(join(said.texts, out))});
    return;
  }
  if (std::find(std::begin(interruptions), std::end(interruptions), trim(first)) != std::end(interruptions)) {
    out.facts.push_back(fact::Interrupted{});
    return;
  }
  if (first.starts_with("Operation stopped by hook:")) {
    out.facts.push_back(fact::TurnEnd{"failed", "hook", std::nullopt, false});
    return;
  }
  if (truth(f.isMeta)) {
    const string_view words = join(said.texts, out);
    out.outside =
        words.starts_with("<local-command-caveat>") || words.starts_with("Caveat: The messages below");
    out.facts.push_back(fact::Injected{words, words.starts_with("Stop hook feedback")});
    return;
  }
  const string_view lead = first.substr(std::min(first.size(), first.find_first_not_of(" \n\t\r")));
  for (const Tag& tag : tags)
    if (lead.starts_with(tag.prefix)) return tag.read(join(said.texts, out), out);
  read_prompt(f, said.texts, said.media, out);
}

}  // namespace earshot::dialects
