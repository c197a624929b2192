#include "team/event_store.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/clock.hpp"
#include "tail/host_names.hpp"
#include "unit/watch/scratch.hpp"

using namespace earshot;
using namespace earshot::team;

namespace {

Received event(std::uint64_t sequence, std::uint64_t offset, const std::string& store = "one",
               std::uint64_t mark = 5) {
  Received received;
  received.store = store, received.sequence = sequence,
  received.time_ns = static_cast<std::int64_t>(sequence) * 1000;
  received.host = "ada", received.stream = "claude/p/s", received.session = "s",
  received.type = "turn.started";
  received.cursor = Cursor{offset, 1, mark};
  received.payload = R"({"type":"turn.started","host":"ada","stream":"claude/p/s","session":"s","cursor":")" +
                     to_string(*received.cursor) + R"(","turn":1})";
  return received;
}
Received first(Received received) {
  received.begins = true;
  return received;
}
/// It says which one it follows: the one at this offset, of this mark.
Received follows(Received received, std::uint64_t offset, std::uint64_t mark = 5) {
  received.after = offset == 0 ? begin_cursor : Cursor{offset, 1, mark};
  return received;
}
Received reset(std::uint64_t sequence) {
  Received received = event(sequence, 0);
  received.cursor.reset();
  received.type = "reset";
  return received;
}
Received removed(std::uint64_t sequence) {
  Received received = reset(sequence);
  received.type = "stream.removed";
  return received;
}

struct Server {
  test::Scratch scratch;
  std::string directory = scratch / "hub";
  std::string file = directory + "/projects/ada/" + tail::escape("claude/p/s") + ".jsonl";

  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(file).rdbuf();
    return all.str();
  }
  /// The offsets of the events that the file has, in order.
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

TEST_CASE("events are appended in order, each as one line that says where it was received") {
  Server hub;
  EventStore shelf(hub.directory, {});
  CHECK(shelf.take(event(1, 10)) == IngestAction::append);
  CHECK(shelf.take(event(2, 20)) == IngestAction::append);
  CHECK(shelf.write().empty());
  CHECK(shelf.sync().empty());
  CHECK(hub.offsets() == Offsets{10, 20});
  CHECK(hub.text().starts_with(R"({"received":"one:1:1000","type":"turn.started",)"));
}

TEST_CASE("what is delivered once more is dropped, also by a hub that was started again in between") {
  Server hub;
  {
    EventStore shelf(hub.directory, {});
    shelf.take(event(1, 10)), shelf.take(event(2, 20));
    CHECK(shelf.write().empty());
  }
  EventStore shelf(hub.directory, {});
  CHECK(shelf.take(event(1, 10)) == IngestAction::drop);
  CHECK(shelf.take(event(2, 20)) == IngestAction::drop);
  CHECK(shelf.take(event(3, 30)) == IngestAction::append);
  CHECK(shelf.write().empty());
  CHECK(hub.offsets() == Offsets{10, 20, 30});
}

TEST_CASE("a store that was made anew tells all again: what the file has is dropped") {
  Server hub;
  EventStore shelf(hub.directory, {});
  for (const std::uint64_t n : {1, 2, 3}) shelf.take(event(n, n * 10));
  CHECK(shelf.write().empty());
  CHECK(shelf.take(first(event(1, 10, "two"))) == IngestAction::drop);
  CHECK(shelf.take(event(2, 20, "two")) == IngestAction::drop);
  CHECK(shelf.take(event(3, 30, "two")) == IngestAction::drop);
  CHECK(shelf.take(event(4, 40, "two")) == IngestAction::append);
  CHECK(shelf.write().empty());
  CHECK(hub.offsets() == Offsets{10, 20, 30, 40});
}

