// The queue, the state file and the logs, on a real disk.
#include "notifier/delivery_queue.hpp"

#include <fstream>

#include "unit/notifier/engine_harness.hpp"

using namespace earshot;
using namespace earshot::notifier;
using namespace earshot::notifier::test;

namespace {

Notice notice(const std::string& id, std::vector<std::string> sinks = {"hook"}) {
  Notice made;
  made.id = id;
  made.rule = "r";
  made.title = "title of " + id;
  made.body = "line\nline";
  made.sinks = std::move(sinks);
  made.ack_keys = {{"m", "s", true}};
  return made;
}

const char* const rules_text =
    "[sink.hook]\nkind = \"json\"\nurl = \"https://example.test/\"\n[sink.other]\nkind = \"json\"\nurl = "
    "\"https://example.test/\"\n";

struct QueueHarness {
  explicit QueueHarness(const TemporaryDirectory& directory) : path(directory / "state.json") { open(); }
  void open() {
    queue = std::make_unique<DeliveryQueue>(rules, path, 1);
    CHECK(queue->load(state, now_ms).empty());
  }
  void save() { CHECK(queue->save(state.engine, state.cursors, state.shown).empty()); }
  /// What a notifier that is killed now finds when it starts again.
  std::size_t saved() {
    SavedState ignored;
    DeliveryQueue read(rules, path, 1);
    CHECK(read.load(ignored, now_ms).empty());
    return read.size();
  }
  /// Starts the deliveries that are due, as the notifier does.
  std::vector<std::string> keys(bool can_retract = false) {
    std::vector<std::string> out;
    for (const QueuedNotice& each : queue->take_due(now_ms, can_retract)) out.push_back(each.key());
    if (queue->changed()) save();
    return out;
  }
  void report(const std::string& key, const Delivery& delivery) {
    queue->report(key, delivery, now_ms);
    save();
  }
  std::string events() {
    std::string out;
    constexpr const char* names[] = {"sent", "failed", "dead", "withdrawn"};
    for (const auto& each : queue->take_events())
      out += std::string(names[static_cast<int>(each.what)]) + " " + each.queued.key() +
             (each.why.empty() ? "" : ": " + each.why) + "\n";
    return out;
  }
  Rules rules = rules_of(rules_text);
  std::string path;
  SavedState state;
  std::int64_t now_ms = noon_ms;
  std::unique_ptr<DeliveryQueue> queue;
};

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("deliveries start one at a time per sink, and delivered notices are deleted") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  harness.queue->add(notice("a", {"hook", "other"}), harness.now_ms);
  harness.queue->add(notice("b"), harness.now_ms);
  CHECK(harness.queue->changed());
  harness.save();
  CHECK(harness.saved() == 3);
  CHECK(harness.keys() == Keys{"a-hook", "a-other"});
  CHECK(harness.keys().empty());
  harness.report("a-hook", {.done = true});
  CHECK(harness.keys() == Keys{"b-hook"});
  harness.report("b-hook", {.done = true});
  harness.report("a-other", {.done = true});
  CHECK(harness.saved() == 0);
  CHECK(harness.events() == "sent a-hook\nsent b-hook\nsent a-other\n");
}

TEST_CASE("notices that can be retracted are not limited to one at a time") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  harness.queue->add(notice("a", {"desktop", "hook"}), harness.now_ms);
  harness.queue->add(notice("b", {"desktop"}), harness.now_ms);
  CHECK(harness.keys(true) == Keys{"a-desktop", "b-desktop"});
  CHECK(harness.saved() == 3);
}

