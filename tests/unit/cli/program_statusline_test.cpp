#include "cli/program_statusline.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "unit/cli/fixture.hpp"

namespace program_statusline_test {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::cli::test;

namespace {

const std::int64_t noon = *parse_time("2025-11-04T12:00:00Z");

const std::string input =
    R"({"session_id":"own","model":{"id":"claude-opus-4-1","display_name":"Opus 4.1"},"context_window":{"context_window_size":200000,"used_percentage":12,"current_usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":24000}},"cost":{"total_cost_usd":1.25},"rate_limits":{"five_hour":{"used_percentage":23.5,"resets_at":99999999999},"seven_day":{"used_percentage":41}}})";

std::string session(const std::string& id, const std::string& members) {
  return R"({"type":"session","host":"dev7","session":")" + id + R"(","project":"/home/u/)" + id + "\"" +
         members + "}\n";
}
std::string waiting(const std::string& id, const std::string& since) {
  return session(
      id, R"(,"status":{"state":"waiting","reason":"permission","since":"2025-11-04T)" + since + R"(Z"})");
}
constexpr int patience_ms = 120'000;  // a busy machine may need longer than the real deadline
const std::string ready = "{\"type\":\"ready\",\"id\":\"events\"}\n";

// What the command prints for this text on stdin.
Printed printed_for(const std::string& text, const StatusLineOptions& options) {
  const TemporaryDirectory folder;
  const int file = ::open(folder.put("in", text).c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(file >= 0);
  const Redirected in(STDIN_FILENO, file);
  ::close(file);
  return printed_by([&] { return program_statusline_command(options); });
}

}  // namespace

TEST_CASE("the line of a program shows what is known") {
  ProgramLine line;
  CHECK(format_program_line(line, Charset::utf8, noon).empty());
  line.model = "Opus 4.1";
  line.context_percent = 12.5;
  line.cost = "$1.25";
  line.limits = {{"5h", true, 23.5, noon + 1000}, {"7d", true, 41, noon - 1000}};
  line.waiting = {"web permission 2m"};
  CHECK(format_program_line(line, Charset::utf8, noon) ==
        "Opus 4.1 ▰▱▱▱▱ 12% · $1.25 · 5h 23% · ⏸ web permission 2m");
  line.waiting = {"a", "b", "c", "d"};
  line.unseen = 3;
  line.limits.clear();
  CHECK(format_program_line(line, Charset::ascii, noon) == "Opus 4.1 #---- 12% - $1.25 - ! a, b +2 + 3");
  line = {};
  line.model = std::string(1000, 'm');
  line.waiting = {std::string(1000, 'w')};
  CHECK(display_width(format_program_line(line, Charset::utf8, noon)) == program_line_columns_max);
}

TEST_CASE("other sessions that wait are named, the longest wait first, the own one completes the numbers") {
  ProgramLine line;
  const std::string frames = waiting("web", "11:58:00") + waiting("api", "11:50:00") +
                             waiting("own", "11:00:00") +
                             session("x", R"(,"unseen":true,"status":{"state":"idle"})") + "nonsense\n" +
                             ready + waiting("late", "11:00:00");
  CHECK(add_sessions(line, frames, "own", Charset::utf8, noon));
  CHECK(line.waiting == std::vector<std::string>{"api permission 10m", "web permission 2m"});
  CHECK(line.unseen == 1);
  const std::string own = session(
      "own",
      R"(,"model":"m","usage":{"context":50,"context_window":100,"cost_usd":2,"cost_source":"estimated"},"limits":[{"limit":"claude","windows":[{"name":"five_hour","used_percent":5,"window_minutes":300}]}])");
  CHECK_FALSE(add_sessions(line, own + R"({"type":"session","sess)", "own", Charset::utf8, noon));
  CHECK(format_program_line(line, Charset::utf8, noon) ==
        "m ▰▰▰▱▱ 50% · ~$2.00 · 5h 5% · ⏸ api permission 10m, web permission 2m ✓ 1");
  line.cost = "$3.00";
  add_sessions(line, own, "own", Charset::utf8, noon);
  CHECK(line.cost == "$3.00");
}

TEST_CASE("the JSON on stdin becomes one line, and the daemon receives it unchanged") {
  const State state;
  std::string asked, handed;
  FakeDaemon daemon({[&](Peer& peer) {
                       asked = peer.head();
                       peer.raw("HTTP/1.0 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n" +
                                session("web", R"(,"status":{"state":"waiting","reason":"question"})") +
                                ready);
                     },
                     [&](Peer& peer) { handed = peer.answer("204 No Content", ""); }},
                    state.socket());
  const Printed printed =
      printed_for(input, {.daemon = state.options(), .from = "claude-code", .wait_ms = patience_ms});
  CHECK(daemon.join().empty());
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.out == "Opus 4.1 ▰▱▱▱▱ 12% · $1.25 · 5h 23% 7d 41% · ⏸ web question\n");
  CHECK(printed.err.empty());
  CHECK(asked.starts_with("GET /v1/events?deliver=state&view=meta HTTP/1.0\r\n"));
  CHECK(handed.starts_with("POST /v1/statusline HTTP/1.0\r\n"));
  CHECK(handed.ends_with("\r\n\r\n" + input));
}

TEST_CASE("without a daemon the line shows the program's own numbers") {
  const State state;
  const Printed printed =
      printed_for(input, {.daemon = state.options(), .from = "claude-code", .wait_ms = patience_ms});
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.out == "Opus 4.1 ▰▱▱▱▱ 12% · $1.25 · 5h 23% 7d 41%\n");
  CHECK(printed.err.empty());
}

