#include "cli/doctor_checks.hpp"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "cli/commands.hpp"
#include "common/format.hpp"
#include "common/frame.hpp"
#include "unit/common/captured.hpp"
#include "unit/common/fake_daemon.hpp"

namespace doctor_checks_test {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::common::test;
namespace doc = earshot::cli::doctor;

namespace {

const char* const health_json =
    R"({"version":"0.1.0","instance":"x","host":"dev7","pid":4242,"uptime_s":7500,"protocol":1,
 "state":"/s","address":"ws://127.0.0.1:7717/v1/ws","socket":"/r/sock",
 "roots":[{"name":"claude","path":"/home/u/.claude","present":true,"transcripts":12,"live":3}],
 "watch":{"mode":"both","problem":"","inotify_watches":120},
 "problems":[{"path":"/x","reason":"permission denied","advice":"chmod u+r /x"}],
 "redaction":{"on":true,"rules":["a","b"]},"connections":3,"sessions":12,"limits":{"connections":1100}})";

doc::Level level(const doc::Findings& findings, std::string_view what) {
  doc::Level worst = doc::Level::ok;
  for (const doc::Finding& finding : findings)
    if (finding.what == what) worst = std::max(worst, finding.level);
  return worst;
}

std::string advice(const doc::Findings& findings, std::string_view what) {
  for (const doc::Finding& finding : findings)
    if (finding.what == what && !finding.advice.empty()) return finding.advice;
  return {};
}

FileStat file(FileType type, unsigned mode, unsigned owner = 1000) { return {0, type, mode, owner}; }

}  // namespace

TEST_CASE("the daemon's health is parsed, missing fields are empty") {
  const auto health = parse_health(health_json);
  REQUIRE(health);
  CHECK(health->pid == 4242);
  CHECK(health->roots.size() == 1);
  CHECK(health->roots[0].transcripts == 12);
  CHECK(health->redaction == true);
  CHECK(health->redaction_rules == 2);
  CHECK(health->connections_max == 1100);
  CHECK_FALSE(parse_health(R"({"version":"9"})")->redaction);
  CHECK_FALSE(parse_health("{}"));
  CHECK_FALSE(parse_health("<html>"));
}

TEST_CASE("a running daemon is ok, another version a warning, no daemon a problem") {
  doc::Probe probe{parse_health(health_json), 200, {}, "unix:/r/sock"};
  CHECK(level(doc::check_daemon(probe, "0.1.0"), "daemon") == doc::Level::ok);
  CHECK(doc::check_daemon(probe, "0.1.0").front().text.find("pid 4242, for 2h05m") != std::string::npos);
  CHECK(level(doc::check_daemon(probe, "0.2.0"), "version") == doc::Level::warning);
  probe.health.reset();
  for (const int status : {0, 401, 403, 500}) {
    probe.http_status = status;
    CHECK(level(doc::check_daemon(probe, "0.1.0"), "daemon") == doc::Level::problem);
    CHECK_FALSE(advice(doc::check_daemon(probe, "0.1.0"), "daemon").empty());
  }
  probe.http_status = 404;
  CHECK(level(doc::check_daemon(probe, "0.1.0"), "daemon") == doc::Level::warning);
}

TEST_CASE("private files must belong to the user and be inaccessible to others") {
  const auto judged = [](const FileStat& f, const std::string& path = "/s/token") {
    return doc::check_private("token", path, f, FileType::regular, 1000, true);
  };
  CHECK(judged(file(FileType::regular, 0600)).level == doc::Level::ok);
  CHECK(judged(file(FileType::regular, 0640)).level == doc::Level::problem);
  CHECK(judged(file(FileType::regular, 0640)).advice == "chmod 600 /s/token");
  CHECK(judged(file(FileType::regular, 0000)).level == doc::Level::problem);
  CHECK(judged(file(FileType::regular, 0600, 1)).advice.find("chown") != std::string::npos);
  CHECK(judged(file(FileType::symlink, 0777)).level == doc::Level::problem);
  const FileStat absent{ENOENT};
  CHECK(judged(absent).level == doc::Level::ok);
  CHECK(doc::check_private("token", "/s/token", absent, FileType::regular, 1000, false).level ==
        doc::Level::problem);
  CHECK(judged(file(FileType::regular, 0644), "/s/it's mine").advice == R"(chmod 600 '/s/it'\''s mine')");
}

