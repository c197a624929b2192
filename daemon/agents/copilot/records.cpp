#include "agents/copilot/records.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "agents/copilot/program.hpp"
#include "base/json_scan.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"

namespace earshot::copilot {
namespace {

constexpr std::string_view ignored_types[] = {"assistant.turn_start",
                                              "external_tool.completed",
                                              "external_tool.requested",
                                              "hook.end",
                                              "hook.start",
                                              "human_response.recorded",
                                              "model.message",
                                              "model.messages_snapshot",
                                              "model.model_call_started",
                                              "model.model_call_success",
                                              "model.response",
                                              "model.turn_ended",
                                              "model.turn_started",
                                              "session.auto_mode_resolved",
                                              "session.autopilot_objective_changed",
                                              "session.binary_asset",
                                              "session.canvas.recorded",
                                              "session.canvas.removed",
                                              "session.context_cleared",
                                              "session.handoff",
                                              "session.mode_notice_delivered",
                                              "session.plan_changed",
                                              "session.remote_steerable_changed",
                                              "session.schedule_cancelled",
                                              "session.schedule_created",
                                              "session.schedule_rearmed",
                                              "session.session_limits_changed",
                                              "session.usage_checkpoint",
                                              "session.workspace_file_changed",
                                              "skill.invoked",
                                              "subagent.configured",
                                              "subagent.deselected",
                                              "subagent.selected",
                                              "system.message",
                                              "tool_search.activated"};

OptionalText text_member(const Value& json, std::string_view key) {
  const Value found = json.member(key);
  return found ? found.as_optional_text() : std::nullopt;
}

// A negative number counts as 0.
std::optional<std::uint64_t> count_of(const Value& json, std::string_view key) {
  const auto number = json.int_of(key);
  return number ? std::optional(static_cast<std::uint64_t>(std::max<std::int64_t>(0, *number)))
                : std::nullopt;
}

std::uint64_t less(std::uint64_t total, std::uint64_t part) { return total > part ? total - part : 0; }

// `inputTokens` includes the cached ones.
Usage usage_of(const Value& json) {
  const auto count = [&](std::string_view key) { return count_of(json, key).value_or(0); };
  const std::uint64_t read = count("cacheReadTokens"), write = count("cacheWriteTokens");
  return {less(less(count("inputTokens"), read), write), count("outputTokens"), read, write};
}

// The items of a Markdown list: `- [x] done`, `2. [ ] to do`.
std::vector<Todo> todos_in(std::string_view markdown) {
  constexpr std::size_t todos_max = 512;
  constexpr std::string_view blanks = " \t\r\f\v";
  std::vector<Todo> todos;
  while (!markdown.empty() && todos.size() < todos_max) {
    std::string_view line = markdown.substr(0, markdown.find('\n'));
    markdown.remove_prefix(std::min(line.size() + 1, markdown.size()));
    const auto skip = [&](std::string_view set) {
      const std::size_t n = std::min(line.find_first_not_of(set), line.size());
      line.remove_prefix(n);
      return n;
    };
    skip(blanks);
    if (line.empty()) continue;
    if (std::string_view("-*+").find(line[0]) != std::string_view::npos) {
      line.remove_prefix(1);
    } else if (skip("0123456789") == 0 || line.empty() || (line[0] != '.' && line[0] != ')')) {
      continue;
    } else {
      line.remove_prefix(1);
    }
    skip(" \t");
    if (line.size() < 3 || line[0] != '[' || line[2] != ']') continue;
    const char mark = line[1];
    if (std::string_view(" xX~/-").find(mark) == std::string_view::npos) continue;
    line.remove_prefix(3);
    skip(" \t");
    if (line.ends_with('\r')) line.remove_suffix(1);
    Todo todo;
    todo.content = line;
    todo.status = mark == ' ' ? "pending" : mark == 'x' || mark == 'X' ? "completed" : "in_progress";
    todos.push_back(std::move(todo));
  }
  return todos;
}

class Records final : public RecordReader {
 public:
  void read(const Value& json, NestedJson&, Assembler& to) override {
    to.begin_record(json.text_of("timestamp"));
    const std::string_view type = json.text_of("type");
    const Rule* const rule = rule_of(type);
    const bool is_known = rule || is_ignored(type);
    to.count_type(type, !is_known);
    const std::string_view id = json.text_of("id");
    if (!id.empty() && !to.is_new(id)) return;
    request_ = to.request_id(id);
    const Value data = json.member("data");
    if (!data.is_object() || json.bool_of("ephemeral")) return;
    if (to.recorded_session().empty()) to.set_recorded_session(data.text_of("sessionId"));
    if (!is_known) return;
    agent_ = json.text_of("agentId");
    if (agent_.empty()) agent_ = data.text_of("parentToolCallId");
    agent_ = Assembler::short_id(agent_);
    to.set_agent(agent_);
    if (!to.started() && type != "session.context_changed") start(type, data, to);
    to.mutable_state().is_closed = false;
    if (rule && (is_own() || !rule->is_own_chain_only)) (this->*rule->read)(data, to);
  }

