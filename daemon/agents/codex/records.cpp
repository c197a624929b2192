#include "agents/codex/records.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "agents/codex/items.hpp"
#include "agents/codex/outcome.hpp"
#include "agents/codex/program.hpp"
#include "agents/codex/subagents.hpp"
#include "agents/codex/token_counts.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"

namespace earshot::codex {
namespace {

constexpr std::string_view ignored_records[] = {"world_state", "retained_context",
                                                "inter_agent_communication_metadata", "state"};
constexpr std::string_view ignored_messages[] = {
    "thread_settings_applied",      "thread_goal_updated", "entered_review_mode",      "exited_review_mode",
    "thread_rolled_back",           "undo_completed",      "guardian_assessment",      "context_compacted",
    "collab_agent_interaction_end", "collab_resume_end",   "dynamic_tool_call_request"};
constexpr std::string_view ignored_items[] = {"ghost_snapshot", "additional_tools", "compaction",
                                              "context_compaction"};

class Records final : public RecordReader {
 public:
  void read(const Value& json, NestedJson& nested, Assembler& to) override {
    nested_ = &nested;
    if (!era_) era_ = era_of(json);
    const bool is_bare = era_ == Era::items;
    to.begin_record(is_bare ? std::string_view{} : json.text_of("timestamp"));
    const Value payload = json.member("payload");
    const Value& body = payload.is_object() ? payload : json;
    std::string_view type = json.text_of("type");
    if (is_bare) {
      if (json.member("type").is_string())
        type = "response_item";
      else
        type = json.member("record_type") ? "state" : body.text_of("id").empty() ? "" : "session_meta";
    }
    const bool is_after_meta = std::exchange(is_meta_last_, false);
    if (type != "session_meta") end_copy(type, body, to);
    if (type == "session_meta") {
      read_meta(body, is_after_meta, to);
    } else if (type == "turn_context") {
      to.count_type(type, false);
      ensure_session(to);
      if (!copied_) read_context(body, to);
    } else if (type == "compacted") {
      to.count_type(type, false);
      ensure_session(to);
      read_compaction(body, to);
    } else if (type == "event_msg") {
      read_message(body, to);
    } else if (type == "response_item") {
      read_item(body, to);
    } else if (type == "token_usage_record") {
      to.count_type(type, false);
      ensure_session(to);
      tokens_.read_record(body, copied_, to);
    } else if (type == "inter_agent_communication") {
      to.count_type(type, false);
      ensure_session(to);
      read_agent_message(body, to);
    } else {
      to.count_type(type, !is_one_of(type, ignored_records));
    }
    if (to.time_ms()) record_ms_ = to.time_ms();
  }

  std::size_t memory_bytes() const override {
    return sizeof *this + (held_ ? held_->size() : 0) + agents_.memory_bytes();
  }

 private:
  struct Announced {
    std::string turn, time;
    std::int64_t time_ms = 0;
    bool queued = false;
  };
  enum class Last { nothing, text, other };
  using IdOf = Assembler::IdOf;

  // ---- Session

  void read_meta(const Value& meta, bool is_after_first, Assembler& to) {
    to.count_type("session_meta", false);
    const std::string_view id = Assembler::short_id(meta.text_of("id"));
    event::SessionUpdated changed;
    changed.version = meta.text_of("cli_version");
    changed.cwd = meta.text_of("cwd");
    changed.git_branch = branch_of(meta);
    if (metas_++ > 0) {
      if (id == own_id_)
        to.update_session(changed);
      else if (is_after_first && !id.empty())
        copied_ = true;
      return;
    }
    is_meta_last_ = true;
    own_id_ = id;
    const auto ms = parse_time(meta.text_of("timestamp"));
    if (ms || to.time_ms()) own_second_ = ms.value_or(to.time_ms()) / 1000;
    const Value source = meta.member("source"), subagent = source.member("subagent");
    const Value spawn = subagent.member("thread_spawn");
    const bool is_subagent = (subagent && !subagent.is_null()) || meta.text_of("thread_source") == "subagent";
    event::SessionStarted session;
    if (is_subagent) {
      session.parent = first_of({meta.text_of("parent_thread_id"), spawn.text_of("parent_thread_id")});
      session.agent_type =
          first_of({meta.text_of("agent_role"), spawn.text_of("agent_role"), meta.text_of("agent_path"),
                    spawn.text_of("agent_path"), subagent.text_of("other"), word_of(subagent)});
      to.set_own_agent(id);
    }
    to.set_recorded_session(first_of({meta.text_of("session_id"), session.parent, id}));
    session.version = *changed.version;
    session.cwd = *changed.cwd;
    session.git_branch = *changed.git_branch;
    session.continues = meta.text_of("forked_from_id");
    session.source = word_of(source);
    session.originator = meta.text_of("originator");
    to.mutable_state().is_headless = session.source == "exec";
    if (to.started())
      to.update_session(changed);
    else
      to.start_session(session);
  }
  static std::string_view branch_of(const Value& meta) { return meta.member("git").text_of("branch"); }
  static void ensure_session(Assembler& to) {
    if (!to.started()) to.start_session({});
  }

