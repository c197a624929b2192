#include "cli/gauges.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/format.hpp"
#include "common/host_clocks.hpp"

namespace earshot::cli {
namespace {

constexpr double percent_max = 999;

std::string percent_text(double percent) {
  return std::to_string(static_cast<int>(std::clamp(std::floor(percent), 0.0, percent_max))) + "%";
}

}  // namespace

std::string gauge_bar(double percent, Charset charset) {
  const bool utf8 = charset == Charset::utf8;
  std::size_t filled = 0;
  if (percent > 0) {
    const double cells = std::min(percent, 100.0) * static_cast<double>(gauge_columns) / 100;
    filled = std::clamp<std::size_t>(static_cast<std::size_t>(std::lround(cells)), 1,
                                     percent < 100 ? gauge_columns - 1 : gauge_columns);
  }
  std::string bar;
  for (std::size_t n = 0; n < gauge_columns; ++n) bar += n < filled ? (utf8 ? "▰" : "#") : (utf8 ? "▱" : "-");
  return bar;
}

std::string gauge_text(double percent, Charset charset) {
  return gauge_bar(percent, charset) + " " + percent_text(percent);
}

Style gauge_style(double percent) {
  return percent >= full_percent ? Style::bad : percent >= notable_percent ? Style::note : Style::dim;
}

std::optional<double> context_percent(const Fields& usage) {
  const std::uint64_t context = usage.count("context"), window = usage.count("context_window");
  if (context == 0 || window == 0) return std::nullopt;
  return 100 * static_cast<double>(context) / static_cast<double>(window);
}

std::string context_text(const Fields& usage, Charset charset) {
  if (const auto percent = context_percent(usage)) return gauge_text(*percent, charset);
  const std::uint64_t context = usage.count("context");
  return context > 0 ? format_count(context) : std::string();
}

std::string context_sizes_text(std::uint64_t context, std::uint64_t window, Charset charset) {
  if (window == 0) return format_count(context);
  const double percent = 100 * static_cast<double>(context) / static_cast<double>(window);
  return gauge_text(percent, charset) + ", " + format_count(context) + " of " + format_count(window);
}

std::string cost_text(const Fields& usage) {
  const auto usd = usage.as<double>("cost_usd");
  const std::string_view source = usage.text("cost_source");
  return usd ? format_usd(*usd, source == "estimated" || source == "mixed") : std::string();
}

std::optional<std::int64_t> status_since(const Fields& session) {
  const auto since = parse_time(session.object("status").text("since"));
  return since ? std::optional(*since + clock_offset_ms(session)) : std::nullopt;
}

std::optional<SessionTimes> session_times(const Fields& session, std::int64_t now_ms) {
  const Fields times = session.object("times");
  if (!times) return std::nullopt;
  const auto ms = [](const Fields& of, std::string_view key) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(of.count(key), duration_max.count()));
  };
  const Fields turn = times.object("turn");
  SessionTimes out{ms(times, "waited_ms"), ms(times, "worked_ms"), ms(times, "idle_ms"),
                   ms(turn, "waited_ms"), ms(turn, "worked_ms")};
  // The daemon counts closed periods: the present one is still running.
  const std::int64_t running = std::max<std::int64_t>(now_ms - status_since(session).value_or(now_ms), 0);
  const std::string_view state = session.object("status").text("state");
  if (state == "waiting") {
    out.waited_ms += running;
    out.turn_waited_ms += running;
  } else if (state == "working") {
    out.worked_ms += running;
    out.turn_worked_ms += running;
  } else if (state == "idle") {
    out.idle_ms += running;
  }
  return out;
}

std::vector<LimitPeriod> limit_periods(const Fields& limits, Charset charset) {
  std::vector<LimitPeriod> periods;
  for (const Fields& window : limits.objects("windows")) {
    const auto used = window.as<double>("used_percent");
    if (!used) continue;
    const std::int64_t minutes = window.integer("window_minutes").value_or(0);
    periods.push_back({minutes > 0 ? period_text(minutes) : to_display_line(window.text("name"), charset),
                       minutes > 0, *used, parse_time(window.text("resets_at"))});
  }
  return periods;
}