  static bool is_known_type(std::string_view type) { return rule_of(type) || is_ignored(type); }

  std::size_t memory_bytes() const override {
    std::size_t bytes = sizeof *this + (denied_.size() + compactions_.size() + asked_.size()) * 128;
    for (const auto& [call, denied] : denied_) bytes += 2 * call.size();
    for (const auto& [id, call] : asked_) bytes += 2 * id.size() + call.size();
    for (const auto& [agent, compaction] : compactions_)
      bytes += 2 * agent.size() + compaction.trigger.size();
    for (const auto& [id, agent] : agents_) bytes += 96 + id.size() + agent.call.size();
    return bytes;
  }

 private:
  enum class Last { nothing, prompt, text, calls, result };
  struct Rule {
    std::string_view type;
    void (Records::*read)(const Value& data, Assembler&);
    bool is_own_chain_only = false;  // a subagent's record of this type is ignored
  };
  struct Agent {
    std::string call;
    bool is_finished = false;
  };
  using Agents = std::map<std::string, Agent, std::less<>>;
  struct Compaction {
    std::int64_t began_ms = 0;
    std::string trigger;
  };
  static const Rule rules[29];
  using IdOf = Assembler::IdOf;
  static constexpr std::size_t agents_max = 4096;     // beyond, new ones are not remembered
  enum Purpose : std::uint8_t { plain, sets_todos };  // of a call

  static const Rule* rule_of(std::string_view type) {
    const auto rule =
        std::find_if(std::begin(rules), std::end(rules), [&](const Rule& one) { return one.type == type; });
    return rule == std::end(rules) ? nullptr : rule;
  }
  static bool is_ignored(std::string_view type) {
    return std::find(std::begin(ignored_types), std::end(ignored_types), type) != std::end(ignored_types);
  }
  bool is_own() const { return agent_.empty(); }

  // ---- Session

  void start(std::string_view type, const Value& data, Assembler& to) {
    to.set_agent({});
    event::SessionStarted session;
    if (type == "session.start" && is_own()) {
      const Value context = data.member("context");
      session.version = data.text_of("copilotVersion");
      session.cwd = context.text_of("cwd");
      session.git_branch = context.text_of("branch");
    }
    to.start_session(session);
    to.set_agent(agent_);
  }