  // A fork that copies its parent's records: they make no events, their ids count as read.
  void end_copy(std::string_view type, const Value& body, const Assembler& to) {
    if (!copied_) return;
    const bool names_own = !own_id_.empty() && body.text_of("thread_id") == own_id_;
    const auto started = body.int_of("started_at");
    const bool is_own_turn = era_ == Era::events && type == "event_msg" && is_start(body.text_of("type")) &&
                             started && own_second_ && *started >= *own_second_;
    const bool paused = to.time_ms() && record_ms_ && to.time_ms() - record_ms_ >= 1000;
    if (names_own || is_own_turn || paused) copied_ = false;
  }
  static bool is_start(std::string_view type) { return type == "task_started" || type == "turn_started"; }

  void read_context(const Value& body, Assembler& to) {
    event::SessionUpdated changed;
    changed.model = body.text_of("model");
    changed.cwd = body.text_of("cwd");
    changed.permission_mode = word_of(body.member("approval_policy"));
    const Value sandbox = body.member("sandbox_policy");
    changed.sandbox = first_of({sandbox.text_of("type"), sandbox.text_of("mode")});
    changed.mode = body.member("collaboration_mode").text_of("mode");
    to.update_session(changed);
  }

  // ---- Turns

  // False for an id that was read before; it is counted as a duplicate.
  static bool is_new(IdOf kind, std::string_view id, Assembler& to) {
    return id.empty() || to.is_new(id, kind);
  }

  void begin_turn(OptionalText prompt, std::string_view origin, Assembler& to) {
    end_open_turn(to);
    std::string time;
    turn_id_.clear();
    if (announced_) {
      turn_id_ = announced_->turn;
      time = std::move(announced_->time);
    } else {
      failure_.reset();
    }
    announced_.reset();
    to.mutable_state().is_announced = false;
    did_work_ = showed_plan_ = false;
    answer_plan(to);
    last_ = Last::nothing;
    last_ms_ = to.time_ms();
    to.start_turn(prompt, origin, time);
    held_.reset();
  }
  // The turn that work without a prompt belongs to.
  void ensure_turn(Assembler& to) {
    if (!to.raw_state().turn_open) begin_unprompted(to);
  }
  // A prompt that no event reported is its prompt.
  void begin_unprompted(Assembler& to) {
    const std::optional<std::string> prompt = std::exchange(held_, std::nullopt);
    if (prompt)
      begin_turn(std::string_view(*prompt), "human", to);
    else
      begin_turn(std::nullopt, "unknown", to);
  }
  void end_open_turn(Assembler& to) {
    const bool completed = last_ == Last::text && to.open_calls() == 0;
    close_calls("abandoned", to);
    if (!to.raw_state().turn_open) return;
    to.finish_turn(completed ? "completed" : "superseded", {}, completed, std::nullopt, last_ms_);
  }
  void finish_turn(std::string_view outcome, std::string_view reason, std::optional<std::int64_t> duration_ms,
                   Assembler& to) {
    to.finish_turn(outcome, reason, false, duration_ms, to.time_ms() ? to.time_ms() : last_ms_);
    if (failure_ == "unauthorized" && to.own_agent().empty()) to.ask_to_sign_in(*failure_);
    turn_id_.clear();
    failure_.reset();
    last_ = Last::nothing;
  }
  // Something of the turn.
  void touch(Last last, const Assembler& to) {
    last_ = last;
    if (to.time_ms()) last_ms_ = to.time_ms();
  }
  void touch_work(Last last, const Assembler& to) {
    touch(last, to);
    did_work_ = true;
  }

