// The spool and the post office, on a real disk.
#include "notifier/delivery_queue.hpp"

#include <fstream>

#include "notifier/files.hpp"
#include "unit/notifier/rig.hpp"

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
  made.matters = {{"m", "s", true}};
  return made;
}

const char* const rules_text =
    "[sink.hook]\nkind = \"json\"\nurl = \"https://example.test/\"\n[sink.other]\nkind = \"json\"\nurl = "
    "\"https://example.test/\"\n";

struct Office {
  explicit Office(const Scratch& scratch) : spool(scratch.path()) { open(); }
  void open() { office = std::make_unique<DeliveryQueue>(rules, spool, 1, now_ms); }
  std::vector<std::string> keys(bool can_retract = false) {
    std::vector<std::string> out;
    for (const QueuedNotice& each : office->collect(now_ms, can_retract)) out.push_back(each.key());
    return out;
  }
  std::string events() {
    std::string out;
    constexpr const char* words[] = {"sent", "failed", "dead", "withdrawn"};
    for (const auto& each : office->take_events())
      out += std::string(words[static_cast<int>(each.what)]) + " " + each.queued.key() +
             (each.why.empty() ? "" : ": " + each.why) + "\n";
    return out;
  }
  Rules rules = rules_of(rules_text);
  Spool spool;
  std::int64_t now_ms = noon_ms;
  std::unique_ptr<DeliveryQueue> office;
};

std::size_t files(const Scratch& scratch) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(scratch.path())) ++count;
  return count;
}

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE(
    "a letter goes out once it is on disk, one at a time to a sink, and its file goes when it is delivered") {
  Scratch scratch;
  Office o(scratch);
  o.office->take(notice("a", {"hook", "other"}), o.now_ms);
  o.office->take(notice("b"), o.now_ms);
  CHECK(o.keys().empty());
  CHECK(o.office->save().empty());
  CHECK(files(scratch) == 3);
  CHECK(o.keys() == Keys{"a-hook", "a-other"});
  CHECK(o.keys().empty());
  o.office->report("a-hook", {.done = true}, o.now_ms);
  CHECK(o.keys() == Keys{"b-hook"});
  o.office->report("b-hook", {.done = true}, o.now_ms);
  o.office->report("a-other", {.done = true}, o.now_ms);
  CHECK(files(scratch) == 0);
  CHECK(o.events() == "sent a-hook\nsent b-hook\nsent a-other\n");
}

TEST_CASE("what can be taken back goes out before it is on disk") {
  Scratch scratch;
  Office o(scratch);
  o.office->take(notice("a", {"desktop"}), o.now_ms);
  CHECK(o.keys(true) == Keys{"a-desktop"});
  CHECK(o.office->save().empty());
  CHECK(files(scratch) == 1);
}

TEST_CASE("a failure is tried again, later each time, until it is a dead letter") {
  Scratch scratch;
  Office o(scratch);
  o.office->take(notice("a"), o.now_ms);
  CHECK(o.office->save().empty());
  std::int64_t before = 0;
  for (int attempt = 1; attempt < DeliveryQueue::attempts_max; ++attempt) {
    REQUIRE(o.keys() == Keys{"a-hook"});
    o.office->report("a-hook", {.why = "HTTP 500"}, o.now_ms);
    const auto next = o.office->next_ms(o.now_ms);
    REQUIRE(next);
    const std::int64_t pause = *next - o.now_ms;
    const std::int64_t most =
        std::min(DeliveryQueue::backoff_max_ms, DeliveryQueue::backoff_first_ms << std::min(attempt - 1, 20));
    CHECK(pause >= most / 2);
    CHECK(pause <= most);
    CHECK(pause * 4 > before);
    before = pause;
    CHECK(o.keys().empty());
    o.now_ms = *next;
  }
  REQUIRE(o.keys() == Keys{"a-hook"});
  o.events();
  o.office->report("a-hook", {.why = "HTTP 500"}, o.now_ms);
  CHECK(o.events() == "dead a-hook: HTTP 500; given up after 20 attempts\n");
  CHECK(files(scratch) == 0);
}

