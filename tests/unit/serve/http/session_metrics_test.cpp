// Counters and gauges of sessions: what a scrape shows, and that label values stay few.
#include <catch2/catch.hpp>
#include <regex>

#include "base/clock.hpp"
#include "base/quantities.hpp"
#include "unit/serve/server_fixture.hpp"

namespace session_metrics_test {

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::test;

namespace {

struct MetricsFixture : ServerFixture {
  std::string page() { return metrics_page(server); }
  /// The value of a sample; empty: there is none.
  std::string value(const std::string& sample) {
    const std::string text = page(), line = "\n" + sample + " ";
    const auto at = text.find(line);
    return at == text.npos ? "" : text.substr(at + line.size(), text.find('\n', at + 1) - at - line.size());
  }
  std::size_t samples(const std::string& name) {
    const std::string text = page();
    const std::regex sample("\n" + name + "[{ ]");
    return static_cast<std::size_t>(
        std::distance(std::sregex_iterator(text.begin(), text.end(), sample), {}));
  }
};

const ModelTable& dear_table() {
  static const auto table = std::get<ModelTable>(
      ModelTable::with_user_file("[[model]]\npattern = \"opus\"\ninput = 1\noutput = 1\n"
                                 "cache_write_5m = 1\ncache_write_1h = 1\ncache_read = 10000\n",
                                 "test"));
  return table;
}

}  // namespace

TEST_CASE("events and tools are counted by type and outcome") {
  MetricsFixture fixture;
  FakeStream& stream = fixture.stream("s1");
  CHECK(fixture.samples("earshot_events_total") == 0);  // history is not counted
  fixture.turn(stream, 1);
  fixture.turn(stream, 2);
  // The turn that was open in the history has ended, too.
  CHECK(fixture.value(R"(earshot_events_total{type="turn.finished"})") == "3");
  CHECK(fixture.value(R"(earshot_tools_total{program="claude-code",outcome="ok"})") == "2");
  CHECK(fixture.value(R"(earshot_turns_total{program="claude-code",outcome="completed"})") == "2");
}

TEST_CASE("tokens are counted by model and kind, those of the history are not") {
  MetricsFixture fixture;
  FakeStream& stream = fixture.stream("s1");
  stream.write(answer(1, "before the start"), nullptr);
  fixture.server.on_removed(stream);
  fixture.server.on_added(stream);
  const std::string sample = R"(earshot_tokens_total{program="claude-code",model="opus",kind="cache_read"})";
  CHECK(fixture.value(sample).empty());
  fixture.turn(stream, 1);
  const double once = std::stod(fixture.value(sample));
  CHECK(once >= 100);
  fixture.turn(stream, 2);
  CHECK(std::stod(fixture.value(sample)) == 2 * once);
}

TEST_CASE("tokens of models and sessions that alternate are counted by model") {
  MetricsFixture fixture;
  FakeStream& first = fixture.stream("s1");
  FakeStream& second = fixture.stream("s2");
  const auto write = [&](FakeStream& stream, int n, const std::string& model) {
    std::string line = answer(n, "x");
    line.replace(line.find("opus"), 4, model);
    stream.write(line, &fixture.server);
    fixture.server.on_batch_end();
  };
  const auto tokens = [&](const std::string& model, const std::string& kind) {
    return fixture.value(R"(earshot_tokens_total{program="claude-code",model=")" + model + R"(",kind=")" +
                         kind + "\"}");
  };
  for (int n = 1; n <= 3; ++n) {
    write(first, n, "opus");
    write(second, 10 + n, "haiku");
  }
  write(first, 4, "haiku");
  write(second, 14, "bad{name}");
  CHECK(tokens("opus", "cache_read") == "300");
  CHECK(tokens("opus", "input") == "30");
  CHECK(tokens("haiku", "cache_read") == "400");
  CHECK(tokens("haiku", "output") == "20");
  CHECK(tokens("(other)", "cache_write") == "1");
}

TEST_CASE("fault 127: what two transcripts repeat is counted once, whichever is read first") {
  for (const bool is_original_first : {true, false}) {
    CAPTURE(is_original_first);
    MetricsFixture fixture;
    FakeStream& original = fixture.stream("a");
    FakeStream& fork = fixture.stream("b");  // of equal age: the name decides
    const auto read = [&](FakeStream& stream) {
      stream.write(answer(1, "x"), &fixture.server);
      fixture.server.on_batch_end();
      fixture.page();
    };
    read(is_original_first ? original : fork);
    read(is_original_first ? fork : original);
    const std::string label = R"({program="claude-code",model="opus",kind="cache_read"})";
    CHECK(fixture.value("earshot_tokens_total" + label) == "100");
    fork.write(answer(2, "y"), &fixture.server);
    CHECK(fixture.value("earshot_tokens_total" + label) == "200");
    fixture.server.on_removed(original);
    fork.write(answer(3, "z"), &fixture.server);
    CHECK(fixture.value("earshot_tokens_total" + label) == "300");
  }
}