  void read_started(const Value& body, Assembler& to) {
    const std::string_view turn = Assembler::short_id(body.text_of("turn_id"));
    if (!is_new(IdOf::turn, turn, to)) return;
    lifecycle_ = true;
    if (copied_) return;
    event::SessionUpdated changed;
    changed.mode = body.text_of("collaboration_mode_kind");
    to.update_session(changed);
    if (announced_) {
      const std::int64_t announced_ms = announced_->time_ms;
      begin_unprompted(to);
      last_ms_ = announced_ms;  // the last record
    }
    end_open_turn(to);
    announced_ = Announced{std::string(turn), std::string(to.time()), to.time_ms(),
                           body.member("turn_attribution").text_of("turn_trigger") == "queue"};
    turn_id_.clear();
    failure_.reset();
    last_ = Last::nothing;
    to.mutable_state().is_announced = true;
    answer_plan(to);
  }

  void read_prompt(std::string_view text, const std::vector<Media>& media, Assembler& to) {
    had_prompt_ = true;
    if (copied_) return;
    held_.reset();
    text = own_request(text);
    const OptionalText prompt = text.empty() ? std::nullopt : OptionalText(text);
    if (announced_ || !to.raw_state().turn_open || !lifecycle_) {
      begin_turn(prompt, announced_ && announced_->queued ? "queued" : "human", to);
    } else if (prompt) {
      to.add_message("user", "text", prompt);
    }
    for (const Media& one : media) to.add_message("user", one.kind, std::nullopt, {}, {}, one);
    touch(Last::other, to);
  }

  // The end that the record states; false if it is of a turn that ended before.
  bool begin_end(const Value& body, Assembler& to) {
    const std::string_view turn = Assembler::short_id(body.text_of("turn_id"));
    const bool is_new = turn.empty() || to.remember(turn, IdOf::turn);
    if (!is_new && turn != turn_id_ && !(announced_ && announced_->turn == turn))
      return ++to.counts().duplicates, false;
    if (copied_) return false;
    if (announced_) begin_unprompted(to);
    return to.raw_state().turn_open;
  }

  void read_complete(const Value& body, Assembler& to) {
    if (!begin_end(body, to)) return;
    if (const Value error = body.member("error"); error && !error.is_null()) fail(error, true, to);
    const bool is_answered = did_work_ || !body.text_of("last_agent_message").empty();
    const std::string reason = failure_ ? *failure_ : is_answered ? "" : "no_answer";
    const bool shows_plan = showed_plan_ && !failure_ && to.own_agent().empty() &&
                            to.raw_state().mode == "plan" && to.raw_state().source != "exec";
    OpenRequest plan;
    plan.id = to.record_name(), plan.kind = "plan";
    finish_turn(failure_ ? "failed" : "completed", reason, recorded_duration(body), to);
    if (shows_plan) to.ask_after_turn(std::move(plan));
  }
  // The plan that the last turn showed: another turn begins.
  static void answer_plan(Assembler& to) {
    to.answer(true, [](const OpenRequest& request) { return request.call.empty(); });
  }
  static std::optional<std::int64_t> recorded_duration(const Value& body) {
    const auto ms = body.int_of("duration_ms");
    return ms ? std::optional(std::max<std::int64_t>(0, *ms)) : std::nullopt;
  }
  void read_aborted(const Value& body, Assembler& to) {
    if (!begin_end(body, to)) return;
    close_calls("interrupted", to);
    const std::string_view reason = body.text_of("reason");
    const bool completed = is_one_of(reason, {"review_ended", "budget_limited"});
    finish_turn(completed ? "completed" : "interrupted", reason == "interrupted" ? "" : reason,
                recorded_duration(body), to);
  }

