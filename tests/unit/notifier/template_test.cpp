#include "notifier/template.hpp"

#include <catch2/catch.hpp>
#include <map>

using namespace earshot::notifier;

namespace {

std::string filled(const std::string& text, const std::map<std::string, std::string>& words) {
  const auto parsed = Template::parse(text);
  INFO(text);
  REQUIRE(std::holds_alternative<Template>(parsed));
  return std::get<Template>(parsed).fill([&](std::string_view name) {
    const auto found = words.find(std::string(name));
    return found == words.end() ? std::string() : found->second;
  });
}

std::string trouble(const std::string& text) {
  const auto parsed = Template::parse(text);
  INFO(text);
  REQUIRE(std::holds_alternative<Template::Error>(parsed));
  return std::get<Template::Error>(parsed).why;
}

}  // namespace

TEST_CASE("names are replaced, and what is in brackets goes when nothing in it is known") {
  CHECK(filled("{name} needs you", {{"name", "api"}}) == "api needs you");
  CHECK(filled("{reason}[: {tool}]", {{"reason", "permission"}, {"tool", "Bash"}}) == "permission: Bash");
  CHECK(filled("{reason}[: {tool}]", {{"reason", "permission"}}) == "permission");
  CHECK(filled("[{a}[ and {b}]]!", {{"b", "2"}}) == " and 2!");
  CHECK(filled("[{a}[ and {b}]]!", {}) == "!");
  CHECK(filled("[always]", {}) == "always");
  CHECK(filled("{{x}} [[y]]", {}) == "{x} [y]");
  CHECK(filled("a [{x}]  ", {}) == "a");
  CHECK(filled("", {}).empty());
}

TEST_CASE("a value is text, whatever it holds") {
  CHECK(filled("{a}", {{"a", "{b} [c]"}, {"b", "no"}}) == "{b} [c]");
}

TEST_CASE("what is no template says what is missing") {
  CHECK(trouble("{name") == "a } is missing");
  CHECK(trouble("[{name}") == "a ] is missing");
  CHECK(trouble("{}") == "{} names nothing");
  CHECK(trouble("a } b").find("}}") != std::string::npos);
  CHECK(trouble("a ] b").find("]]") != std::string::npos);
  CHECK(trouble("[ [ [ [ [ x").find("deeply") != std::string::npos);
  CHECK(trouble(std::string(Template::bytes_max + 1, 'x')).find("longer") != std::string::npos);
}

TEST_CASE("a template tells what it names") {
  CHECK(std::get<Template>(Template::parse("{a}[ {b}[{c}]]")).names() ==
        std::vector<std::string>{"a", "b", "c"});
}
