#include "cli/statusline.hpp"

#include <catch2/catch.hpp>

#include "common/format.hpp"

using namespace earshot;
using namespace earshot::cli;

namespace {

const std::int64_t noon = *parse_time("2025-11-04T12:00:00Z");

struct Bar {
  StatusLine bar{Charset::utf8};
  FrameParser parser;
  void frame(const std::string& json) {
    const auto frame = parser.parse(json);
    REQUIRE(frame);
    bar.receive(*frame, noon);
  }
  void session(const std::string& id, const std::string& state, const std::string& more = "",
               const std::string& host = "dev7") {
    frame(R"({"type":"session","host":")" + host + R"(","session":")" + id + R"(","project":"/home/u/api",)" +
          R"("title":"Fix it","status":{"state":")" + state + "\"" + more + "}}");
  }
};

}  // namespace

TEST_CASE("the line counts waiting and working sessions only") {
  Bar shown;
  CHECK(shown.bar.line().empty());
  shown.session("a", "idle");
  shown.session("b", "ended");
  shown.session("c", "unknown");
  CHECK(shown.bar.line().empty());
  shown.session("d", "working");
  shown.session("e", "working");
  CHECK(shown.bar.line() == "● 2");
  shown.session("a", "waiting", R"(,"reason":"permission","detail":"approve Bash: rm -rf build")");
  CHECK(shown.bar.line() == "⏸ 1 ● 2");
  shown.session("d", "idle");
  CHECK(shown.bar.line() == "⏸ 1 ● 1");
}

TEST_CASE("the JSON lists waiting and working sessions and counts each state") {
  Bar shown;
  CHECK(
      shown.bar.json() ==
      R"({"text":"","alt":"idle","class":"idle","tooltip":"","waiting":0,"working":0,"idle":0,"unknown":0})");
  shown.session("a", "waiting", R"(,"reason":"permission","detail":"approve Bash: \"x\" \u001b[31m <b>")");
  shown.session("b", "working");
  shown.session("c", "idle");
  CHECK(
      shown.bar.json() ==
      R"({"text":"⏸ 1 ● 1","alt":"waiting","class":"waiting","tooltip":"⏸ api permission: approve Bash: \"x\" )"
      R"(\\x1b[31m <b>\n● api: Fix it","waiting":1,"working":1,"idle":1,"unknown":0})");
}

TEST_CASE("a session is removed with its main transcript, all sessions with a new connection") {
  Bar shown;
  shown.session("a", "working");
  shown.session("a", "working", "", "hub");
  CHECK(shown.bar.line() == "● 2");
  shown.frame(
      R"({"type":"stream.removed","host":"dev7","session":"a","stream":"claude/-p/a/subagents/agent-1"})");
  CHECK(shown.bar.line() == "● 2");
  shown.frame(R"({"type":"stream.removed","host":"dev7","session":"a","stream":"claude/-p/a"})");
  CHECK(shown.bar.line() == "● 1");
  shown.frame(R"({"type":"welcome"})");
  shown.bar.begin();
  CHECK(shown.bar.line().empty());
}

TEST_CASE("the tooltip is bounded and ends with the number of omitted sessions") {
  Bar shown;
  for (int n = 0; n < 20; ++n)
    shown.session("s" + std::to_string(n), "waiting",
                  R"(,"reason":"question","detail":")" + std::string(3000, 'x') + "\"");
  const std::string json = shown.bar.json();
  CHECK(json.size() < StatusLine::lines_max * (StatusLine::line_columns_max + 10) + 200);
  CHECK(json.find("\\n+8\"") != json.npos);
  CHECK(shown.bar.line() == "⏸ 20");
}

TEST_CASE("without a daemon the line is earshot?") {
  CHECK(StatusLine::offline_line() == "earshot?");
  CHECK(StatusLine::offline_json("no \"daemon\"") ==
        R"({"text":"earshot?","alt":"away","class":"away","tooltip":"no \"daemon\""})");
}

TEST_CASE("on a hub the tooltip names hosts, and sessions are removed per host") {
  Bar shown;
  const auto at = [&](const std::string& host) {
    shown.frame(
        R"({"type":"session","host":")" + host + R"(","session":"a@)" + host +
        R"(","project":"/home/u/api","title":"Fix it","status":{"state":"working"},"cursors":["hub/)" + host +
        R"(/c=2F-p=2Fa=2Fsubagents=2Fagent-1:1.1.x","hub/)" + host + R"(/c=2F-p=2Fa:1.1.x"]})");
  };
  at("ada");
  CHECK(shown.bar.json().find("● api: Fix it") != std::string::npos);
  at("bob");
  CHECK(shown.bar.json().find("● ada:api: Fix it") != std::string::npos);
  CHECK(shown.bar.json().find("● bob:api: Fix it") != std::string::npos);
  const auto removed = [&](const std::string& stream) {
    shown.frame(R"({"type":"stream.removed","host":"bob","session":"a@bob","stream":"hub/bob/)" + stream +
                "\"}");
  };
  removed("c=2F-p=2Fa=2Fsubagents=2Fagent-1");
  CHECK(shown.bar.line() == "● 2");
  removed("c=2F-p=2Fa");
  CHECK(shown.bar.line() == "● 1");
}
