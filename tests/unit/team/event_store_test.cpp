#include "team/event_store.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agents/stream_name.hpp"
#include "base/clock.hpp"
#include "unit/support/raw_files.hpp"

using namespace earshot;
using namespace earshot::team;

namespace {

ReceivedMessage make_event(std::uint64_t sequence, std::uint64_t offset, const std::string& store = "one",
                           std::uint64_t mark = 5) {
  ReceivedMessage message;
  message.store = store, message.sequence = sequence,
  message.time_ns = static_cast<std::int64_t>(sequence) * 1000;
  message.host = "ada", message.stream = "claude/p/s", message.session = "s", message.type = "turn.started";
  message.cursor = Cursor{offset, 1, mark};
  message.payload = R"({"type":"turn.started","host":"ada","stream":"claude/p/s","session":"s","cursor":")" +
                    to_string(*message.cursor) + R"(","turn":1})";
  return message;
}
ReceivedMessage first(ReceivedMessage message) {
  message.is_first = true;
  return message;
}
/// Sets the previous event.
ReceivedMessage follows(ReceivedMessage message, std::uint64_t offset, std::uint64_t mark = 5) {
  message.after = offset == 0 ? begin_cursor : Cursor{offset, 1, mark};
  return message;
}
ReceivedMessage reset(std::uint64_t sequence) {
  ReceivedMessage message = make_event(sequence, 0);
  message.cursor.reset();
  message.type = "reset";
  return message;
}
ReceivedMessage removed(std::uint64_t sequence) {
  ReceivedMessage message = reset(sequence);
  message.type = "stream.removed";
  return message;
}

ReceivedMessage renamed(std::uint64_t sequence, std::string from, std::string to) {
  ReceivedMessage message = reset(sequence);
  message.type = "stream.renamed", message.from = std::move(from), message.stream = std::move(to);
  return message;
}

struct Hub {
  test::TemporaryDirectory scratch;
  std::string directory = scratch / "hub";
  std::string file = directory + "/projects/ada/" + escape_token("claude/p/s") + ".jsonl";

  /// A store that appends events 10 and 20 and ends.
  void store_two() const {
    EventStore store(directory, {});
    store.add(make_event(1, 10)), store.add(make_event(2, 20));
    CHECK(store.write().empty());
  }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(file).rdbuf();
    return all.str();
  }
  /// The offsets of the stored events, in order.
  std::vector<std::uint64_t> offsets() const {
    std::vector<std::uint64_t> found;
    std::istringstream lines(text());
    for (std::string line; std::getline(lines, line);) {
      const auto at = line.find(R"("cursor":")");
      if (at != line.npos) found.push_back(std::stoull(line.substr(at + 10)));
    }
    return found;
  }
};
using Offsets = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("events are appended in order, one per line, with their origin") {
  Hub hub;
  EventStore store(hub.directory, {});
  CHECK(store.add(make_event(1, 10)) == IngestAction::append);
  CHECK(store.add(make_event(2, 20)) == IngestAction::append);
  CHECK(store.write().empty());
  CHECK(store.sync().empty());
  CHECK(hub.offsets() == Offsets{10, 20});
  CHECK(hub.text().starts_with(R"({"received":"one:1:1000","type":"turn.started",)"));
}

TEST_CASE("a redelivered event is dropped, also after a restart of the hub") {
  Hub hub;
  hub.store_two();
  EventStore store(hub.directory, {});
  CHECK(store.add(make_event(1, 10)) == IngestAction::drop);
  CHECK(store.add(make_event(2, 20)) == IngestAction::drop);
  CHECK(store.add(make_event(3, 30)) == IngestAction::append);
  CHECK(store.write().empty());
  CHECK(hub.offsets() == Offsets{10, 20, 30});
}

TEST_CASE("events that a recreated store delivers again are dropped") {
  Hub hub;
  EventStore store(hub.directory, {});
  for (const std::uint64_t n : {1, 2, 3}) store.add(make_event(n, n * 10));
  CHECK(store.write().empty());
  CHECK(store.add(first(make_event(1, 10, "two"))) == IngestAction::drop);
  CHECK(store.add(make_event(2, 20, "two")) == IngestAction::drop);
  CHECK(store.add(make_event(3, 30, "two")) == IngestAction::drop);
  CHECK(store.add(make_event(4, 40, "two")) == IngestAction::append);
  CHECK(store.write().empty());
  CHECK(hub.offsets() == Offsets{10, 20, 30, 40});
}

TEST_CASE("sequences that a store reuses after it lost messages are new messages") {
  Hub hub;
  EventStore store(hub.directory, {});
  store.add(make_event(7, 10)), store.add(make_event(9, 20));
  CHECK(store.write().empty());
  ReceivedMessage again = make_event(5, 20), next = make_event(6, 30);
  again.time_ns = 20'000, next.time_ns = 21'000;
  CHECK(store.add(again) == IngestAction::drop);  // already stored
  CHECK(store.add(next) == IngestAction::append);
  CHECK(store.write().empty());
  CHECK(hub.offsets() == Offsets{10, 20, 30});
}

