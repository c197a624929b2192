// What a stream has come to: what a snapshot shows. Kept by the assembler, copied by nobody.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/event.hpp"

namespace earshot {

struct OpenTool {
  std::string call, tool;
  std::string agent;    // of an inline sidechain; empty on the own chain
  std::string input;    // JSON, as append_json wrote it with input_preview_bytes
  std::string started;  // RFC 3339; empty: the line had no time
  std::int64_t started_ms = 0;
  bool input_is_raw = false;  // the assembler's own: nobody outside sees it true
};

struct RunningAgent {
  std::string call, subagent, agent_type, description;
  std::string started;
  bool background = false;
};

struct StreamState {
  static constexpr std::size_t open_tools_max = 256;       // more are still paired and counted, but not shown
  static constexpr std::size_t input_preview_bytes = 512;  // longer strings of an open tool's input are cut
  static constexpr std::size_t raw_input_bytes_max =
      64 << 10;  // a longer input is cut at once, not when asked for

  std::string program, dialect, version, cwd, project, git_branch, title, model, mode, permission_mode,
      continues;
  bool started = false;  // session.started was told
  bool warmup = false;   // an internal warm-up agent: dropped

  std::uint32_t turn = 0;
  bool turn_open = false;
  std::string turn_started;  // RFC 3339
  std::int64_t turn_started_ms = 0;
  std::string turn_prompt;    // its beginning, at most input_preview_bytes
  std::string last_outcome;   // of the last finished turn
  std::string last_finished;  // when it finished, RFC 3339

  std::vector<OpenTool> tools;  // in order of invocation
  std::vector<Todo> todos;      // of the own chain
  std::string todos_time;       // RFC 3339 of the record that set them; empty: never set
  std::vector<RunningAgent> agents;
  Usage usage;
  std::uint64_t context_tokens = 0;  // of the own chain's last message: input and cache
  std::optional<double> cost_usd;
  std::string last_activity;  // RFC 3339 of the newest line with a time
  std::int64_t last_activity_ms = 0;
  std::string last_text;  // the own chain's last assistant text, its beginning
};

}  // namespace earshot
