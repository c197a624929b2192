// claude-code: user records. Most are not prompts; the first rule in read_user that matches decides.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "agents/claude_code/reader.hpp"
#include "core/member_table.hpp"

namespace earshot::claude_code {
namespace {

using std::string_view;

constexpr string_view interruptions[] = {"[Request interrupted by user]",
                                         "[Request interrupted by user for tool use]"};

// Error texts that refine the outcome "error".
struct Refinement {
  string_view prefix, outcome;
  string_view infix{};  // must follow
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
  const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_interruption(string_view text) {
  return std::find(std::begin(interruptions), std::end(interruptions), trim(text)) != std::end(interruptions);
}

/// The content of the element `name`; nothing without it.
std::optional<string_view> element_of(string_view text, string_view name) {
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

void read_command(string_view text, Record& out) {
  string_view name = trim(element_of(text, "command-name").value_or(""));
  if (name.empty()) name = trim(element_of(text, "command-message").value_or(""));
  const string_view arguments = trim(element_of(text, "command-args").value_or(""));
  std::string typed(name.starts_with('/') ? "" : "/");
  typed += name;
  if (!arguments.empty()) (typed += ' ') += arguments;
  out.outside_turn = true;
  out.facts.push_back(fact::Command{out.keep(std::move(typed))});
}
void ignore(string_view, Record& out) { out.outside_turn = true; }
void read_agent_prompt(string_view text, Record& out) {
  out.facts.push_back(fact::Prompt{text, "agent", {}});
}
void read_task_prompt(string_view text, Record& out) { out.facts.push_back(fact::Prompt{text, "task", {}}); }
void read_task_notification(string_view text, Record& out) {
  read_notifications(text, out);
  read_task_prompt(text, out);
}

// Prefixes of texts that a user did not type.
struct Tag {
  string_view prefix;
  void (*read)(string_view, Record&);
};
constexpr Tag tags[] = {
    {"<command-name>", read_command},
    {"<command-message>", read_command},
    {"<local-command-stdout>", ignore},
    {"<local-command-stderr>", ignore},
    {"<local-command-caveat>", ignore},
    {"Caveat: The messages below", ignore},
    {"<bash-input>", ignore},
    {"<bash-stdout>", ignore},
    {"<bash-stderr>", ignore},
    {"<task-notification>", read_task_notification},
    {"<teammate-message", read_agent_prompt},
    {"<cross-session-message", read_agent_prompt},
    {"<scheduled-task", read_task_prompt},
    {"<ci-monitor-event", read_task_prompt},
};

// False for `<bash-input> is a tag`, which a user typed: an element of the program is complete.
bool has_end(string_view text, string_view prefix) {
  if (!prefix.starts_with('<')) return true;
  const string_view name = prefix.substr(1, prefix.find('>') - 1);
  return text.find("</" + std::string(name) + '>') != string_view::npos;
}

// The relevant parts of a message's content, which is a string or a list of blocks.
struct Content {
  std::vector<string_view> texts;
  std::vector<Media> media;
  std::vector<Block> results;
};
Content content_of(const Value& content) {
  Content found;
  if (content.is_string()) {
    found.texts.push_back(content.as_text());
  } else {
    for (const Value& item : content.items()) {
      const Block block(item);
      const string_view kind = block.type.as_text();
      if (kind == "tool_result") found.results.push_back(block);
      if (kind == "text") found.texts.push_back(block.text.as_text());
      if (is_media(kind)) found.media.push_back(media_of(kind, block.source));
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
    if (text.starts_with(one.prefix) && text.find(one.infix) != string_view::npos) return one.outcome;
  return {};
}

// The members of `toolUseResult`, whatever the tool.
struct ToolFields {
  Value interrupted, wasInterrupted, status, backgroundTaskId, agentId, resumedAgentId, agent_id, teammate_id,
      totalDurationMs, totalTokens, totalToolUseCount, newTodos, tasks, task, success, taskId, statusChange,
      task_id, task_type, shell_id, timeoutMs, scheduledFor, nextFireAt, id, recurring;
};
#define FIELD(name) \
  { #name, &ToolFields::name }
constexpr MemberTable<ToolFields, 128> tool_table({FIELD(interrupted),
                                                   FIELD(wasInterrupted),
                                                   FIELD(status),
                                                   FIELD(backgroundTaskId),
                                                   FIELD(agentId),
                                                   FIELD(resumedAgentId),
                                                   FIELD(agent_id),
                                                   FIELD(teammate_id),
                                                   FIELD(totalDurationMs),
                                                   FIELD(totalTokens),
                                                   FIELD(totalToolUseCount),
                                                   FIELD(newTodos),
                                                   FIELD(tasks),
                                                   FIELD(task),
                                                   FIELD(success),
                                                   FIELD(taskId),
                                                   FIELD(statusChange),
                                                   FIELD(task_id),
                                                   FIELD(task_type),
                                                   FIELD(shell_id),
                                                   FIELD(timeoutMs),
                                                   FIELD(scheduledFor),
                                                   FIELD(nextFireAt),
                                                   FIELD(id),
                                                   FIELD(recurring)});
#undef FIELD

// The first match decides: the program's denial kind, interruption, denial, error, ok.
void read_outcome(const Fields& f, const ToolFields& use, const Block& block, fact::Result& result) {
  const bool failed = block.is_error.as_bool() || f.isError.as_bool();
  const string_view kind = f.toolDenialKind.as_text();
  if (!kind.empty()) {
    result.outcome = kind == "interrupted" ? "interrupted" : "denied";
    const bool rejected = f.permissionDecision.text_of("decision") == "reject";
    result.is_late_rejection = kind == "user-rejected" && !f.toolDenialBeforeRun.as_bool() && !rejected;
    return;
  }
  const string_view output = failed && result.output ? result.output->view() : string_view{};
  const bool interrupted = use.interrupted.as_bool() || use.wasInterrupted.as_bool();  // Task, 1.0.51
  result.outcome = failed ? refine(interrupted_texts, output) : string_view{};
  if (interrupted) result.outcome = "interrupted";
  if (result.outcome.empty() && failed) result.outcome = refine(denial_texts, output);
  if (result.outcome.empty()) result.outcome = failed ? "error" : "ok";
}

/// The word after `label`, up to white space or punctuation. For results without toolUseResult (subagents, to
/// 2.1.114).
string_view word_after(string_view text, string_view label) {
  const std::size_t at = text.find(label);
  if (at == string_view::npos) return {};
  text = trim(text.substr(at + label.size()));
  return text.substr(0, text.find_first_of(" \n\t.,("));
}

void read_tool_use_result(const Fields& f, const ToolFields& use, fact::Result& result) {
  if (!f.toolUseResult.is_object()) {
    if (f.toolUseResult || !result.output) return;
    const string_view output = *result.output;
    if (output.starts_with("Command running in background with ID:"))
      result.background = word_after(output, "Command running in background with ID:");
    if (output.starts_with("Async agent launched")) {
      result.launch = true;
      result.subagent = result.background = word_after(output, "agentId:");
    }
    return;
  }
  const string_view status = use.status.as_text();
  result.background = use.backgroundTaskId.as_text();
  result.subagent = use.agentId.as_text();
  result.resumed = use.resumedAgentId.as_text();
  // A notification follows for an agent that TaskStop ends, none for a command.
  result.is_stop_told = use.task_id && use.task_type.as_text() != "local_bash";
  result.stopped = use.task_id ? use.task_id.as_text() : use.shell_id.as_text();
  if (status == "async_launched") {
    result.launch = true;
    result.background = result.subagent;
  } else if (status == "teammate_spawned") {
    result.launch = true;
    result.subagent = use.agent_id.as_text();
    result.background = result.subagent.empty() ? use.teammate_id.as_text() : result.subagent;
  }
  if (use.timeoutMs) result.monitor = use.taskId.as_text();
  result.due_ms = use.scheduledFor ? use.scheduledFor.as_int() : use.nextFireAt.as_int();
  if (use.nextFireAt) result.schedule = use.id.as_text();
  result.is_recurring = use.recurring.as_bool();
  result.duration_ms = not_negative(use.totalDurationMs.as_int());
  result.tokens = use.totalTokens.as_count();
  result.tools = use.totalToolUseCount.as_count();

  for (const Value& list : {use.newTodos, use.tasks})
    if (list.is_array()) result.todo.list = todos_of(list);
  if (use.task.is_object()) result.todo.item = todo_of(use.task);
  if (use.success.is_bool()) result.todo.refused = !use.success.as_bool();
  if (use.taskId && !result.todo.item) {
    Todo item{.id = std::string(use.taskId.as_text()),
              .content = {},
              .status = {},
              .active_form = {},
              .priority = {}};
    if (use.statusChange) item.status = use.statusChange.text_of("to");
    result.todo.item = std::move(item);
  }
}

void read_result(const Fields& f, const ToolFields& use, const Block& block, Record& out) {
  fact::Result result;
  result.call = block.tool_use_id.as_text();
  const Value& content = block.content;
  result.output = lazy_text_of_content(content, out);
  for (const Value& part : content.items()) {
    const string_view kind = part.text_of("type");
    if (is_media(kind)) result.media.push_back(media_of(kind, part.member("source")));
  }
  read_outcome(f, use, block, result);
  read_tool_use_result(f, use, result);
  out.facts.push_back(std::move(result));
}

string_view origin_of(const Fields& f) {
  const string_view kind = f.origin.text_of("kind");
  if (f.promptSource.as_text() == "queued") return "queued";
  if (kind == "task-notification") return "task";
  return "human";
}

void read_prompt(const Fields& f, std::vector<string_view> texts, std::vector<Media> media, Record& out) {
  if (!texts.empty() &&
      (texts.front().starts_with("<ide_opened_file>") || texts.front().starts_with("<ide_selection>"))) {
    const string_view name = texts.front().starts_with("<ide_o") ? "</ide_opened_file>" : "</ide_selection>";
    const std::size_t end = texts.front().find(name);
    if (end != string_view::npos) texts.front() = trim(texts.front().substr(end + name.size()));
    if (texts.front().empty()) texts.erase(texts.begin());
  }
  if (texts.empty() && media.empty()) return;
  const string_view whole = texts.empty() ? string_view{} : join(texts, out);
  const string_view prompt = without_reminders(whole, out);
  // A text of system reminders alone is not a prompt.
  if (prompt.empty() && media.empty() && !whole.empty()) return;
  fact::Prompt fact{std::nullopt, origin_of(f), std::move(media)};
  if (!prompt.empty()) fact.text = prompt;
  if (fact.origin == "task" && !prompt.empty()) read_notifications(prompt, out);
  out.facts.push_back(std::move(fact));
}

}  // namespace

string_view without_reminders(string_view text, Record& out) {
  constexpr string_view open = "<system-reminder>", close = "</system-reminder>";
  if (text.find(open) == string_view::npos) return text;
  std::string kept;
  for (std::size_t at; (at = text.find(open)) != string_view::npos;) {
    const std::size_t end = text.find(close, at);
    if (end == string_view::npos) break;  // a text about the tag
    kept += text.substr(0, at);
    text = text.substr(end + close.size());
  }
  kept += text;
  return trim(out.keep(std::move(kept)));
}

void read_notifications(string_view text, Record& out) {
  constexpr string_view open = "<task-notification>", close = "</task-notification>";
  for (std::size_t at; (at = text.find(open)) != string_view::npos;) {
    text.remove_prefix(at + open.size());
    const std::size_t end = text.find(close);
    if (end == string_view::npos) return;
    const string_view element = text.substr(0, end);
    fact::Notification notification;
    notification.task = trim(element_of(element, "task-id").value_or(""));
    notification.call = trim(element_of(element, "tool-use-id").value_or(""));
    notification.status = trim(element_of(element, "status").value_or(""));
    if (const auto summary = element_of(element, "summary")) notification.summary = trim(*summary);
    notification.duration_ms = number<std::int64_t>(element_of(element, "duration_ms"));
    notification.tokens = number<std::uint64_t>(element_of(element, "subagent_tokens"));
    notification.tools = number<std::uint64_t>(element_of(element, "tool_uses"));
    if (!notification.task.empty() && !notification.status.empty()) out.facts.push_back(notification);
    text.remove_prefix(end + close.size());
  }
}

Todo todo_of(const Value& item) {
  Todo todo;
  for (const Member& field : item.members()) {
    if (field.key == "content" || field.key == "subject")
      todo.content = field.value.as_text();
    else if (field.key == "status")
      todo.status = field.value.as_text();
    else if (field.key == "activeForm")
      todo.active_form = field.value.as_text();
    else if (field.key == "priority")
      todo.priority = field.value.as_text();
    else if (field.key == "id" || field.key == "taskId") {
      todo.id = field.value.as_text();
      if (const auto number = field.value.as_int()) todo.id = std::to_string(*number);
    }
  }
  return todo;
}

std::vector<Todo> todos_of(const Value& list) {
  std::vector<Todo> todos;
  for (const Value& item : list.items())
    if (Todo todo = todo_of(item); item.is_object() && todo.status != "deleted")
      todos.push_back(std::move(todo));
  return todos;
}

void read_user(const Fields& f, Record& out) {
  out.author = Record::Author::user;
  if (f.permissionMode) out.facts.push_back(fact::PermissionMode{f.permissionMode.as_text()});
  Content content = content_of(f.message.is_object() ? f.message.member("content") : f.message);
  const string_view first = content.texts.empty() ? string_view{} : content.texts.front();
  out.is_warmup = first == "Warmup";

  if (!content.results.empty()) {
    ToolFields use;
    tool_table.read(f.toolUseResult, use);
    for (const Block& block : content.results) read_result(f, use, block, out);
    for (const string_view text : content.texts)
      if (const string_view kept = without_reminders(text, out); !kept.empty() && !is_interruption(kept))
        out.facts.push_back(fact::Absorbed{kept, std::nullopt});
    for (const Media& one : content.media) out.facts.push_back(fact::Absorbed{std::nullopt, one});
    return;
  }
  if (f.isCompactSummary.as_bool()) {
    out.facts.push_back(
        fact::Summary{content.texts.empty() ? std::nullopt : std::optional(join(content.texts, out))});
    return;
  }
  if (is_interruption(first)) {
    out.facts.push_back(fact::Interrupted{});
    return;
  }
  if (first.starts_with("Operation stopped by hook:")) {
    out.facts.push_back(fact::TurnEnd{"failed", "hook", std::nullopt, false});
    return;
  }
  if (f.isMeta.as_bool()) {
    const string_view injected = join(content.texts, out);
    out.outside_turn =
        injected.starts_with("<local-command-caveat>") || injected.starts_with("Caveat: The messages below");
    out.facts.push_back(fact::Injected{injected, injected.starts_with("Stop hook feedback")});
    return;
  }
  const string_view lead = first.substr(std::min(first.size(), first.find_first_not_of(" \n\t\r")));
  if (lead.starts_with('<') || lead.starts_with('C')) {  // as every tag does
    const string_view whole = join(content.texts, out);
    for (const Tag& tag : tags)
      if (lead.starts_with(tag.prefix) && has_end(whole, tag.prefix)) return tag.read(whole, out);
  }
  read_prompt(f, std::move(content.texts), std::move(content.media), out);
}

}  // namespace earshot::claude_code
