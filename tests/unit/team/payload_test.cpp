#include "team/payload.hpp"

#include <catch2/catch.hpp>

#include "core/transcript.hpp"

using namespace earshot;
using namespace earshot::team;

TEST_CASE("a subject has host, project, session and stream") {
  const std::string main = "earshot.v1.dev7.claude=2F-home-ada.6f0c";
  CHECK(event_subject("dev7", "6f0c", "claude/-home-ada/6f0c") == main);
  CHECK(event_subject("dev7", "6f0c", "claude/conversations/x/6f0c") ==
        "earshot.v1.dev7.claude=2Fconversations=2Fx.6f0c");
  // Streams other than the session's main one have their name as a token.
  CHECK(event_subject("dev7", "0c", "claude/-home-ada/6f0c") ==
        "earshot.v1.dev7.claude=2F-home-ada.0c.claude=2F-home-ada=2F6f0c");
  CHECK(event_subject("dev7", "6f0c", "claude/-home-ada/6f0c/subagents/agent-1") ==
        "earshot.v1.dev7.claude=2F-home-ada.6f0c.claude=2F-home-ada=2F6f0c=2Fsubagents=2Fagent-1");
  CHECK(event_subject("dev7", "", "claude/-home-ada/agent-1") ==
        "earshot.v1.dev7.claude=2F-home-ada.=.claude=2F-home-ada=2Fagent-1");
  CHECK(is_subject_of(main, "dev7", "claude/-home-ada/6f0c"));
  CHECK(is_subject_of(main + ".claude=2F-home-ada=2F6f0c", "dev7", "claude/-home-ada/6f0c"));
  CHECK_FALSE(is_subject_of(main, "dev8", "claude/-home-ada/6f0c"));
  CHECK_FALSE(is_subject_of(main, "dev7", "claude/-home-ada/6f0d"));
  CHECK_FALSE(is_subject_of(main, "dev7", "other/-home-ada/6f0c"));
  CHECK_FALSE(is_subject_of(main + ".x", "dev7", "claude/-home-ada/6f0c"));
  CHECK_FALSE(is_subject_of("", "dev7", "6f0c"));
  CHECK(event_subject("a.b", "", "claude/6f0c") == "earshot.v1.a=2Eb.=.=.claude=2F6f0c");
  const auto tokens = tokens_of("earshot.v1.a=2Eb.=.=.claude=2F6f0c");
  REQUIRE(tokens);
  CHECK(tokens->host == "a=2Eb");
  CHECK(tokens->stream == "claude=2F6f0c");
  for (const char* wrong :
       {"earshot.v1.a.b.c", "earshot.v1.a.b.c.d.e", "earshot.v1.a..c.d", "other.v1.a.b.c.d", ""})
    CHECK_FALSE(tokens_of(wrong));
}

TEST_CASE("a message id has stream, cursor and history for any stream name") {
  const std::string id = message_id("dev7", "claude/a/b#c", "12.1.00ff", "");
  const auto parts = parts_of_id("dev7", id);
  REQUIRE(parts);
  CHECK(parts->stream == "claude/a/b#c");
  CHECK(parts->cursor == "12.1.00ff");
  CHECK(parts->history.empty());
  const std::string renewed = message_id("dev7", "claude/a/b", "12.1.00ff", "1f2e");
  const auto again = parts_of_id("dev7", renewed);
  REQUIRE(again);
  CHECK(again->cursor == "12.1.00ff");
  CHECK(again->history == "1f2e");
  CHECK_FALSE(parts_of_id("dev", id));
  CHECK_FALSE(parts_of_id("dev7", "dev7/"));
}

TEST_CASE("the source of a message is a URI of host and stream") {
  CHECK(event_source("ada.example", "claude/-home-ada-api/6f0c~1_2") ==
        "earshot://ada.example/claude/-home-ada-api/6f0c~1_2");
  CHECK(event_source("dev7", "claude/a b\"ü%3A?#") == "earshot://dev7/claude/a%20b%22%C3%BC%253A%3F%23");
  CHECK(event_source("dev7", std::string(500, '"')).size() < 200);
  CHECK(event_source("dev7", "") == "earshot://dev7");
}

TEST_CASE("a valid host name has only characters that subjects, files and session names allow") {
  for (const char* shorten_event : {"dev7", "ada.example", "a_b-c", "7"}) CHECK(is_host(shorten_event));
  for (const std::string& unfit :
       {std::string(), std::string("a@b"), std::string("a b"), std::string("ü"), std::string(65, 'x')})
    CHECK_FALSE(is_host(unfit));
}

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

