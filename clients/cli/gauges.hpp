// The numbers of a session and of accounts as short texts: how full a context is, what it cost, where the
// time went, how much of a limit is used. All texts are displayable.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/display_text.hpp"
#include "cli/style.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

constexpr std::size_t gauge_columns = 5;
constexpr double notable_percent = 80;  // from here on a gauge is emphasised
constexpr double full_percent = 95;     // and from here on shown as a problem

/// `▰▰▱▱▱`, in ASCII `##---`: full only at 100 %, empty only at 0 %.
std::string gauge_bar(double percent, Charset charset);
/// `▰▰▱▱▱ 25%`, rounded down; more than 999 % is shown as that.
std::string gauge_text(double percent, Charset charset);
Style gauge_style(double percent);

/// How much of the context's size is used, from a session's `usage`; nothing if either is unknown.
std::optional<double> context_percent(const Fields& usage);
/// `▰▰▱▱▱ 25%`, or the tokens if the size is unknown: `64.6k`. Empty: unknown.
std::string context_text(const Fields& usage, Charset charset);

/// The same with the tokens: `▰▰▱▱▱ 25%, 64.6k of 258k`. `window` 0: unknown.
std::string context_sizes_text(std::uint64_t context, std::uint64_t window, Charset charset);

/// From a session's `usage`; empty: unknown.
std::string cost_text(const Fields& usage);

/// How long a session waited for the user, worked and was idle, up to now; absent: the daemon does not know.
struct SessionTimes {
  std::int64_t waited_ms = 0, worked_ms = 0, idle_ms = 0;
  std::int64_t turn_waited_ms = 0, turn_worked_ms = 0;
};
std::optional<SessionTimes> session_times(const Fields& session, std::int64_t now_ms);

/// Since when the session's status holds, by this machine's clock.
std::optional<std::int64_t> status_since(const Fields& session);

/// A period of an account's limit.
struct LimitPeriod {
  std::string name;  // `5h`, or the window's name where the length is unknown
  bool is_length = false;
  double used_percent = 0;
  std::optional<std::int64_t> resets_ms;  // since 1970
};

/// The windows of a limits.updated, or of an entry of a session's `limits`.
std::vector<LimitPeriod> limit_periods(const Fields& limits, Charset charset);
/// Without the periods that have ended: how much of the next ones is used is not known.
std::vector<LimitPeriod> current_periods(const std::vector<LimitPeriod>& periods, std::int64_t now_ms);
/// `12% of 5h until 14:03:07`
std::string limit_text(const LimitPeriod& period, std::int64_t now_ms);
/// `5h 12% 7d 9%`; with the time of the reset from 80 % on: `5h 92% until 14:03:07`.
std::string brief_limit_text(const std::vector<LimitPeriod>& periods, std::int64_t now_ms);

/// The limits of the accounts that sessions use: of each the newest that a session states.
class LimitSummary {
 public:
  static constexpr std::size_t limits_max = 256;  // further ones are not shown

  explicit LimitSummary(Charset charset) : charset_(charset) {}
  void add(const Fields& session);
  /// A line for each limit, with its host if there are several.
  std::string lines(const DisplayOptions& display, std::int64_t now_ms) const;
  /// The periods of known length of the limit that is used most, `5h 62% 7d 18%`; empty: there are none.
  std::string brief(std::int64_t now_ms) const;

 private:
  struct Limit {
    std::string time, host, name, reached, plan;
    std::vector<LimitPeriod> periods;
  };
  Charset charset_;
  std::map<std::string, Limit> limits_;
};

}  // namespace earshot::cli
