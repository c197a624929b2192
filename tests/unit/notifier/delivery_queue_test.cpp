// The spool, the delivery queue and the log files, on a real disk.
#include "notifier/delivery_queue.hpp"

#include <fstream>

#include "notifier/bounded_log.hpp"
#include "unit/notifier/engine_harness.hpp"

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
  explicit QueueHarness(const Scratch& scratch) : spool(scratch.path()) { open(); }
  void open() { queue = std::make_unique<DeliveryQueue>(rules, spool, 1, now_ms); }
  std::vector<std::string> keys(bool can_retract = false) {
    std::vector<std::string> out;
    for (const QueuedNotice& each : queue->take_due(now_ms, can_retract)) out.push_back(each.key());
    return out;
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
  Spool spool;
  std::int64_t now_ms = noon_ms;
  std::unique_ptr<DeliveryQueue> queue;
};

std::size_t files(const Scratch& scratch) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(scratch.path())) ++count;
  return count;
}

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("deliveries start when saved, one at a time per sink, and delivered notices are deleted") {
  Scratch scratch;
  QueueHarness harness(scratch);
  harness.queue->add(notice("a", {"hook", "other"}), harness.now_ms);
  harness.queue->add(notice("b"), harness.now_ms);
  CHECK(harness.keys().empty());
  CHECK(harness.queue->save().empty());
  CHECK(files(scratch) == 3);
  CHECK(harness.keys() == Keys{"a-hook", "a-other"});
  CHECK(harness.keys().empty());
  harness.queue->report("a-hook", {.done = true}, harness.now_ms);
  CHECK(harness.keys() == Keys{"b-hook"});
  harness.queue->report("b-hook", {.done = true}, harness.now_ms);
  harness.queue->report("a-other", {.done = true}, harness.now_ms);
  CHECK(files(scratch) == 0);
  CHECK(harness.events() == "sent a-hook\nsent b-hook\nsent a-other\n");
}

TEST_CASE("notices that can be retracted are sent before they are saved") {
  Scratch scratch;
  QueueHarness harness(scratch);
  harness.queue->add(notice("a", {"desktop"}), harness.now_ms);
  CHECK(harness.keys(true) == Keys{"a-desktop"});
  CHECK(harness.queue->save().empty());
  CHECK(files(scratch) == 1);
}