  void read_start(const Value& data, Assembler& to) {
    const Value context = data.member("context");
    event::SessionUpdated changed;
    changed.version = data.text_of("copilotVersion");
    changed.cwd = context.text_of("cwd");
    changed.git_branch = context.text_of("branch");
    set_model(data.text_of("selectedModel"), changed);
    to.update_session(changed);
    if (data.bool_of("alreadyInUse") || data.bool_of("continuePendingWork")) return;
    // A new process: the one before did not end its turn.
    if (to.raw_state().turn_open) finish_turn("interrupted", "resumed", last_ms_, to);
    end_run(to);
  }
  void read_context(const Value& data, Assembler& to) {
    event::SessionUpdated changed;
    changed.cwd = data.text_of("cwd");
    changed.git_branch = data.text_of("branch");
    to.update_session(changed);
  }
  void read_model(const Value& data, Assembler& to) {
    event::SessionUpdated changed;
    set_model(data.text_of("newModel"), changed);
    to.update_session(changed);
  }
  void read_mode(const Value& data, Assembler& to) {
    event::SessionUpdated changed;
    changed.mode = data.text_of("newMode");
    to.update_session(changed);
  }
  void read_permissions(const Value& data, Assembler& to) {
    event::SessionUpdated changed;
    const Value allows_all = data.member("allowAllPermissions");
    changed.permission_mode = data.text_of("mode");
    if (changed.permission_mode->empty() && allows_all.is_bool())
      changed.permission_mode = allows_all.as_bool() ? "allow-all" : "manual";
    to.update_session(changed);
  }
  static void set_model(std::string_view model, event::SessionUpdated& changed) {
    if (model != "auto") changed.model = model;
  }

  // ---- Turns

  void start_turn(OptionalText prompt, std::string_view origin, Assembler& to) {
    const bool completed = last_ == Last::text && to.open_calls() == 0;
    close_calls("abandoned", to);
    if (to.raw_state().turn_open)
      finish_turn(completed ? "completed" : "superseded", {}, last_ms_, to, completed);
    end_requests(false, to);
    notified_ = task_complete_ = false;
    last_ = Last::nothing;
    to.start_turn(prompt, origin);
  }
  void finish_turn(std::string_view outcome, std::string_view stop_reason, std::int64_t end_ms, Assembler& to,
                   bool inferred = false) {
    to.finish_turn(outcome, stop_reason, inferred, std::nullopt, end_ms);
    notified_ = false;
  }
  // The process has ended: nothing that it started is still running.
  void end_run(Assembler& to) {
    end_requests(false, to);
    StreamState& state = to.mutable_state();
    state.is_compacting = false;
    state.agents.clear();
  }
  std::int64_t end_ms(const Assembler& to) const { return to.time_ms() ? to.time_ms() : last_ms_; }
  void remember(Last last, const Assembler& to) {
    if (!is_own()) return;
    last_ = last;
    if (to.time_ms()) last_ms_ = to.time_ms();
  }

  void read_user(const Value& data, Assembler& to) {
    const std::string_view content = data.text_of("content");
    const OptionalText text = content.empty() ? std::nullopt : OptionalText(content);
    if (!is_own()) {
      if (text) to.add_message("user", "text", text);
    } else if (data.text_of("agentMode") == "shell") {
      return;
    } else if (const std::string_view delivery = data.text_of("delivery");
               delivery == "steering" && to.raw_state().turn_open) {
      if (text) to.add_message("user", "text", text);
    } else if (data.bool_of("isAutopilotContinuation")) {
      start_turn(std::nullopt, "unknown", to);
    } else {
      start_turn(text, delivery.empty() || delivery == "idle" ? "human" : "queued", to);
    }
    add_attachments(data, to);
    remember(Last::prompt, to);
  }
  static void add_attachments(const Value& data, Assembler& to) {
    for (const Value one : data.member("attachments").items()) {
      std::string_view name = one.text_of("displayName");
      if (name.empty()) name = one.text_of("path");
      const Media media{"document", one.text_of("type"), 0};
      if (name.empty() && media.media_type.empty()) continue;
      to.add_message("user", "document", name.empty() ? std::nullopt : OptionalText(name), {}, {},
                     media.media_type.empty() ? std::nullopt : std::optional(media));
    }
  }

