#include "base/json_writer.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

using namespace earshot;

namespace {

std::string in_quotes(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace

TEST_CASE("strings are escaped where JSON requires it") {
  CHECK(in_quotes("") == R"("")");
  CHECK(in_quotes("plain é 漢") == R"("plain é 漢")");
  CHECK(in_quotes("a\"b\\c/\n\r\t") == R"("a\"b\\c/\n\r\t")");
  CHECK(in_quotes(std::string_view("\0\x1f\x7f", 3)) == "\"\\u0000\\u001f\x7f\"");
  CHECK(in_quotes(std::string(100, '"')).size() == 202);
}

TEST_CASE("JSON strings have U+FFFD for bytes that are not UTF-8") {
  CHECK(in_quotes("a\xff"
                  "b") ==
        "\"a\xef\xbf\xbd"
        "b\"");
  CHECK(in_quotes("\xe2\x82") == "\"\xef\xbf\xbd\"");  // one for the beginning of a character
  CHECK(in_quotes("\xed\xa0\x80") == "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST_CASE("objects and arrays have commas between their values") {
  std::string out = "data: ";
  JsonWriter json(out);
  json.begin_object().member("text", "a\"b").member("yes", true).member("count", std::uint64_t{7});
  json.member("negative", -1).member("ratio", 0.25).member("string", std::string("s"));
  json.member("absent", std::optional<int>()).member("present", std::optional<int>(3));
  json.member_if_any("none", "").member_if_any("some", "x").key("null").null();
  json.key("empty").begin_object().end_object().key("list").begin_array().end_array();
  json.key("nested").begin_array().begin_object().member("a", 1).end_object().begin_object().end_object();
  json.value(2)
      .end_array()
      .raw_member("raw", "[1,2]")
      .array_member("words", std::vector<std::string>{"a", "b"});
  json.end_object();
  CHECK(
      out ==
      R"(data: {"text":"a\"b","yes":true,"count":7,"negative":-1,"ratio":0.25,"string":"s","present":3,)"
      R"("some":"x","null":null,"empty":{},"list":[],"nested":[{"a":1},{},2],"raw":[1,2],"words":["a","b"]})");
}

TEST_CASE("a caller appends a value of its own") {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_json_number(json.key("a").next(), 1);
  json.key("b").next() += "[]";
  json.key("c").array(std::vector<int>{1, 2}, [&](int number) { json.value(number * 10); });
  json.end_object();
  CHECK(out == R"({"a":1,"b":[],"c":[10,20]})");
}

TEST_CASE("a value that ends like an opening bracket does not suppress the comma") {
  std::string out;
  JsonWriter json(out);
  json.begin_array().value("{").value("[").value(":").value("").end_array();
  CHECK(out == R"(["{","[",":",""])");
}

TEST_CASE("numbers that JSON does not have are null") {
  std::string out;
  JsonWriter json(out);
  json.begin_array().value(std::numeric_limits<double>::infinity());
  json.value(std::numeric_limits<double>::quiet_NaN()).value(1e300).value(INT64_MIN).end_array();
  CHECK(out == "[null,null,1e+300,-9223372036854775808]");
}
