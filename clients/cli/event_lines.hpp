// One line per event, shared by EventFormatter (tail) and TranscriptView (show).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/name_resolver.hpp"
#include "cli/style.hpp"
#include "common/format.hpp"
#include "common/frame.hpp"

namespace earshot::cli::formatting {

constexpr std::size_t label_columns_min = 8;
constexpr std::size_t label_columns_max = 20;  // longer labels are cut; at most a fifth of the terminal
constexpr std::size_t calls_max =
    1024;  // beyond this the oldest is forgotten: its end is shown without a summary

constexpr std::size_t hosts_max = 4096;  // beyond this the oldest is forgotten and reported again

struct Call {
  std::string tool, summary;
};

struct Waiting {
  std::string reason, detail;  // both empty: not waiting
  friend bool operator==(const Waiting&, const Waiting&) = default;
};

// State kept between frames.
struct FormatterState {
  DisplayOptions display;
  bool verbose = false;
  NameResolver names;
  std::size_t label_columns = label_columns_min;  // never shrinks, so that lines stay aligned
  BoundedMap<Call, calls_max> calls;
  BoundedMap<Waiting, NameResolver::sessions_max> waiting;
  BoundedMap<bool, NameResolver::sessions_max> turn_open;
  BoundedMap<bool, hosts_max> offline_hosts;  // host → whether it was last shown as offline
  std::string last_call;                      // whose invocation is the previous line
  std::string day = format_local_day(now_ms());
  // In a transcript view: the beginning of a line, instead of the time and the label.
  std::optional<std::string> margin;

  std::size_t label_columns_limit() const {
    return display.columns == 0 ? label_columns_max
                                : std::clamp(display.columns / 5, label_columns_min, label_columns_max);
  }
  std::string clean(std::string_view text) const { return to_display_line(text, display.charset); }
  std::string_view glyph(Glyph which) const { return cli::glyph(which, display.charset); }
};

// A frame and its line under construction.
struct EventLine {
  FormatterState& state;
  const Fields& frame;
  Line line;

  std::string clean(std::string_view key) const { return state.clean(frame.text(key)); }
  bool of_agent() const { return !frame.text("agent").empty(); }
};

// Appends the time, the label, the symbol and the subagent's name.
Line& begin_line(EventLine& t, Glyph mark, Style style);

// Details at the end of a line: `  41.2s · 7 tools`.
class Details {
 public:
  explicit Details(EventLine& t) : t_(t) {}
  Details& add(std::string_view text, Style style = Style::dim);  // an empty text is skipped
  Details& duration();

 private:
  EventLine& t_;
  bool first_ = true;
};

// Input, output and cache writes. Cache reads count the same text again in each request.
std::uint64_t new_tokens(const Fields& usage);

Style style_of_outcome(std::string_view outcome);
Glyph glyph_of_outcome(std::string_view outcome);

// What a notification that came as a prompt is about: its summary, where it has one.
std::string_view notification_summary(std::string_view text);

// Each formats one type of frame and returns false if it is not shown.
bool format_session_started(EventLine& t);
bool format_session_updated(EventLine& t);
bool format_turn_started(EventLine& t);
bool format_turn_finished(EventLine& t);
bool format_message_added(EventLine& t);
bool format_tool_invoked(EventLine& t);
bool format_tool_finished(EventLine& t);
bool format_todo_updated(EventLine& t);
bool format_compaction_started(EventLine& t);
bool format_compaction_finished(EventLine& t);
bool format_agent_started(EventLine& t);
bool format_agent_finished(EventLine& t);
bool format_task_finished(EventLine& t);
bool format_queue_changed(EventLine& t);
bool format_usage_updated(EventLine& t);
bool format_api_failed(EventLine& t);
bool format_files_snapshotted(EventLine& t);
bool format_line_skipped(EventLine& t);
bool format_status(EventLine& t);
bool format_session(EventLine& t);
bool format_lagged(EventLine& t);
bool format_reset(EventLine& t);
bool format_stream_removed(EventLine& t);

}  // namespace earshot::cli::formatting
