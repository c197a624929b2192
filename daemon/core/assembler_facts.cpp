#include <algorithm>
#include <limits>

#include "core/assembler.hpp"

namespace earshot {
namespace {

// Why a model stopped, where that ends the turn. Other reasons (tool_use, pause_turn, new ones) end nothing.
struct Ending {
  std::string_view stop_reason, outcome;
};
constexpr Ending endings[] = {{"end_turn", "completed"},
                              {"stop_sequence", "completed"},
                              {"max_tokens", "completed"},
                              {"refusal", "failed"}};

std::string_view agent_outcome(std::string_view status) { return status == "killed" ? "stopped" : status; }

}  // namespace

void Assembler::apply(const fact::Prompt& prompt) {
  if (own()) {
    start_turn(prompt.text, prompt.origin);
  } else if (prompt.text) {
    emit(event::MessageAdded{"user", "text", prompt.text, {}, {}, std::nullopt});
  }
  for (const Media& one : prompt.media)
    emit(event::MessageAdded{"user", one.kind, std::nullopt, {}, {}, one});
}

void Assembler::apply(const fact::MessageBlock& block) {
  const bool assistant = block.role == "assistant";
  if (assistant && own() && block.kind == "text") {
    state_.last_text = beginning(block.text.value_or(""));
    state_due_ |= text_due;
  }
  emit(event::MessageAdded{block.role, block.kind, block.text,
                           assistant ? record_->message : std::string_view{},
                           assistant ? record_->model : std::string_view{}, block.media});
}

void Assembler::apply(const fact::Command& command) {
  if (!own()) return;
  command_uuid_ = record_->uuid;
  command_ = command.text;
}

void Assembler::apply(const fact::Injected& injected) {
  if (!own()) return;
  const std::string_view parent = record_->parent;
  if (!parent.empty() && parent == command_uuid_) {
    command_uuid_.clear();
    start_turn(std::string_view(command_), "command");
  } else if (!parent.empty() && parent == fire_uuid_) {
    emit(event::MessageAdded{"user", "text", injected.text, {}, {}, std::nullopt});
  } else if (injected.hook_feedback) {
    hook_feedback_ = true;
  }
}

void Assembler::apply(const fact::ScheduledFire&) {
  if (!own()) return;
  fire_uuid_ = record_->uuid;
  start_turn(std::nullopt, "task");
}

void Assembler::apply(const fact::Absorbed& absorbed) {
  emit(event::MessageAdded{
      "user", absorbed.media ? absorbed.media->kind : "text", absorbed.text, {}, {}, absorbed.media});
}

void Assembler::apply(const fact::MessageUsage& seen) {
  std::string_view message = record_->message;
  std::uint64_t id = hash(message, 1) ^ hash(record_->request, 2);
  if (message.empty()) {
    message = record_->uuid.empty() ? std::string_view(name_) : record_->uuid;
    id = hash(message, 3);
  }
  bool fresh = false;
  Tokens& small = usage_.insert(id, {}, fresh);
  const auto large = large_.find(id);
  const Usage before = large != large_.end()
                           ? large->second
                           : Usage{small.input, small.output, small.cache_read, small.cache_write};
  const Usage now{std::max(before.input, seen.usage.input), std::max(before.output, seen.usage.output),
                  std::max(before.cache_read, seen.usage.cache_read),
                  std::max(before.cache_write, seen.usage.cache_write)};
  constexpr std::uint64_t small_max = std::numeric_limits<std::uint32_t>::max();
  if (std::max({now.input, now.output, now.cache_read, now.cache_write}) > small_max) {
    large_[id] = now;
  } else {
    small = {static_cast<std::uint32_t>(now.input), static_cast<std::uint32_t>(now.output),
             static_cast<std::uint32_t>(now.cache_read), static_cast<std::uint32_t>(now.cache_write)};
  }
  state_.usage.input += now.input - before.input;
  state_.usage.output += now.output - before.output;
  state_.usage.cache_read += now.cache_read - before.cache_read;
  state_.usage.cache_write += now.cache_write - before.cache_write;
  if (own()) state_.context_tokens = now.input + now.cache_read + now.cache_write;
  bool dearer = false;
  if (seen.cost_usd) {
    double& cost = costs_[id];
    dearer = *seen.cost_usd > cost;
    if (dearer) state_.cost_usd = state_.cost_usd.value_or(0) + *seen.cost_usd - cost;
    cost = std::max(cost, *seen.cost_usd);
  }
  if (now != before || dearer)
    emit(event::UsageUpdated{message, seen.model, now, state_.usage, state_.cost_usd});
}

void Assembler::apply(const fact::Cost& cost) {
  if (state_.cost_usd == cost.usd) return;
  state_.cost_usd = cost.usd;
  emit(event::UsageUpdated{{}, {}, std::nullopt, state_.usage, state_.cost_usd});
}

void Assembler::apply(const fact::Stop& stop) {
  if (!own() || !state_.turn_open || own_open_ > 0) return;
  for (const Ending& one : endings)
    if (one.stop_reason == stop.reason)
      return finish_turn(one.outcome, false, stop.reason, stop.duration_ms,
                         record_->time_ms ? record_->time_ms : last_ms_);
}

void Assembler::apply(const fact::TurnEnd& end) {
  if (!own() || !state_.turn_open) return;
  const bool older = record_->time_ms && record_->time_ms < state_.turn_started_ms;
  if (end.guarded && (older || last_ == Last::call || last_ == Last::result)) return;
  finish_turn(end.outcome, false, end.stop_reason, end.duration_ms,
              record_->time_ms ? record_->time_ms : last_ms_);
}

void Assembler::apply(const fact::Interrupted&) { interrupt(); }

void Assembler::apply(const fact::Compaction& compaction) {
  if (compaction.started) return emit(event::CompactionStarted{compaction.trigger});
  if (compaction.kind == "full") {
    close_all("abandoned", own());  // a sidechain's compaction drops nobody else's calls
    boundary_ = true;
  }
  emit(event::CompactionFinished{compaction.trigger, compaction.pre_tokens, compaction.post_tokens,
                                 compaction.duration_ms, compaction.kind});
}

void Assembler::apply(const fact::Summary& summary) {
  if (!boundary_) apply(fact::Compaction{.started = false, .trigger = {}, .kind = "full"});
  boundary_ = false;
  emit(event::MessageAdded{"summary", "text", summary.text, {}, {}, std::nullopt});
}

void Assembler::apply(const fact::Queue& queue) { emit(event::QueueChanged{queue.operation, queue.text}); }

void Assembler::apply(const fact::Notification& notification) {
  const std::uint64_t task = hash(notification.task, 4);
  const auto resumed = resumed_.find(task);
  const std::uint64_t generation = resumed == resumed_.end() ? 0 : resumed->second;
  if (!finished_tasks_.insert(hash(notification.status, task + generation))) return;
  emit(event::TaskFinished{notification.task, notification.call, notification.status, notification.summary});
  const auto agent = std::find_if(state_.agents.begin(), state_.agents.end(), [&](const RunningAgent& one) {
    return one.background &&
           (one.subagent == notification.task || (one.subagent.empty() && one.call == notification.call));
  });
  if (agent == state_.agents.end()) {
    if (early_.size() >= early_max) early_.erase(early_.begin());
    early_[std::string(notification.task)] =
        Report{std::string(agent_outcome(notification.status)), notification.duration_ms, notification.tokens,
               notification.tools};
    return;
  }
  const std::string call = agent->call;
  event::AgentFinished finished;
  finished.outcome = agent_outcome(notification.status);
  finished.duration_ms = notification.duration_ms, finished.tokens = notification.tokens,
  finished.tools = notification.tools;
  finish_agent(call, finished);
}

void Assembler::apply(const fact::TodoList& list) { set_todos(list.todos, list.source); }

void Assembler::apply(const fact::AgentLink& link) {
  for (RunningAgent& one : state_.agents)
    if (one.call == link.call && one.subagent.empty()) one.subagent = link.subagent;
}

void Assembler::apply(const fact::ApiError& error) {
  emit(event::ApiFailed{error.status, error.error, error.attempt, error.max_attempts, error.retry_in_ms,
                        error.fatal});
}

void Assembler::apply(const fact::Files& files) { emit(event::FilesSnapshotted{files.message, files.files}); }

}  // namespace earshot