TEST_CASE("numbers that a store gives again after it lost its end are no repetition") {
  Server hub;
  EventStore shelf(hub.directory, {});
  shelf.take(event(7, 10)), shelf.take(event(9, 20));
  CHECK(shelf.write().empty());
  Received again = event(5, 20), fresh = event(6, 30);
  again.time_ns = 20'000, fresh.time_ns = 21'000;
  CHECK(shelf.take(again) == IngestAction::drop);  // the file has it
  CHECK(shelf.take(fresh) == IngestAction::append);
  CHECK(shelf.write().empty());
  CHECK(hub.offsets() == Offsets{10, 20, 30});
}

TEST_CASE("another history in a store that was made anew is known by its cursors, however far it has come") {
  for (const std::uint64_t offset : {10, 35}) {
    Server hub;
    EventStore shelf(hub.directory, {});
    for (const std::uint64_t n : {1, 2, 3}) shelf.take(event(n, n * 10));
    CHECK(shelf.write().empty());
    CHECK(shelf.take(first(event(1, offset, "two", 99))) == IngestAction::restart);
    CHECK(shelf.take(event(2, 50, "two", 99)) == IngestAction::append);
    CHECK(shelf.write().empty());
    CHECK(hub.offsets() == Offsets{offset, 50});
  }
}

TEST_CASE(
    "a reset begins the file anew, and what was told before it is not taken again when it is redelivered") {
  Server hub;
  {
    EventStore shelf(hub.directory, {});
    shelf.take(event(1, 10)), shelf.take(event(2, 20));
    CHECK(shelf.write().empty());
    CHECK(shelf.take(reset(3)) == IngestAction::restart);
    CHECK(shelf.take(event(4, 5, "one", 99)) == IngestAction::append);
    CHECK(shelf.write().empty());
    CHECK(hub.offsets() == Offsets{5});
  }
  EventStore shelf(hub.directory, {});
  CHECK(shelf.take(event(2, 20)) == IngestAction::drop);
  CHECK(shelf.take(reset(3)) == IngestAction::drop);
  CHECK(shelf.take(event(4, 5, "one", 99)) == IngestAction::drop);
  CHECK(shelf.take(event(5, 6, "one", 99)) == IngestAction::append);
  CHECK(shelf.write().empty());
  CHECK(hub.offsets() == Offsets{5, 6});
}

TEST_CASE("a reset and a new history in one batch leave only the new one") {
  Server hub;
  EventStore shelf(hub.directory, {});
  shelf.take(event(1, 10)), shelf.take(reset(2)), shelf.take(event(3, 4)), shelf.take(reset(4)),
      shelf.take(event(5, 6));
  CHECK(shelf.write().empty());
  CHECK(hub.offsets() == Offsets{6});
}

TEST_CASE("a transcript that is gone takes its file with it, and may come again") {
  Server hub;
  EventStore shelf(hub.directory, {});
  shelf.take(event(1, 10));
  CHECK(shelf.write().empty());
  CHECK(shelf.take(removed(2)) == IngestAction::remove);
  CHECK_FALSE(std::filesystem::exists(hub.file));
  CHECK(shelf.figures().files == 0);
  CHECK(shelf.take(removed(2)) == IngestAction::drop);
  CHECK(shelf.take(event(3, 10)) == IngestAction::append);
  CHECK(shelf.write().empty());
  CHECK(hub.offsets() == Offsets{10});
}

TEST_CASE("a line that a crash left in part is cut off") {
  Server hub;
  {
    EventStore shelf(hub.directory, {});
    shelf.take(event(1, 10)), shelf.take(event(2, 20));
    CHECK(shelf.write().empty());
  }
  std::filesystem::resize_file(hub.file, std::filesystem::file_size(hub.file) - 7);
  EventStore shelf(hub.directory, {});
  CHECK(hub.offsets() == Offsets{10});
  CHECK(shelf.take(event(2, 20)) == IngestAction::append);
  CHECK(shelf.write().empty());
  CHECK(hub.offsets() == Offsets{10, 20});
}

