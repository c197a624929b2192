#include "cli/statusline.hpp"

#include <catch2/catch.hpp>

#include "common/format.hpp"

using namespace earshot;
using namespace earshot::cli;

namespace {

const std::int64_t noon = *parse_time("2025-11-04T12:00:00Z");

struct Told {
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
  Told told;
  CHECK(told.bar.line().empty());
  told.session("a", "idle");
  told.session("b", "ended");
  told.session("c", "unknown");
  CHECK(told.bar.line().empty());
  told.session("d", "working");
  told.session("e", "working");
  CHECK(told.bar.line() == "● 2");
  told.session("a", "waiting", R"(,"reason":"permission","detail":"approve Bash: rm -rf build")");
  CHECK(told.bar.line() == "⏸ 1 ● 2");
  told.session("d", "idle");
  CHECK(told.bar.line() == "⏸ 1 ● 1");
}

TEST_CASE("the JSON lists waiting and working sessions and counts each state") {
  Told told;
  CHECK(
      told.bar.json() ==
      R"({"text":"","alt":"idle","class":"idle","tooltip":"","waiting":0,"working":0,"idle":0,"unknown":0})");
  told.session("a", "waiting", R"(,"reason":"permission","detail":"approve Bash: \"x\" \u001b[31m <b>")");
  told.session("b", "working");
  told.session("c", "idle");
  CHECK(
      told.bar.json() ==
      R"({"text":"⏸ 1 ● 1","alt":"waiting","class":"waiting","tooltip":"⏸ api permission: approve Bash: \"x\" )"
      R"(\\x1b[31m <b>\n● api: Fix it","waiting":1,"working":1,"idle":1,"unknown":0})");
}

TEST_CASE("a session is removed with its main transcript, all sessions with a new connection") {
  Told told;
  told.session("a", "working");
  told.session("a", "working", "", "hub");
  CHECK(told.bar.line() == "● 2");
  told.frame(
      R"({"type":"stream.removed","host":"dev7","session":"a","stream":"claude/-p/a/subagents/agent-1"})");
  CHECK(told.bar.line() == "● 2");
  told.frame(R"({"type":"stream.removed","host":"dev7","session":"a","stream":"claude/-p/a"})");
  CHECK(told.bar.line() == "● 1");
  told.frame(R"({"type":"welcome"})");
  told.bar.begin();
  CHECK(told.bar.line().empty());
}

TEST_CASE("the tooltip is bounded and ends with the number of omitted sessions") {
  Told told;
  for (int n = 0; n < 20; ++n)
    told.session("s" + std::to_string(n), "waiting",
                 R"(,"reason":"question","detail":")" + std::string(3000, 'x') + "\"");
  const std::string json = told.bar.json();
  CHECK(json.size() < StatusLine::lines_max * (StatusLine::line_columns_max + 10) + 200);
  CHECK(json.find("\\n+8\"") != json.npos);
  CHECK(told.bar.line() == "⏸ 20");
}

TEST_CASE("without a daemon the line is earshot?") {
  CHECK(StatusLine::offline_line() == "earshot?");
  CHECK(StatusLine::offline_json("no \"daemon\"") ==
        R"({"text":"earshot?","alt":"away","class":"away","tooltip":"no \"daemon\""})");
}

TEST_CASE("on a hub the tooltip names hosts, and sessions are removed per host") {
  Told told;
  const auto at = [&](const std::string& host) {
    told.frame(R"({"type":"session","host":")" + host + R"(","session":"a@)" + host +
               R"(","project":"/home/u/api","title":"Fix it","status":{"state":"working"},"cursors":["hub/)" +
               host + R"(/c=2F-p=2Fa=2Fsubagents=2Fagent-1:1.1.x","hub/)" + host + R"(/c=2F-p=2Fa:1.1.x"]})");
  };
  at("ada");
  CHECK(told.bar.json().find("● api: Fix it") != std::string::npos);
  at("bob");
  CHECK(told.bar.json().find("● ada:api: Fix it") != std::string::npos);
  CHECK(told.bar.json().find("● bob:api: Fix it") != std::string::npos);
  const auto removed = [&](const std::string& stream) {
    told.frame(R"({"type":"stream.removed","host":"bob","session":"a@bob","stream":"hub/bob/)" + stream +
               "\"}");
  };
  removed("c=2F-p=2Fa=2Fsubagents=2Fagent-1");
  CHECK(told.bar.line() == "● 2");
  removed("c=2F-p=2Fa");
  CHECK(told.bar.line() == "● 1");
}
