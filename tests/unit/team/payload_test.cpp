#include "team/payload.hpp"

#include <catch2/catch.hpp>

#include "core/transcript.hpp"

using namespace earshot;
using namespace earshot::team;

TEST_CASE("read_frame reads the fields of events and session frames") {
  const auto event = read_frame(
      R"({"type":"turn.started","host":"h","stream":"s","session":"t","cursor":"12.1.00000000000000ff","turn":1})");
  REQUIRE(event);
  CHECK(event->is_event());
  CHECK(event->cursor == Cursor{12, 1, 255});
  const auto session = read_frame(
      R"({"type":"session","session":"t","cursors":["a:1.1.0000000000000001","b:"],"status":{"state":"idle","source":"registry"}})");
  REQUIRE(session);
  CHECK(session->cursors == std::vector<std::string>{"a:1.1.0000000000000001", "b:"});
  REQUIRE(session->status);
  CHECK(session->status->state == "idle");
  for (const char* wrong : {"", "[]", "{", "{}", R"({"type":7})", "\"type\""}) CHECK_FALSE(read_frame(wrong));
}

TEST_CASE("a heartbeat names the host, its owner and its instance") {
  CHECK(heartbeat_payload({"ada", "o", "i"}) ==
        R"({"type":"host","host":"ada","owner":"o","instance":"i","beat_ms":5000})");
  CHECK(owner_id(1).size() == 16);
  CHECK(owner_id(1) != owner_id(2));
}

TEST_CASE("the longest members of a long event are truncated and listed") {
  const std::string longest(700'000, 'x');
  const std::string payload =
      R"({"type":"todo.updated","host":"h","stream":"s","cursor":"1.1.0000000000000001","todos":[{"content":"one"},")" +
      longest + R"("],"input":")" + longest + R"(","source":"TodoWrite"})";
  const std::string cut = shorten_event(payload, 500 << 10);
  CHECK(cut.size() <= 500u << 10);
  const auto frame = read_frame(cut);
  REQUIRE(frame);
  CHECK(frame->is_event());
  CHECK(cut.find(R"("source":"TodoWrite")") != cut.npos);
  CHECK(cut.find(R"("todos":[{"content":"one"}])") != cut.npos);  // a list remains a list
  CHECK(cut.find(R"("truncated":{"input":700000})") != cut.npos);
  CHECK(shorten_event("{\"type\":\"x\"}", 500) == "{\"type\":\"x\"}");

  std::string many = R"({"type":"x")";
  for (int i = 0; i < 40; ++i) many += ",\"m" + std::to_string(i) + "\":\"" + std::string(30'000, 'y') + "\"";
  CHECK(shorten_event(many + "}", 500 << 10).size() <= 500u << 10);

  std::string short_ones = R"({"type":"x","stream":"s","cursor":"1.1.0000000000000001","turn":3)";
  for (int i = 0; i < 1000; ++i) short_ones += ",\"m" + std::to_string(i) + "\":1";
  CHECK(shorten_event(short_ones + "}", 600) ==
        R"({"type":"x","stream":"s","cursor":"1.1.0000000000000001","turn":3})");
}