TEST_CASE("costs are counted by model, those of the history are not") {
  MetricsFixture fixture;
  fixture.server.set_models(dear_table());
  FakeStream& stream = fixture.stream("s1");
  const std::string sample =
      R"(earshot_cost_usd_total{program="claude-code",model="opus",source="estimated"})";
  CHECK(fixture.value(sample).empty());
  fixture.turn(stream, 1);
  const double once = std::stod(fixture.value(sample));
  CHECK(once >= 1);  // 100 tokens read from the cache
  CHECK(std::stod(fixture.value(sample)) == once);
  fixture.turn(stream, 2);
  // By program without a page, and once only if the session vanishes and returns with its history.
  CHECK(fixture.server.cost_by_program().at({"", "claude-code"}) == Approx(2 * once));
  fixture.server.on_removed(stream);
  fixture.server.on_added(stream);
  CHECK(fixture.server.cost_by_program().at({"", "claude-code"}) == Approx(2 * once));
  fixture.turn(stream, 3);
  CHECK(fixture.server.cost_by_program().at({"", "claude-code"}) == Approx(3 * once));
  CHECK(std::stod(fixture.value(sample)) == Approx(3 * once));
}

TEST_CASE("the cost of a request that moves to another session is counted once, whichever is read first") {
  for (const bool is_original_first : {true, false}) {
    CAPTURE(is_original_first);
    MetricsFixture fixture;
    fixture.server.set_models(dear_table());
    FakeStream& original = fixture.stream("a");
    FakeStream& fork = fixture.stream("b");  // of equal age: the name decides
    const auto usd = [&] { return fixture.server.cost_by_program().at({"", "claude-code"}); };
    const auto write = [&](FakeStream& stream, int n) {
      stream.write(answer(n, "x"), &fixture.server);
      fixture.server.on_batch_end();
    };
    write(is_original_first ? original : fork, 1);
    const double once = usd();
    CHECK(once >= 1);
    write(is_original_first ? fork : original, 1);
    CHECK(usd() == Approx(once));
    write(fork, 2);
    CHECK(usd() == Approx(2 * once));
    write(original, 2);  // copied, and grown, between two scrapes
    write(original, 3);
    CHECK(usd() == Approx(3 * once));
    fixture.server.on_removed(original);  // its requests count for the fork from now on
    CHECK(usd() == Approx(3 * once));
    write(fork, 4);
    CHECK(usd() == Approx(4 * once));
  }
}

TEST_CASE("a request that moves out of what a recorded total covers is counted at once") {
  MetricsFixture fixture;
  fixture.server.set_models(dear_table());
  FakeStream& original = fixture.stream("a");
  FakeStream& fork = fixture.stream("b");
  const auto usd = [&] { return fixture.server.cost_by_program().at({"", "claude-code"}); };
  fork.write(answer(1, "x"), &fixture.server);
  fixture.server.on_batch_end();
  const double once = usd();
  fork.write(answer(2, "y"), &fixture.server);
  fork.write(R"({"type":"cost-state","sessionId":"b","totalCostUSD":)" + std::to_string(once) + "}\n",
             &fixture.server);  // of its own process: the first request is repeated
  fixture.server.on_batch_end();
  CHECK(usd() == Approx(once).epsilon(0.01));
  original.write(answer(1, "x"), &fixture.server);
  fixture.server.on_batch_end();
  CHECK(usd() == Approx(2 * once).epsilon(0.01));
}

TEST_CASE("a total counts for the model of its own session") {
  MetricsFixture fixture;
  fixture.server.set_models(dear_table());
  FakeStream& estimated = fixture.stream("a");
  FakeStream& recorded = fixture.stream("b");
  const auto usd = [&](const std::string& model, const std::string& source) {
    const std::string text = fixture.value(R"(earshot_cost_usd_total{program="claude-code",model=")" + model +
                                           R"(",source=")" + source + "\"}");
    return text.empty() ? 0 : std::stod(text);
  };
  estimated.write(answer(1, "x"), &fixture.server);
  std::string line = answer(2, "y");
  line.replace(line.find("opus"), 4, "haiku");
  recorded.write(R"({"type":"cost-state","sessionId":"b","totalCostUSD":5})" + ("\n" + line),
                 &fixture.server);
  fixture.server.on_batch_end();
  CHECK(usd("opus", "estimated") == Approx(1).epsilon(0.01));
  CHECK(usd("haiku", "recorded") == Approx(5).epsilon(0.01));
}