TEST_CASE("a host beyond the limit is not kept, and counted") {
  Server hub;
  EventStoreLimits limits;
  limits.hosts_max = 1;
  EventStore shelf(hub.directory, limits);
  shelf.take(event(1, 10));
  Received other = event(2, 10);
  other.host = "bob";
  CHECK(shelf.take(other) == IngestAction::drop);
  CHECK(shelf.figures().hosts_refused == 1);
  CHECK(shelf.figures().hosts == 1);
  CHECK(shelf.take(event(3, 20)) == IngestAction::append);
}

TEST_CASE("what rested too long goes, and what rested longest goes when there is too much") {
  Server hub;
  EventStoreLimits limits;
  limits.age_ms = 1000;
  EventStore shelf(hub.directory, limits);
  shelf.take(event(1, 10));
  CHECK(shelf.write().empty());
  shelf.retire(watch::wall_now_ms());
  CHECK(std::filesystem::exists(hub.file));
  shelf.retire(watch::wall_now_ms() + 2000);
  CHECK_FALSE(std::filesystem::exists(hub.file));
  CHECK(shelf.figures().retired == 1);
  CHECK(shelf.figures().bytes == 0);

  Server small;
  limits.age_ms = 1 << 30;
  limits.bytes_max = 1;
  EventStore full(small.directory, limits);
  full.take(event(1, 10));
  CHECK(full.write().empty());
  full.retire(watch::wall_now_ms());
  CHECK_FALSE(std::filesystem::exists(small.file));
}

TEST_CASE("another history that nobody announced is found where it begins, however far it has come") {
  // Of the file's events 10, 20, 30 the new one has 10, then its own: a shorter one, a longer one, one that
  // is as long.
  for (const std::uint64_t offset : {15, 20, 35}) {
    CAPTURE(offset);
    Server hub;
    EventStore shelf(hub.directory, {});
    for (const std::uint64_t n : {1, 2, 3}) shelf.take(follows(event(n, n * 10), (n - 1) * 10));
    CHECK(shelf.write().empty());
    CHECK(shelf.take(first(follows(event(1, 10, "two"), 0))) == IngestAction::drop);
    CHECK(shelf.take(follows(event(2, offset, "two", 99), 10)) == IngestAction::restart);
    CHECK(shelf.take(follows(event(3, 50, "two", 99), offset, 99)) == IngestAction::append);
    CHECK(shelf.write().empty());
    CHECK(hub.offsets() == Offsets{10, offset, 50});
  }
}

TEST_CASE(
    "what goes on otherwise is found by a hub that was killed in between, too, and before it was written") {
  for (const bool is_written : {true, false}) {
    Server hub;
    auto shelf = std::make_unique<EventStore>(hub.directory, EventStoreLimits{});
    for (const std::uint64_t n : {1, 2, 3}) shelf->take(follows(event(n, n * 10), (n - 1) * 10));
    if (is_written) {
      CHECK(shelf->write().empty());
      shelf = std::make_unique<EventStore>(hub.directory, EventStoreLimits{});
      CHECK(shelf->take(first(follows(event(1, 10, "two"), 0))) == IngestAction::drop);
      shelf = std::make_unique<EventStore>(hub.directory, EventStoreLimits{});
    }
    CHECK(shelf->take(follows(event(2, 20, "two"), 10)) == IngestAction::drop);
    CHECK(shelf->take(follows(event(3, 25, "two", 99), 20)) == IngestAction::restart);
    CHECK(shelf->write().empty());
    CHECK(hub.offsets() == Offsets{10, 20, 25});
    CHECK(shelf->take(follows(event(4, 28, "two", 99), 25, 99)) == IngestAction::append);
    CHECK(shelf->write().empty());
    CHECK(hub.offsets() == Offsets{10, 20, 25, 28});
    EventStore again(hub.directory, {});
    CHECK(again.take(follows(event(4, 28, "two", 99), 25, 99)) == IngestAction::drop);
    CHECK(again.figures().bytes == std::filesystem::file_size(hub.file));
  }
}

