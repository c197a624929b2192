#include "otlp/exported_marks.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "otlp/positions.hpp"

namespace earshot::otlp {
namespace {

/// Line number → the cursor of its only event; `hash` stands for everything up to there.
Cursor at(std::uint64_t line, std::uint64_t hash = 7) { return {line * 100, 1, hash}; }

/// The transcript of lines 1 to `end`, whose lines after `same` are others.
std::vector<Cursor> transcript(std::uint64_t end, std::uint64_t same) {
  std::vector<Cursor> cursors;
  for (std::uint64_t line = 1; line <= end; ++line) cursors.push_back(at(line, line <= same ? 7 : 8));
  return cursors;
}

/// How many events of `read` are exported in the end, if it differs with a second reading.
std::size_t fresh_of(const std::vector<Cursor>& read, std::vector<Cursor> marks) {
  for (int reading = 0; reading < 2; ++reading) {
    ReplayCheck check(marks, begin_cursor);
    std::size_t fresh = 0;
    bool differs = false;
    for (const Cursor& each : read) {
      const auto result = check.on_event(each);
      fresh += result == ReplayCheck::Result::fresh;
      if ((differs = result == ReplayCheck::Result::differs)) break;
    }
    if (!differs && check.is_complete()) return fresh;
    std::erase_if(marks, [&](const Cursor& mark) { return mark.offset > check.matched().offset; });
  }
  FAIL("the second reading differs too");
  return 0;
}

Marks marks_of(const std::vector<Cursor>& cursors) {
  Marks marks;
  for (const Cursor& each : cursors) marks.add(each);
  return marks;
}

}  // namespace

TEST_CASE("of the same transcript nothing is fresh, and what it grew by is") {
  const Marks marks = marks_of(transcript(1000, 1000));
  CHECK(fresh_of(transcript(1000, 1000), marks.all()) == 0);
  CHECK(fresh_of(transcript(1000, 1000), marks.stored()) == 0);
  CHECK(fresh_of(transcript(1003, 1003), marks.stored()) == 3);
}

TEST_CASE("of another transcript everything is fresh") {
  const Marks marks = marks_of(transcript(1000, 1000));
  CHECK(fresh_of(transcript(1000, 0), marks.stored()) == 1000);
  CHECK(fresh_of(transcript(10, 0), marks.stored()) == 10);
}

TEST_CASE("of a transcript whose end was rewritten, the end is fresh") {
  const Marks marks = marks_of(transcript(1000, 1000));
  for (const std::uint64_t rewritten : {1u, 2u, 31u}) {
    CAPTURE(rewritten);
    CHECK(fresh_of(transcript(1005, 1000 - rewritten), marks.all()) == rewritten + 5);
    CHECK(fresh_of(transcript(1000 - rewritten, 1000), marks.all()) == 0);  // cut
  }
}

TEST_CASE("nothing of a rewritten end is skipped, and what is repeated is a part of it") {
  std::mt19937 random(1);  // NOLINT: the same numbers in each run
  for (int run = 0; run < 300; ++run) {
    const std::uint64_t before = random() % 3000 + 1, same = random() % (before + 1), end = random() % 3000;
    const Marks marks = marks_of(transcript(before, before));
    REQUIRE(marks.all().size() <= Marks::marks_max);
    REQUIRE(marks.stored().size() <= Marks::stored_max);
    const std::size_t differing = end > same ? end - same : 0;
    const std::size_t gone = before - std::min(same, end);  // of the former end
    const std::size_t fresh = fresh_of(transcript(end, same), marks.stored());
    CAPTURE(before, same, end);
    CHECK(fresh >= differing);
    CHECK(fresh - differing <= std::max<std::size_t>(2 * gone, 1));
  }
}

TEST_CASE("a reading that begins after the last mark is fresh at once") {
  ReplayCheck check({at(1), at(2)}, at(2));
  CHECK(check.is_complete());
  CHECK(check.on_event(at(3)) == ReplayCheck::Result::fresh);
  CHECK(ReplayCheck().is_complete());
}

TEST_CASE("events of one line are told apart by their index, and another version may find fewer") {
  const Cursor last{100, 2, 7};
  ReplayCheck check({last}, begin_cursor);
  CHECK(check.on_event({100, 1, 7}) == ReplayCheck::Result::exported);
  CHECK_FALSE(check.is_complete());
  CHECK(check.on_event({100, 2, 7}) == ReplayCheck::Result::exported);
  CHECK(check.on_event({100, 3, 7}) == ReplayCheck::Result::fresh);
  ReplayCheck fewer({last}, begin_cursor);
  CHECK(fewer.on_event({100, 1, 7}) == ReplayCheck::Result::exported);
  CHECK(fewer.on_event({200, 1, 7}) == ReplayCheck::Result::fresh);
}

TEST_CASE("positions with marks are what is read again, and those of former versions have none") {
  Positions positions;
  Position position{at(9), at(5), 1000, SpanContext{{1, 2}, 3}, 900, {at(1), at(8)}};
  positions.set("a/b \"c\"", position);
  positions.set("plain", {at(1), begin_cursor, 5});
  const auto read = Positions::parse(positions.text());
  REQUIRE(read);
  CHECK(read->all() == positions.all());
  const auto former =
      Positions::parse(R"({"version":1,"streams":{"s":{"exported":"900.1.0000000000000007","newest":5}}})");
  REQUIRE(former);
  CHECK(former->find("s")->exported == at(9));
  CHECK(former->find("s")->marks.empty());
  CHECK_FALSE(Positions::parse(R"({"version":1,"streams":{"s":{"marks":["x"]}}})"));
}

TEST_CASE("positions of many streams with long names are a text that can be read") {
  Positions positions;
  std::vector<Cursor> marks;
  for (std::uint64_t i = 1; i < Marks::stored_max; ++i) marks.push_back(at(i));
  for (std::size_t i = 0; i < Positions::streams_max; ++i)
    positions.set(std::string(1500, 'n') + std::to_string(i), {at(100), at(50), 1, {}, 0, marks});
  const std::string text = positions.text();
  CHECK(text.size() <= Positions::text_bytes_max);
  CHECK(Positions::parse(text));
}

}  // namespace earshot::otlp
