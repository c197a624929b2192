#include <signal.h>

#include <catch2/catch.hpp>

#include "cli/commands.hpp"
#include "common/frame.hpp"
#include "unit/common/captured.hpp"

namespace replay_test {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::common::test;

namespace {

std::string record(const std::string& type, int number, const std::string& message,
                   const std::string& more = {}) {
  return R"({"type":")" + type + R"(","uuid":"u)" + std::to_string(number) + R"(","parentUuid":)" +
         (number == 1 ? "null" : "\"u" + std::to_string(number - 1) + "\"") +
         R"(,"sessionId":"5e55","version":"2.1.0","cwd":"/home/u/api","isSidechain":false,"timestamp":"2025-11-04T14:03:0)" +
         std::to_string(number) + R"(.000Z","message":)" + message + more + "}\n";
}

const std::string prompt = record("user", 1, R"({"role":"user","content":"hello there"})");
const std::string answer = record(
    "assistant", 2,
    R"({"id":"m1","role":"assistant","model":"c","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}})");

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

Printed replay(ReplayOptions options) {
  options.host = "h";
  return printed_by([&] { return replay_command(options); });
}

// The values of a field, one an event.
std::vector<std::string> fields_of(const std::string& ndjson, const char* key) {
  FrameParser parser;
  std::vector<std::string> values;
  for (const std::string& line : lines_of(ndjson)) {
    const auto frame = parser.parse(line);
    REQUIRE(frame);
    values.emplace_back(frame->text(key));
  }
  return values;
}

}  // namespace

TEST_CASE("replay prints the events of a transcript with the daemon's names") {
  const TemporaryDirectory home;
  const Printed printed =
      replay({.files = {home.put(".claude/projects/-home-u-api/5e55.jsonl", prompt + answer)}});
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.err.empty());
  CHECK(fields_of(printed.out, "type") == std::vector<std::string>{"session.started", "turn.started",
                                                                   "session.updated", "message.added",
                                                                   "usage.updated", "turn.finished"});
  for (const std::string& stream : fields_of(printed.out, "stream"))
    CHECK(stream == "claude/-home-u-api/5e55");
  for (const std::string& session : fields_of(printed.out, "session")) CHECK(session == "5e55");
  for (const std::string& host : fields_of(printed.out, "host")) CHECK(host == "h");
}

TEST_CASE("the session of a subagent's file in the project directory is taken from its records") {
  const TemporaryDirectory home;
  const Printed printed =
      replay({.files = {home.put(".claude/projects/-p/agent-a1.jsonl", prompt + answer)}});
  REQUIRE_FALSE(printed.out.empty());
  for (const std::string& session : fields_of(printed.out, "session")) CHECK(session == "5e55");
  for (const std::string& agent : fields_of(printed.out, "agent")) CHECK(agent == "a1");
}

TEST_CASE("names can be set by options") {
  const TemporaryDirectory home;
  const Printed printed = replay({.files = {home.put("x.jsonl", prompt)}, .agent = "a9", .stream = "s/t"});
  REQUIRE_FALSE(printed.out.empty());
  CHECK(fields_of(printed.out, "agent").front() == "a9");
  CHECK(fields_of(printed.out, "stream").front() == "s/t");
}

TEST_CASE("the meta view has no text") {
  const TemporaryDirectory home;
  const Printed printed = replay({.files = {home.put("x.jsonl", prompt + answer)}, .view = View::meta});
  CHECK(lines_of(printed.out).size() == 6);
  CHECK(printed.out.find("hello there") == std::string::npos);
}

TEST_CASE("with --state the cursors equal the daemon's") {
  const TemporaryDirectory home;
  const std::string file = home.put("x.jsonl", prompt);
  home.put("state/key", "00000000deadbeef");
  const auto without = fields_of(replay({.files = {file}}).out, "cursor");
  const auto with = fields_of(replay({.files = {file}, .state = home.path("state")}).out, "cursor");
  REQUIRE(without.size() == with.size());
  CHECK(without != with);
  const Printed none = replay({.files = {file}, .state = home.path("nowhere")});
  CHECK(none.exit_code == exit_failed);
  CHECK(none.out.empty());
}

TEST_CASE("a transcript that is longer than one read is one history") {
  const TemporaryDirectory home;
  std::string text = prompt;
  const std::string filler = R"({"type":"progress-of-nothing","pad":")" + std::string(300'000, 'x') + "\"}\n";
  for (int i = 0; i < 10; ++i) text += filler;
  const Printed printed = replay({.files = {home.put("x.jsonl", text + answer)}});
  CHECK(fields_of(printed.out, "type").back() == "turn.finished");
}

TEST_CASE("stdin is a file too") {
  const int in = ::memfd_create("in", MFD_CLOEXEC);
  REQUIRE(::write(in, prompt.data(), prompt.size()) == static_cast<ssize_t>(prompt.size()));
  ::lseek(in, 0, SEEK_SET);
  const Redirected redirected(STDIN_FILENO, in);
  ::close(in);
  const Printed printed = replay({.files = {"-"}});
  CHECK(fields_of(printed.out, "stream") == std::vector<std::string>{"stdin", "stdin"});
}

