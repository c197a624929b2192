// `earshot statusline --from PROGRAM`: the line that an agent program shows below its prompt, from the JSON
// that the program writes to the command and from what the daemon knows about the other sessions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/gauges.hpp"

namespace earshot::cli {

/// What the line shows; empty and absent parts are left out. Texts are displayable.
struct ProgramLine {
  std::string model;
  std::optional<double> context_percent;
  std::string context;  // instead of the percentage: tokens
  std::string cost;
  std::vector<LimitPeriod> limits;
  /// The other sessions that wait for the user, `web permission 2m`, the longest wait first.
  std::vector<std::string> waiting;
  std::size_t unseen = 0;  // other sessions that finished unseen
};

constexpr std::size_t waiting_shown_max = 2;  // the number of the others follows
constexpr std::size_t program_line_columns_max = 200;

/// `Opus 4.1 ▰▱▱▱▱ 12% · $1.25 · 5h 23% 7d 41% · ⏸ web permission 2m`
std::string format_program_line(const ProgramLine& line, Charset charset, std::int64_t now_ms);

/// Adds what the daemon reports, `session` frames one per line, about the program's own session where the
/// program states less, and about the others. An incomplete last line is ignored. True: the list is complete.
bool add_sessions(ProgramLine& line, std::string_view frames, std::string_view own_session, Charset charset,
                  std::int64_t now_ms);

}  // namespace earshot::cli