TEST_CASE("a failed delivery is retried with backoff until it is a dead letter") {
  Scratch scratch;
  QueueHarness harness(scratch);
  harness.queue->add(notice("a"), harness.now_ms);
  CHECK(harness.queue->save().empty());
  std::int64_t before = 0;
  for (int attempt = 1; attempt < DeliveryQueue::attempts_max; ++attempt) {
    REQUIRE(harness.keys() == Keys{"a-hook"});
    harness.queue->report("a-hook", {.why = "HTTP 500"}, harness.now_ms);
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
  harness.queue->report("a-hook", {.why = "HTTP 500"}, harness.now_ms);
  CHECK(harness.events() == "dead a-hook: HTTP 500; given up after 20 attempts\n");
  CHECK(files(scratch) == 0);
}

TEST_CASE("Retry-After pauses all deliveries to that sink and to no other") {
  Scratch scratch;
  QueueHarness harness(scratch);
  harness.queue->add(notice("a"), harness.now_ms);
  harness.queue->add(notice("b", {"hook", "other"}), harness.now_ms);
  CHECK(harness.queue->save().empty());
  CHECK(harness.keys() == Keys{"a-hook", "b-other"});
  harness.queue->report("a-hook", {.retry_after_ms = 30'000, .why = "HTTP 429"}, harness.now_ms);
  CHECK(harness.keys().empty());
  CHECK(harness.queue->next_ms(harness.now_ms) == harness.now_ms + 30'000);
  harness.now_ms += 29'999;
  CHECK(harness.keys().empty());
  harness.now_ms += 1;
  CHECK(harness.keys() == Keys{"a-hook"});
}

TEST_CASE("a permanent failure is a dead letter immediately") {
  Scratch scratch;
  QueueHarness harness(scratch);
  harness.queue->add(notice("a"), harness.now_ms);
  CHECK(harness.queue->save().empty());
  CHECK(harness.keys().size() == 1);
  harness.queue->report("a-hook", {.permanent = true, .why = "HTTP 404"}, harness.now_ms);
  CHECK(harness.events() == "dead a-hook: HTTP 404\n");
  CHECK(harness.queue->size() == 0);
}

TEST_CASE("after a crash queued notices are sent and an interrupted delivery is repeated once") {
  Scratch scratch;
  {
    QueueHarness harness(scratch);
    harness.queue->add(notice("a"), harness.now_ms);
    harness.queue->add(notice("b"), harness.now_ms);
    CHECK(harness.queue->save().empty());
    CHECK(harness.keys() == Keys{"a-hook"});  // killed here
  }
  {
    QueueHarness harness(scratch);
    CHECK(harness.queue->size() == 2);
    const auto queued_notices = harness.queue->take_due(harness.now_ms, false);
    REQUIRE(queued_notices.size() == 1);
    CHECK(queued_notices[0].notice == notice(queued_notices[0].notice.id));
    if (queued_notices[0].notice.id == "b") {
      harness.queue->report("b-hook", {.done = true}, harness.now_ms);
      CHECK(harness.keys() == Keys{"a-hook"});
    }  // killed again while `a` is resent
  }
  QueueHarness harness(scratch);
  CHECK(harness.events() ==
        "dead a-hook: the notifier was killed twice while sending it; not sent a third time\n");
  CHECK(harness.queue->size() <= 1);
}

TEST_CASE("after a known failure a delivery may be interrupted again") {
  Scratch scratch;
  for (int restart = 0; restart < 4; ++restart) {
    QueueHarness harness(scratch);
    if (restart == 0) harness.queue->add(notice("a"), harness.now_ms);
    CHECK(harness.queue->save().empty());
    harness.now_ms += 600'000;
    REQUIRE(harness.keys() == Keys{"a-hook"});
    harness.queue->report("a-hook", {.why = "HTTP 500"}, harness.now_ms);
  }
  CHECK(files(scratch) == 1);
}

TEST_CASE("a notice that is decided again after a crash is delivered once") {
  Scratch scratch;
  QueueHarness harness(scratch);
  harness.queue->add(notice("a"), harness.now_ms);
  CHECK(harness.queue->save().empty());
  harness.open();
  harness.queue->add(notice("a"), harness.now_ms);
  CHECK(harness.queue->size() == 1);
}

TEST_CASE("an answered notice is withdrawn unless its delivery is in flight") {
  Scratch scratch;
  QueueHarness harness(scratch);
  harness.queue->add(notice("a"), harness.now_ms);
  harness.queue->add(notice("b"), harness.now_ms);
  CHECK(harness.queue->save().empty());
  CHECK(harness.keys() == Keys{"a-hook"});
  harness.queue->withdraw("a", {"hook"});
  harness.queue->withdraw("b", {"hook"});
  CHECK(harness.events() == "withdrawn b-hook: answered before it could be sent\n");
  CHECK(harness.queue->size() == 1);
}

TEST_CASE("the queue is bounded: the oldest notice becomes a dead letter") {
  Scratch scratch;
  QueueHarness harness(scratch);
  for (std::size_t i = 0; i < DeliveryQueue::notices_max + 3; ++i)
    harness.queue->add(notice("n" + std::to_string(i)), harness.now_ms);
  CHECK(harness.queue->size() == DeliveryQueue::notices_max);
  CHECK(harness.events().find("dead n0-hook: more than 500 notices are queued") == 0);
}

TEST_CASE("unrelated files in the spool are ignored") {
  Scratch scratch;
  std::ofstream(scratch / "x.json") << "{\"no\":1}";
  std::ofstream(scratch / "y.json") << "garbage";
  std::ofstream(scratch / "z.txt") << "hello";
  QueueHarness harness(scratch);
  CHECK(harness.queue->size() == 0);
  CHECK(files(scratch) == 3);
}

TEST_CASE("a log never exceeds its bound") {
  Scratch scratch;
  BoundedLog log(scratch / "log");
  const std::string line(1000, 'x');
  for (int i = 0; i < 2000; ++i) log.append(std::to_string(i) + line);
  CHECK(std::filesystem::file_size(scratch / "log") <= BoundedLog::bytes_max);
  CHECK(std::filesystem::file_size(scratch / "log.1") <= BoundedLog::bytes_max);
  const auto last = log.last(3);
  REQUIRE(last.size() == 3);
  CHECK(last[2] == "1999" + line);
}
