#include "base/time.hpp"

#include <catch2/catch.hpp>

#include "unit/support/time_zone.hpp"

using namespace earshot;
using earshot::test::TimeZone;

TEST_CASE("times are parsed with fractions and offsets") {
  CHECK(parse_time("1970-01-01T00:00:00Z") == 0);
  CHECK(parse_time("2025-11-04T13:03:07.250Z") == 1'762'261'387'250);
  CHECK(parse_time("2025-11-04T14:03:07.250+01:00") == 1'762'261'387'250);
  CHECK(parse_time("2025-11-04t10:33:07.250-02:30") == 1'762'261'387'250);
  CHECK(parse_time("2025-11-04 13:03:07.250z") == 1'762'261'387'250);
  CHECK(parse_time("2025-11-04T13:03:07.250999Z") == 1'762'261'387'250);
  CHECK(parse_time("2025-11-04T13:03:07.2Z") == 1'762'261'387'200);
  CHECK(parse_time("1969-12-31T23:59:59.500Z") == -500);
  CHECK(parse_time("2016-12-31T23:59:60Z") == parse_time("2017-01-01T00:00:00Z"));
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
  CHECK(format_local_day(*parse_time("2025-11-03T23:30:00Z")) == "Tue  4 Nov 2025");
  CHECK(format_local_clock(-500) == "00:59:59");
}