TEST_CASE("bad input is an empty line, and the daemon receives nothing of it") {
  const State state;
  for (const std::string& text :
       {std::string(), std::string("not JSON"), std::string("[1]"), std::string("{\"session_id\":7}"),
        R"({"session_id":"own","x":")" + std::string(100 << 10, 'x') + "\"}"}) {
    CAPTURE(text.substr(0, 40));
    FakeDaemon daemon({[&](Peer& peer) {
                        peer.head();
                        peer.raw("HTTP/1.0 200 OK\r\n\r\n" + ready);
                      }},
                      state.socket());
    const Printed printed =
        printed_for(text, {.daemon = state.options(), .from = "claude-code", .wait_ms = patience_ms});
    CHECK(daemon.join().empty());
    CHECK(printed.exit_code == exit_ok);
    CHECK(printed.out == "\n");
    CHECK(printed.err.empty());
    std::filesystem::remove(state.path("sock"));
  }
}

TEST_CASE("text of the program cannot control the terminal") {
  const State state;
  const Printed printed =
      printed_for(R"({"session_id":"s","model":{"display_name":"Op\u001b[31mus\n\u202e\u0007"}})",
                  {.daemon = state.options(), .from = "claude-code", .wait_ms = patience_ms});
  CHECK(printed.out == "Op\\x1b[31mus \\u202e\\x07\n");
}

TEST_CASE("a daemon that does not answer, and a program that does not close stdin, are not waited for") {
  const State state;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  FakeDaemon daemon({[](Peer& peer) { peer.rest(); }, [](Peer& peer) { peer.rest(); }}, state.socket());
  REQUIRE(::write(ends[1], input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  const Redirected in(STDIN_FILENO, ends[0]);
  const Printed printed = printed_by([&] {
    return program_statusline_command({.daemon = state.options(), .from = "claude-code", .wait_ms = 5000});
  });
  ::close(ends[0]);
  ::close(ends[1]);
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.out.starts_with("Opus 4.1 ▰▱▱▱▱ 12%"));
  CHECK(daemon.join().empty());
}

TEST_CASE("the hint names the file and this program's path") {
  const Printed printed = printed_by([] { return program_statusline_command({.install_hint = true}); });
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.out.find("settings.json") != std::string::npos);
  CHECK(printed.out.find(R"("statusLine": {"type":"command","command":"/)") != std::string::npos);
  CHECK(printed.out.find(R"( statusline --from claude-code"})") != std::string::npos);
}

}  // namespace program_statusline_test