TEST_CASE("a failed delivery is retried with backoff until it is a dead letter") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  harness.queue->add(notice("a"), harness.now_ms);
  std::int64_t before = 0;
  for (int attempt = 1; attempt < DeliveryQueue::attempts_max; ++attempt) {
    REQUIRE(harness.keys() == Keys{"a-hook"});
    harness.report("a-hook", {.why = "HTTP 500"});
    const auto next = harness.queue->next_ms(harness.now_ms);
    REQUIRE(next);
    const std::int64_t pause = *next - harness.now_ms;
    const std::int64_t most =
        std::min(DeliveryQueue::backoff_max_ms, DeliveryQueue::backoff_first_ms << std::min(attempt - 1, 20));
    CHECK(pause >= most / 2);
    CHECK(pause <= most);
    CHECK(pause * 4 > before);
    before = pause;
    CHECK(harness.keys().empty());
    harness.now_ms = *next;
  }
  REQUIRE(harness.keys() == Keys{"a-hook"});
  harness.events();
  harness.report("a-hook", {.why = "HTTP 500"});
  CHECK(harness.events() == "dead a-hook: HTTP 500; given up after 20 attempts\n");
  CHECK(harness.saved() == 0);
}

TEST_CASE("Retry-After pauses all deliveries to that sink and to no other") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  harness.queue->add(notice("a"), harness.now_ms);
  harness.queue->add(notice("b", {"hook", "other"}), harness.now_ms);
  CHECK(harness.keys() == Keys{"a-hook", "b-other"});
  harness.report("a-hook", {.retry_after_ms = 30'000, .why = "HTTP 429"});
  CHECK(harness.keys().empty());
  CHECK(harness.queue->next_ms(harness.now_ms) == harness.now_ms + 30'000);
  harness.now_ms += 29'999;
  CHECK(harness.keys().empty());
  harness.now_ms += 1;
  CHECK(harness.keys() == Keys{"a-hook"});
}

TEST_CASE("a permanent failure is a dead letter immediately") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  harness.queue->add(notice("a"), harness.now_ms);
  CHECK(harness.keys().size() == 1);
  harness.report("a-hook", {.permanent = true, .why = "HTTP 404"});
  CHECK(harness.events() == "dead a-hook: HTTP 404\n");
  CHECK(harness.queue->size() == 0);
}

TEST_CASE("after a crash queued notices are sent and an interrupted delivery is repeated once") {
  TemporaryDirectory directory;
  {
    QueueHarness harness(directory);
    harness.queue->add(notice("a"), harness.now_ms);
    harness.queue->add(notice("b"), harness.now_ms);
    CHECK(harness.keys() == Keys{"a-hook"});  // killed here
  }
  {
    QueueHarness harness(directory);
    CHECK(harness.queue->size() == 2);
    const auto queued_notices = harness.queue->take_due(harness.now_ms, false);
    harness.save();
    REQUIRE(queued_notices.size() == 1);
    CHECK(queued_notices[0].notice == notice(queued_notices[0].notice.id));
    if (queued_notices[0].notice.id == "b") {
      harness.report("b-hook", {.done = true});
      CHECK(harness.keys() == Keys{"a-hook"});
    }  // killed again while `a` is resent
  }
  QueueHarness harness(directory);
  CHECK(harness.events() ==
        "dead a-hook: the notifier was killed twice while sending it; not sent a third time\n");
  CHECK(harness.queue->size() <= 1);
}

TEST_CASE("after a known failure a delivery may be interrupted again") {
  TemporaryDirectory directory;
  for (int restart = 0; restart < 4; ++restart) {
    QueueHarness harness(directory);
    if (restart == 0) harness.queue->add(notice("a"), harness.now_ms);
    harness.now_ms += 600'000;
    REQUIRE(harness.keys() == Keys{"a-hook"});
    harness.report("a-hook", {.why = "HTTP 500"});
    CHECK(harness.saved() == 1);
  }
}

TEST_CASE("an answered notice is withdrawn unless its delivery is in flight") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  harness.queue->add(notice("a"), harness.now_ms);
  harness.queue->add(notice("b"), harness.now_ms);
  CHECK(harness.keys() == Keys{"a-hook"});
  harness.queue->withdraw("a", {"hook"});
  harness.queue->withdraw("b", {"hook"});
  CHECK(harness.events() == "withdrawn b-hook: answered before it could be sent\n");
  CHECK(harness.queue->size() == 1);
}

