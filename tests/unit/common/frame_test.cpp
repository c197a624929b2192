#include "common/frame.hpp"

#include <catch2/catch.hpp>

using namespace earshot::common;

TEST_CASE("fields of another type than requested are absent") {
  FrameParser parser;
  const auto frame = parser.parse(R"({"a":1,"b":"two","c":[{"d":3},4],"e":-5,"f":true,"g":{"h":"i"}})");
  REQUIRE(frame);
  CHECK(frame->text("a").empty());
  CHECK(frame->text("b") == "two");
  CHECK(frame->integer("a") == 1);
  CHECK_FALSE(frame->integer("b"));
  CHECK(frame->count("e") == 0);
  CHECK(frame->flag("f"));
  CHECK_FALSE(frame->flag("a"));
  CHECK(frame->objects("c").size() == 1);
  CHECK(frame->array_size("c") == 2);
  CHECK(frame->object("g").text("h") == "i");
  CHECK_FALSE(frame->object("none"));
  CHECK(frame->object("none").object("deeper").text("still").empty());
}

TEST_CASE("the complete size of a truncated text is listed by its path") {
  FrameParser parser;
  const auto frame = parser.parse(
      R"({"prompt":"once upon","text":"all","input":{"command":"x"},"truncated":{"prompt":90000,"input/command":5000}})");
  REQUIRE(frame);
  CHECK(frame->text("prompt") == "once upon");
  CHECK(frame->truncated_bytes("prompt") == 90000);
  CHECK(frame->truncated_bytes("input/command") == 5000);
  CHECK(frame->truncated_bytes("text") == 0);
}

TEST_CASE("a number outside of all ranges does not make the frame unreadable") {
  FrameParser parser;
  for (const char* number : {"1e400", "18446744073709551616", "-99999999999999999999999999", "0.1e-9999"}) {
    CAPTURE(number);
    const auto frame = parser.parse(R"({"type":"tool.invoked","input":{"n":)" + std::string(number) +
                                    R"(,"s":"1e400 \" 2"}})");
    REQUIRE(frame);
    CHECK(frame->text("type") == "tool.invoked");
    CHECK(frame->object("input").text("s") == "1e400 \" 2");
  }
}

TEST_CASE("other JSON than an object is not a frame") {
  FrameParser parser;
  for (const char* text : {"", "[]", "7", "{\"a\":", "\"x\"", "{\"a\":1}{\"b\":2}"}) {
    CAPTURE(text);
    CHECK_FALSE(parser.parse(text));
  }
}
