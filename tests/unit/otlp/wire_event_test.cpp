#include "otlp/wire_event.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "base/json_scan.hpp"
#include "core/event_json.hpp"

namespace earshot::otlp {
namespace {

std::string encoded(EventBody body, std::string_view agent = "") {
  Event event;
  event.cursor = {10, 1, 0xabcdef};
  event.time = "2026-01-02T03:04:05.678Z";
  event.turn = 3;
  event.agent = agent;
  event.body = std::move(body);
  std::string out;
  append_event(out, event, StreamAddress{"h", "a \"stream\"", "t"});
  return out;
}

}  // namespace

TEST_CASE("the members of an event are read as they were written") {
  event::ToolInvoked call{"c1", "Bash", {R"({"command":"echo \"}],[{\" \\","n":[1,{"a":2}]})"}, {}};
  const std::string text = encoded(call, "agent");
  FrameParser parser;
  const auto frame = parser.parse(text);
  REQUIRE(frame);
  CHECK(frame->is_event());
  CHECK(frame->type == "tool.invoked");
  CHECK(frame->host == "h");
  CHECK(frame->stream == "a \"stream\"");
  CHECK(frame->session == "t");
  CHECK(frame->agent == "agent");
  CHECK(frame->cursor == Cursor{10, 1, 0xabcdef});
  CHECK(frame->time_ms == 1767323045678);
  CHECK(frame->turn == 3);
  CHECK(frame->text("call") == "c1");
  CHECK(frame->text("tool") == "Bash");
  CHECK(frame->json_text("input") == call.input.json);
  const auto input = frame->tree("input");
  REQUIRE(input);
  CHECK(dom::text_of(*input, "command") == "echo \"}],[{\" \\");
  CHECK(frame->text("input").empty());  // not a string
  CHECK(frame->text("absent").empty());
  CHECK(frame->json_text("absent").empty());
  CHECK_FALSE(frame->tree("absent"));
}

TEST_CASE("escapes are decoded, and views of several texts stay valid together") {
  FrameParser parser;
  const auto frame = parser.parse(
      R"({"type":"x","cursor":"10.1.0000000000abcdef","turn":1,"a":"line\n\ttab \u00e9 \ud83d\ude00","b":"\\\"","c":""})");
  REQUIRE(frame);
  const std::string_view a = frame->text("a"), b = frame->text("b");
  CHECK(a == "line\n\ttab \u00e9 \U0001F600");
  CHECK(b == "\\\"");
  CHECK(frame->text("c").empty());
}

TEST_CASE("numbers, flags and repeated names") {
  FrameParser parser;
  const auto frame = parser.parse(
      R"({"type":"x","cursor":"10.1.0000000000abcdef","turn":1,"n":-12,"r":2.5,"e":1e3,"big":1e400,"t":true,"f":false,"z":null,"n":13,"s":"14"})");
  REQUIRE(frame);
  CHECK(frame->number("n") == 13);  // the last one
  CHECK(frame->number("r") == 3);
  CHECK(frame->number("e") == 1000);
  CHECK_FALSE(frame->number("big"));
  CHECK_FALSE(frame->number("s"));
  CHECK_FALSE(frame->number("z"));
  CHECK_FALSE(frame->number("absent"));
  CHECK(frame->real("r") == 2.5);
  CHECK(frame->real("n") == 13.0);
  CHECK_FALSE(frame->real("t"));
  CHECK(frame->flag("t"));
  CHECK_FALSE(frame->flag("f"));
  CHECK_FALSE(frame->flag("absent"));
}

TEST_CASE("frames that are no events have their names in any order") {
  FrameParser parser;
  const auto reset =
      parser.parse(R"({"type":"reset","id":"a","host":"h","session":"t","stream":"s","reason":"rewritten"})");
  REQUIRE(reset);
  CHECK_FALSE(reset->is_event());
  CHECK(reset->session == "t");
  CHECK(reset->stream == "s");
  CHECK(reset->text("id") == "a");
  CHECK(reset->text("reason") == "rewritten");
  const auto bookmark = parser.parse(R"({"type":"bookmark","complete":true})");
  REQUIRE(bookmark);
  CHECK(bookmark->flag("complete"));
}

TEST_CASE("another text is no frame, and no prefix of one is read beyond its end") {
  FrameParser parser;
  for (const char* text : {"", "{", "{}", "[]", "null", "\"type\"", R"({"type"})", R"({"type":})",
                           R"({"type":"})", R"({"type":7})", R"({"stream":"s"})", "nonsense"})
    CHECK_FALSE(parser.parse(text));
  const std::string whole = encoded(event::ToolInvoked{"c", "Bash", {R"({"a":[{"b":"\\"}]})"}, {}}, "agent");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string part = whole.substr(0, size);  // its own allocation, for the sanitizer
    if (const auto frame = parser.parse(part)) {
      CHECK(frame->type == "tool.invoked");
      frame->text("input");
      frame->number("turn");
    }
  }
}

}  // namespace earshot::otlp