  void read_assistant(const Value& data, Assembler& to) {
    const std::string_view message = data.text_of("messageId"), model = data.text_of("model");
    if (is_own()) {
      event::SessionUpdated changed;
      set_model(model, changed);
      to.update_session(changed);
      if (!to.raw_state().turn_open) start_turn(std::nullopt, notified_ ? "task" : "unknown", to);
    }
    add_text("thinking", data.text_of("reasoningText"), message, model, to);
    add_text("text", data.text_of("content"), message, model, to);
    bool has_calls = false;
    for (const Value request : data.member("toolRequests").items()) {
      has_calls = true;
      invoke(request, "name", message, to);
    }
    const auto output = count_of(data, "outputTokens");
    if (output && !has_usage_records_) add_output(message, model, *output, to);
    remember(has_calls ? Last::calls : Last::text, to);
  }
  static void add_text(std::string_view kind, std::string_view text, std::string_view message,
                       std::string_view model, Assembler& to) {
    if (!text.empty()) to.add_message("assistant", kind, text, message, model);
  }
  void read_reasoning(const Value& data, Assembler& to) {
    add_text("thinking", data.text_of("content"), data.text_of("reasoningId"), {}, to);
  }

  void read_turn_end(const Value&, Assembler& to) {
    if (to.time_ms()) last_ms_ = to.time_ms();
    if (to.raw_state().turn_open && to.own_open_calls() == 0 && (last_ == Last::text || task_complete_))
      finish_turn("completed", {}, end_ms(to), to);
  }
  void read_task_complete(const Value&, Assembler&) { task_complete_ = true; }

  void read_abort(const Value& data, Assembler& to) {
    if (!is_own()) return close_calls("interrupted", to, agent_);
    close_calls("interrupted", to);
    end_requests(true, to);
    if (to.raw_state().turn_open) finish_turn("interrupted", data.text_of("reason"), end_ms(to), to);
  }
  void read_error(const Value& data, Assembler& to) {
    event::ApiFailed failed;
    failed.status = data.int_of("statusCode");
    failed.error = data.text_of("message");
    failed.fatal = true;
    to.emit(failed);
    if (!is_own() || !to.raw_state().turn_open) return;
    end_requests(true, to);
    finish_turn("failed", data.text_of("errorType"), end_ms(to), to);
  }
  void read_shutdown(const Value& data, Assembler& to) {
    const bool turn_open = to.raw_state().turn_open;
    if (turn_open) close_calls("interrupted", to);
    end_requests(true, to);
    raise_totals(data, to);
    if (const auto tokens = count_of(data, "currentTokens")) to.mutable_state().context_tokens = *tokens;
    const bool failed = data.text_of("shutdownType") == "error";
    if (turn_open) finish_turn(failed ? "failed" : "interrupted", "shutdown", end_ms(to), to);
    end_run(to);
    to.mutable_state().is_closed = true;
  }

  // ---- Tools