TEST_CASE("another history in a recreated store is detected by its cursors, whatever its length") {
  for (const std::uint64_t offset : {10, 35}) {
    Hub hub;
    EventStore store(hub.directory, {});
    for (const std::uint64_t n : {1, 2, 3}) store.add(make_event(n, n * 10));
    CHECK(store.write().empty());
    CHECK(store.add(first(make_event(1, offset, "two", 99))) == IngestAction::restart);
    CHECK(store.add(make_event(2, 50, "two", 99)) == IngestAction::append);
    CHECK(store.write().empty());
    CHECK(hub.offsets() == Offsets{offset, 50});
  }
}

TEST_CASE("a reset restarts the file, and redelivered events from before it are dropped") {
  Hub hub;
  hub.store_two();
  {
    EventStore store(hub.directory, {});
    CHECK(store.add(reset(3)) == IngestAction::restart);
    CHECK(store.add(make_event(4, 5, "one", 99)) == IngestAction::append);
    CHECK(store.write().empty());
    CHECK(hub.offsets() == Offsets{5});
  }
  EventStore store(hub.directory, {});
  CHECK(store.add(make_event(2, 20)) == IngestAction::drop);
  CHECK(store.add(reset(3)) == IngestAction::drop);
  CHECK(store.add(make_event(4, 5, "one", 99)) == IngestAction::drop);
  CHECK(store.add(make_event(5, 6, "one", 99)) == IngestAction::append);
  CHECK(store.write().empty());
  CHECK(hub.offsets() == Offsets{5, 6});
}

TEST_CASE("after a reset and a new history in one batch the file has only the new history") {
  Hub hub;
  EventStore store(hub.directory, {});
  store.add(make_event(1, 10)), store.add(reset(2)), store.add(make_event(3, 4)), store.add(reset(4)),
      store.add(make_event(5, 6));
  CHECK(store.write().empty());
  CHECK(hub.offsets() == Offsets{6});
}

TEST_CASE("the file of a removed transcript is deleted, the transcript may be created again") {
  Hub hub;
  EventStore store(hub.directory, {});
  store.add(make_event(1, 10));
  CHECK(store.write().empty());
  CHECK(store.add(removed(2)) == IngestAction::remove);
  CHECK_FALSE(std::filesystem::exists(hub.file));
  CHECK(store.metrics().files == 0);
  CHECK(store.add(removed(2)) == IngestAction::drop);
  CHECK(store.add(make_event(3, 10)) == IngestAction::append);
  CHECK(store.write().empty());
  CHECK(hub.offsets() == Offsets{10});
}

TEST_CASE("fault 125: the file of a renamed transcript has its new name, also for redelivered messages") {
  Hub hub;
  const auto moved = [](ReceivedMessage message) {
    message.stream = "claude/t/s";
    return message;
  };
  {
    EventStore store(hub.directory, {});
    store.add(make_event(1, 10)), store.add(make_event(2, 20));  // not written yet
    CHECK(store.add(renamed(3, "claude/p/s", "claude/t/s")) == IngestAction::rename);
    CHECK(store.add(renamed(3, "claude/p/s", "claude/t/s")) == IngestAction::drop);
    CHECK(store.add(moved(make_event(4, 30))) == IngestAction::append);
    CHECK(store.write().empty());
    CHECK(store.metrics().files == 1);
  }
  CHECK_FALSE(std::filesystem::exists(hub.file));
  hub.file = hub.directory + "/projects/ada/" + escape_token("claude/t/s") + ".jsonl";
  CHECK(hub.offsets() == Offsets{10, 20, 30});
  EventStore store(hub.directory, {});
  // What is delivered again is stored under the former name until the new one follows.
  store.add(make_event(2, 20));
  CHECK(store.add(renamed(3, "claude/p/s", "claude/t/s")) == IngestAction::remove);
  CHECK(store.add(moved(make_event(4, 30))) == IngestAction::drop);
  CHECK(store.metrics().files == 1);
  // Another transcript may have the former name.
  CHECK(store.add(make_event(5, 10)) == IngestAction::append);
  CHECK(store.metrics().files == 2);
  // Where both are stored, the one that has the name stays.
  CHECK(store.add(renamed(6, "claude/p/s", "claude/t/s")) == IngestAction::remove);
  CHECK(store.write().empty());
  CHECK(store.metrics().files == 1);
  CHECK(hub.offsets() == Offsets{10, 20, 30});
}