std::vector<LimitPeriod> current_periods(const std::vector<LimitPeriod>& periods, std::int64_t now_ms) {
  std::vector<LimitPeriod> current;
  for (const LimitPeriod& period : periods)
    if (!period.resets_ms || *period.resets_ms > now_ms) current.push_back(period);
  return current;
}

namespace {

std::string reset_text(const LimitPeriod& period, std::int64_t now_ms) {
  constexpr std::int64_t day_ms = 24 * 3600 * 1000;
  if (!period.resets_ms) return {};
  if (*period.resets_ms - now_ms < day_ms) return " until " + format_local_clock(*period.resets_ms);
  const std::string day = format_local_day(*period.resets_ms);
  return " until " + day.substr(0, day.rfind(' '));  // without the year
}

}  // namespace

std::string limit_text(const LimitPeriod& period, std::int64_t now_ms) {
  return percent_text(period.used_percent) + " of " + period.name + reset_text(period, now_ms);
}

std::string brief_limit_text(const std::vector<LimitPeriod>& periods, std::int64_t now_ms) {
  std::string text;
  for (const LimitPeriod& period : periods) {
    text += (text.empty() ? "" : " ") + period.name + " " + percent_text(period.used_percent);
    if (period.used_percent >= notable_percent) text += reset_text(period, now_ms);
  }
  return text;
}

void LimitSummary::add(const Fields& session) {
  const std::string host = to_display_line(session.text("host"), charset_);
  const std::string program = to_display_line(session.text("program"), charset_);
  for (const Fields& limits : session.objects("limits")) {
    const std::string name = to_display_line(limits.text("limit"), charset_);
    const std::string key = host + '\n' + program + '\n' + name;
    if (limits_.size() >= limits_max && !limits_.contains(key)) return;
    Limit& known = limits_[key];
    if (!known.name.empty() && known.time >= limits.text("time")) continue;
    known = {std::string(limits.text("time")),
             host,
             name.empty() || name == program ? program : program + " " + name,
             to_display_line(limits.text("reached"), charset_),
             to_display_line(limits.text("plan"), charset_),
             limit_periods(limits, charset_)};
  }
}

std::string LimitSummary::lines(const DisplayOptions& display, std::int64_t now_ms) const {
  std::set<std::string_view> hosts;
  for (const auto& [key, limit] : limits_) hosts.insert(limit.host);
  std::string out;
  for (const auto& [key, limit] : limits_) {
    const std::vector<LimitPeriod> periods = current_periods(limit.periods, now_ms);
    if (periods.empty() && limit.reached.empty()) continue;
    Line line;
    line.add("limits of " + limit.name + (hosts.size() > 1 ? " on " + limit.host : std::string()),
             Style::dim);
    bool first = true;
    const auto show = [&](const std::string& text, Style style) {
      if (text.empty()) return;
      if (first) line.space(2);
      if (!first) line.space(1).add(glyph(Glyph::dot, display.charset), Style::dim).space(1);
      first = false;
      line.add(text, style);
    };
    if (!limit.reached.empty()) show("reached: " + limit.reached, Style::bad);
    for (const LimitPeriod& period : periods)
      show(limit_text(period, now_ms),
           period.used_percent < notable_percent ? Style::plain : gauge_style(period.used_percent));
    show(limit.plan, Style::plain);
    out += line.str(display) + "\n";
  }
  return out;
}

std::string LimitSummary::brief(std::int64_t now_ms) const {
  double most = -1;
  std::vector<LimitPeriod> fullest;
  for (const auto& [key, limit] : limits_) {
    std::vector<LimitPeriod> periods = current_periods(limit.periods, now_ms);
    std::erase_if(periods, [](const LimitPeriod& period) { return !period.is_length; });
    double used = -1;
    for (const LimitPeriod& period : periods) used = std::max(used, period.used_percent);
    if (used <= most) continue;
    most = used;
    fullest = std::move(periods);
  }
  return brief_limit_text(fullest, now_ms);
}

}  // namespace earshot::cli
