// What a session costs, how full its context is, and how its time was spent: from its transcripts, its status
// and the table of models.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "core/event.hpp"
#include "core/turn_times.hpp"
#include "models/model_table.hpp"
#include "models/session_cost.hpp"
#include "status/status.hpp"

namespace earshot::serve {

struct Session;

// At a hub, the numbers that the session's host has published win over those of the relayed events.

/// As session_cost().
std::optional<Cost> cost_of(const Session& session, const ModelTable& models);

/// What was used in one day: the newest in which a stream of the session used something.
struct DayUsage {
  LocalDay day;  // of this host
  Usage usage;
  std::optional<Cost> cost;  // as cost_of()
  bool is_partial = false;   // contains sums that the program records for several days at once
};

/// Absent: nothing was used, or it is not recorded when. Of a recorded total, where the session began
/// earlier, it is not known what belongs to the day: then its cost is estimated.
std::optional<DayUsage> day_of(const Session& session, const ModelTable& models);

/// Of the main stream, in tokens: as its transcript states it, else a status line, else the table. Absent:
/// unknown.
std::optional<std::uint64_t> context_window_of(const Session& session, const ModelTable& models);

/// Of the main stream, up to the time at which its present status began. Absent: no turn has a time.
std::optional<TimeSpent> times_of(const Session& session);

/// The member `usage` of a session frame.
void append_usage_member(JsonWriter& json, const Session& session, const ModelTable& models);
/// The member `day` of a session frame; nothing if it is absent.
void append_day_member(JsonWriter& json, const Session& session, const ModelTable& models);
/// The member `times` of a session frame; nothing if the times are unknown.
void append_times_member(JsonWriter& json, const Session& session);
void append_times_member(JsonWriter& json, const TimeSpent& spent);

/// Waits for the user's permission that no record proves: seen while they lasted, in the program's registry.
class LiveWaits {
 public:
  /// `recorded_ms`: waits that the transcript proves for this turn so far, which are not counted again.
  void status_changed(const status::Status* previous, const status::Status& next, std::uint32_t turn,
                      std::int64_t recorded_ms);

  std::int64_t waited_ms() const { return waited_ms_; }
  std::int64_t turn_waited_ms(std::uint32_t turn) const { return turn == turn_ ? turn_waited_ms_ : 0; }

 private:
  std::int64_t waited_ms_ = 0, turn_waited_ms_ = 0;
  std::int64_t recorded_before_ms_ = 0;  // when the wait, for whatever reason, began
  std::uint32_t turn_ = 0;
};

}  // namespace earshot::serve