TEST_CASE("fault 125: a host renames its own transcripts only") {
  Hub hub;
  hub.store_two();
  EventStore store(hub.directory, {});
  ReceivedMessage foreign = renamed(3, "claude/p/s", "claude/t/s");
  foreign.host = "bob";
  CHECK(store.add(foreign) == IngestAction::drop);
  CHECK(hub.offsets() == Offsets{10, 20});
}

TEST_CASE("an incomplete line after a crash is removed") {
  Hub hub;
  hub.store_two();
  std::filesystem::resize_file(hub.file, std::filesystem::file_size(hub.file) - 7);
  EventStore store(hub.directory, {});
  CHECK(hub.offsets() == Offsets{10});
  CHECK(store.add(make_event(2, 20)) == IngestAction::append);
  CHECK(store.write().empty());
  CHECK(hub.offsets() == Offsets{10, 20});
}

TEST_CASE("events of a host above the limit are dropped and counted") {
  Hub hub;
  EventStore store(hub.directory, {.hosts_max = 1});
  store.add(make_event(1, 10));
  ReceivedMessage other = make_event(2, 10);
  other.host = "bob";
  CHECK(store.add(other) == IngestAction::drop);
  CHECK(store.metrics().hosts_refused == 1);
  CHECK(store.metrics().hosts == 1);
  CHECK(store.add(make_event(3, 20)) == IngestAction::append);
}

TEST_CASE("files above the age limit are deleted, and the oldest ones above the size limit") {
  Hub hub;
  EventStore store(hub.directory, {.age_ms = 1'000'000});
  store.add(make_event(1, 10));
  CHECK(store.write().empty());
  store.apply_retention(wall_now_ms());
  CHECK(std::filesystem::exists(hub.file));
  store.apply_retention(wall_now_ms() + 2'000'000);
  CHECK_FALSE(std::filesystem::exists(hub.file));
  CHECK(store.metrics().retired == 1);
  CHECK(store.metrics().bytes == 0);

  Hub small;
  EventStore full(small.directory, {.bytes_max = 1, .age_ms = 1 << 30});
  full.add(make_event(1, 10));
  CHECK(full.write().empty());
  full.apply_retention(wall_now_ms());
  CHECK_FALSE(std::filesystem::exists(small.file));
}

TEST_CASE("another history without a reset is detected where it starts, whatever its length") {
  // The new history shares event 10 with 10, 20, 30 and continues with an earlier, the same or a later
  // offset.
  for (const std::uint64_t offset : {15, 20, 35}) {
    CAPTURE(offset);
    Hub hub;
    EventStore store(hub.directory, {});
    for (const std::uint64_t n : {1, 2, 3}) store.add(follows(make_event(n, n * 10), (n - 1) * 10));
    CHECK(store.write().empty());
    CHECK(store.add(first(follows(make_event(1, 10, "two"), 0))) == IngestAction::drop);
    CHECK(store.add(follows(make_event(2, offset, "two", 99), 10)) == IngestAction::restart);
    CHECK(store.add(follows(make_event(3, 50, "two", 99), offset, 99)) == IngestAction::append);
    CHECK(store.write().empty());
    CHECK(hub.offsets() == Offsets{10, offset, 50});
  }
}

TEST_CASE("a diverging history is detected after a crash of the hub, and before it was written") {
  for (const bool is_written : {true, false}) {
    Hub hub;
    auto store = std::make_unique<EventStore>(hub.directory, EventStoreLimits{});
    for (const std::uint64_t n : {1, 2, 3}) store->add(follows(make_event(n, n * 10), (n - 1) * 10));
    if (is_written) {
      CHECK(store->write().empty());
      store = std::make_unique<EventStore>(hub.directory, EventStoreLimits{});
      CHECK(store->add(first(follows(make_event(1, 10, "two"), 0))) == IngestAction::drop);
      store = std::make_unique<EventStore>(hub.directory, EventStoreLimits{});
    }
    CHECK(store->add(follows(make_event(2, 20, "two"), 10)) == IngestAction::drop);
    CHECK(store->add(follows(make_event(3, 25, "two", 99), 20)) == IngestAction::restart);
    CHECK(store->write().empty());
    CHECK(hub.offsets() == Offsets{10, 20, 25});
    CHECK(store->add(follows(make_event(4, 28, "two", 99), 25, 99)) == IngestAction::append);
    CHECK(store->write().empty());
    CHECK(hub.offsets() == Offsets{10, 20, 25, 28});
    EventStore again(hub.directory, {});
    CHECK(again.add(follows(make_event(4, 28, "two", 99), 25, 99)) == IngestAction::drop);
    CHECK(again.metrics().bytes == std::filesystem::file_size(hub.file));
  }
}

