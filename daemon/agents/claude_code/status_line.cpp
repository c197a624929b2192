#include <simdjson.h>

#include <array>
#include <cmath>

#include "agents/claude_code/program.hpp"
#include "base/json_scan.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"

namespace earshot::claude_code {
namespace {

using simdjson::dom::element;

constexpr std::size_t session_bytes_max = 256, text_bytes_max = 4096;  // longer texts are absent
constexpr double tokens_max = 1e12, usd_max = 1e9;
constexpr double percent_max = 1000;            // of a window; more than 100: the limit is exceeded
constexpr double time_s_max = 253'402'300'799;  // 9999-12-31T23:59:59Z

struct WindowRule {
  std::string_view name;
  std::int64_t minutes;
};
constexpr std::array window_rules = {WindowRule{"five_hour", 300}, WindowRule{"seven_day", 10'080}};

std::string text_at(const element& from, std::string_view pointer, std::size_t bytes_max = text_bytes_max) {
  std::string_view text;
  if (from.at_pointer(pointer).get(text) || text.size() > bytes_max) return {};
  return std::string(text);
}

/// Absent unless it is between 0 and `max`.
std::optional<double> number_at(const element& from, std::string_view pointer, double max) {
  double number = 0;
  if (from.at_pointer(pointer).get(number) || !(number >= 0 && number <= max)) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> tokens_at(const element& from, std::string_view pointer) {
  const auto number = number_at(from, pointer, tokens_max);
  if (!number || *number != std::floor(*number)) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

/// The input of the last request, else the share of the window that the program states.
std::optional<std::uint64_t> context_tokens(const element& from, std::optional<std::uint64_t> window) {
  std::optional<std::uint64_t> sum;
  for (const char* part : {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"})
    if (const auto tokens = tokens_at(from, std::string("/context_window/current_usage/") + part))
      sum = sum.value_or(0) + *tokens;
  if (sum) return sum;
  const auto percent = number_at(from, "/context_window/used_percentage", percent_max);
  if (!percent || !window) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(*window) * *percent / 100));
}

std::string time_at(const element& from, std::string_view pointer) {
  if (const std::string text = text_at(from, pointer); !text.empty()) {
    const auto ms = parse_time(text);
    return ms ? format_time_if_valid(*ms) : std::string();
  }
  const auto seconds = number_at(from, pointer, time_s_max);
  return seconds ? format_time_if_valid(static_cast<std::int64_t>(*seconds * 1000)) : std::string();
}

std::vector<LimitWindow> windows_of(const element& from) {
  std::vector<LimitWindow> windows;
  for (const WindowRule& rule : window_rules) {
    const std::string at = "/rate_limits/" + std::string(rule.name) + "/";
    LimitWindow window;
    window.name = rule.name;
    window.used_percent = number_at(from, at + "used_percentage", percent_max);
    window.resets_at = time_at(from, at + "resets_at");
    if (!window.used_percent && window.resets_at.empty()) continue;
    window.window_minutes = rule.minutes;
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace

std::optional<StatusLine> ClaudeCode::parse_status_line(std::string_view json) const {
  simdjson::dom::parser parser;
  element from;
  if (json.empty() || json.size() > status_line_bytes_max ||
      parser.parse(json.data(), json.size()).get(from) || !from.is_object())
    return std::nullopt;
  StatusLine line;
  line.session = text_at(from, "/session_id", session_bytes_max);
  line.cwd = text_at(from, "/workspace/current_dir");
  if (line.cwd.empty()) line.cwd = text_at(from, "/cwd");
  line.model = text_at(from, "/model/id");
  line.model_name = text_at(from, "/model/display_name");
  line.context_window = tokens_at(from, "/context_window/context_window_size");
  if (line.context_window == 0) line.context_window.reset();
  line.context_tokens = context_tokens(from, line.context_window);
  line.cost_usd = number_at(from, "/cost/total_cost_usd", usd_max);
  line.windows = windows_of(from);
  if (!line.windows.empty()) line.limit = "claude";
  return line;
}

}  // namespace earshot::claude_code