  // An error object, or a message with its members.
  void fail(const Value& error, bool fatal, Assembler& to) {
    const Value inner = error.member("error");
    const Value& body = inner && inner.is_object() ? inner : error;
    const Value info = body.member("codex_error_info");
    event::ApiFailed failed;
    failed.error = error.is_string() ? error.as_text() : body.text_of("message");
    failed.kind = first_of({word_of(info), body.text_of("kind")});
    for (const Member& detail : info.members()) {
      failed.status = detail.value.int_of("http_status_code");
      break;
    }
    failed.fatal = fatal;
    to.emit(failed);
    if (fatal && failed.kind != "thread_rollback_failed" && (to.raw_state().turn_open || announced_))
      failure_ = to.short_text(failed.kind);
  }

  // ---- event_msg

  void read_message(const Value& body, Assembler& to) {
    const std::string_view type = body.text_of("type");
    if (type == "item_completed") return read_completed_item(body, to);
    const bool is_delta = type.ends_with("_delta") || type.ends_with("_begin");
    const bool is_known = is_delta || is_one_of(type, ignored_messages) || is_handled(type);
    std::string name = "event_msg/";
    to.count_type(name.append(type), !is_known);
    if (!is_known) return;
    if (!is_delta && !is_one_of(type, ignored_messages)) ensure_session(to);
    if (is_start(type)) return read_started(body, to);
    if (type == "user_message") {
      std::vector<Media> media;
      for (const Value image : body.member("images").items()) media.push_back(image_of(image.as_text()));
      for (const Value image : body.member("local_images").items())
        media.push_back(image_of(image.as_text()));
      return read_prompt(body.text_of("message"), media, to);
    }
    if (type == "agent_message") return read_text("text", body.text_of("message"), {}, to);
    if (is_one_of(type, {"agent_reasoning", "agent_reasoning_raw_content"}))
      return read_text("thinking", body.text_of("text"), {}, to);
    if (type == "token_count") return tokens_.read(body, copied_, to);
    if (type == "task_complete" || type == "turn_complete") return read_complete(body, to);
    if (type == "turn_aborted") return read_aborted(body, to);
    if (type == "sub_agent_activity")
      return read_activity(body, first_of({body.text_of("call_id"), body.text_of("event_id")}), to);
    if (type.ends_with("_end") || is_one_of(type, {"view_image_tool_call", "dynamic_tool_call_response"}))
      return finish_by_item(type, body, body.text_of("call_id"), to);
    if (copied_) return;
    if (type == "error") {
      fail(body, true, to);
      if (!lifecycle_ && to.raw_state().turn_open && failure_)
        finish_turn("failed", std::string(*failure_), std::nullopt, to);
    } else if (type == "stream_error") {
      fail(body, false, to);
    } else if (type == "thread_name_updated") {
      event::SessionUpdated changed;
      changed.title = body.text_of("thread_name");
      to.update_session(changed);
    }
  }
  static bool is_handled(std::string_view type) {
    return is_one_of(type, {"task_started",
                            "turn_started",
                            "task_complete",
                            "turn_complete",
                            "turn_aborted",
                            "user_message",
                            "agent_message",
                            "agent_reasoning",
                            "agent_reasoning_raw_content",
                            "token_count",
                            "error",
                            "stream_error",
                            "thread_name_updated",
                            "exec_command_end",
                            "patch_apply_end",
                            "mcp_tool_call_end",
                            "web_search_end",
                            "image_generation_end",
                            "view_image_tool_call",
                            "dynamic_tool_call_response",
                            "sub_agent_activity",
                            "collab_agent_spawn_end",
                            "collab_waiting_end",
                            "collab_close_end"});
  }

  void read_text(std::string_view kind, std::string_view text, std::string_view id, Assembler& to) {
    (kind == "thinking" ? had_thinking_ : had_text_) = true;
    add_text(kind, text, id, to);
  }
  void add_text(std::string_view kind, std::string_view text, std::string_view id, Assembler& to) {
    if (!is_new(IdOf::message, id, to) || copied_ || text.empty()) return;
    ensure_turn(to);
    to.add_message("assistant", kind, text, id, to.raw_state().model);
    touch_work(kind == "text" ? Last::text : Last::other, to);
  }