TEST_CASE("waits are counted when they begin, and their time when they end") {
  MetricsFixture fixture;
  fixture.stream("s1");
  const auto status = [&](const std::string& state, const std::string& reason, const std::string& since) {
    fixture.server.status_changed("s1", {state, reason, "", "registry", since});
  };
  const std::string waits = R"(earshot_waits_total{program="claude-code",reason="permission"})";
  const std::string seconds = R"(earshot_wait_seconds_total{program="claude-code",reason="permission"})";
  CHECK(fixture.value(waits).empty());
  status("waiting", "permission", "2026-03-14T09:27:01Z");
  status("waiting", "permission", "2026-03-14T09:27:01Z");  // its detail became known
  CHECK(fixture.value(waits) == "1");
  CHECK(fixture.value(seconds).empty());
  status("waiting", "permission", "2026-03-14T09:27:05Z");  // another one
  CHECK(fixture.value(waits) == "2");
  CHECK_FALSE(fixture.value(seconds).empty());
  status("working", "", "2026-03-14T09:27:09Z");
  CHECK(fixture.value(waits) == "2");
  CHECK(std::stod(fixture.value(seconds)) >= 0);
}

TEST_CASE("the longest present wait is a gauge, by program and reason") {
  MetricsFixture fixture;
  for (const char* name : {"s1", "s2", "s3"}) fixture.stream(name);
  const auto wait = [&](const char* session, const char* reason, std::int64_t seconds) {
    const std::string since = format_time(wall_now_ms() - seconds * 1000);
    fixture.server.status_changed(session, {"waiting", reason, "", "registry", since});
  };
  CHECK(fixture.samples("earshot_longest_wait_seconds") == 0);
  wait("s1", "permission", 1000);
  wait("s2", "permission", 5000);
  wait("s3", "question", 100);
  const std::string longest = R"(earshot_longest_wait_seconds{program="claude-code",reason="permission"})";
  CHECK(std::stod(fixture.value(longest)) >= 5000);
  CHECK(fixture.samples("earshot_longest_wait_seconds") == 2);
  fixture.server.status_changed("s2", {"working", "", "", "registry", format_time(wall_now_ms())});
  CHECK(std::stod(fixture.value(longest)) >= 1000);
  CHECK(std::stod(fixture.value(longest)) < 5000);
}

TEST_CASE("the fullest contexts, the limits and unseen sessions are gauges") {
  MetricsFixture fixture;
  fixture.server.set_seen(SeenMarks(0));
  CHECK(fixture.value("earshot_sessions_unseen") == "0");
  for (std::size_t n = 0; n < SessionFigures::context_sessions_max + 5; ++n) {
    const std::string name = "s" + std::to_string(n);
    fixture.turn(fixture.stream(name), 1);
    StatusLine line;
    line.session = name;
    line.context_window = 1'000'000 - n;
    if (n == 0) {
      line.limit = "claude";
      line.windows = {{"five_hour", 25.0, 300, "2999-01-01T00:00:00.000Z"},
                      {"seven_day", 90.0, 10'080, "2001-01-01T00:00:00.000Z"}};
    }
    fixture.server.on_status_line(line);
  }
  CHECK(fixture.value("earshot_sessions_unseen") == std::to_string(SessionFigures::context_sessions_max + 5));
  CHECK(fixture.samples("earshot_session_context_ratio") == SessionFigures::context_sessions_max);
  const std::string sample =
      R"(earshot_session_context_ratio{session="s68",program="claude-code",project="/home/u/api"})";
  CHECK(std::stod(fixture.value(sample)) > 0);
  CHECK(fixture.samples("earshot_session_time_seconds") == 3 * SessionFigures::context_sessions_max);
  CHECK(
      std::stod(fixture.value(
          R"(earshot_session_time_seconds{session="s68",program="claude-code",project="/home/u/api",state="working"})")) >
      0);
  CHECK(
      fixture.value(R"(earshot_limit_used_ratio{program="claude-code",limit="claude",window="five_hour"})") ==
      "0.25");
  CHECK(fixture.samples("earshot_limit_used_ratio") == 1);  // the other window is over
}

}  // namespace session_metrics_test