TEST_CASE("a socket in a directory that other users can enter is a problem") {
  const TemporaryDirectory state;
  FakeDaemon daemon({}, state.path("sock"));
  ::chmod(state.path("sock").c_str(), 0600);
  state.put("token", std::string(64, 'a'));
  CHECK(level(doc::check_state(state.path(), {}, state.path("sock"), true), "socket") == doc::Level::ok);
  CHECK(level(doc::check_state(state.path(), {}, state.path("sock"), true), "token") == doc::Level::ok);
  ::chmod(state.path().c_str(), 0755);
  CHECK(advice(doc::check_state(state.path(), {}, state.path("sock"), true), "socket") ==
        "chmod 700 " + state.path());
  ::chmod(state.path().c_str(), 0700);
  state.put("token", "short");
  CHECK(advice(doc::check_state(state.path(), {}, state.path("sock"), true), "token") ==
        "earshot token --rotate");
}

TEST_CASE("a root is scanned without opening files") {
  const TemporaryDirectory home;
  home.put("r/projects/a/one.jsonl", "");
  home.put("r/projects/a/x/subagents/agent-1.jsonl", "");
  home.put("r/projects/a/agent-acompact-1.jsonl", "");
  home.put("r/history.jsonl", "");
  home.put("r/sessions/1.key", "secret");
  doc::Root root;
  root.path = home.path("r");
  doc::scan_root(root);
  CHECK(root.exists);
  CHECK(root.transcripts == 2);
  CHECK(root.directories == 5);
  CHECK(root.newest_ms > 0);
  doc::Root absent;
  absent.path = home.path("nowhere");
  doc::scan_root(absent);
  CHECK_FALSE(absent.exists);
  CHECK(absent.error.empty());
}

TEST_CASE("a missing configured root is a warning, an unreadable one a problem") {
  doc::Root root;
  root.path = "/r";
  CHECK(level(doc::check_roots({root}, 0), "root") == doc::Level::warning);  // nothing at all
  root.expected = true;
  CHECK(level(doc::check_roots({root}, 0), "root") == doc::Level::warning);
  root.exists = true;
  CHECK(level(doc::check_roots({root}, 0), "root") == doc::Level::ok);
  root.transcripts = 2;
  const std::string program(root.program->program());
  CHECK(doc::check_roots({root}, 0).front().text.starts_with("/r: 2 transcripts of " + program +
                                                             ", the newest"));
  root.is_mixed = true;
  CHECK(doc::check_roots({root}, 0).front().text.starts_with("/r: 2 transcripts, the newest"));
  root.unreadable = 1;
  CHECK(level(doc::check_roots({root}, 0), "root") == doc::Level::warning);
  root.error = "Permission denied";
  CHECK(level(doc::check_roots({root}, 0), "root") == doc::Level::problem);
}

TEST_CASE(
    "fault 133: a directory that this shell's variable names and the daemon does not monitor is reported") {
  const TemporaryDirectory home;
  const std::string moved = home.path("moved");
  const auto environment = [&](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "HOME") return home.path("");
    if (std::string_view(name) == "CLAUDE_CONFIG_DIR") return moved;
    return std::nullopt;
  };
  std::vector<doc::Root> roots = doc::unmonitored_roots({home.path(".codex")}, environment);
  REQUIRE(roots.size() == 1);
  CHECK(roots.front().path == moved);
  CHECK(doc::unmonitored_roots({moved}, environment).empty());
  CHECK(doc::check_unmonitored(roots).empty());  // nothing is in it
  std::filesystem::create_directories(moved + "/projects/p");
  std::ofstream(moved + "/projects/p/s.jsonl") << "{}\n";
  doc::scan_root(roots.front());
  const auto findings = doc::check_unmonitored(roots);
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().text ==
        "the daemon does not monitor " + moved + ", where this shell's Claude Code keeps 1 transcript");
}

