#include <catch2/catch.hpp>
#include <string>

#include "cli/usage_report.hpp"
#include "unit/support/time_zone.hpp"

namespace usage_report_test {

using namespace earshot;
using namespace earshot::cli;

namespace {

constexpr std::int64_t noon = 1'772'366'400'000;  // 2026-03-01T12:00:00Z
constexpr std::int64_t hour = 3'600'000;

void add(RecordedUsage& usage, const std::string& session, const std::string& project, const char* model,
         const Usage& used, std::int64_t time_ms) {
  static std::uint32_t rank = 0;
  TranscriptUsage transcript{++rank, "claude-code", session, project};
  transcript.used.begin_record(time_ms);
  transcript.used.add(rank, model, used);
  usage.add(std::move(transcript));
}

std::vector<std::string> names(const UsageReport& report) {
  std::vector<std::string> all;
  for (const UsageRow& row : report.rows()) all.push_back(row.name);
  return all;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("rows are days in order, sessions by their last message, others by tokens") {
  const earshot::test::TimeZone zone("UTC");
  RecordedUsage usage(ModelTable::built_in());
  add(usage, "s1", "/a", "m1", {.input = 5}, noon + 30 * hour);
  add(usage, "s2", "/b", "m2", {.input = 7}, noon);
  add(usage, "s3", "/a", "m2", {.input = 1}, noon + hour);
  add(usage, "s4", "/c", "m3", {.input = 1}, 0);
  const auto report = [&](UsageBy by) { return names({usage, by, {}}); };
  CHECK(report(UsageBy::day) == Names{"", "2026-03-01", "2026-03-02"});
  CHECK(report(UsageBy::session) == Names{"s4", "s2", "s3", "s1"});
  CHECK(report(UsageBy::project) == Names{"/b", "/a", "/c"});
  CHECK(report(UsageBy::model) == Names{"m2", "m1", "m3"});
  CHECK(report(UsageBy::program) == Names{"claude-code"});
  CHECK(names({usage, UsageBy::session, {.since_ms = noon + 1000}}) == Names{"s3", "s1"});
}

TEST_CASE("days are those of the local time zone, also where a clock is put forward") {
  const auto days = [](const char* name, std::initializer_list<std::int64_t> times) {
    const earshot::test::TimeZone zone(name);
    RecordedUsage usage(ModelTable::built_in());
    int n = 0;
    for (const std::int64_t time : times) add(usage, std::to_string(++n), "/a", "m", {.input = 1}, time);
    return names({usage, UsageBy::day, {}});
  };
  CHECK(days("UTC", {noon + 12 * hour - 1}) == Names{"2026-03-01"});
  CHECK(days("UTC", {noon + 12 * hour}) == Names{"2026-03-02"});
  CHECK(days("Asia/Kathmandu", {noon + 6 * hour + hour / 4 - 1}) == Names{"2026-03-01"});  // UTC+05:45
  CHECK(days("Asia/Kathmandu", {noon + 6 * hour + hour / 4}) == Names{"2026-03-02"});
  const std::int64_t spring = noon + 28 * 24 * hour;  // 2026-03-29 12:00 UTC: summer time in Berlin
  CHECK(days("Europe/Berlin", {spring + 10 * hour - 1, spring + 10 * hour}) ==
        Names{"2026-03-29", "2026-03-30"});
}

TEST_CASE("the table has complete numbers where they fit, and always fits the terminal") {
  RecordedUsage usage(ModelTable::built_in());
  add(usage, "2eaa1c04-0000", "/home/ada/\xE7\xAB\xAF\xE6\x9C\xAB\xE7\xAB\xAF\xE6\x9C\xAB", "m1",
      {.input = 123'456'789, .output = 23'456'789, .cache_read = 98'765'432'100, .cache_write = 1'234'567},
      noon);
  for (const UsageBy by :
       {UsageBy::day, UsageBy::session, UsageBy::project, UsageBy::model, UsageBy::program}) {
    const UsageReport report(usage, by, {});
    CHECK(report.table({.columns = 0}).find("98,765,432,100") != std::string::npos);
    for (const std::size_t columns : {40, 80, 100, 200}) {
      const std::string table = report.table({.columns = columns});
      for (std::size_t begin = 0, end = 0; (end = table.find('\n', begin)) != table.npos; begin = end + 1)
        CHECK(display_width(table.substr(begin, end - begin)) <= columns);
      CHECK((table.find("98,765,432,100") != table.npos) == (columns >= 100));
    }
    CHECK(report.table({.columns = 80}).find("98.8G") != std::string::npos);
  }
}

TEST_CASE("models without a price are named on one line each, cut, with what can be done") {
  const earshot::test::TimeZone zone("UTC");
  RecordedUsage usage(ModelTable::built_in());
  add(usage, "s1", "/a", "a\nb\tc", {.input = 5}, noon);
  add(usage, "s2", "/a", std::string(100, 'x').c_str(), {.input = 5}, noon);
  const std::string table = UsageReport(usage, UsageBy::day, {}).table({.columns = 0});
  CHECK(table.find("no price: a b c, " + std::string(43, 'x') + "…\nPrices can be added: ") != table.npos);
}

TEST_CASE("JSON has the sums of each row and model") {
  const earshot::test::TimeZone zone("UTC");
  RecordedUsage usage(ModelTable::built_in());
  add(usage, "s1", "/a", "no-such-model", {.input = 1, .output = 2, .cache_read = 3, .cache_write = 4}, noon);
  const std::string sums =
      R"("input":1,"output":2,"cache_read":3,"cache_write":4,"total":10,"messages":1,"unpriced_tokens":10)";
  const std::string models = R"("models":[{"model":"no-such-model",)" + sums + "}]";
  CHECK(UsageReport(usage, UsageBy::day, {.transcripts = 1, .bytes = 9}).json() ==
        R"({"by":"day","rows":[{"day":"2026-03-01",)" + sums + "," + models + R"(}],"total":{)" + sums + "," +
            models + R"(},"transcripts":1,"bytes":9,"copies":0})");
  CHECK(UsageReport(usage, UsageBy::model, {.since_ms = noon})
            .json()
            .starts_with(
                R"({"by":"model","since":"2026-03-01T12:00:00.000Z","rows":[{"model":"no-such-model",)" +
                sums + "}],"));
  CHECK(
      UsageReport(usage, UsageBy::session, {})
          .json()
          .find(
              R"({"session":"s1","program":"claude-code","project":"/a","last":"2026-03-01T12:00:00.000Z",)") !=
      std::string::npos);
}

}  // namespace usage_report_test
