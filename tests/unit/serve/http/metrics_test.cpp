// /metrics and /v1/health.
#include "serve/http/metrics.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "unit/serve/server_fixture.hpp"

namespace metrics_test {

using namespace earshot;
using namespace earshot::serve;

namespace {

/// A server's page, with what a daemon adds.
std::string some() {
  test::ServerFixture fixture;
  DaemonCallbacks callbacks;
  callbacks.fill_metrics = [](MetricsPage& page) {
    page.family("earshot_clients", "By kind.").sample(2, {{"kind", "websocket"}, {"via", "unix"}});
    page.family("earshot_states", "By state.").each("state", {{"working", 3}});
    page.family("earshot_redactions_total", "By rule.").each("rule", {{"od\"d\\na\nme", 4}});
    page.add("earshot_tail_read_bytes_total", "How many.", 1'000'000);
    page.add("earshot_tail_dropped", "How many.", 6);
    page.add(TeamMetrics{"hub", {{"open", "Whether.", false, 1}, {"received", "How many.", true, 5}}});
  };
  fixture.server.set_callbacks(std::move(callbacks));
  return test::metrics_page(fixture.server);
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("every sample follows the help and type of its metric, once") {
  const std::string text = some();
  REQUIRE(text.ends_with("\n"));
  std::istringstream lines(text);
  std::set<std::string> named, samples;
  std::string current, type;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    std::istringstream words(line);
    std::string first, what, name;
    words >> first;
    if (first == "#") {
      words >> what >> name;
      if (what == "HELP") REQUIRE(named.insert(name).second);
      if (what == "TYPE") words >> type;
      current = name;
      continue;
    }
    REQUIRE(first.substr(0, first.find('{')) == current);
    REQUIRE(samples.insert(line.substr(0, line.rfind(' '))).second);
    REQUIRE((type == "counter") == current.ends_with("_total"));
    REQUIRE_NOTHROW(std::stod(line.substr(line.rfind(' ') + 1)));
  }
  REQUIRE(named.size() > 30);
}

TEST_CASE("metrics have their values, and labels are escaped") {
  const std::string text = some();
  REQUIRE(text.find(R"(earshot_build_info{version="0.0.1",instance_id=")") != text.npos);
  REQUIRE(has_line(text, R"(earshot_clients{kind="websocket",via="unix"} 2)"));
  REQUIRE(has_line(text, R"(earshot_states{state="working"} 3)"));
  REQUIRE(has_line(text, R"(earshot_redactions_total{rule="od\"d\\na\nme"} 4)"));
  REQUIRE(has_line(text, "earshot_tail_read_bytes_total 1000000"));
  REQUIRE(has_line(text, "earshot_tail_dropped 6"));
  REQUIRE(has_line(text, R"(earshot_limit{name="connections"} 1100)"));
  REQUIRE(has_line(text, "earshot_hub_open 1"));
  REQUIRE(has_line(text, "earshot_hub_received_total 5"));
  Counters counters;
  counters.refuse(Refusal::token);
  counters.answers[200] = 7;
  MetricsPage page;
  page.add(counters);
  REQUIRE(has_line(page.text, R"(earshot_refusals_total{reason="token"} 1)"));
  REQUIRE(has_line(page.text, R"(earshot_refusals_total{reason="peer"} 0)"));
  REQUIRE(has_line(page.text, R"(earshot_http_answers_total{code="200"} 7)"));
}

TEST_CASE("absent values have no sample") {
  MetricsPage page;
  page.add(ProcessMetrics{});
  page.add(TeamMetrics{});
  page.family("earshot_redactions_total", "By rule.").each("rule", {});
  page.add("earshot_folds", "How many.", std::optional<std::uint64_t>());
  REQUIRE(page.text.empty());
  page.add("earshot_folds", "How many.", std::optional<std::uint64_t>(2));
  REQUIRE(has_line(page.text, "earshot_folds 2"));
}

TEST_CASE("the process metrics report memory, time and descriptors") {
  const ProcessMetrics process = process_metrics();
  REQUIRE(*process.resident_bytes > 1 << 20);
  REQUIRE(*process.virtual_bytes >= *process.resident_bytes);
  REQUIRE(*process.cpu_seconds >= 0);
  REQUIRE(*process.threads >= 1);
  REQUIRE(*process.start_time_seconds > 1.6e9);
  const std::uint64_t before = *process_metrics().open_fds;
  const int more = ::dup(0);
  REQUIRE(*process_metrics().open_fds == before + 1);
  ::close(more);
}

TEST_CASE("the health report is JSON for any path") {
  Health health;
  health.version = "0.1.0";
  health.roots = {{"claude", "/home/\"u\"\n", "claude-code", true, 12, 3}, {"x", "/x", "codex"}};
  health.watch = {"both", "", 120};
  health.problems = {{"/p", "permission denied", "let this user read it"}};
  health.redaction = {true, {"aws_access_key"}};
  health.limits = {{"connections", 1100}};
  const std::string json = health_json(health);
  const std::pair<const char*, const char*> rows[] = {
      {"/version", "\"0.1.0\""},
      {"/protocol", "1"},
      {"/roots/0/path", R"("/home/\"u\"\n")"},
      {"/roots/0/present", "true"},
      {"/roots/1/program", "\"codex\""},
      {"/roots/0/transcripts", "12"},
      {"/roots/1/present", "false"},
      {"/watch/inotify_watches", "120"},
      {"/problems/0/advice", "\"let this user read it\""},
      {"/redaction/on", "true"},
      {"/redaction/rules/0", "\"aws_access_key\""},
      {"/limits/connections", "1100"},
      {"/socket", "\"\""},
  };
  for (const auto& [pointer, value] : rows) {
    CAPTURE(pointer, json);
    REQUIRE(test::at(json, pointer) == value);
  }
}

}  // namespace metrics_test
