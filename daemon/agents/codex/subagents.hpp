// The subagents of a stream: the call that started each, and whether its end was reported.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/containers.hpp"
#include "core/assembler.hpp"
#include "core/line_value.hpp"
#include "core/nested_json.hpp"

namespace earshot::codex {

/// What a status or an activity makes of a subagent, as in agent.finished; empty: it continues.
std::string_view agent_outcome(std::string_view status);

/// Subagents are threads. The end of each is emitted once, and again only after it was resumed. Where an
/// `Assembler*` is null, an end is remembered without an event. Beyond Assembler::names_max threads or paths
/// the oldest is dropped.
class Subagents {
 public:
  void start(std::string_view thread, std::string_view call);
  /// `name`: a thread, or the path of an agent.
  void resume(std::string_view name, Assembler* to);
  /// `path`: as in the calls of the model, `/root/…`.
  void set_path(std::string_view path, std::string_view thread);
  void finish(std::string_view thread, std::string_view outcome, Assembler* to);
  /// The statuses that a finished item, or the event that reports the same, contains.
  void read_item(std::string_view type, const Value& item, Assembler* to);
  /// Those in the output of a call that waits for agents or closes one; Call::description names the latter.
  void read_output(const Assembler::Call& call, std::string_view text, NestedJson& nested, Assembler& to);
  /// A notification in a message.
  void read_notification(std::string_view text, NestedJson& nested, Assembler* to);
  /// The call of a subagent failed: it has ended.
  static void end_spawn(const Assembler::Call& call, std::string_view outcome, Assembler& to);

  std::size_t memory_bytes() const;

 private:
  struct Agent {
    std::string call;
    bool is_finished = false;
  };

  std::string_view thread_at(std::string_view name) const;
  void read_statuses(const Value& statuses, Assembler* to);

  BoundedMap<Agent, Assembler::names_max> agents_;       // by thread
  BoundedMap<std::string, Assembler::names_max> paths_;  // path → thread
};

}  // namespace earshot::codex