  void invoke(const Value& json, std::string_view name_key, std::string_view message, Assembler& to) {
    const std::string_view id = json.text_of("toolCallId"), tool = json.text_of(name_key);
    if (id.empty() || to.was_invoked(id)) return;
    const Value arguments = json.member("arguments");
    Assembler::Call call;
    call.call = id, call.tool = tool;
    call.asks = program().requests().prompt_reason(tool);
    call.description = arguments.text_of("description");
    call.background = arguments.text_of("mode") == "background";
    if (const auto list = tool == "update_todo" ? text_member(arguments, "todos") : std::nullopt) {
      call.purpose = sets_todos;
      call.todos = todos_in(*list);
    }
    to.invoke(std::move(call), Json{arguments.is_null() ? std::string_view{} : arguments.raw()}, message);
    to.abandon_oldest_calls([&](const Assembler::Call& one) { forget_call(one.call, "abandoned", to); });
  }
  void close_calls(std::string_view outcome, Assembler& to, std::optional<std::string_view> agent = {}) {
    const auto closed = [&](const Assembler::Call& call) { forget_call(call.call, outcome, to); };
    to.close_calls(outcome, closed, agent);
  }
  // Drops what depends on an open call. Without a result, its subagents end with it.
  void forget_call(const std::string& call, std::string_view outcome, Assembler& to) {
    denied_.erase(call);
    to.answer(outcome != "abandoned", [&](const OpenRequest& one) { return one.call == call; });
    if (is_one_of(outcome, {"denied", "interrupted", "abandoned"})) end_agents(call, outcome, to);
  }
  // A command of the user, not of the model.
  static bool is_user_call(std::string_view id, const Assembler& to) {
    return to.is_remembered(id, IdOf::call);
  }
  void read_user_call(const Value& data, Assembler& to) {
    const std::string_view id = data.text_of("toolCallId");
    if (!id.empty()) to.remember(id, IdOf::call);
  }
  void read_tool_start(const Value& data, Assembler& to) {
    if (is_user_call(data.text_of("toolCallId"), to)) return;
    invoke(data, "toolName", {}, to);
    to.restart_call(data.text_of("toolCallId"));
  }
  void read_tool_complete(const Value& data, Assembler& to) {
    const std::string_view id = data.text_of("toolCallId");
    const Assembler::Call* const open = to.open_call(id);
    // A command of the user, not of the model.
    if (!open && (data.bool_of("isUserRequested") || is_user_call(id, to))) return;
    const Value error = data.member("error");
    event::ToolFinished finished;
    finished.outcome = outcome_of(data.bool_of("success"), denied_.find(Assembler::short_id(id)) != nullptr,
                                  error.text_of("code"));
    finished.output = text_member(data.member("result"), "content");
    if (!finished.output) finished.output = text_member(error, "message");
    const std::string_view outcome = finished.outcome;
    std::string background;
    if (open && open->background && outcome == "ok") background = launched_agent(id);
    finished.background = background;
    const auto call = to.finish_call(id, std::move(finished));
    if (call && outcome == "ok" && call->purpose == sets_todos) to.set_todos(call->todos, "update_todo");
    if (call) forget_call(call->call, outcome, to);
    remember(Last::result, to);
  }
  static std::string_view outcome_of(bool success, bool denied, std::string_view code) {
    if (success) return "ok";
    if (denied || is_one_of(code, {"denied", "rejected"})) return "denied";
    const bool stopped = is_one_of(code, {"aborted", "abort", "cancelled", "canceled", "interrupted"});
    return stopped ? "interrupted" : "error";
  }

  void read_request(const Value& data, Assembler& to) {
    const Value asked = data.member("permissionRequest");
    const std::string_view id = Assembler::short_id(data.text_of("requestId")),
                           call = Assembler::short_id(asked.text_of("toolCallId"));
    if (id.empty() && call.empty()) return;
    asked_[id] = std::string(call);
    const bool has_result = to.was_invoked(call) && !to.open_call(call);
    if (data.bool_of("resolvedByHook") || has_result)
      return to.answer(true, [&](const OpenRequest& one) { return one.id == id; });
    OpenRequest request;
    request.id = id.empty() ? call : id, request.call = call;
    request.kind = "permission", request.subject = Assembler::short_id(asked.text_of("kind"));
    to.ask(std::move(request));
  }
  void read_answer(const Value& data, Assembler& to) {
    const std::string_view id = Assembler::short_id(data.text_of("requestId"));
    std::string call(Assembler::short_id(data.text_of("toolCallId")));
    if (const std::string* const asked = id.empty() ? nullptr : asked_.find(id)) {
      if (!asked->empty()) call = *asked;
      asked_.erase(id);
      to.answer(true, [&](const OpenRequest& one) { return one.id == id; });
    } else {
      to.answer(true, [&](const OpenRequest& one) { return one.kind == "permission" && one.call == call; });
    }
    const std::string_view kind = data.member("result").text_of("kind");
    const bool is_denied = kind.starts_with("denied-") || kind == "cancelled";
    if (is_denied) denied_[call] = {};
  }
  // Requests for permission; a question ends with its call.
  static void end_requests(bool is_counted, Assembler& to) {
    to.answer(is_counted, [](const OpenRequest& one) { return one.kind == "permission"; });
  }