  void read_completed_item(const Value& body, Assembler& to) {
    const Value found = body.member("item");
    const std::string_view type = found ? found.text_of("type") : std::string_view{};
    std::string name = "event_msg/item_completed/";
    const bool is_known =
        is_one_of(type, {"UserMessage", "AgentMessage", "Reasoning", "Plan", "CommandExecution", "FileChange",
                         "McpToolCall", "DynamicToolCall", "WebSearch", "ImageView", "ImageGeneration",
                         "CollabAgentToolCall", "SubAgentActivity", "Sleep", "Extension", "ContextCompaction",
                         "EnteredReviewMode", "ExitedReviewMode", "HookPrompt"});
    to.count_type(name.append(type), !is_known);
    if (!found || !is_known ||
        is_one_of(type, {"ContextCompaction", "HookPrompt", "EnteredReviewMode", "ExitedReviewMode"}))
      return;
    ensure_session(to);
    const Value& item = found;
    const std::string_view id = item.text_of("id");
    if (type == "UserMessage") {
      had_prompt_ = true;
      if (!is_new(IdOf::message, id, to)) return;
      const Value content = item.member("content");
      return read_prompt(content_of(content).text.value_or(""), images_of(content), to);
    }
    if (type == "AgentMessage")
      return read_text("text", content_of(item.member("content")).text.value_or(""), id, to);
    if (type == "Reasoning") return read_text("thinking", joined_texts(item.member("summary_text")), id, to);
    if (type == "Plan") {
      if (!is_new(IdOf::message, id, to) || copied_) return;
      const std::string_view text = item.text_of("text");
      if (text.empty()) return;
      ensure_turn(to);
      to.add_message("assistant", "plan", text, id, to.raw_state().model);
      showed_plan_ = true;
      return touch_work(Last::other, to);
    }
    if (type == "SubAgentActivity") return read_activity(item, id, to);
    finish_by_item(type, item, id, to);
  }

  // ---- Tools, as items or events

  // The end of a call; of one that no record made, its beginning too. Of a call in the background it is the
  // end of its task.
  void finish_by_item(std::string_view type, const Value& item, std::string_view id, Assembler& to) {
    had_search_ |= is_one_of(type, {"web_search_end", "WebSearch"});
    had_picture_ |= is_one_of(type, {"image_generation_end", "ImageGeneration"});
    const bool is_user_shell = item.text_of("source") == "user_shell";
    had_user_shell_ |= is_user_shell;
    agents_.read_item(type, item, events_of(to));
    const std::string_view thread = item.text_of("new_thread_id");
    agents_.start(thread, id);
    if (copied_) return remember_call(id, to);
    const std::string name = id.empty() ? to.record_name() : std::string(id);
    ToolItem end = read_tool_item(type, item);
    if (const auto task = to.end_task_of(name)) {
      event::TaskFinished ended;
      ended.task = task->id;
      ended.call = name;
      ended.outcome = end.outcome == "ok" ? "completed" : end.outcome == "error" ? "failed" : "stopped";
      return to.emit(ended);
    }
    const bool is_known = is_known_call(name, to);
    if (!is_known && end.tool.empty()) return;
    if (!is_known) {
      if (is_user_shell && (announced_ || !lifecycle_)) begin_shell_turn(command_of(item), to);
      if (!end.duration_ms) end.duration_ms = 0;
      Assembler::Call call;
      call.call = name, call.tool = end.tool;
      to.invoke(std::move(call), Json{end.input});
      abandon_oldest_calls(to);
      touch_work(Last::other, to);
    }
    event::ToolFinished finished;
    finished.outcome = end.outcome;
    if (!end.output.empty()) finished.output = std::string_view(end.output);
    finished.media = std::move(end.media);
    finished.duration_ms = end.duration_ms;
    finished.background = thread;
    finish_call(name, std::move(finished), to);
  }
  // A command that the user typed.
  void begin_shell_turn(std::string_view command, Assembler& to) {
    const std::string prompt = "!" + std::string(command);
    begin_turn(std::string_view(prompt), "command", to);
    did_work_ = true;
  }