TEST_CASE("Retry-After is waited for by all letters to that sink, and by no other's") {
  Scratch scratch;
  Office o(scratch);
  o.office->take(notice("a"), o.now_ms);
  o.office->take(notice("b", {"hook", "other"}), o.now_ms);
  CHECK(o.office->save().empty());
  CHECK(o.keys() == Keys{"a-hook", "b-other"});
  o.office->report("a-hook", {.retry_after_ms = 30'000, .why = "HTTP 429"}, o.now_ms);
  CHECK(o.keys().empty());
  CHECK(o.office->next_ms(o.now_ms) == o.now_ms + 30'000);
  o.now_ms += 29'999;
  CHECK(o.keys().empty());
  o.now_ms += 1;
  CHECK(o.keys() == Keys{"a-hook"});
}

TEST_CASE("what is hopeless is a dead letter at once") {
  Scratch scratch;
  Office o(scratch);
  o.office->take(notice("a"), o.now_ms);
  CHECK(o.office->save().empty());
  CHECK(o.keys().size() == 1);
  o.office->report("a-hook", {.permanent = true, .why = "HTTP 404"}, o.now_ms);
  CHECK(o.events() == "dead a-hook: HTTP 404\n");
  CHECK(o.office->size() == 0);
}

TEST_CASE(
    "after a crash what waited is sent, what was being sent is sent once more, and never a third time") {
  Scratch scratch;
  {
    Office o(scratch);
    o.office->take(notice("a"), o.now_ms);
    o.office->take(notice("b"), o.now_ms);
    CHECK(o.office->save().empty());
    CHECK(o.keys() == Keys{"a-hook"});  // and then it dies
  }
  {
    Office o(scratch);
    CHECK(o.office->size() == 2);
    const auto queued_notices = o.office->collect(o.now_ms, false);
    REQUIRE(queued_notices.size() == 1);
    CHECK(queued_notices[0].notice == notice(queued_notices[0].notice.id));
    if (queued_notices[0].notice.id == "b") {
      o.office->report("b-hook", {.done = true}, o.now_ms);
      CHECK(o.keys() == Keys{"a-hook"});
    }  // and dies again, while `a` is sent for the second time
  }
  Office o(scratch);
  CHECK(o.events() ==
        "dead a-hook: the program ended twice while it was sent: it is not sent a third time\n");
  CHECK(o.office->size() <= 1);
}

TEST_CASE("a failure that is known is no repeat: it may be interrupted again") {
  Scratch scratch;
  for (int life = 0; life < 4; ++life) {
    Office o(scratch);
    if (life == 0) o.office->take(notice("a"), o.now_ms);
    CHECK(o.office->save().empty());
    o.now_ms += 600'000;
    REQUIRE(o.keys() == Keys{"a-hook"});
    o.office->report("a-hook", {.why = "HTTP 500"}, o.now_ms);
  }
  CHECK(files(scratch) == 1);
}

TEST_CASE("what was decided again after a crash is one letter") {
  Scratch scratch;
  Office o(scratch);
  o.office->take(notice("a"), o.now_ms);
  CHECK(o.office->save().empty());
  o.open();
  o.office->take(notice("a"), o.now_ms);
  CHECK(o.office->size() == 1);
}

TEST_CASE("an answered notice that did not go out is withdrawn, one that is on its way is not") {
  Scratch scratch;
  Office o(scratch);
  o.office->take(notice("a"), o.now_ms);
  o.office->take(notice("b"), o.now_ms);
  CHECK(o.office->save().empty());
  CHECK(o.keys() == Keys{"a-hook"});
  o.office->withdraw("a", {"hook"});
  o.office->withdraw("b", {"hook"});
  CHECK(o.events() == "withdrawn b-hook: answered before it could be sent\n");
  CHECK(o.office->size() == 1);
}

TEST_CASE("the spool is bounded: the oldest letter is given up, and said to be") {
  Scratch scratch;
  Office o(scratch);
  for (std::size_t i = 0; i < DeliveryQueue::notices_max + 3; ++i)
    o.office->take(notice("n" + std::to_string(i)), o.now_ms);
  CHECK(o.office->size() == DeliveryQueue::notices_max);
  CHECK(o.events().find("dead n0-hook: more than 500 letters wait") == 0);
}

TEST_CASE("files that are no letters are left alone") {
  Scratch scratch;
  std::ofstream(scratch / "x.json") << "{\"no\":1}";
  std::ofstream(scratch / "y.json") << "garbage";
  std::ofstream(scratch / "z.txt") << "hello";
  Office o(scratch);
  CHECK(o.office->size() == 0);
  CHECK(files(scratch) == 3);
}

TEST_CASE("a file is whole or not there; a log never grows beyond its bound") {
  Scratch scratch;
  CHECK(write_whole(scratch / "f", "one").empty());
  CHECK(write_whole(scratch / "f", "two").empty());
  CHECK(read_whole(scratch / "f", 10) == "two");
  CHECK_FALSE(read_whole(scratch / "f", 2));
  CHECK_FALSE(write_whole(scratch / "none/f", "x").empty());
  CHECK((std::filesystem::status(scratch / "f").permissions() & std::filesystem::perms::others_read) ==
        std::filesystem::perms::none);

  BoundedLog log(scratch / "log");
  const std::string line(1000, 'x');
  for (int i = 0; i < 2000; ++i) log.append(std::to_string(i) + line);
  CHECK(std::filesystem::file_size(scratch / "log") <= BoundedLog::bytes_max);
  CHECK(std::filesystem::file_size(scratch / "log.1") <= BoundedLog::bytes_max);
  const auto last = log.last(3);
  REQUIRE(last.size() == 3);
  CHECK(last[2] == "1999" + line);

  const Lock first(scratch / "lock");
  CHECK(first.held());
  CHECK_FALSE(Lock(scratch / "lock").held());
}
