#include "common/format.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>

using namespace earshot::common;

namespace {

// The local time zone for one test.
class Zone {
 public:
  explicit Zone(const char* name) {
    if (const char* before = std::getenv("TZ")) before_ = before;
    setenv("TZ", name, 1);
    tzset();
  }
  ~Zone() {
    if (before_.empty())
      unsetenv("TZ");
    else
      setenv("TZ", before_.c_str(), 1);
    tzset();
  }

 private:
  std::string before_;
};

}  // namespace

TEST_CASE("counts have three digits and a unit") {
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

TEST_CASE("bytes are counted in powers of ten") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(812) == "812 B");
  CHECK(format_bytes(4'500) == "4.5 kB");
  CHECK(format_bytes(1'400'000'000) == "1.4 GB");
}

TEST_CASE("durations are as fine as matters") {
  CHECK(format_duration(-5) == "0 ms");
  CHECK(format_duration(12) == "12 ms");
  CHECK(format_duration(100) == "0.1 s");
  CHECK(format_duration(400) == "0.4 s");
  CHECK(format_duration(31'900) == "31.9 s");
  CHECK(format_duration(59'949) == "59.9 s");
  CHECK(format_duration(59'950) == "1m00s");
  CHECK(format_duration(125'000) == "2m05s");
  CHECK(format_duration(3'599'499) == "59m59s");
  CHECK(format_duration(3'599'500) == "1h00m");
  CHECK(format_duration(4'320'000) == "1h12m");
  CHECK(format_duration(273'600'000) == "3d04h");
}

TEST_CASE("ages have one unit, and the future is now") {
  CHECK(format_age(-10'000) == "0s");
  CHECK(format_age(3'999) == "3s");
  CHECK(format_age(5 * 60'000) == "5m");
  CHECK(format_age(2 * 3'600'000) == "2h");
  CHECK(format_age(4 * 86'400'000LL) == "4d");
}

TEST_CASE("times are read with fractions and zones") {
  CHECK(parse_time("1970-01-01T00:00:00Z") == 0);
  CHECK(parse_time("2025-11-04T13:03:07.250Z") == 1'762'261'387'250);
  CHECK(parse_time("2025-11-04T14:03:07.250+01:00") == 1'762'261'387'250);
  CHECK(parse_time("2025-11-04T13:03:07.250999Z") == 1'762'261'387'250);
  CHECK(parse_time("1969-12-31T23:59:59.500Z") == -500);
}

TEST_CASE("what is no time is none") {
  for (const char* text :
       {"", "yesterday", "2025-11-04", "2025-02-30T00:00:00Z", "2025-11-04T24:00:00Z", "2025-11-04T13:03:07",
        "2025-11-04T13:03:07.Z", "2025-11-04T13:03:07Zx", "2025-13-04T13:03:07Z"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_time(text));
  }
}

TEST_CASE("clocks are local") {
  const Zone zone("CET-1");
  CHECK(format_local_clock(*parse_time("2025-11-04T13:03:07Z")) == "14:03:07");
  CHECK(format_local_day(*parse_time("2025-11-03T23:30:00Z")) == "Tue  4 Nov 2025");
  CHECK(format_local_clock(-500) == "00:59:59");
}