  std::optional<Assembler::Call> finish_call(std::string_view id, event::ToolFinished finished,
                                             Assembler& to) {
    const std::string_view outcome = finished.outcome;
    auto call = to.finish_call(id, std::move(finished));
    if (!call) return call;
    touch_work(Last::other, to);
    Subagents::end_spawn(*call, outcome, to);
    if (call->tool == "update_plan" && outcome == "ok") to.set_todos(call->todos, "update_plan");
    return call;
  }
  void close_calls(std::string_view outcome, Assembler& to) {
    to.close_calls(outcome, [&](const Assembler::Call& call) { Subagents::end_spawn(call, outcome, to); });
  }
  static void abandon_oldest_calls(Assembler& to) {
    to.abandon_oldest_calls(
        [&](const Assembler::Call& call) { Subagents::end_spawn(call, "abandoned", to); });
  }

  // ---- response_item

  void read_item(const Value& body, Assembler& to) {
    const std::string_view type = body.text_of("type");
    const bool is_output = type.ends_with("_output");
    const bool is_known =
        is_output || is_one_of(type, ignored_items) ||
        is_one_of(type, {"message", "reasoning", "function_call", "custom_tool_call", "local_shell_call",
                         "tool_search_call", "web_search_call", "image_generation_call", "agent_message"});
    std::string name = "response_item/";
    to.count_type(name.append(type), !is_known);
    if (!is_known || is_one_of(type, ignored_items)) return;
    ensure_session(to);
    if (is_output) return read_call_output(body, to);
    if (type == "message") return read_history(body, to);
    if (type == "agent_message") return read_agent_message(body, to);
    if (type == "reasoning") {
      const bool is_said = had_thinking_ || lifecycle_ || era_ == Era::paginated;
      if (!is_said) add_text("thinking", joined_texts(body.member("summary")), body.text_of("id"), to);
      return;
    }
    if (type == "web_search_call" || type == "image_generation_call") {
      if (type == "web_search_call" ? had_search_ : had_picture_) return;
      const std::string_view id = first_of({body.text_of("call_id"), body.text_of("id")});
      if (!copied_ && (id.empty() || !is_known_call(id, to))) ensure_turn(to);
      return finish_by_item(type, body, id, to);
    }
    read_call(type, body, to);
  }

  // The model's own history: a prompt or an answer only where no event reports the same.
  void read_history(const Value& body, Assembler& to) {
    const std::string_view role = body.text_of("role");
    if (role == "assistant") {
      if (had_text_ || lifecycle_ || era_ == Era::paginated) return;
      return add_text("text", content_of(body.member("content")).text.value_or(""), body.text_of("id"), to);
    }
    if (role != "user") return;
    if (!is_new(IdOf::message, body.text_of("id"), to)) return;
    std::string text;
    const Value content = body.member("content");
    const auto read_part = [&](std::string_view part) {
      if (part.starts_with("<user_shell_command>")) read_shell_escape(part, to);
      if (part.starts_with("<subagent_notification>"))
        agents_.read_notification(part, *nested_, events_of(to));
      if (part.empty() || is_injected(part)) return;
      if (!text.empty()) text += '\n';
      text += part;
    };
    read_part(content.as_text());
    for (const Value part : content.items()) read_part(part.text_of("text"));
    if (copied_) return;
    const std::string_view request = own_request(text);
    if (era_ == Era::items) {
      const std::vector<Media> media = images_of(content);
      if (request.empty() && media.empty()) return;
      begin_turn(request.empty() ? std::nullopt : OptionalText(request), "human", to);
      for (const Media& one : media) to.add_message("user", one.kind, std::nullopt, {}, {}, one);
    } else if (!had_prompt_ && !request.empty()) {
      held_ = request;
    }
  }

  void read_shell_escape(std::string_view text, Assembler& to) {
    if (!copied_ && !had_user_shell_ && (announced_ || !lifecycle_))
      begin_shell_turn(tagged(text, "command"), to);
  }

