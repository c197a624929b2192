#include "agents/codex/subagents.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "agents/codex/items.hpp"
#include "agents/codex/outcome.hpp"
#include "base/text.hpp"

namespace earshot::codex {
namespace {

// What closing an agent that had this status makes of it.
std::string_view closed_outcome(std::string_view status) {
  return is_one_of(status, {"running", "pending_init"}) ? "stopped" : agent_outcome(status);
}

}  // namespace

std::string_view agent_outcome(std::string_view status) {
  if (status == "completed" || status == "interrupted") return status;
  if (status == "errored" || status == "failed") return "failed";
  if (is_one_of(status, {"shutdown", "not_found", "stopped", "closed"})) return "stopped";
  return {};
}

void Subagents::start(std::string_view thread, std::string_view call) {
  if (thread.empty()) return;
  Agent& agent = agents_[Assembler::short_id(thread)];
  if (agent.call.empty()) agent.call = Assembler::short_id(call);
}

void Subagents::resume(std::string_view name, Assembler* to) {
  const std::string_view thread = thread_at(name);
  if (!agents_.find(thread) || !std::exchange(agents_[thread].is_finished, false) || !to) return;
  RunningAgent agent;
  agent.call = agents_[thread].call, agent.subagent = thread;
  agent.background = true;
  to->add_agent(std::move(agent));
}

void Subagents::set_path(std::string_view path, std::string_view thread) {
  if (!path.empty() && !thread.empty()) paths_[Assembler::short_id(path)] = Assembler::short_id(thread);
}

// Empty for a path that no record explained.
std::string_view Subagents::thread_at(std::string_view name) const {
  name = Assembler::short_id(name);
  if (const std::string* const thread = paths_.find(name)) return *thread;
  return name.starts_with('/') ? std::string_view{} : name;
}

void Subagents::finish(std::string_view thread, std::string_view outcome, Assembler* to) {
  if (outcome.empty() || thread.empty()) return;
  Agent& agent = agents_[Assembler::short_id(thread)];
  if (std::exchange(agent.is_finished, true) || !to) return;
  event::AgentFinished finished;
  finished.subagent = thread;
  finished.call = agent.call;
  finished.outcome = outcome;
  to->finish_agent(finished);
}

// By thread: {"<id>": "completed"}, {"<id>": {"completed": …}} or {"<id>": {"status": …}}.
void Subagents::read_statuses(const Value& statuses, Assembler* to) {
  for (const Member& field : statuses.members()) {
    const Value inner = field.value.member("status");
    finish(field.key, agent_outcome(word_of(inner ? inner : field.value)), to);
  }
}

void Subagents::read_item(std::string_view type, const Value& item, Assembler* to) {
  if (type == "CollabAgentToolCall") read_statuses(item.member("agents_states"), to);
  if (type == "collab_waiting_end") {
    read_statuses(item.member("statuses"), to);
    for (const Value one : item.member("agent_statuses").items())
      finish(one.text_of("thread_id"), agent_outcome(word_of(one.member("status"))), to);
  }
  if (type == "collab_close_end")
    finish(item.text_of("receiver_thread_id"), closed_outcome(word_of(item.member("status"))), to);
}

void Subagents::read_output(const Assembler::Call& call, std::string_view text, NestedJson& nested,
                            Assembler& to) {
  const std::string_view name = std::string_view(call.tool).substr(call.tool.rfind('.') + 1);
  if (!is_one_of(name, {"wait", "wait_agent", "close_agent"})) return;
  const Value json = nested.parse(text).value;
  const Value status = json.member("status"), previous = json.member("previous_status");
  if (name == "close_agent")
    finish(thread_at(call.description), closed_outcome(word_of(status ? status : previous)), &to);
  else
    read_statuses(status, &to);
}

void Subagents::read_notification(std::string_view text, NestedJson& nested, Assembler* to) {
  const Value json = nested.parse(tagged(text, "subagent_notification")).value;
  finish(thread_at(first_of({json.text_of("agent_id"), json.text_of("agent_path")})),
         agent_outcome(word_of(json.member("status"))), to);
}

void Subagents::end_spawn(const Assembler::Call& call, std::string_view outcome, Assembler& to) {
  if (!call.background || outcome == "ok") return;
  event::AgentFinished finished;
  finished.call = call.call;
  finished.outcome = outcome == "error" ? "failed" : outcome;
  to.finish_agent(finished);
}

std::size_t Subagents::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [thread, agent] : agents_)
    bytes += 64 + 2 * thread.size() + sizeof agent + agent.call.size();
  for (const auto& [path, thread] : paths_) bytes += 128 + 2 * path.size() + thread.size();
  return bytes;
}

}  // namespace earshot::codex