TEST_CASE("fault 104: a queued delivery is refined, and a sent notice where the sink can retract") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  harness.queue->add(notice("a", {"hook", "desktop"}), harness.now_ms);
  Notice refined = notice("a", {"hook", "desktop"});
  refined.title = "refined";
  CHECK(harness.keys(true) == Keys{"a-desktop"});
  harness.queue->update(refined, harness.now_ms);
  CHECK(harness.keys(true).empty());  // after the reply
  harness.report("a-desktop", {.done = true});
  const auto updates = harness.queue->take_due(harness.now_ms, true);
  REQUIRE(updates.size() == 1);
  CHECK(updates[0].is_update);
  CHECK(updates[0].notice.title == "refined");
  const auto hooks = harness.queue->take_due(harness.now_ms, false);
  REQUIRE(hooks.size() == 1);
  CHECK_FALSE(hooks[0].is_update);
  CHECK(hooks[0].notice.title == "refined");
  harness.report("a-hook", {.done = true});
  harness.queue->update(refined, harness.now_ms);
  CHECK(harness.keys(false).empty());
}

TEST_CASE("the health of each sink is saved: its last answer, its failures in a row and the next try") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  const auto health = [&](const std::string& sink) {
    common::NotifierHealth read;
    CHECK(common::read_notifier_health(directory.path(), read));
    return read.sinks[sink];
  };
  harness.queue->add(notice("a", {"hook", "other"}), harness.now_ms);
  CHECK(harness.keys() == Keys{"a-hook", "a-other"});
  harness.report("a-other", {.done = true, .answer = "HTTP 200: ok"});
  CHECK(health("other").sent_ms == harness.now_ms);
  CHECK(health("other").answer == "HTTP 200: ok");
  CHECK(health("hook").failures == 0);
  harness.report("a-hook", {.why = "HTTP 500"});
  CHECK(health("hook").failures == 1);
  CHECK(health("hook").why == "HTTP 500");
  CHECK(health("hook").next_ms == harness.queue->next_ms(harness.now_ms));
  CHECK(harness.events() == "sent a-other: HTTP 200: ok\nfailed a-hook: HTTP 500\n");
  const common::SinkHealth before = health("hook");
  harness.open();  // restarted
  harness.save();
  CHECK(health("hook").failures == before.failures);
  CHECK(health("other") == harness.queue->health().sinks.at("other"));
}

TEST_CASE("a sink that fails three times in a row is reported once, until it works again") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  std::vector<DeliveryQueue::Failing> failing;
  const auto attempt = [&](const std::string& id, const Delivery& delivery) {
    harness.queue->add(notice(id), harness.now_ms);
    CHECK(harness.keys() == Keys{id + "-hook"});
    harness.report(id + "-hook", delivery);
    for (auto& each : harness.queue->take_failing()) failing.push_back(std::move(each));
  };
  const Delivery refused{.permanent = true, .why = "HTTP 404"};
  attempt("a", refused);
  attempt("b", refused);
  attempt("c", {.done = true});
  attempt("d", refused);
  attempt("e", refused);
  CHECK(failing.empty());
  attempt("f", refused);
  REQUIRE(failing.size() == 1);
  CHECK(failing[0].is_failing);
  CHECK(failing[0].sink == "hook");
  CHECK(failing[0].why == "HTTP 404");
  harness.open();  // restarted
  attempt("g", refused);
  CHECK(failing.size() == 1);
  attempt("h", {.done = true});
  REQUIRE(failing.size() == 2);
  CHECK_FALSE(failing[1].is_failing);
}

TEST_CASE("the report of a failing sink is dropped where there is no desktop") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  Notice report = notice("r", {"desktop"});
  report.type = Notice::report_type;
  harness.queue->add(report, harness.now_ms);
  CHECK(harness.keys(true) == Keys{"r-desktop"});
  harness.report("r-desktop", {.why = "no session bus"});
  CHECK(harness.queue->size() == 0);
  CHECK(harness.events().empty());
  CHECK(harness.queue->health().sinks.empty());
}

