#include "cli/gauges.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>
#include <limits>

#include "common/format.hpp"

namespace gauges_test {

using namespace earshot;
using namespace earshot::cli;

namespace {

const std::int64_t noon = *parse_time("2025-11-04T12:00:00Z");
constexpr std::int64_t minute = 60'000;

std::optional<SessionTimes> times(const std::string& json) {
  FrameParser parser;
  const auto frame = parser.parse(json);
  REQUIRE(frame);
  return session_times(*frame, noon);
}

std::string cost(const std::string& usage) {
  FrameParser parser;
  const auto frame = parser.parse(usage);
  REQUIRE(frame);
  return cost_text(*frame);
}

}  // namespace

TEST_CASE("a bar is empty only at 0 % and full only at 100 %") {
  CHECK(gauge_bar(0, Charset::utf8) == "▱▱▱▱▱");
  CHECK(gauge_bar(0.1, Charset::utf8) == "▰▱▱▱▱");
  CHECK(gauge_bar(50, Charset::utf8) == "▰▰▰▱▱");
  CHECK(gauge_bar(99.9, Charset::utf8) == "▰▰▰▰▱");
  CHECK(gauge_bar(100, Charset::utf8) == "▰▰▰▰▰");
  CHECK(gauge_bar(250, Charset::ascii) == "#####");
  CHECK(gauge_bar(30, Charset::ascii) == "##---");
  for (const double percent : {-5.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK(gauge_bar(percent, Charset::ascii) == "-----");
}

TEST_CASE("a percentage is rounded down and bounded") {
  CHECK(gauge_text(79.9, Charset::ascii) == "####- 79%");
  CHECK(gauge_text(1e300, Charset::ascii) == "##### 999%");
  CHECK(gauge_style(79.9) == Style::dim);
  CHECK(gauge_style(80) == Style::note);
  CHECK(gauge_style(95) == Style::bad);
}

TEST_CASE("an estimate is marked") {
  CHECK(cost(R"({"cost_usd":1.2,"cost_source":"recorded"})") == "$1.20");
  CHECK(cost(R"({"cost_usd":1.2})") == "$1.20");
  CHECK(cost(R"({"cost_usd":1.2,"cost_source":"estimated"})") == "~$1.20");
  CHECK(cost(R"({"cost_usd":1,"cost_source":"mixed"})") == "~$1.00");
  CHECK(cost(R"({"cost_usd":0,"cost_source":"recorded"})") == "$0.00");
  CHECK(cost(R"({"cost_usd":0.0001,"cost_source":"estimated"})") == "~<$0.01");
  CHECK(cost(R"({"cost_usd":4321.9})") == "$4,321.90");
  CHECK(cost("{}").empty());
  CHECK(cost(R"({"cost_usd":-1})").empty());
  CHECK(cost(R"({"cost_usd":1e300})").empty());
}

TEST_CASE("the present state's time is added to the closed periods") {
  const auto session = [](const std::string& state, const std::string& more = "") {
    return R"({"status":{"state":")" + state +
           R"(","since":"2025-11-04T11:50:00Z"},"times":{"waited_ms":60000,"worked_ms":120000,"idle_ms":180000,"turn":{"waited_ms":1000,"worked_ms":2000}})" +
           more + "}";
  };
  auto found = times(session("waiting"));
  REQUIRE(found);
  CHECK(found->waited_ms == 11 * minute);
  CHECK(found->worked_ms == 2 * minute);
  CHECK(found->turn_waited_ms == 10 * minute + 1000);
  found = times(session("working"));
  CHECK(found->worked_ms == 12 * minute);
  CHECK(found->turn_worked_ms == 10 * minute + 2000);
  CHECK(times(session("idle"))->idle_ms == 13 * minute);
  CHECK(times(session("ended"))->idle_ms == 3 * minute);
  // The host's clock is 4 minutes behind.
  CHECK(times(session("waiting", R"(,"clock_offset_ms":240000)"))->waited_ms == 7 * minute);
  CHECK(times(session("waiting", R"(,"clock_offset_ms":2400000)"))->waited_ms == minute);
  CHECK_FALSE(times(R"({"status":{"state":"waiting"}})"));
  // Numbers of any size.
  found = times(
      R"({"status":{"state":"waiting","since":"2025-11-04T11:50:00Z"},"clock_offset_ms":-9223372036854775808,)"
      R"("times":{"waited_ms":9223372036854775807,"worked_ms":-1,"turn":{"waited_ms":9223372036854775807}}})");
  REQUIRE(found);
  CHECK(found->waited_ms == 2 * duration_max.count() + 10 * minute);
  CHECK(found->turn_waited_ms == found->waited_ms);
  CHECK(found->worked_ms == 0);
}

TEST_CASE("the reset of a limit is shown from 80 % on") {
  const std::vector<LimitPeriod> periods = {{"5h", true, 79.9, noon + minute}, {"7d", true, 80, {}}};
  CHECK(brief_limit_text(periods, noon) == "5h 79% 7d 80%");
  CHECK(brief_limit_text({{"5h", true, 80, noon + minute}}, noon).starts_with("5h 80% until "));
  CHECK(brief_limit_text({}, noon).empty());
}

TEST_CASE("of the limits that sessions state the newest are shown") {
  setenv("TZ", "UTC0", 1);
  tzset();
  const auto session = [](const std::string& host, const std::string& time, const std::string& used,
                          const std::string& resets = "2025-11-04T14:00:00Z") {
    return R"({"type":"session","host":")" + host +
           R"(","session":"s","program":"codex","limits":[{"time":"2025-11-04T)" + time +
           R"(Z","limit":"codex","plan":"plus","windows":[{"name":"primary","used_percent":)" + used +
           R"(,"window_minutes":300,"resets_at":")" + resets +
           R"("},{"name":"secondary","used_percent":64.9,"window_minutes":10080,"resets_at":"2025-11-10T08:00:00Z"}]}]})";
  };
  const auto lines = [](const std::vector<std::string>& sessions) {
    LimitSummary limits(Charset::utf8);
    FrameParser parser;
    for (const std::string& json : sessions) limits.add(*parser.parse(json));
    return limits.lines({Charset::utf8, Palette::none, 0}, noon);
  };
  CHECK(lines({session("dev7", "11:00:00", "12.5"), session("dev7", "11:30:00", "30"),
               session("dev7", "11:10:00", "20")}) ==
        "limits of codex  30% of 5h until 14:00:00 · 64% of 7d until Mon 10 Nov · plus\n");
  // How much of an ended period is used is not known.
  CHECK(lines({session("dev7", "11:00:00", "99", "2025-11-04T11:59:00Z")}) ==
        "limits of codex  64% of 7d until Mon 10 Nov · plus\n");
  CHECK(lines({session("dev7", "11:00:00", "1"), session("dev8", "11:00:00", "2")})
            .find("limits of codex on dev8  2%") != std::string::npos);
  CHECK(lines({R"({"type":"session","session":"s"})"}).empty());
}

}  // namespace gauges_test