TEST_CASE("after a gap a newer event is appended, and an older one restarts the file") {
  Hub hub;
  EventStore store(hub.directory, {});
  store.add(follows(make_event(1, 10), 0));
  CHECK(store.add(follows(make_event(3, 30), 20)) == IngestAction::append);
  CHECK(store.add(follows(make_event(4, 30), 20)) == IngestAction::drop);
  CHECK(store.add(follows(make_event(5, 25, "one", 99), 20, 99)) == IngestAction::restart);
  CHECK(store.write().empty());
  CHECK(hub.offsets() == Offsets{25});
}

TEST_CASE("a late redelivery does not create a file for a removed transcript") {
  Hub hub;
  EventStore store(hub.directory, {});
  store.add(follows(make_event(1, 10), 0)), store.add(follows(make_event(2, 20), 10));
  CHECK(store.write().empty());
  CHECK(store.add(removed(3)) == IngestAction::remove);
  CHECK(store.add(follows(make_event(2, 20), 10)) == IngestAction::drop);
  CHECK(store.metrics().files == 0);
  CHECK(store.add(follows(make_event(4, 10), 0)) == IngestAction::append);
}

TEST_CASE("a truncated file is reported, so that its events are fetched again") {
  Hub hub;
  hub.store_two();
  {
    EventStore store(hub.directory, {});
    CHECK(store.last_received("one").sequence == 2);
    CHECK(store.last_received("two").sequence == 0);
  }
  CHECK_FALSE(EventStore(hub.directory, {}).was_truncated());
  std::filesystem::resize_file(hub.file, std::filesystem::file_size(hub.file) - 7);
  CHECK(EventStore(hub.directory, {}).was_truncated());
}

TEST_CASE("the number of files of a host is limited, and above the size limit the largest host loses files") {
  Hub hub;
  EventStore store(hub.directory, {.host_files_max = 2, .bytes_max = 1000});
  std::uint64_t sequence = 0;
  const auto add = [&](const std::string& host, const std::string& stream) {
    ReceivedMessage message = make_event(++sequence, 10);
    message.host = host, message.stream = stream;
    return store.add(message);
  };
  CHECK(add("bob", "claude/p/small") == IngestAction::append);
  CHECK(store.write().empty());
  for (const char* stream : {"claude/p/a", "claude/p/b"}) CHECK(add("ada", stream) == IngestAction::append);
  CHECK(add("ada", "claude/p/c") == IngestAction::drop);
  CHECK(store.metrics().files_refused == 1);
  for (std::uint64_t n = 0; n < 10; ++n) {
    ReceivedMessage message = make_event(++sequence, 20 + n);
    message.stream = "claude/p/b";
    store.add(message);
  }
  CHECK(store.write().empty());
  store.apply_retention(wall_now_ms());
  CHECK(store.metrics().bytes <= 1000);
  CHECK(
      std::filesystem::exists(hub.directory + "/projects/bob/" + escape_token("claude/p/small") + ".jsonl"));
}

TEST_CASE("decisions do not depend on the cached indexes") {
  Hub hub;
  EventStore store(hub.directory, {.entries_bytes_max = 1});
  for (const std::uint64_t n : {1, 2, 3})
    for (const char* stream : {"claude/p/a", "claude/p/b"}) {
      ReceivedMessage message = follows(make_event(n, n * 10), (n - 1) * 10);
      message.stream = stream;
      CHECK(store.add(message) == IngestAction::append);
      message.store = "two";
      message.sequence = n + 100;
      CHECK(store.add(message) == IngestAction::drop);
    }
  CHECK(store.write().empty());
}

TEST_CASE("fault 88: forged predecessors cost a host a limited number of repairs, and other hosts none") {
  Hub hub;
  EventStore store(hub.directory, {.repairs_burst = 4, .repairs_per_second = 0});
  for (const std::uint64_t n : {1, 2, 3}) store.add(follows(make_event(n, n * 10), (n - 1) * 10));
  CHECK(store.write().empty());
  std::uint64_t sequence = 3;
  for (std::uint64_t n = 0; n < 20; ++n) {  // each diverges after the first event
    store.add(follows(make_event(++sequence, 100 + n, "one", n), 10));
    CHECK(store.write().empty());
  }
  CHECK(store.metrics().restarted == 3);  // the first one also reads the file
  CHECK(store.metrics().repairs_refused == 17);
  CHECK(hub.offsets().size() == 2 + 17);  // newer events are appended

  ReceivedMessage other = follows(make_event(++sequence, 10), 0);
  other.host = "bob";
  CHECK(store.add(other) == IngestAction::append);
  other = follows(make_event(++sequence, 20), 10);
  other.host = "bob";
  CHECK(store.add(other) == IngestAction::append);
  other = follows(make_event(++sequence, 15, "one", 9), 10);
  other.host = "bob";
  CHECK(store.write().empty());
  CHECK(store.add(other) == IngestAction::restart);
}
