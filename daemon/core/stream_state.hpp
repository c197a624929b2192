// The current state of a stream, as snapshots show it. Owned and updated by the assembler.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/event.hpp"

namespace earshot {

struct OpenTool {
  std::string call, tool;
  std::string agent;                     // of an inline sidechain; empty on the own chain
  std::string input;                     // JSON, its strings cut at input_preview_bytes
  std::vector<TruncatedPath> truncated;  // the texts of `input` that were cut: `input/command`
  std::string started;                   // RFC 3339; empty: unknown
  std::int64_t started_ms = 0;
  bool is_raw = false;  // internal to the assembler: `input` is not prepared for display yet
};

struct RunningAgent {
  std::string call, subagent, agent_type, description;
  std::string started;
  bool background = false;
};

struct StreamState {
  static constexpr std::size_t open_tools_max = 256;  // further ones are paired and counted, but not listed
  static constexpr std::size_t input_preview_bytes = 512;  // longer strings of an open tool's input are cut
  static constexpr std::size_t raw_input_bytes_max = 64
                                                     << 10;  // a longer input is cut at once, not on demand

  std::string program, dialect, version, cwd, project, git_branch, title, model, mode, permission_mode,
      continues;
  bool started = false;  // session.started was emitted
  bool warmup = false;   // an internal warm-up agent: no events

  std::uint32_t turn = 0;
  bool turn_open = false;
  std::string turn_started;  // RFC 3339
  std::int64_t turn_started_ms = 0;
  std::string turn_prompt;                  // its first input_preview_bytes
  std::uint64_t turn_prompt_truncated = 0;  // bytes of the complete prompt if it is cut; 0: it is not
  std::string last_outcome;                 // of the last finished turn
  std::string last_finished;                // when it finished, RFC 3339

  std::vector<OpenTool> tools;  // in order of invocation
  std::vector<Todo> todos;      // of the own chain
  std::string todos_time;       // RFC 3339 of the record that set them; empty: never set
  std::vector<RunningAgent> agents;
  Usage usage;
  std::uint64_t context_tokens = 0;  // of the own chain's last message: input and cache
  std::optional<double> cost_usd;
  std::string last_activity;  // RFC 3339 of the newest line with a time
  std::int64_t last_activity_ms = 0;
  std::string last_text;  // the first input_preview_bytes of the own chain's last assistant text
  std::uint64_t last_text_truncated = 0;  // bytes of the complete text if it is cut; 0: it is not
};

}  // namespace earshot