  // ---- Subagents and background work

  void read_agent_start(const Value& data, Assembler& to) {
    const std::string_view call = data.text_of("toolCallId");
    const std::string id(Assembler::short_id(agent_.empty() ? call : agent_));
    const auto known = agents_.find(id);
    if (call.empty() || (known != agents_.end() && !known->second.is_finished)) return;
    to.set_agent({});
    event::AgentStarted started;
    started.subagent = id;
    started.agent_type = data.text_of("agentName");
    started.call = call;
    const Assembler::Call* const open = to.open_call(call);
    if (open) started.description = open->description, started.background = open->background;
    if (started.description.empty()) started.description = data.text_of("agentDisplayName");
    if (agents_.size() < agents_max || known != agents_.end())
      agents_[id] = {std::string(Assembler::short_id(call))};
    else
      ++to.counts().dropped;
    to.start_agent(started, started.background);
  }
  void read_agent_end(const Value& data, std::string_view outcome, Assembler& to) {
    const std::string_view call = data.text_of("toolCallId");
    const std::string_view id = Assembler::short_id(agent_.empty() ? call : agent_);
    if (id.empty()) return;
    auto agent = agents_.find(id);
    if (agent == agents_.end()) agent = running_agent(call);
    if (agent == agents_.end() && agents_.size() < agents_max)
      agent = agents_.try_emplace(std::string(id), Agent{std::string(Assembler::short_id(call))}).first;
    if (agent == agents_.end() || agent->second.is_finished) return;
    event::AgentFinished finished;
    finished.outcome = outcome;
    if (const auto ms = count_of(data, "durationMs")) finished.duration_ms = static_cast<std::int64_t>(*ms);
    finished.tokens = count_of(data, "totalTokens");
    finished.tools = count_of(data, "totalToolCalls");
    finish_agent(agent, finished, to);
  }
  void read_agent_completed(const Value& data, Assembler& to) {
    read_agent_end(data, data.bool_of("cancelled") ? "stopped" : "completed", to);
  }
  void read_agent_failed(const Value& data, Assembler& to) { read_agent_end(data, "failed", to); }
  // An unfinished agent that the call started; end(): none.
  Agents::iterator running_agent(std::string_view call) {
    return std::find_if(agents_.begin(), agents_.end(), [&](const auto& one) {
      return one.second.call == Assembler::short_id(call) && !one.second.is_finished;
    });
  }
  void finish_agent(Agents::iterator agent, event::AgentFinished finished, Assembler& to) {
    finished.subagent = agent->first;
    finished.call = agent->second.call;
    agent->second.is_finished = true;
    to.set_agent({});
    to.finish_agent(finished);
    to.set_agent(agent_);
  }
  void end_agents(std::string_view call, std::string_view outcome, Assembler& to) {
    event::AgentFinished finished;
    finished.outcome = outcome;
    for (auto agent = running_agent(call); agent != agents_.end(); agent = running_agent(call))
      finish_agent(agent, finished, to);
  }
  // The agent that continues after its call's result; empty: none.
  std::string launched_agent(std::string_view call) {
    const auto agent = running_agent(call);
    return agent == agents_.end() ? std::string() : agent->first;
  }
  // An idle agent is not listed as running; it may receive another task.
  void set_idle(Agents::iterator agent, Assembler& to) {
    std::erase_if(to.mutable_state().agents,
                  [&](const RunningAgent& one) { return one.subagent == agent->first; });
  }