TEST_CASE("too few watches are reported with the command that raises the limit") {
  doc::Kernel kernel{.watches_max = 8192, .instances_max = 128, .descriptors_max = 4096};
  CHECK(level(doc::check_kernel(kernel, 100, nullptr), "inotify") == doc::Level::ok);
  CHECK(advice(doc::check_kernel(kernel, 9000, nullptr), "inotify")
            .starts_with("sudo sysctl fs.inotify.max_user_watches="));
  kernel.watches_used = 8100;
  CHECK(level(doc::check_kernel(kernel, 100, nullptr), "inotify") == doc::Level::warning);
  kernel.watches_used = 0;
  kernel.namespace_watches_max = 10;
  CHECK(advice(doc::check_kernel(kernel, 100, nullptr), "inotify").find("user.max_inotify_watches") !=
        std::string::npos);
  kernel.namespace_watches_max.reset();
  kernel.instances_used = 128;
  CHECK(level(doc::check_kernel(kernel, 100, nullptr), "inotify") == doc::Level::warning);
  // The daemon's own watches are no others'.
  auto health = parse_health(health_json);
  kernel.watches_used = 120;
  kernel.watches_max = 200;
  CHECK(level(doc::check_kernel(kernel, 100, &*health), "inotify") == doc::Level::ok);
  health->watch_problem = "no more watches";
  CHECK(level(doc::check_kernel(kernel, 100, &*health), "watching") == doc::Level::warning);
  kernel.descriptors_max = 1024;
  CHECK(advice(doc::check_kernel(kernel, 1, &*health), "files").find("ulimit -n") != std::string::npos);
}

TEST_CASE("the limits of this machine can be read") {
  const doc::Kernel kernel = doc::kernel(::getpid());
  CHECK(kernel.descriptors_max > 0);
}

TEST_CASE("the free space and the clock are checked") {
  CHECK(doc::check_disk("/s", std::uint64_t{1} << 40).level == doc::Level::ok);
  CHECK(doc::check_disk("/s", 10 << 20).level == doc::Level::warning);
  CHECK(doc::check_disk("/s", 1000).level == doc::Level::problem);
  CHECK(doc::bytes_free("/tmp/there/is/no/such/place"));
  const std::int64_t now = 1'795'000'000'000;
  CHECK(doc::check_clock(now, now - 1000).level == doc::Level::ok);
  CHECK(doc::check_clock(now, now + 3'600'000).level == doc::Level::warning);
  CHECK(doc::check_clock(0, 0).level == doc::Level::problem);
}

TEST_CASE("a report lists advice and escapes control characters") {
  const doc::Findings findings{{doc::Level::ok, "daemon", "runs", {}},
                               {doc::Level::problem, "root", "/e\x1bvil", "chmod  it"}};
  const std::string text = doc::report(findings, {});
  CHECK(text == "✓ daemon     runs\n✗ root       /e\\x1bvil\n             → chmod  it\n\n1 problem\n");
  CHECK(doc::report({}, {}) == "\nno problems found\n");
  // Commands stay whole, texts do not.
  CHECK(doc::report({{doc::Level::problem, "root", "one two three four five six",
                      "chmod 0700 /home/ada/.local/state/earshot"}},
                    {.columns = 33}) ==
        "✗ root       one two three four\n             five six\n"
        "             → chmod 0700 /home/ada/.local/state/earshot\n\n1 problem\n");
  FrameParser parser;
  const std::string json = doc::report_json(findings);
  const auto frame = parser.parse(json);
  REQUIRE(frame);
  CHECK_FALSE(frame->flag("ok"));
  CHECK(frame->count("problems") == 1);
  CHECK(frame->objects("findings").size() == 2);
}

