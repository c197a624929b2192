#include "base/quantities.hpp"

#include <simdjson.h>

#include <catch2/catch.hpp>
#include <string>

#include "unit/places.hpp"
#include "unit/support/time_zone.hpp"

using namespace earshot;
using namespace std::chrono_literals;
using earshot::test::TimeZone;
using std::chrono::milliseconds;

TEST_CASE("durations are parsed from one or more numbers with a unit") {
  struct Row {
    const char* text;
    milliseconds duration;
    const char* literal;
  };
  for (const Row& row :
       {Row{"0", 0ms, "0s"}, Row{"0s", 0ms, "0s"}, Row{"250ms", 250ms, "250ms"}, Row{"30s", 30s, "30s"},
        Row{"5m", 5min, "5m"}, Row{"90s", 90s, "1m30s"}, Row{"1h30m", 90min, "1h30m"}, Row{"24h", 24h, "1d"},
        Row{"7d", 168h, "7d"}, Row{"2w", 336h, "14d"}, Row{"1m500ms", 60'500ms, "1m500ms"},
        Row{"36500d", duration_max, "36500d"}}) {
    CAPTURE(row.text);
    CHECK(parse_duration(row.text) == row.duration);
    CHECK(duration_literal(row.duration) == row.literal);
    CHECK(parse_duration(row.literal) == row.duration);
  }
}

TEST_CASE("other text is not a duration") {
  for (const char* text :
       {"", "30", "s", "m", "-1s", "+1s", "5 m", " 5m", "5m ", "1y", "5m!", "5m3", "99999999999999999999s",
        "36501d", "36500d1ms", "9223372036854775807ms", "1.5s", "10x", "1H"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_duration(text));
  }
  CHECK(parse_duration("366d", 366 * 24h) == 366 * 24h);
  CHECK_FALSE(parse_duration("366d1s", 366 * 24h));
}

TEST_CASE("displayed durations have two or three significant digits") {
  CHECK(format_duration(-5ms) == "0ms");
  CHECK(format_duration(12ms) == "12ms");
  CHECK(format_duration(100ms) == "0.1s");
  CHECK(format_duration(400ms) == "0.4s");
  CHECK(format_duration(31'900ms) == "31.9s");
  CHECK(format_duration(std::chrono::milliseconds::max()) == "106751991167d07h");
  CHECK(format_duration(59'949ms) == "59.9s");
  CHECK(format_duration(59'950ms) == "1m00s");
  CHECK(format_duration(125s) == "2m05s");
  CHECK(format_duration(3'599'499ms) == "59m59s");
  CHECK(format_duration(3'599'500ms) == "1h00m");
  CHECK(format_duration(72min) == "1h12m");
  CHECK(format_duration(76h) == "3d04h");
}

TEST_CASE("durations, ages and counts are displayed as on the page: displayed.json") {
  simdjson::dom::parser parser;
  const auto load = [&] {
    return parser.load((test::sources() / "tests/unit/base/displayed.json").string());
  };
  const simdjson::dom::element table = load();
  std::size_t cases = 0;
  for (const simdjson::dom::element row : table["times"].get_array()) {
    const milliseconds time(row["ms"].get_int64().value());
    CAPTURE(time.count());
    CHECK(format_duration(time) == row["duration"].get_string().value());
    CHECK(format_age(time) == row["age"].get_string().value());
    ++cases;
  }
  for (const simdjson::dom::element row : table["counts"].get_array()) {
    CHECK(format_count(row["count"].get_uint64().value()) == row["text"].get_string().value());
    ++cases;
  }
  CHECK(cases > 20);
}

TEST_CASE("ages have one unit, and the future is now") {
  CHECK(format_age(-10s) == "0s");
  CHECK(format_age(3'999ms) == "3s");
  CHECK(format_age(5min) == "5m");
  CHECK(format_age(2h) == "2h");
  CHECK(format_age(96h) == "4d");
}

TEST_CASE("sizes have binary and decimal units") {
  struct Row {
    const char* text;
    std::uint64_t bytes;
    const char* literal;
  };
  for (const Row& row :
       {Row{"0", 0, "0B"}, Row{"512", 512, "512B"}, Row{"512B", 512, "512B"}, Row{"64KiB", 65536, "64KiB"},
        Row{"20GiB", 20ull << 30, "20GiB"}, Row{"1024GiB", 1ull << 40, "1TiB"},
        Row{"5MB", 5'000'000, "5000000B"}, Row{"1kB", 1000, "1000B"},
        Row{"18446744073709551615", ~0ull, "18446744073709551615B"}}) {
    CAPTURE(row.text);
    CHECK(parse_size(row.text) == row.bytes);
    CHECK(size_literal(row.bytes) == row.literal);
    CHECK(parse_size(row.literal) == row.bytes);
  }
  for (const char* text : {"", "GiB", "1 GiB", "1G", "1gib", "-1", "1.5GiB", "1GiB1", "1GiB1B", "16777216TiB",
                           "18446744073709551616"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_size(text));
  }
}

TEST_CASE("counts have up to three digits and a unit") {
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(1000) == "1.0k");
  CHECK(format_count(12'345) == "12.3k");
  CHECK(format_count(99'949) == "99.9k");
  CHECK(format_count(99'950) == "100k");
  CHECK(format_count(123'456) == "123k");
  CHECK(format_count(999'499) == "999k");
  CHECK(format_count(999'500) == "1.0M");
  CHECK(format_count(4'500'000) == "4.5M");
  CHECK(format_count(1'200'000'000) == "1.2G");
  CHECK(format_count(UINT64_MAX) == "18446744T");
}

TEST_CASE("displayed sizes are in powers of ten") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(812) == "812 B");
  CHECK(format_bytes(4'500) == "4.5 kB");
  CHECK(format_bytes(1'400'000'000) == "1.4 GB");
}

TEST_CASE("times are parsed with fractions and offsets") {
  CHECK(parse_time("1970-01-01T00:00:00Z") == 0);
  CHECK(parse_time("2025-11-04T13:03:07.250Z") == 1'762'261'387'250);
  CHECK(parse_time("2024-02-29T23:59:60.999Z") == 1'709'251'200'999);
  for (const char* bad : {"2025-02-29T13:03:07.250Z", "2025-13-04T13:03:07.250Z", "2025-11-04T24:03:07.250Z",
                          "2025-11-04T13:60:07.250Z", "2025-11-04T13:03:61.250Z", "2025-11-04T13:03:07.2x0Z",
                          "20x5-11-04T13:03:07.250Z", "2025-11-04T13:03:07,250Z"})
    CHECK_FALSE(parse_time(bad));
  CHECK(parse_time("2025-11-04T14:03:07.250+01:00") == 1'762'261'387'250);
  CHECK(parse_time("2025-11-04t10:33:07.250-02:30") == 1'762'261'387'250);
  CHECK(parse_time("2025-11-04 13:03:07.250z") == 1'762'261'387'250);
  CHECK(parse_time("2025-11-04T13:03:07.250999Z") == 1'762'261'387'250);
  CHECK(parse_time("2025-11-04T13:03:07.2Z") == 1'762'261'387'200);
  CHECK(parse_time("1969-12-31T23:59:59.500Z") == -500);
  CHECK(parse_time("2016-12-31T23:59:60Z") == parse_time("2017-01-01T00:00:00Z"));
}

TEST_CASE("the common form of a time is parsed as any other form") {
  const std::string common = "2025-11-04T13:03:07.250Z";
  for (std::size_t n = 0; n + 1 < common.size(); ++n)
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = common;
      changed[n] = static_cast<char>(byte);
      std::string longer = changed;
      longer.insert(longer.size() - 1, "0");  // four digits of the second
      CAPTURE(changed);
      CHECK(parse_time(changed) == parse_time(longer));
    }
}

TEST_CASE("other text is not a time") {
  for (const char* text : {"", "yesterday", "2025-11-04", "2025-02-30T00:00:00Z", "2025-11-04T24:00:00Z",
                           "2025-11-04T13:03:07", "2025-11-04T13:03:07.Z", "2025-11-04T13:03:07Zx",
                           "2025-13-04T13:03:07Z", "2025-11-04T13:03:61Z", "2025-11-04T13:03:07+24:00",
                           "2025-11-04T13:03:07+01:00x", "2025\r11-04T13:03:07Z", "-025-11-04T13:03:07Z"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_time(text));
  }
}

TEST_CASE("formatted times are parsed as the same times") {
  CHECK(format_time(0) == "1970-01-01T00:00:00.000Z");
  CHECK(format_time(1'762'261'387'250) == "2025-11-04T13:03:07.250Z");
  CHECK(format_time(-500) == "1969-12-31T23:59:59.500Z");
  for (std::int64_t ms = -40'000'000'000'000; ms < 200'000'000'000'000; ms += 987'654'321'987) {
    CAPTURE(ms);
    CHECK(parse_time(format_time(ms)) == ms);
  }
}

TEST_CASE("unknown times and those outside of the calendar are empty") {
  CHECK(format_time_if_valid(1) == "1970-01-01T00:00:00.001Z");
  CHECK(format_time_if_valid(253'402'300'799'999) == "9999-12-31T23:59:59.999Z");
  for (const std::int64_t ms :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{253'402'300'800'000}, INT64_MAX})
    CHECK(format_time_if_valid(ms).empty());
}

TEST_CASE("displayed times are local") {
  const TimeZone zone("CET-1");
  CHECK(format_local_clock(*parse_time("2025-11-04T13:03:07Z")) == "14:03:07");
  CHECK(format_local_day(*parse_time("2025-11-03T23:30:00Z")) == "Tue 4 Nov 2025");
  CHECK(format_local_clock(-500) == "00:59:59");
}

TEST_CASE("a day ends at the local midnights, also where clocks change") {
  const auto day = [](std::string_view time) {
    const LocalDay found = local_day(*parse_time(time));
    return format_time(found.begin) + " " + format_time(found.end);
  };
  const TimeZone zone("CET-1CEST,M3.5.0,M10.5.0/3");
  CHECK(day("2026-02-03T12:00:00Z") == "2026-02-02T23:00:00.000Z 2026-02-03T23:00:00.000Z");
  CHECK(day("2026-02-02T23:00:00Z") == "2026-02-02T23:00:00.000Z 2026-02-03T23:00:00.000Z");
  CHECK(day("2026-02-02T22:59:59.999Z") == "2026-02-01T23:00:00.000Z 2026-02-02T23:00:00.000Z");
  CHECK(day("2026-03-29T10:00:00Z") == "2026-03-28T23:00:00.000Z 2026-03-29T22:00:00.000Z");  // 23 hours
  CHECK(day("2026-10-25T10:00:00Z") == "2026-10-24T22:00:00.000Z 2026-10-25T23:00:00.000Z");  // 25 hours
}