  void read_notification(const Value& data, Assembler& to) {
    if (is_own()) notified_ = true;
    const Value kind = data.member("kind");
    const std::string_view type = kind.text_of("type");
    if (!type.ends_with("completed") && type != "agent_idle") return;
    event::TaskFinished finished;
    for (const std::string_view key : {"agentId", "shellId", "runId"})
      if (finished.task.empty()) finished.task = kind.text_of(key);
    if (finished.task.empty()) return;
    finished.outcome = kind.text_of("status");
    if (finished.outcome.empty())
      finished.outcome = kind.int_of("exitCode").value_or(0) != 0 ? "failed" : "completed";
    std::string_view summary = kind.text_of("description");
    if (summary.empty()) summary = data.text_of("content");
    if (!summary.empty()) finished.summary = summary;
    if (const auto agent = agents_.find(Assembler::short_id(finished.task)); agent != agents_.end()) {
      finished.call = agent->second.call;
      set_idle(agent, to);
    }
    std::string task(finished.task);
    task.append(1, '\0').append(finished.outcome);
    if (to.remember(task, IdOf::task)) to.emit(finished);
  }

  // ---- Usage, compaction, messages of the program

  void add_output(std::string_view message, std::string_view model, std::uint64_t output, Assembler& to) {
    const std::uint64_t id = message.empty() ? 0 : to.hash(message, IdOf::message);
    to.account_once({id, message, model, counted_model(model, to), {0, output, 0, 0}, {}});
  }
  void read_usage(const Value& data, Assembler& to) {
    const Value usage = data.member("usage");
    if (!usage.is_object()) return;
    has_usage_records_ = true;
    const std::string_view model = usage.text_of("model");
    const auto context = count_of(usage, "inputTokens");
    if (context && is_own()) to.mutable_state().context_tokens = *context;
    to.account({request_, {}, model, counted_model(model, to), usage_of(usage), {}});
  }
  static std::string_view counted_model(std::string_view model, const Assembler& to) {
    return model.empty() ? std::string_view(to.raw_state().model) : model;
  }
  // The program's sums at its end; a total never falls.
  void raise_totals(const Value& data, Assembler& to) const {
    const Value models = data.member("modelMetrics");
    Usage sum;
    for (const Member& model : models.members()) sum += usage_of(model.value.member("usage"));
    Usage lacking = sum;
    lacking -= to.raw_state().used.total();
    for (const Member& model : models.members()) {
      const std::uint64_t id = request_ ? request_ ^ to.hash(model.key, IdOf::unnamed_message) : 0;
      lacking -= to.mutable_state().used.raise(id, model.key, usage_of(model.value.member("usage")), lacking);
    }
    Usage& total = to.mutable_state().usage;
    const Usage before = total;
    total = {std::max(total.input, sum.input), std::max(total.output, sum.output),
             std::max(total.cache_read, sum.cache_read), std::max(total.cache_write, sum.cache_write)};
    if (total != before) to.emit_totals();
  }