TEST_CASE("the health of a removed sink is forgotten, and why rules are not reloaded ends with a restart") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  harness.queue->add(notice("a"), harness.now_ms);
  CHECK(harness.keys() == Keys{"a-hook"});
  harness.queue->set_rules_problem("n.toml:3: no");
  harness.report("a-hook", {.permanent = true, .why = "HTTP 404"});
  common::NotifierHealth read;
  REQUIRE(common::read_notifier_health(directory.path(), read));
  CHECK(read.rules_problem == "n.toml:3: no");
  CHECK(read.sinks.size() == 1);
  const Rules others = rules_of("");
  DeliveryQueue queue(others, harness.path, 1);
  SavedState state;
  CHECK(queue.load(state, harness.now_ms).empty());
  CHECK(queue.health() == common::NotifierHealth{});
}

TEST_CASE("the queue is bounded: the oldest notice becomes a dead letter") {
  TemporaryDirectory directory;
  QueueHarness harness(directory);
  for (std::size_t i = 0; i < DeliveryQueue::notices_max + 3; ++i)
    harness.queue->add(notice("n" + std::to_string(i)), harness.now_ms);
  CHECK(harness.queue->size() == DeliveryQueue::notices_max);
  CHECK(harness.events().find("dead n0-hook: more than 500 notices are queued") == 0);
}

TEST_CASE("the state is read as it was written") {
  EngineHarness harness(
      "sinks = [\"desktop\", \"bell\"]\n[[rule]]\nname = \"t\"\non = \"tool.finished\"\nhold = "
      "\"0\"\nthrottle = \"1h\"\n");
  harness.set_project("s", R"(/home/ada/ö \"quoted\")");
  harness.set_waiting("s");
  harness.finish_turn("t", 1);
  harness.finish_tool("s", "c");
  const TemporaryDirectory directory;
  SavedState state{harness.state(),
                   {{"c/p/s", "1.1.ab"}, {"c/a:b", "2.1.cd"}},
                   {"bus:1.5", {{"s", "abc", 7, "http://h/?session=s", "s"}}}};
  state.engine.since_ms = 7;
  DeliveryQueue queue(harness.rules(), directory / "state.json", 1);
  for (const Notice& each : harness.notices) queue.add(each, harness.now_ms);
  REQUIRE(queue.save(state.engine, state.cursors, state.shown).empty());
  SavedState read;
  DeliveryQueue again(harness.rules(), directory / "state.json", 1);
  REQUIRE(again.load(read, harness.now_ms).empty());
  CHECK(read.cursors == state.cursors);
  CHECK(read.engine == state.engine);
  CHECK(read.engine.held.size() == 2);
  CHECK(read.shown == state.shown);
  REQUIRE(again.size() == 3);
  CHECK(again.take_due(harness.now_ms, true).at(0).notice == harness.notices.at(0));
}

TEST_CASE("an invalid state file is reported and ignored") {
  const TemporaryDirectory directory;
  const Rules rules = rules_of("");
  const auto load = [&](const std::string& text) {
    directory.write("state.json", text);
    std::filesystem::permissions(directory / "state.json", std::filesystem::perms::owner_read);
    SavedState state;
    DeliveryQueue queue(rules, directory / "state.json", 1);
    const std::string error = queue.load(state, noon_ms);
    CHECK(queue.size() == 0);
    directory.remove("state.json");
    return error;
  };
  for (const char* text : {"", "{}", "[]", R"({"version":2})", R"({"version":1)"})
    CHECK(load(text).find("not a valid state file") != std::string::npos);
  CHECK(
      load(
          R"({"version":1,"held":[{"due_ms":3}],"cursors":[3,"x"],"handled":"no","queue":[{"sink":"hook"}]})")
          .empty());
}

TEST_CASE("a log never exceeds its bound") {
  TemporaryDirectory directory;
  BoundedLog log(directory / "log");
  const std::string line(1000, 'x');
  for (int i = 0; i < 2000; ++i) log.append(std::to_string(i) + line);
  CHECK(std::filesystem::file_size(directory / "log") <= BoundedLog::bytes_max);
  CHECK(std::filesystem::file_size(directory / "log.1") <= BoundedLog::bytes_max);
  const auto last = log.last(3);
  REQUIRE(last.size() == 3);
  CHECK(last[2] == "1999" + line);
}
