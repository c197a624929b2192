// Formats events and other frames as single lines:
//   14:03:09 api      ⚙ Bash  npm test
//   14:03:41 api      ✓ Bash  31.9s
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/containers.hpp"
#include "cli/event_details.hpp"
#include "cli/name_resolver.hpp"
#include "cli/style.hpp"
#include "common/format.hpp"
#include "common/frame.hpp"
#include "common/host_clocks.hpp"

namespace earshot::cli {

/// What a formatter remembers between frames.
struct FormatterState {
  static constexpr std::size_t label_columns_min = 8;
  static constexpr std::size_t label_columns_max =
      20;                                         // longer labels are cut; at most a fifth of the terminal
  static constexpr std::size_t calls_max = 1024;  // beyond this the oldest ends without a summary
  static constexpr std::size_t hosts_max = 4096;  // beyond this the oldest is forgotten and reported again
  struct Call {
    std::string tool, summary;
  };
  struct Waiting {
    std::string reason, detail;  // both empty: not waiting
    friend bool operator==(const Waiting&, const Waiting&) = default;
  };

  DisplayOptions display;
  bool verbose = false;  // also thinking, token counts, messages of subagents, file checkpoints
  NameResolver names = {};
  HostClocks clocks = {};
  std::size_t label_columns = label_columns_min;  // never shrinks, so that lines stay aligned
  BoundedMap<Call, calls_max> calls = {};
  BoundedMap<Waiting, NameResolver::sessions_max> waiting = {};
  BoundedMap<bool, NameResolver::sessions_max> turn_open = {};
  BoundedMap<bool, hosts_max> offline_hosts = {};  // host → whether it was last shown as offline
  std::string last_call = {};                      // whose invocation is the previous line
  std::string day = format_local_day(now_ms());

  std::size_t label_columns_limit() const {
    return display.columns == 0 ? label_columns_max
                                : std::clamp(display.columns / 5, label_columns_min, label_columns_max);
  }
  std::string clean(std::string_view text) const { return to_display_line(text, display.charset); }
  std::string_view glyph(Glyph which) const { return cli::glyph(which, display.charset); }
  /// Remembers the call and returns the summary of its input.
  std::string invoked(const Fields& call);
};

class EventFormatter {
 public:
  /// `verbose` also shows thinking, token counts, messages of subagents and file checkpoints.
  EventFormatter(DisplayOptions display, bool verbose) : state_{display, verbose} {}

  /// The width of the terminal, which may have been resized.
  void set_columns(std::size_t columns) { state_.display.columns = columns; }

  /// Learns names and the width of the label column from a frame that is shown later.
  void observe(const Fields& frame);

  const HostClocks& clocks() const { return state_.clocks; }

  /// Appends the frame's lines, each with a line end; nothing if the frame is not shown or its type is
  /// unknown.
  void format(const Fields& frame, std::string& out);

 private:
  FormatterState state_;
};

/// The types of events, for filters.
std::vector<std::string_view> event_types();

/// The line of a frame, which begins with `margin` instead of the time and the label; empty if it is not
/// shown. `end`: the agent.finished of an agent.started, shown on the same line.
Line event_line(FormatterState& state, const Fields& frame, std::string_view margin, const Fields& end = {});

}  // namespace earshot::cli