TEST_CASE("an unreadable file fails, the others are read") {
  const TemporaryDirectory home;
  const Printed printed = replay({.files = {home.path("no\nne.jsonl"), home.put("x.jsonl", prompt)}});
  CHECK(printed.exit_code == exit_failed);
  CHECK(printed.err.find("No such file") != std::string::npos);
  CHECK(lines_of(printed.err).size() == 1);
  CHECK(lines_of(printed.out).size() == 2);
}

TEST_CASE("all transcripts of a directory are read in order, an empty directory is reported") {
  const TemporaryDirectory home;
  home.put("d/projects/-p/b.jsonl", prompt);
  home.put("d/projects/-p/a.jsonl", prompt);
  home.put("d/history.jsonl", prompt);
  CHECK(fields_of(replay({.files = {home.path("d")}}).out, "session") ==
        std::vector<std::string>{"a", "a", "b", "b"});
  std::filesystem::create_directory(home.path("empty"));
  CHECK(replay({.files = {home.path("empty")}}).err.find("no transcripts") != std::string::npos);
}

TEST_CASE("statistics account for every line") {
  const TemporaryDirectory home;
  const std::string text = prompt + "\n" + "not json\n" + "nor this\n" + answer + answer +
                           R"({"type":"moonrise"})"
                           "\n" +
                           R"({"type":"half)";
  const Printed printed = replay({.files = {home.put("x.jsonl", text)}, .stats = true, .json = true});
  FrameParser parser;
  const auto stats = parser.parse(printed.out);
  REQUIRE(stats);
  CHECK(stats->count("files") == 1);
  CHECK(stats->count("bytes") == text.size());
  const Fields lines = stats->object("lines");
  CHECK(lines.count("total") == 7);
  CHECK(lines.count("empty") == 1);
  CHECK(lines.count("skipped") == 2);
  CHECK(lines.count("with_records") == 4);
  CHECK(stats->object("skipped_by_reason").count("not JSON") == 2);
  CHECK(stats->object("unterminated").count("files") == 1);
  CHECK(stats->object("unterminated").count("bytes") == 13);
  CHECK(stats->count("duplicates") == 1);
  CHECK(stats->object("unknown_types").count("moonrise") == 1);
  CHECK(stats->object("events").count("turn.finished") == 1);
  CHECK(stats->object("dialects").object("claude-code").object("types").count("assistant") == 2);
}

TEST_CASE("statistics are a table, after the events if both are requested") {
  const TemporaryDirectory home;
  const std::string file = home.put("x.jsonl", prompt + answer);
  const Printed table = replay({.files = {file}, .stats = true});
  CHECK(table.out.starts_with("Read\n  files"));
  CHECK(table.out.find("\nDialect claude-code  1 file, 2 lines, 2 records\n") != std::string::npos);
  CHECK(table.out.find("turn.finished") != std::string::npos);
  CHECK(table.out.find('_') == std::string::npos);
  const Printed both = replay({.files = {file}, .stats = true, .events = true});
  CHECK(both.out.find("{\"type\":\"turn.finished\"") < both.out.find("\nRead\n"));
}

TEST_CASE("replay redacts secrets unless --no-redact is given") {
  const TemporaryDirectory home;
  const std::string secret = std::string("gh") + "p_Zk3Qw9Lr7Tn5Xc1Vb8Hj6Mf4Pd2SgYa0RoUeNi";
  const std::string file =
      home.put("x.jsonl", record("user", 1, R"({"role":"user","content":"use )" + secret + R"("})"));
  const auto prompts = [&](bool redact, bool pretty) {
    return replay({.files = {file}, .colour = ColourMode::never, .pretty = pretty, .redact = redact}).out;
  };
  CHECK(prompts(true, false).find("\"prompt\":\"use [redacted:github_token]\"") != std::string::npos);
  CHECK(prompts(true, false).find(secret) == std::string::npos);
  CHECK(prompts(true, true).find("use [redacted:github_token]") != std::string::npos);
  CHECK(prompts(false, false).find(secret) != std::string::npos);
}

TEST_CASE("replay --pretty prints readable lines") {
  const TemporaryDirectory home;
  const Printed printed =
      replay({.files = {home.put("x.jsonl", prompt + answer)}, .colour = ColourMode::never, .pretty = true});
  CHECK(printed.out.find("turn 1  hello there") != std::string::npos);
  CHECK(printed.out.find("turn 1 completed") != std::string::npos);
}

TEST_CASE("replay ends without an error if its output is closed") {
  const TemporaryDirectory home;
  std::string text = prompt;
  for (int i = 0; i < 20'000; ++i)
    text += "broken\n" + std::string("{\"type\":\"system\",\"content\":\"x\"}\n");
  const std::string file = home.put("x.jsonl", text);
  CHECK(exit_code_with_closed_output([&] { return replay_command({.files = {file}}); }) == exit_ok);
}

}  // namespace replay_test
