#include "notifier/rules.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace rules_test {

using namespace earshot::notifier;

namespace {

std::string fill(const std::string& text, const std::map<std::string, std::string>& values) {
  const auto parsed = Template::parse(text);
  INFO(text);
  REQUIRE(std::holds_alternative<Template>(parsed));
  return std::get<Template>(parsed).fill([&](std::string_view name) {
    const auto found = values.find(std::string(name));
    return found == values.end() ? std::string() : found->second;
  });
}

std::string problems(const std::string& text) {
  const auto parsed = Template::parse(text);
  INFO(text);
  REQUIRE(std::holds_alternative<Template::Error>(parsed));
  return std::get<Template::Error>(parsed).why;
}

}  // namespace

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
  struct Row {
    const char* hours;
    int weekday, hour, minute;
    bool holds;
  };
  for (const Row& row : {
           Row{"22:00-07:00", 0, 22, 0, true},
           Row{"22:00-07:00", 0, 6, 59, true},
           Row{"22:00-07:00", 0, 7, 0, false},
           Row{"22:00-07:00", 0, 21, 59, false},
           Row{"fri 22:00-02:00", 4, 23, 0, true},
           Row{"fri 22:00-02:00", 5, 1, 0, true},
           Row{"fri 22:00-02:00", 4, 1, 0, false},
           Row{"fri 22:00-02:00", 5, 23, 0, false},
           Row{"sat,sun", 6, 12, 0, true},
           Row{"sat,sun", 0, 0, 0, false},
           Row{"mon-fri 12:00-13:00", 4, 12, 30, true},
           Row{"mon-fri 12:00-13:00", 5, 12, 30, false},
           Row{"sun-mon", 6, 1, 0, true},
           Row{"sun-mon", 0, 1, 0, true},
           Row{"sun-mon", 1, 1, 0, false},
       }) {
    INFO(row.hours << " " << row.weekday << " " << row.hour << ":" << row.minute);
    const auto hours = parse_quiet_hours(row.hours);
    REQUIRE(hours);
    CHECK(hours->holds({row.weekday, row.hour * 60 + row.minute}) == row.holds);
  }
  for (const char* text : {"", "22-7", "25:00-26:00", "22:00", "22:60-23:00", "funday", "mon 22:00",
                           "10:00-10:00", "24:00-03:00", "mon-", "mon22:00-23:00"}) {
    INFO(text);
    CHECK_FALSE(parse_quiet_hours(text));
  }
}

// --- Template ---

TEST_CASE("variables are replaced, brackets without known variables are omitted") {
  CHECK(fill("{name} needs you", {{"name", "api"}}) == "api needs you");
  CHECK(fill("{reason}[: {tool}]", {{"reason", "permission"}, {"tool", "Bash"}}) == "permission: Bash");
  CHECK(fill("{reason}[: {tool}]", {{"reason", "permission"}}) == "permission");
  CHECK(fill("[{a}[ and {b}]]!", {{"b", "2"}}) == " and 2!");
  CHECK(fill("[{a}[ and {b}]]!", {}) == "!");
  CHECK(fill("[always]", {}) == "always");
  CHECK(fill("{{x}} [[y]]", {}) == "{x} [y]");
  CHECK(fill("a [{x}]  ", {}) == "a");
  CHECK(fill("", {}).empty());
}

TEST_CASE("values are not parsed as templates") {
  CHECK(fill("{a}", {{"a", "{b} [c]"}, {"b", "no"}}) == "{b} [c]");
}

TEST_CASE("errors name the missing bracket") {
  CHECK(problems("{name") == "a } is missing");
  CHECK(problems("[{name}") == "a ] is missing");
  CHECK(problems("{}") == "{} has no name");
  CHECK(problems("a } b").find("}}") != std::string::npos);
  CHECK(problems("a ] b").find("]]") != std::string::npos);
  CHECK(problems("[ [ [ [ [ x").find("deeply") != std::string::npos);
  CHECK(problems(std::string(Template::bytes_max + 1, 'x')).find("longer") != std::string::npos);
}

TEST_CASE("names() lists the variables") {
  CHECK(std::get<Template>(Template::parse("{a}[ {b}[{c}]]")).names() ==
        std::vector<std::string>{"a", "b", "c"});
}

}  // namespace rules_test