TEST_CASE("doctor queries the daemon through its socket and reports a missing one") {
  const TemporaryDirectory state;
  state.put("token", std::string(64, 'a'));
  std::string health = health_json;
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\"/s\"", "\"" + state.path() + "\""},
                                 {"/r/sock", state.path("sock")}}) {
    health.replace(health.find(from), from.size(), to);
  }
  std::string request;
  {
    FakeDaemon daemon({[&](Peer& peer) { request = peer.answer("200 OK", health); }}, state.path("sock"));
    ::chmod(state.path("sock").c_str(), 0600);
    const Printed printed =
        printed_by([&] { return doctor_command({.daemon = {.socket = state.path("sock")}, .json = true}); });
    CHECK(daemon.join().empty());
    CHECK(request.starts_with("GET /v1/health HTTP/1.1\r\n"));
    INFO(printed.out);
    CHECK(printed.out.find("earshotd 0.1.0 is running, pid 4242") != std::string::npos);
    CHECK(printed.out.find("chmod u+r /x") != std::string::npos);
    CHECK(printed.out.find("\"level\":\"problem\"") == std::string::npos);
    CHECK(printed.exit_code == exit_ok);
  }
  ::unlink(state.path("sock").c_str());
  const Printed printed =
      printed_by([&] { return doctor_command({.daemon = {.socket = state.path("sock")}, .json = true}); });
  CHECK(printed.exit_code == exit_failed);
  CHECK(printed.out.find("not running, or cannot be reached") != std::string::npos);
}

TEST_CASE("hosts of a hub are listed as online, or offline since a time") {
  const auto health = parse_health(
      R"({"version":"0.1.0","hosts":[{"name":"ada","online":true,"last_seen":"2025-11-04T11:59:58Z"},)"
      R"({"name":"bob","online":false,"last_seen":"2025-11-04T10:00:00Z"},{"name":"eve","online":false,"last_seen":""}]})");
  REQUIRE(health);
  const doc::Findings findings = doc::check_hosts(*health, *parse_time("2025-11-04T12:00:00Z"));
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].text == "1 is online: ada");
  CHECK(findings[1].text.starts_with("bob is offline, last seen 2h ago, "));
  CHECK(findings[1].level == doc::Level::warning);
  CHECK(findings[2].text == "eve is offline");
  CHECK_FALSE(doc::has_problem(findings));
  CHECK(doc::check_hosts(*parse_health(health_json), 0).empty());
}

TEST_CASE("of many hosts only some are named") {
  Health health;
  for (int n = 0; n < 50; ++n)
    health.hosts.push_back({"up" + std::to_string(n), {}, true}), health.hosts.push_back({"gone", {}, false});
  const doc::Findings findings = doc::check_hosts(health, 0);
  CHECK(findings.size() == 22);
  CHECK(findings.front().text.starts_with("50 are online: up0, up1, "));
  CHECK(findings.back().text == "and 30 more are offline");
}

TEST_CASE("a sink of notices that fails and rules that are not reloaded are warnings") {
  NotifierHealth health;
  CHECK(doc::check_notifier(health).empty());
  health.sinks["desktop"] = {.sent_ms = 1, .failures = 2};
  doc::Findings findings = doc::check_notifier(health);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].level == doc::Level::ok);
  CHECK(findings[0].text == "earshot-notify delivers to desktop");
  health.sinks["hook"] = {.failed_ms = 1'774'872'000'000, .why = "HTTP 500: no", .failures = 3};
  health.rules_problem = "/n.toml:4: unknown key";
  findings = doc::check_notifier(health);
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].level == doc::Level::warning);
  CHECK(findings[0].text.starts_with("the sink hook failed 3 times in a row, the last time on "));
  CHECK(findings[0].text.ends_with(": HTTP 500: no"));
  CHECK(findings[0].advice == "earshot-notify why");
  CHECK(findings[1].text == "earshot-notify uses its earlier rules: /n.toml:4: unknown key");
  CHECK(findings[1].advice == "earshot-notify check");
}

}  // namespace doctor_checks_test