TEST_CASE("a status carries what the last prompt led to, and what cannot be is absent") {
  status::Status status{"idle", "", "", "registry", ""};
  status.done = status::Done{"completed", 4, 3, "2026-03-14T09:27:01.020Z", 780'000, 12'000, true};
  const std::string payload = status_payload("ada", "s", status);
  CHECK(read_frame(payload)->status == status);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = payload;
    changed.replace(changed.find(from), from.size(), to);
    return read_frame(changed)->status->done;
  };
  for (const char* turn : {"-1", "4294967296", "\"4\"", "null"})
    CHECK_FALSE(with(R"("turn":4)", R"("turn":)" + std::string(turn)));
  CHECK_FALSE(with(R"("duration_ms":780000)", R"("duration_ms":99999999999999999)")->duration_ms);
  CHECK(with("2026-03-14T09:27:01.020Z", "yesterday")->prompted.empty());
  CHECK(with("completed", std::string(500, 'x'))->outcome.empty());
}

TEST_CASE(
    "fault 149: a status carries the projects of its session, or one that nobody is granted if they are too "
    "long") {
  status::Status status{"waiting", "permission", "approve Bash: ls", "registry", ""};
  status.projects = {"/home/ada/api", "/srv/vault"};
  const auto sent = [&] {
    const std::string payload = status_payload("dev7", "s", status, {});
    REQUIRE(payload.size() <= status_bytes_max);
    return read_frame(payload)->status.value();
  };
  CHECK(sent() == status);
  status.projects.push_back("/" + std::string(status_bytes_max, 'x'));
  status.projects = sent().projects;
  CHECK(status.projects == std::vector<std::string>{std::string(unknown_project)});
  CHECK(sent() == status);
}

TEST_CASE("a status carries the numbers that events do not contain") {
  const status::Status status{"idle", "", "", "registry", ""};
  serve::ReportedNumbers numbers;
  numbers.context_window = 200'000;
  numbers.cost_usd = 0.25;
  numbers.cost_source = "mixed";
  numbers.limits = {{"2026-03-14T09:27:01.020Z",
                     "claude",
                     "max",
                     "five_hour",
                     {{"five_hour", 23.5, 300, "2026-03-14T12:00:00.000Z"}, {"seven_day", {}, {}, ""}}}};
  numbers.times = TimeSpent{1000, 2000, 3000, 100, 200};
  const std::string payload = status_payload("ada", "s", status, numbers);
  const auto frame = read_frame(payload);
  REQUIRE(frame);
  CHECK(frame->numbers == numbers);
  CHECK(frame->status == status);
  CHECK(read_frame(status_payload("ada", "s", status))->numbers == serve::ReportedNumbers{});
  CHECK(status_payload("ada", "s", status) ==
        R"({"type":"status","host":"ada","session":"s","state":"idle","source":"registry"})");
}

TEST_CASE("impossible numbers in a status are absent, and lists are bounded") {
  const auto numbers_of = [](const std::string& members) {
    const auto frame =
        read_frame(R"({"type":"status","host":"ada","session":"s","state":"idle",)" + members + "}");
    REQUIRE(frame);
    return frame->numbers;
  };
  for (const char* members :
       {R"("times":{"waited_ms":-1,"worked_ms":1,"idle_ms":1,"turn":{"waited_ms":1,"worked_ms":1}})",
        R"("times":{"waited_ms":1})", R"("usage":7)", R"("usage":{"context_window":-1,"cost_usd":1})",
        R"("limits":{})", R"("usage":{"cost_usd":-1,"cost_source":"recorded"})",
        R"("usage":{"cost_usd":1e300,"cost_source":"recorded"})",
        R"("usage":{"cost_usd":1,"cost_source":"guessed"})",
        R"("usage":{"cost_usd":"1","cost_source":"recorded"})"}) {
    CAPTURE(members);
    CHECK(numbers_of(members) == serve::ReportedNumbers{});
  }
  const auto limit =
      numbers_of(R"("limits":[{"time":"today","limit":7,"windows":[{"name":"w","used_percent":-1,)"
                 R"("window_minutes":1e12,"resets_at":"soon"},{"used_percent":1}]}])");
  REQUIRE(limit.limits.size() == 1);
  CHECK(limit.limits[0] == LimitState{"", "", "", "", {{"w", {}, {}, ""}}});
  std::string many = R"("limits":[)";
  for (int n = 0; n < 100; ++n) many += R"({"windows":[{"name":"w"}]},)";
  many.back() = ']';
  CHECK(numbers_of(many).limits.size() == 8);
}

TEST_CASE("numbers that make a status too long are left out") {
  const status::Status status{"idle", "", "", "registry", ""};
  serve::ReportedNumbers numbers;
  numbers.limits = {{"", std::string(status_bytes_max, 'x'), "", "", {}}};
  CHECK(status_payload("ada", "s", status, numbers) == status_payload("ada", "s", status));
}