  void read_compaction_start(const Value& data, Assembler& to) {
    const std::string_view trigger = data.text_of("trigger");
    compactions_[Assembler::short_id(agent_)] = {to.time_ms(), std::string(to.short_text(trigger))};
    StreamState& state = to.mutable_state();
    if (is_own()) state.is_compacting = true;
    const auto tokens = count_of(data, "currentTokens");
    if (tokens && is_own()) state.context_tokens = *tokens;
    to.emit(event::CompactionStarted{trigger});
  }
  void read_compaction_end(const Value& data, Assembler& to) {
    StreamState& state = to.mutable_state();
    if (is_own()) state.is_compacting = false;
    const Compaction* const known = compactions_.find(Assembler::short_id(agent_));
    const Compaction started = known ? *known : Compaction{};
    compactions_.erase(Assembler::short_id(agent_));
    if (!data.bool_of("success")) {
      if (const auto error = text_member(data, "error"); error && !error->empty())
        to.add_message("system", "text", error);
      return;
    }
    event::CompactionFinished finished;
    finished.trigger = data.text_of("trigger");
    if (finished.trigger.empty()) finished.trigger = started.trigger;
    finished.pre_tokens = count_of(data, "preCompactionTokens");
    finished.post_tokens = count_of(data, "postCompactionTokens");
    if (started.began_ms && to.time_ms())
      finished.duration_ms = std::max<std::int64_t>(0, to.time_ms() - started.began_ms);
    finished.kind = "full";
    std::optional<std::uint64_t> context;
    for (const std::string_view key : {"systemTokens", "conversationTokens", "toolDefinitionsTokens"})
      if (const auto tokens = count_of(data, key)) context = context.value_or(0) + *tokens;
    to.emit(finished);
    if (context && is_own()) state.context_tokens = *context;
    if (const auto summary = text_member(data, "summaryContent"); summary && !summary->empty())
      to.add_message("summary", "text", summary);
  }
  void read_truncation(const Value& data, Assembler& to) {
    event::CompactionFinished finished;
    finished.pre_tokens = count_of(data, "preTruncationTokensInMessages");
    finished.post_tokens = count_of(data, "postTruncationTokensInMessages");
    finished.kind = "micro";
    to.emit(finished);
  }
  void read_info(const Value& data, Assembler& to) {
    if (const auto text = text_member(data, "message"); text && !text->empty())
      to.add_message("system", "text", text);
  }

  std::string_view agent_;     // of the current record
  std::uint64_t request_ = 0;  // Assembler::request_id() of it
  Last last_ = Last::nothing;
  std::int64_t last_ms_ = 0;
  bool notified_ = false;       // since the last turn ended
  bool task_complete_ = false;  // in this turn
  bool has_usage_records_ = false;
  BoundedMap<Compaction, Assembler::names_max> compactions_;  // that run, by agent
  struct Denied {};
  BoundedMap<Denied, Assembler::names_max> denied_;      // open calls
  BoundedMap<std::string, Assembler::names_max> asked_;  // call of each request for permission, by its id
  Agents agents_;
};

const Records::Rule Records::rules[29] = {
    {"session.start", &Records::read_start, true},
    {"session.resume", &Records::read_start, true},
    {"session.context_changed", &Records::read_context, true},
    {"session.model_change", &Records::read_model, true},
    {"session.mode_changed", &Records::read_mode, true},
    {"session.permissions_changed", &Records::read_permissions, true},
    {"session.usage_record", &Records::read_usage},
    {"session.compaction_start", &Records::read_compaction_start},
    {"session.compaction_complete", &Records::read_compaction_end},
    {"session.truncation", &Records::read_truncation},
    {"session.error", &Records::read_error},
    {"session.info", &Records::read_info},
    {"session.warning", &Records::read_info},
    {"session.task_complete", &Records::read_task_complete, true},
    {"session.shutdown", &Records::read_shutdown, true},
    {"user.message", &Records::read_user},
    {"assistant.message", &Records::read_assistant},
    {"assistant.reasoning", &Records::read_reasoning},
    {"assistant.turn_end", &Records::read_turn_end, true},
    {"tool.user_requested", &Records::read_user_call},
    {"tool.execution_start", &Records::read_tool_start},
    {"tool.execution_complete", &Records::read_tool_complete},
    {"permission.requested", &Records::read_request},
    {"permission.completed", &Records::read_answer},
    {"subagent.started", &Records::read_agent_start},
    {"subagent.completed", &Records::read_agent_completed},
    {"subagent.failed", &Records::read_agent_failed},
    {"system.notification", &Records::read_notification},
    {"abort", &Records::read_abort},
};

}  // namespace

std::unique_ptr<RecordReader> make_reader() { return std::make_unique<Records>(); }

bool is_record(const Value& record) {
  return Records::is_known_type(record.text_of("type")) && record.member("data").is_object();
}

}  // namespace earshot::copilot
