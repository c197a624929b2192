// The subagents of a stream: the call that started each, and whether its end was reported.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "agents/content.hpp"
#include "core/assembly.hpp"
#include "core/line_value.hpp"

namespace earshot::codex {

/// What a status or an activity makes of a subagent, as in agent.finished; empty: it continues.
std::string_view agent_outcome(std::string_view status);

/// Subagents are threads. The end of each is emitted once, and again only after it was resumed. Where an
/// `Assembly*` is null, an end is remembered without an event.
class Subagents {
 public:
  static constexpr std::size_t names_max = 65536;  // threads, and paths; beyond, new ones are not remembered

  void start(std::string_view thread, std::string_view call);
  /// `name`: a thread, or the path of an agent.
  void resume(std::string_view name);
  /// `path`: as in the calls of the model, `/root/…`.
  void set_path(std::string_view path, std::string_view thread);
  void finish(std::string_view thread, std::string_view outcome, Assembly* to);
  /// The statuses that a finished item, or the event that reports the same, contains.
  void read_item(std::string_view type, const Value& item, Assembly* to);
  /// Those in the output of a call that waits for agents or closes one; Call::description names the latter.
  void read_output(const Assembly::Call& call, const std::string& text, Assembly& to);
  /// A notification in a message.
  void read_notification(std::string_view text, Assembly* to);
  /// A subagent whose call failed has ended.
  static void end_spawn(const Assembly::Call& call, std::string_view outcome, Assembly& to);

  std::size_t size() const { return agents_.size() + paths_.size(); }

 private:
  struct Agent {
    std::string call;
    bool is_finished = false;
  };

  std::string_view thread_at(std::string_view name) const;
  void read_statuses(const Value& statuses, Assembly* to);

  std::map<std::string, Agent, std::less<>> agents_;       // by thread
  std::map<std::string, std::string, std::less<>> paths_;  // path → thread
  NestedJson nested_;
};

}  // namespace earshot::codex
