#include "notifier/template.hpp"

#include <catch2/catch.hpp>
#include <map>

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
