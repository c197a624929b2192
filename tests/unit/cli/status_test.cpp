#include <catch2/catch.hpp>

#include "unit/cli/fixture.hpp"

namespace status_test {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::cli::test;

TEST_CASE("status prints what the daemon monitors and its problems") {
  const State state;
  const std::string health =
      R"({"version":"1.0.0","host":"dev7","pid":42,"uptime_s":125,"sessions":4,"socket":"/s",)"
      R"("roots":[{"name":"claude","path":"/home/u/.claude","present":true,"transcripts":12,"live":3}],)"
      R"("watch":{"mode":"inotify","inotify_watches":7},"problems":[]})";
  std::string with_problem = health;
  with_problem.replace(with_problem.find(R"("problems":[])"), 13,
                       R"("problems":[{"path":"/x","reason":"Permission denied"}])");
  const auto answer = [](std::string json) { return [json](Peer& peer) { peer.answer("200 OK", json); }; };
  const std::string metrics =
      "earshot_sessions{state=\"working\"} 2\nearshot_sessions{state=\"waiting\"} 1\n";
  FakeDaemon daemon({answer(health), answer(metrics), answer(with_problem), answer(metrics)}, state.socket());
  const ReportOptions options{.daemon = state.options(), .colour = ColourMode::never};
  const Printed good = run(status_command, options);
  CHECK(good.exit_code == exit_ok);
  CHECK(good.out ==
        "daemon    earshotd 1.0.0 on dev7: all right, up 2m05s, pid 42\n"
        "sessions  3: 1 waiting, 2 working\n"
        "root      /home/u/.claude: 12 transcripts\n"
        "watching  inotify, 7 directories\n");
  const Printed bad = run(status_command, options);
  CHECK(daemon.join().empty());
  CHECK(bad.exit_code == exit_failed);
  CHECK(bad.out.find("problem   /x: Permission denied\n") != std::string::npos);
}

TEST_CASE("the programs of roots are shown if not all are Claude Code's") {
  const State state;
  const auto root = [](const std::string& name, const std::string& program) {
    return R"({"name":")" + name + R"(","path":"/home/u/.)" + name + R"(","program":")" + program +
           R"(","present":true,"transcripts":2,"live":1})";
  };
  const std::string health =
      R"({"version":"1.0.0","host":"dev7","pid":42,"sessions":3,"socket":"/s","problems":[],"roots":[)" +
      root("claude", "claude-code") + "," + root("codex", "codex") + "]}";
  const auto answer = [](std::string json) { return [json](Peer& peer) { peer.answer("200 OK", json); }; };
  FakeDaemon daemon({answer(health), answer(""), answer(health), answer("")}, state.socket());
  ReportOptions options{.daemon = state.options(), .colour = ColourMode::never};
  const std::string text = run(status_command, options).out;
  CHECK(text.find("root      /home/u/.claude (Claude Code): 2 transcripts\n") != std::string::npos);
  CHECK(text.find("root      /home/u/.codex (Codex CLI): 2 transcripts\n") != std::string::npos);
  options.json = true;
  CHECK(run(status_command, options).out.find(R"("path":"/home/u/.codex","program":"codex")") !=
        std::string::npos);
  CHECK(daemon.join().empty());
}

TEST_CASE("status without a daemon has its own exit code") {
  const Printed printed = run_without_daemon(status_command);
  CHECK(printed.exit_code == exit_no_daemon);
  CHECK(printed.err.find("Start it:  earshotd") != std::string::npos);
}

}  // namespace status_test
