#include "common/format.hpp"

#include <simdjson.h>

#include <catch2/catch.hpp>
#include <clocale>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>

#include "unit/places.hpp"

namespace format_test {

using namespace earshot;
using namespace earshot::common;

namespace {

/// The charset in this environment; other variables of the locale are not set.
Charset charset_in(const std::map<std::string, std::string>& environment) {
  std::map<std::string, std::string> before;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const char* value = std::getenv(name)) before[name] = value;
    ::unsetenv(name);
  }
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  const Charset charset = charset_of_locale();
  for (const auto& [name, value] : environment) ::unsetenv(name.c_str());
  for (const auto& [name, value] : before) ::setenv(name.c_str(), value.c_str(), 1);
  std::setlocale(LC_CTYPE, "C");
  return charset;
}

}  // namespace

TEST_CASE("fault 156: a locale that is not installed states its charset") {
  CHECK(charset_in({{"LANG", "xx_YY.UTF-8"}}) == Charset::utf8);
  CHECK(charset_in({{"LC_CTYPE", "xx_YY.utf8@euro"}, {"LANG", "C"}}) == Charset::utf8);
  CHECK(charset_in({{"LC_ALL", "xx_YY.ISO-8859-1"}, {"LANG", "xx_YY.UTF-8"}}) == Charset::ascii);
  CHECK(charset_in({{"LC_ALL", ""}, {"LANG", "xx_YY"}}) == Charset::ascii);
}

TEST_CASE("the charset of an installed locale is its own") {
  CHECK(charset_in({{"LC_ALL", "C"}, {"LANG", "xx_YY.UTF-8"}}) == Charset::ascii);
  CHECK(charset_in({{"LC_ALL", "C.UTF-8"}}) == Charset::utf8);
  CHECK(charset_in({}) == Charset::ascii);
}

TEST_CASE("prices are displayed as on the page: displayed.json") {
  simdjson::dom::parser parser;
  std::size_t cases = 0;
  const simdjson::dom::element table =
      parser.load((earshot::test::sources() / "tests/unit/base/displayed.json").string());
  for (const simdjson::dom::element row : table["prices"].get_array()) {
    const double usd = row["usd"].get_double();
    CAPTURE(usd);
    CHECK(format_usd(usd) == row["text"].get_string().value());
    CHECK(format_usd(usd, true) == "~" + std::string(row["text"].get_string().value()));
    ++cases;
  }
  CHECK(cases > 5);
  for (const double usd : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()})
    CHECK(format_usd(usd).empty());
}

TEST_CASE("the periods of limits are named by their length") {
  CHECK(period_text(300) == "5h");
  CHECK(period_text(10'080) == "7d");
  CHECK(period_text(90) == "1h30m");
  CHECK(period_text(std::numeric_limits<std::int64_t>::max()) == "36500d");
}

}  // namespace format_test

TEST_CASE("fault 133: the name of a directory, also of Windows") {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"/home/u/api", "api"},
      {"/home/u/api/", "api"},
      {"/", "/"},
      {"", ""},
      {"api", "api"},
      {R"(/home/u/a\b)", R"(a\b)"},
      {R"(C:\Users\u\api)", "api"},
      {R"(c:/Users/u/api)", "api"},
      {R"(C:\Users/u\api\)", "api"},
      {R"(C:\)", "C:"},
      {R"(\\server\share\api)", "api"},
      {R"(\\wsl.localhost\Debian\home/u/api)", "api"},
  };
  for (const auto& [path, name] : names) CHECK(last_component(path) == name);
}