TEST_CASE("where something was missed what is newer goes on, and what is not begins anew") {
  Server hub;
  EventStore shelf(hub.directory, {});
  shelf.take(follows(event(1, 10), 0));
  CHECK(shelf.take(follows(event(3, 30), 20)) == IngestAction::append);
  CHECK(shelf.take(follows(event(4, 30), 20)) == IngestAction::drop);
  CHECK(shelf.take(follows(event(5, 25, "one", 99), 20, 99)) == IngestAction::restart);
  CHECK(shelf.write().empty());
  CHECK(hub.offsets() == Offsets{25});
}

TEST_CASE("a repetition that comes late makes no file of a transcript that is gone") {
  Server hub;
  EventStore shelf(hub.directory, {});
  shelf.take(follows(event(1, 10), 0)), shelf.take(follows(event(2, 20), 10));
  CHECK(shelf.write().empty());
  CHECK(shelf.take(removed(3)) == IngestAction::remove);
  CHECK(shelf.take(follows(event(2, 20), 10)) == IngestAction::drop);
  CHECK(shelf.figures().files == 0);
  CHECK(shelf.take(follows(event(4, 10), 0)) == IngestAction::append);
}

TEST_CASE("a file that lost its end says so, and all is fetched again") {
  Server hub;
  {
    EventStore shelf(hub.directory, {});
    shelf.take(event(1, 10)), shelf.take(event(2, 20));
    CHECK(shelf.write().empty());
    CHECK(shelf.newest("one").sequence == 2);
    CHECK(shelf.newest("two").sequence == 0);
  }
  CHECK_FALSE(EventStore(hub.directory, {}).lost_something());
  std::filesystem::resize_file(hub.file, std::filesystem::file_size(hub.file) - 7);
  CHECK(EventStore(hub.directory, {}).lost_something());
}

TEST_CASE("a host has its number of files, and of too much who has most gives") {
  Server hub;
  EventStoreLimits limits;
  limits.host_files_max = 2;
  limits.bytes_max = 1000;
  EventStore shelf(hub.directory, limits);
  std::uint64_t sequence = 0;
  const auto tell = [&](const std::string& host, const std::string& stream) {
    Received received = event(++sequence, 10);
    received.host = host, received.stream = stream;
    return shelf.take(received);
  };
  CHECK(tell("bob", "claude/p/small") == IngestAction::append);
  CHECK(shelf.write().empty());
  for (const char* stream : {"claude/p/a", "claude/p/b"}) CHECK(tell("ada", stream) == IngestAction::append);
  CHECK(tell("ada", "claude/p/c") == IngestAction::drop);
  CHECK(shelf.figures().files_refused == 1);
  for (std::uint64_t n = 0; n < 10; ++n) {
    Received received = event(++sequence, 20 + n);
    received.stream = "claude/p/b";
    shelf.take(received);
  }
  CHECK(shelf.write().empty());
  shelf.retire(watch::wall_now_ms());
  CHECK(shelf.figures().bytes <= 1000);
  CHECK(
      std::filesystem::exists(hub.directory + "/projects/bob/" + tail::escape("claude/p/small") + ".jsonl"));
}

TEST_CASE("of many files only so much is remembered, and nothing depends on it") {
  Server hub;
  EventStoreLimits limits;
  limits.entries_bytes_max = 1;
  EventStore shelf(hub.directory, limits);
  for (const std::uint64_t n : {1, 2, 3})
    for (const char* stream : {"claude/p/a", "claude/p/b"}) {
      Received received = follows(event(n, n * 10), (n - 1) * 10);
      received.stream = stream;
      CHECK(shelf.take(received) == IngestAction::append);
      received.store = "two";
      received.sequence = n + 100;
      CHECK(shelf.take(received) == IngestAction::drop);
    }
  CHECK(shelf.write().empty());
}
