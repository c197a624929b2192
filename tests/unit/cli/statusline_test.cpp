#include "cli/statusline.hpp"

#include <catch2/catch.hpp>

#include "common/format.hpp"

namespace statusline_test {

using namespace earshot;
using namespace earshot::cli;

namespace {

const std::int64_t noon = *parse_time("2025-11-04T12:00:00Z");

struct Bar {
  cli::StatusLine bar{Charset::utf8};
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
  CHECK(shown.bar.line(noon).empty());
  shown.session("a", "idle");
  shown.session("b", "ended");
  shown.session("c", "unknown");
  CHECK(shown.bar.line(noon).empty());
  shown.session("d", "working");
  shown.session("e", "working");
  CHECK(shown.bar.line(noon) == "● 2");
  shown.session("a", "waiting", R"(,"reason":"permission","detail":"approve Bash: rm -rf build")");
  CHECK(shown.bar.line(noon) == "⏸ 1 ● 2");
  shown.session("d", "idle");
  CHECK(shown.bar.line(noon) == "⏸ 1 ● 1");
}

TEST_CASE("the JSON lists waiting and working sessions and counts each state") {
  Bar shown;
  CHECK(
      shown.bar.json(noon) ==
      R"({"text":"","alt":"idle","class":"idle","tooltip":"","waiting":0,"working":0,"unseen":0,"idle":0,"unknown":0})");
  shown.session("a", "waiting", R"(,"reason":"permission","detail":"approve Bash: \"x\" \u001b[31m <b>")");
  shown.session("b", "working");
  shown.session("c", "idle");
  CHECK(
      shown.bar.json(noon) ==
      R"({"text":"⏸ 1 ● 1","alt":"waiting","class":"waiting","tooltip":"⏸ api permission: approve Bash: \"x\" )"
      R"(\\x1b[31m <b>\n● api: Fix it","waiting":1,"working":1,"unseen":0,"idle":1,"unknown":0})");
}

TEST_CASE("a session is removed with its main transcript, all sessions with a new connection") {
  Bar shown;
  shown.session("a", "working");
  shown.session("a", "working", "", "hub");
  CHECK(shown.bar.line(noon) == "● 2");
  shown.frame(
      R"({"type":"stream.removed","host":"dev7","session":"a","stream":"claude/-p/a/subagents/agent-1"})");
  CHECK(shown.bar.line(noon) == "● 2");
  shown.frame(R"({"type":"stream.removed","host":"dev7","session":"a","stream":"claude/-p/a"})");
  CHECK(shown.bar.line(noon) == "● 1");
  shown.frame(R"({"type":"welcome"})");
  shown.bar.begin();
  CHECK(shown.bar.line(noon).empty());
}

TEST_CASE("fault 125: a session whose transcript was moved is removed with it") {
  Bar shown;
  shown.frame(
      R"({"type":"session","host":"dev7","session":"a","cursors":["claude/-p/a:9.1.x"],"status":{"state":"working"}})");
  shown.frame(
      R"({"type":"stream.renamed","host":"dev7","session":"a","from":"claude/-p/a","to":"claude/-t/a"})");
  shown.frame(R"({"type":"stream.removed","host":"dev7","session":"a","stream":"claude/-p/a"})");
  CHECK(shown.bar.line(noon) == "● 1");
  shown.frame(R"({"type":"stream.removed","host":"dev7","session":"a","stream":"claude/-t/a"})");
  CHECK(shown.bar.line(noon).empty());
}

TEST_CASE("the tooltip is bounded and ends with the number of omitted sessions") {
  Bar shown;
  for (int n = 0; n < 20; ++n)
    shown.session("s" + std::to_string(n), "waiting",
                  R"(,"reason":"question","detail":")" + std::string(3000, 'x') + "\"");
  const std::string json = shown.bar.json(noon);
  CHECK(json.size() < cli::StatusLine::lines_max * (cli::StatusLine::line_columns_max + 10) + 200);
  CHECK(json.find("\\n+8\"") != json.npos);
  CHECK(shown.bar.line(noon) == "⏸ 20");
}

TEST_CASE("without a daemon the line is earshot?") {
  CHECK(cli::StatusLine::offline_line() == "earshot?");
  CHECK(cli::StatusLine::offline_json("no \"daemon\"") ==
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
  CHECK(shown.bar.json(noon).find("● api: Fix it") != std::string::npos);
  at("bob");
  CHECK(shown.bar.json(noon).find("● ada:api: Fix it") != std::string::npos);
  CHECK(shown.bar.json(noon).find("● bob:api: Fix it") != std::string::npos);
  const auto removed = [&](const std::string& stream) {
    shown.frame(R"({"type":"stream.removed","host":"bob","session":"a@bob","stream":"hub/bob/)" + stream +
                "\"}");
  };
  removed("c=2F-p=2Fa=2Fsubagents=2Fagent-1");
  CHECK(shown.bar.line(noon) == "● 2");
  removed("c=2F-p=2Fa");
  CHECK(shown.bar.line(noon) == "● 1");
}

TEST_CASE("sessions that finished unseen are counted until they were seen") {
  Bar shown;
  const auto finished = [&](const std::string& id, const std::string& members) {
    shown.frame(R"({"type":"session","host":"dev7","session":")" + id +
                R"(","project":"/home/u/api","title":"Fix it","status":{"state":"idle"})" + members + "}");
  };
  finished("a", R"(,"unseen":true)");
  finished("b", R"(,"unseen":true,"usage":{"context":90,"context_window":100})");
  CHECK(shown.bar.line(noon) == "✓ 2");
  const std::string json = shown.bar.json(noon);
  CHECK(json.find(R"("class":"unseen")") != json.npos);
  CHECK(json.find(R"("tooltip":"✓ api: Fix it\n✓ api ▰▰▰▰▱ 90%: Fix it")") != json.npos);
  CHECK(json.find(R"("unseen":2,"idle":2)") != json.npos);
  shown.session("c", "working");
  finished("a", "");
  CHECK(shown.bar.line(noon) == "● 1 ✓ 1");
}

TEST_CASE("with limits the line ends with the fullest one, without text of transcripts") {
  Bar shown;
  shown.bar = cli::StatusLine(Charset::utf8, true);
  const auto session = [&](const std::string& program, const std::string& windows) {
    shown.frame(R"({"type":"session","host":"dev7","session":"s)" + program + R"(","program":")" + program +
                R"(","status":{"state":"working"},"limits":[{"time":"2025-11-04T11:00:00Z","limit":")" +
                program + R"(","windows":[)" + windows + "]}]}");
  };
  CHECK(shown.bar.line(noon).empty());
  session(
      "codex",
      R"({"name":"#[bold]","used_percent":99},{"name":"primary","used_percent":12.9,"window_minutes":300})");
  CHECK(shown.bar.line(noon) == "● 1 5h 12%");
  session(
      "claude-code",
      R"({"name":"five_hour","used_percent":61.5,"window_minutes":300,"resets_at":"2025-11-04T14:00:00Z"},{"name":"seven_day","used_percent":18,"window_minutes":10080})");
  CHECK(shown.bar.line(noon) == "● 2 5h 61% 7d 18%");
  CHECK(shown.bar.line(noon + 3 * 3600 * 1000) == "● 2 7d 18%");
  const std::string json = shown.bar.json(noon);
  CHECK(json.find(R"(\nlimits of claude-code  61% of 5h until )") != json.npos);
  shown.bar.begin();
  CHECK(shown.bar.line(noon).empty());
}

}  // namespace statusline_test
