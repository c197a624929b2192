#include "base/json_rewrite.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace earshot;

namespace {

std::string rewritten(std::string_view json, const RewriteOptions& options = {}) {
  std::string out;
  const Rewritten result = rewrite_json(out, json, options);
  switch (result.result) {
    case JsonResult::complete:
      return out;
    case JsonResult::stopped:
      return "stopped: " + out;
    case JsonResult::too_deep:
      return "too deep";
    case JsonResult::invalid:
      return "invalid";
  }
  return {};
}

std::vector<std::string> records(const SplitLine& split) {
  std::vector<std::string> texts;
  for (const RepairedJson& one : split.records) texts.push_back(one.text);
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("rewritten JSON has no white space, and the same numbers and escapes") {
  CHECK(rewritten(" { \"a\" : [ 1.0 , 1e3 , -0 ] , \"b\" : \"\\u0041\\/\\n\" , \"c\" : { } } ") ==
        R"({"a":[1.0,1e3,-0],"b":"\u0041\/\n","c":{}})");
  CHECK(rewritten("\"a\"") == "\"a\"");
  CHECK(rewritten("[[],{},[[null,true,false]]]") == "[[],{},[[null,true,false]]]");
  CHECK(rewritten("123456789012345678901234567890") == "123456789012345678901234567890");
}

TEST_CASE("other text is invalid") {
  for (const char* text :
       {"",         " ",          "{",     "}",     "[1",        "[1,]", "[,1]",    "{\"a\"}",
        "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:2}", "tru",       "01",   "1.",      "\"a",
        "\"\\x\"",  "\"\n\"",     "1 2",   "[1]]",  "{\"a\":1]", "[1}",  "\"a\" b", "NaN"}) {
    CAPTURE(text);
    CHECK(rewritten(text) == "invalid");
  }
  CHECK(repair_json("1 2").text == "1");  // the first value only
  CHECK(repair_json("[1}").result == JsonResult::invalid);
}

TEST_CASE("bytes that are not UTF-8 and lone surrogates are repaired") {
  CHECK(rewritten("[\"a\xff\",\"\\uD800\"]") == "[\"a\xef\xbf\xbd\",\"\xef\xbf\xbd\"]");
  const RepairedJson repaired = repair_json(" {\"a\xff\":\"\\uDC00x\"} rest");
  CHECK(repaired.result == JsonResult::complete);
  CHECK(repaired.text == "{\"a\xef\xbf\xbd\":\"\xef\xbf\xbdx\"}");
  CHECK(repaired.is_changed);
  CHECK(repaired.is_object);
  CHECK(repaired.bytes == 18);
  CHECK_FALSE(repair_json(R"({"a":"\uD83D\uDE42é"})").is_changed);
}

TEST_CASE("text that is known to be valid UTF-8 is rewritten as other text is") {
  for (const std::string_view json :
       {R"({"a": ["\u00e9\n", "字 é 😀", 1.5e3, null], "字": ""})", R"("\ud800 字")", "[1,}", "\"\x01\""}) {
    std::string checked, unchecked;
    const Rewritten expected = rewrite_json(checked, json, {.text_bytes_max = 5});
    const Rewritten found = rewrite_json(unchecked, json, {.text_bytes_max = 5, .is_utf8 = true});
    CHECK(found.result == expected.result);
    CHECK(unchecked == checked);
  }
}

TEST_CASE("numbers that a strict parser refuses are kept as they are written") {
  const RepairedJson repaired =
      repair_json("[1e400,18446744073709551616,18446744073709551615,-9223372036854775809]");
  CHECK(repaired.text == "[1e400,18446744073709551616,18446744073709551615,-9223372036854775809]");
  CHECK_FALSE(repair_json("[1e308,18446744073709551615,-9223372036854775808]").is_changed);
  CHECK(repaired.is_changed);
  CHECK_FALSE(repaired.is_object);
}

TEST_CASE("nesting has a limit") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK(rewritten(nested(64)) == nested(64));
  CHECK(rewritten(nested(65)) == "too deep");
  CHECK(rewritten(nested(65), {.depth_max = 65}) == nested(65));
  CHECK(repair_json(nested(nesting_max)).result == JsonResult::complete);
  CHECK(repair_json(nested(nesting_max + 1)).result == JsonResult::too_deep);
}

TEST_CASE("rewriting stops once enough was read and written") {
  const std::string json = "[\"" + std::string(100, 'a') + "\"," + std::string(1000, ' ') + "\"b\"]";
  CHECK(rewritten(json, {.enough_bytes = 50}) == "stopped: [\"" + std::string(100, 'a') + "\",");
  CHECK(rewritten("[1]", {.enough_bytes = 50}) == "[1]");
}

TEST_CASE("the prefix of JSON is cut between characters") {
  std::string scratch;
  CHECK(json_prefix("{\"a\":\"é\"}", 7, nullptr, scratch) == "{\"a\":\"");
  CHECK(json_prefix("{\"a\":1}", 100, nullptr, scratch) == "{\"a\":1}");
}

TEST_CASE("a line of several objects is split") {
  const SplitLine split = split_line(R"({"a":1}{"b":2} {"c":3})");
  CHECK_FALSE(split.is_broken);
  CHECK(records(split) == Texts{R"({"a":1})", R"({"b":2})", R"({"c":3})"});
}

TEST_CASE("complete objects with a type are salvaged from the end of a broken line") {
  const SplitLine split = split_line(R"({"type":"x","a":"torn{"type":"user","b":1}{"type":"z"})");
  CHECK(split.is_broken);
  CHECK(split.is_salvaged);
  CHECK(records(split) == Texts{R"({"type":"user","b":1})", R"({"type":"z"})"});
  const SplitLine without_type = split_line(R"({"a":"torn{"b":1})");
  CHECK(without_type.is_broken);
  CHECK_FALSE(without_type.is_salvaged);
  CHECK(records(without_type).empty());
  const SplitLine leading = split_line(R"({"a":1}garbage)");
  CHECK(leading.is_broken);
  CHECK(records(leading) == Texts{R"({"a":1})"});
}

TEST_CASE("a line with a single value that is not an object is not broken") {
  const SplitLine split = split_line(" [1,2] ");
  CHECK_FALSE(split.is_broken);
  REQUIRE(split.records.size() == 1);
  CHECK_FALSE(split.records[0].is_object);
  CHECK(split_line("[1] [2]").is_broken);
}

TEST_CASE("of a line that is nested too deeply nothing is used") {
  const SplitLine split = split_line(R"({"a":1})" + std::string(nesting_max + 1, '['));
  CHECK(split.is_too_deep);
  CHECK(split.is_broken);
  CHECK(split.records.empty());
}

TEST_CASE("fault 141: a broken line costs a bounded amount of work") {
  const std::string end = R"({"type":"z"})", braces = "{\"type\":\"a\",";  // each brace begins a candidate
  const auto line = [&](std::string_view part, std::size_t bytes) {
    std::string text = "x";
    while (text.size() < bytes) text += part;
    return text + end;
  };
  CHECK(records(split_line(line(braces, 2'000))) == Texts{end});
  CHECK(split_line(line(braces, 1 << 20)).records.empty());
  CHECK(records(split_line(line("x", 16 << 20))) == Texts{end});
  CHECK(split_line(line("{", 16 << 20)).records.empty());
  CHECK(split_line("x{\"type\":\"a\",\"text\":\"" + std::string(salvage_bytes_max, 'x') + "\"}")
            .records.empty());
}

TEST_CASE("the last of two types decides whether an object is salvaged") {
  CHECK(split_line(R"(x{"type":1,"type":"a"})").is_salvaged);
  CHECK_FALSE(split_line(R"(x{"type":"a","type":{}})").is_salvaged);
  CHECK_FALSE(split_line(R"(x{"a":{"type":"a"}})").is_salvaged);
  CHECK_FALSE(split_line(R"(x["type","a"])").is_salvaged);
  CHECK(split_line(R"(x{"\u0074ype":"a"})").is_salvaged);
}