  // A call that was made, by any record or in the parent's history.
  static bool is_known_call(std::string_view id, const Assembler& to) {
    return to.was_invoked(id) || to.is_remembered(id, IdOf::call);
  }
  static void remember_call(std::string_view id, Assembler& to) {
    if (!id.empty()) to.remember(id, IdOf::call);
  }
  void read_call(std::string_view type, const Value& body, Assembler& to) {
    std::string call(first_of({body.text_of("call_id"), body.text_of("id")}));
    if (call.empty()) call = to.record_name();
    if (copied_) return remember_call(call, to);
    if (is_known_call(call, to)) return void(++to.counts().duplicates);
    std::string tool(body.text_of("name"));
    if (const std::string_view space = body.text_of("namespace"); !space.empty())
      tool = std::string(space) + "." + tool;
    if (type == "local_shell_call") tool = "local_shell";
    if (type == "tool_search_call") tool = "tool_search";
    const std::string_view key = type == "local_shell_call"   ? "action"
                                 : type == "custom_tool_call" ? "input"
                                                              : "arguments";
    const Value given = body.member(key);
    Value arguments = given;
    std::string input(body.member(key).raw());
    if (given.is_string()) {
      const std::string text(given.as_text());
      const auto parsed = type == "custom_tool_call" ? LineParser::Parsed() : nested_->parse(text);
      const bool is_json = parsed.kind == LineParser::Kind::object || parsed.kind == LineParser::Kind::other;
      arguments = parsed.value;
      input = is_json ? text : json_string(text);
    }
    if (is_null_json(input)) input.clear();
    ensure_turn(to);
    const std::string_view name = body.text_of("name");
    const std::string_view target =
        first_of({arguments.text_of("target"), arguments.text_of("id"), arguments.text_of("agent_id")});
    Assembler::Call made;
    made.call = call, made.tool = tool;
    made.asks = program().requests().prompt_reason(tool);
    made.background = name == "spawn_agent";
    if (name == "update_plan") made.todos = plan_of(arguments);
    if (name == "close_agent") made.description = target;
    const bool is_invoked = to.invoke(std::move(made), Json{input});
    touch_work(Last::other, to);
    if (!is_invoked) return;
    if (name == "spawn_agent") {
      event::AgentStarted started;
      started.call = call;
      started.agent_type = arguments.text_of("agent_type");
      started.description = first_of({arguments.text_of("task_name"), arguments.text_of("message")});
      started.background = true;
      to.start_agent(started, true);
    }
    abandon_oldest_calls(to);
    if (is_one_of(name, {"followup_task", "send_input", "resume_agent"})) agents_.resume(target, nullptr);
  }
  static bool is_null_json(std::string_view json) {
    const std::size_t begin = json.find_first_not_of(" \t\r\n");
    return begin != json.npos && json.substr(begin, json.find_last_not_of(" \t\r\n") + 1 - begin) == "null";
  }

  static std::vector<Todo> plan_of(const Value& arguments) {
    constexpr std::size_t todos_max = 512;
    std::vector<Todo> todos;
    for (const Value step : arguments.member("plan").items()) {
      if (todos.size() >= todos_max) break;
      Todo& todo = todos.emplace_back();
      todo.content = step.text_of("step");
      todo.status = step.text_of("status");
    }
    return todos;
  }

  void read_call_output(const Value& body, Assembler& to) {
    const std::string_view call = body.text_of("call_id");
    if (copied_) return remember_call(call, to);
    const Output output = read_output(body.member("output"), *nested_);
    const Assembler::Call* const made = to.open_call(call);
    std::string thread;
    if (made && made->background && output.outcome == "ok") {
      thread = nested_->parse(output.text.value_or("")).value.text_of("agent_id");
      agents_.start(thread, call);
    }
    event::ToolFinished finished;
    finished.outcome = output.outcome;
    if (output.text) finished.output = std::string_view(*output.text);
    finished.media = output.media;
    finished.background = thread.empty() ? output.background : thread;
    // A later look at the process does not begin another.
    if (made && output.is_process && made->tool != "write_stdin") to.start_task(output.background, call);
    const auto done = finish_call(call, std::move(finished), to);
    if (!done) return;
    agents_.read_output(*done, output.text.value_or(""), *nested_, to);
  }

  // ---- Subagents

  // Null in copied history: it makes no events.
  Assembler* events_of(Assembler& to) const { return copied_ ? nullptr : &to; }

