#include "notifier/rules.hpp"

#include <catch2/catch.hpp>

using namespace earshot::notifier;

TEST_CASE("comparisons") {
  struct Row {
    const char* text;
    double value;
    bool holds;
  };
  for (const Row& row : {Row{">30s", 30'001, true}, Row{">30s", 30'000, false}, Row{">= 30s", 30'000, true},
                         Row{"30s", 30'000, true}, Row{"<1m", 59'999, true}, Row{"<1m", 60'000, false},
                         Row{"<=1m", 60'000, true}, Row{"=0", 0, true}}) {
    INFO(row.text << " " << row.value);
    REQUIRE(parse_duration_comparison(row.text));
    CHECK(parse_duration_comparison(row.text)->holds(row.value) == row.holds);
  }
  CHECK(parse_number_comparison("> $2.50")->holds(2.51));
  CHECK_FALSE(parse_number_comparison(">2.50")->holds(2.5));
  for (const char* text : {"", ">", ">x", "!3", "> 3 4", ">-1", ">nan", ">inf", "400d"}) {
    INFO(text);
    CHECK_FALSE(parse_number_comparison(text));
    CHECK_FALSE(parse_duration_comparison(text));
  }
}

TEST_CASE("quiet hours over midnight belong to the day on which they begin") {
  const auto at = [](int weekday, int hour, int minute = 0) {
    return LocalTime{weekday, hour * 60 + minute};
  };
  const auto night = parse_quiet_hours("22:00-07:00");
  REQUIRE(night);
  CHECK(night->holds(at(0, 22)));
  CHECK(night->holds(at(0, 6, 59)));
  CHECK_FALSE(night->holds(at(0, 7)));
  CHECK_FALSE(night->holds(at(0, 21, 59)));
  const auto friday = parse_quiet_hours("fri 22:00-02:00");
  REQUIRE(friday);
  CHECK(friday->holds(at(4, 23)));
  CHECK(friday->holds(at(5, 1)));
  CHECK_FALSE(friday->holds(at(4, 1)));
  CHECK_FALSE(friday->holds(at(5, 23)));
  const auto weekend = parse_quiet_hours("sat,sun");
  REQUIRE(weekend);
  CHECK(weekend->holds(at(6, 12)));
  CHECK_FALSE(weekend->holds(at(0, 0)));
  const auto work = parse_quiet_hours("mon-fri 12:00-13:00");
  REQUIRE(work);
  CHECK(work->holds(at(4, 12, 30)));
  CHECK_FALSE(work->holds(at(5, 12, 30)));
  const auto over_sunday = parse_quiet_hours("sun-mon");
  REQUIRE(over_sunday);
  CHECK(over_sunday->holds(at(6, 1)));
  CHECK(over_sunday->holds(at(0, 1)));
  CHECK_FALSE(over_sunday->holds(at(1, 1)));
  for (const char* text : {"", "22-7", "25:00-26:00", "22:00", "22:60-23:00", "funday", "mon 22:00",
                           "10:00-10:00", "24:00-03:00", "mon-"}) {
    INFO(text);
    CHECK_FALSE(parse_quiet_hours(text));
  }
}
