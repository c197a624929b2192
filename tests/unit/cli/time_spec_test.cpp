#include "cli/time_spec.hpp"

#include <stdlib.h>
#include <time.h>

#include <catch2/catch.hpp>

#include "common/format.hpp"

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::common;

namespace {

// 2026-11-24 14:30:00 in Berlin, where it is winter.
const std::int64_t now = *parse_time("2026-11-24T13:30:00Z");

struct Berlin {
  Berlin() {
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
  }
  ~Berlin() {
    unsetenv("TZ");
    tzset();
  }
};

}  // namespace

TEST_CASE("a duration is subtracted from now") {
  CHECK(parse_since("90s", now) == now - 90'000);
  CHECK(parse_since("10m", now) == now - 600'000);
  CHECK(parse_since("2h", now) == now - 7'200'000);
  CHECK(parse_since("3d", now) == now - 3 * 86'400'000LL);
  CHECK(parse_since("0s", now) == now);
}

TEST_CASE("a time without a date is the latest such time") {
  const Berlin here;
  CHECK(parse_since("14:03", now) == parse_time("2026-11-24T13:03:00Z"));
  CHECK(parse_since("14:03:07", now) == parse_time("2026-11-24T13:03:07Z"));
  CHECK(parse_since("15:00", now) == parse_time("2026-11-23T14:00:00Z"));
}

TEST_CASE("a date is local; a zone is respected") {
  const Berlin here;
  CHECK(parse_since("2026-11-24", now) == parse_time("2026-11-23T23:00:00Z"));
  CHECK(parse_since("2026-07-01 12:00", now) == parse_time("2026-07-01T10:00:00Z"));
  CHECK(parse_since("2026-11-24T14:00:01", now) == parse_time("2026-11-24T13:00:01Z"));
  CHECK(parse_since("2026-11-24T14:00:01Z", now) == parse_time("2026-11-24T14:00:01Z"));
}

TEST_CASE("other text is not a time") {
  for (const char* text : {"", "m", "10", "-5m", "10x", "1.5h", "25:00", "14:61", "yesterday", "2026-13-01",
                           "99999999999d", "10m "}) {
    CAPTURE(text);
    CHECK_FALSE(parse_since(text, now));
  }
}