  void read_activity(const Value& item, std::string_view id, Assembler& to) {
    const std::string_view thread = item.text_of("agent_thread_id"), kind = item.text_of("kind");
    const bool is_launch = kind == "started";
    agents_.set_path(item.text_of("agent_path"), thread);
    if (is_launch && (copied_ || is_known_call(id, to))) agents_.start(thread, id);
    if (kind == "interacted") agents_.resume(thread, events_of(to));
    agents_.finish(thread, agent_outcome(kind), events_of(to));
    if (copied_) return;
    event::ToolFinished finished;  // of the call that started, addressed or interrupted the agent
    finished.outcome = "ok";
    if (is_launch) finished.background = thread;
    finish_call(id, std::move(finished), to);
  }

  void read_agent_message(const Value& body, Assembler& to) {
    if (!is_new(IdOf::message, body.text_of("id"), to) || copied_) return;
    std::string text = content_of(body.member("content")).text.value_or("");
    if (text.empty()) text = body.text_of("message");
    const OptionalText shown = text.empty() ? std::nullopt : OptionalText(text);
    const bool starts = !to.raw_state().turn_open && (announced_ || body.bool_of("trigger_turn"));
    if (starts) return begin_turn(shown, "agent", to);
    if (shown) to.add_message("user", "agent", shown);
    touch(Last::other, to);
  }

  // ---- Compaction

  void read_compaction(const Value& body, Assembler& to) {
    if (!is_new(IdOf::compaction, body.text_of("window_id"), to) || copied_) return;
    if (announced_) begin_unprompted(to);
    close_calls("abandoned", to);
    event::CompactionFinished finished;
    if (const std::uint64_t tokens = tokens_.context(); tokens > 0) finished.pre_tokens = tokens;
    finished.kind = "full";
    to.emit(finished);
    if (const std::string_view summary = body.text_of("message"); !summary.empty())
      to.add_message("summary", "text", summary);
    touch_work(Last::other, to);
  }

  std::optional<Era> era_;
  std::string own_id_;
  std::optional<std::int64_t> own_second_;  // of the own session_meta, since 1970
  std::uint32_t metas_ = 0;
  bool is_meta_last_ = false;   // the record before this one is the first session_meta
  bool copied_ = false;         // in the parent's history
  std::int64_t record_ms_ = 0;  // of the record before

  bool lifecycle_ = false;                                             // a task_started was read
  bool had_prompt_ = false, had_text_ = false, had_thinking_ = false;  // as events
  bool had_search_ = false, had_picture_ = false, had_user_shell_ = false;
  std::optional<Announced> announced_;
  std::optional<std::string> held_;  // a prompt that no event reported
  std::string turn_id_;
  std::optional<std::string> failure_;  // what failed since the turn was announced or begun; empty: not named
  bool did_work_ = false, showed_plan_ = false;  // in this turn
  Last last_ = Last::nothing;
  std::int64_t last_ms_ = 0;
  NestedJson* nested_ = nullptr;  // for the current record
  Subagents agents_;
  TokenCounts tokens_;
};

}  // namespace

std::unique_ptr<RecordReader> make_reader() { return std::make_unique<Records>(); }

std::optional<Era> era_of(const Value& record) {
  const std::string_view type = record.text_of("type");
  const Value payload = record.member("payload");
  constexpr std::string_view wrapped[] = {"session_meta", "turn_context",  "compacted",
                                          "event_msg",    "response_item", "world_state"};
  constexpr std::string_view bare[] = {"reasoning",
                                       "function_call",
                                       "function_call_output",
                                       "custom_tool_call",
                                       "custom_tool_call_output",
                                       "local_shell_call",
                                       "local_shell_call_output",
                                       "web_search_call"};
  if (is_one_of(type, wrapped) || (payload.is_object() && !type.empty() && record.member("timestamp"))) {
    const bool is_paginated = record.member("ordinal") || payload.text_of("history_mode") == "paginated";
    return is_paginated ? Era::paginated : Era::events;
  }
  if (payload) return std::nullopt;
  if (type.empty()) {
    const bool is_meta = !record.text_of("id").empty() && record.member("instructions");
    return is_meta || record.member("record_type") ? std::optional(Era::items) : std::nullopt;
  }
  const bool is_message = type == "message" && !record.text_of("role").empty() && record.member("content");
  return is_message || is_one_of(type, bare) ? std::optional(Era::items) : std::nullopt;
}

}  // namespace earshot::codex
