// A transcript's end, state and counters as text: equal for two splits of the same bytes.
#pragma once
#include <string>

#include "core/transcript.hpp"

namespace earshot::test {

inline std::string summary_of(const Transcript& transcript) {
  const RecordCounts& c = transcript.counts();
  const StreamState& s = transcript.state();
  std::string out = to_string(transcript.end()) + " " + to_string(transcript.last_event());
  for (const std::uint64_t n : {c.lines,
                                c.empty_lines,
                                c.records,
                                c.skipped_lines,
                                c.duplicates,
                                c.late_results,
                                c.events,
                                c.repaired_lines,
                                c.undecided_records,
                                c.dropped,
                                transcript.bytes_read(),
                                std::uint64_t{transcript.pending_bytes()},
                                std::uint64_t{s.turn},
                                std::uint64_t{s.turn_open},
                                std::uint64_t{s.started},
                                std::uint64_t{s.warmup},
                                s.usage.input,
                                s.usage.output,
                                s.usage.cache_read,
                                s.usage.cache_write,
                                s.context_tokens,
                                s.turn_prompt_truncated,
                                s.last_text_truncated,
                                static_cast<std::uint64_t>(s.last_activity_ms)})
    out += " " + std::to_string(n);
  for (const std::string& text :
       {s.program, s.dialect, s.version, s.cwd, s.project, s.git_branch, s.title, s.model, s.mode,
        s.permission_mode, s.continues, s.turn_started, s.turn_prompt, s.last_outcome, s.last_finished,
        s.todos_time, s.last_activity, s.last_text, transcript.recorded_session()})
    out += "|" + text;
  for (const OpenTool& tool : s.tools)
    out += "\ntool " + tool.call + " " + tool.tool + " " + tool.agent + " " + tool.input + " " + tool.started;
  for (const RunningAgent& agent : s.agents)
    out += "\nagent " + agent.call + " " + agent.subagent + " " + agent.agent_type + " " + agent.started;
  for (const Todo& todo : s.todos) out += "\ntodo " + todo.id + " " + todo.content + " " + todo.status;
  for (const auto& [type, count] : c.types) out += "\n" + type + " " + std::to_string(count);
  for (const auto& [type, count] : c.unknown_types) out += "\nunknown " + type + " " + std::to_string(count);
  return out;
}

}  // namespace earshot::test
