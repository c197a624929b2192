// The formatter's insides: one frame on its way to a line. Each function of tell_*.cpp tells one type of
// frame; false: it is quiet.
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
constexpr std::size_t label_columns_max = 20;  // a longer label is cut; on narrow terminals a fifth of them
constexpr std::size_t calls_max = 1024;  // the oldest call is forgotten: its end is told without its summary

constexpr std::size_t hosts_max = 4096;  // that the one told of first is away is told once more

struct Call {
  std::string tool, summary;
};

struct Waiting {
  std::string reason, detail;  // both empty: is not waiting
  friend bool operator==(const Waiting&, const Waiting&) = default;
};

// What is remembered from frame to frame.
struct FormatterState {
  DisplayOptions display;
  bool verbose = false;
  NameResolver names;
  std::size_t label_columns = label_columns_min;  // grows, never shrinks: lines stay aligned
  Recent<Call, calls_max> calls;
  Recent<Waiting, NameResolver::sessions_max> waiting;
  Recent<bool, NameResolver::sessions_max> turn_open;
  Recent<bool, hosts_max> away;  // host → whether it was told to be away
  std::string last_call;         // whose invocation is the line above
  std::string day = format_local_day(now_ms());
  // Of a timeline: lines begin with this, and neither with a time nor with whose they are.
  std::optional<std::string> margin;

  std::size_t label_columns_limit() const {
    return display.columns == 0 ? label_columns_max
                                : std::clamp(display.columns / 5, label_columns_min, label_columns_max);
  }
  std::string clean(std::string_view text) const { return to_display_line(text, display.charset); }
  std::string_view glyph(Glyph which) const { return cli::glyph(which, display.charset); }
};

// One frame on its way to a line.
struct EventLine {
  FormatterState& state;
  const Fields& frame;
  Line line;

  std::string clean(std::string_view key) const { return state.clean(frame.text(key)); }
  bool of_agent() const { return !frame.text("agent").empty(); }
};

// Time, label, mark and whose agent: what every line begins with.
Line& open(EventLine& t, Glyph mark, Style style);

// Details at a line's end: `  41.2 s · 7 tools`.
class Details {
 public:
  explicit Details(EventLine& t) : t_(t) {}
  Details& add(std::string_view text, Style style = Style::dim);  // nothing for an empty one
  Details& duration();

 private:
  EventLine& t_;
  bool first_ = true;
};

std::string plural(std::uint64_t count, const char* noun);

// What was read or written anew: cache reads are the same text over and over.
std::uint64_t new_tokens(const Fields& usage);

Style style_of_outcome(std::string_view outcome);
Glyph glyph_of_outcome(std::string_view outcome);

// What a notification that came as a prompt is about: its summary, where it has one.
std::string_view notification_summary(std::string_view text);

bool on_session_started(EventLine& t);
bool on_session_updated(EventLine& t);
bool on_turn_started(EventLine& t);
bool on_turn_finished(EventLine& t);
bool on_message_added(EventLine& t);
bool on_tool_invoked(EventLine& t);
bool on_tool_finished(EventLine& t);
bool on_todo_updated(EventLine& t);
bool on_compaction_started(EventLine& t);
bool on_compaction_finished(EventLine& t);
bool on_agent_started(EventLine& t);
bool on_agent_finished(EventLine& t);
bool on_task_finished(EventLine& t);
bool on_queue_changed(EventLine& t);
bool on_usage_updated(EventLine& t);
bool on_api_failed(EventLine& t);
bool on_files_snapshotted(EventLine& t);
bool on_line_skipped(EventLine& t);
bool on_status(EventLine& t);
bool on_session(EventLine& t);
bool on_lagged(EventLine& t);
bool on_reset(EventLine& t);
bool on_stream_removed(EventLine& t);

}  // namespace earshot::cli::formatting
