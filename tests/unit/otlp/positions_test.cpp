#include "otlp/positions.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace earshot::otlp {
namespace {

/// Line number → the cursor of its only event; `hash` stands for everything up to there.
Cursor at(std::uint64_t line, std::uint64_t hash = 7) { return {line * 100, 1, hash}; }

}  // namespace

TEST_CASE("a transcript without the event that was exported last was rewritten") {
  CHECK_FALSE(is_rewritten(at(5), at(3), at(4)));  // not read yet
  CHECK_FALSE(is_rewritten(at(5), at(4), at(5)));
  CHECK_FALSE(is_rewritten(at(5), at(5), at(6)));
  CHECK_FALSE(is_rewritten(begin_cursor, begin_cursor, at(1)));
  CHECK(is_rewritten(at(5), at(4), at(5, 8)));
  CHECK(is_rewritten(at(5), at(4), at(6)));
  CHECK(is_rewritten(at(5), begin_cursor, at(6)));
}

TEST_CASE("events of one line are told apart by their index, and another version may find others") {
  const Cursor exported{100, 2, 7};
  CHECK_FALSE(is_rewritten(exported, begin_cursor, {100, 1, 7}));
  CHECK_FALSE(is_rewritten(exported, {100, 1, 7}, {100, 2, 7}));
  CHECK_FALSE(is_rewritten(exported, {100, 1, 7}, {200, 1, 7}));  // fewer
  CHECK_FALSE(is_rewritten(exported, begin_cursor, {100, 3, 7}));
}

TEST_CASE("positions are read as they were written, and other texts are not") {
  Positions positions;
  positions.set("a/b", {Cursor{10, 1, 2}, begin_cursor, 5, SpanContext{{1, 2}, 3}});
  positions.set("c", {Cursor{20, 2, 3}, Cursor{10, 1, 2}, 7, std::nullopt, 4});
  const auto read = Positions::parse(positions.text());
  REQUIRE(read);
  CHECK(read->all() == positions.all());
  for (const char* other :
       {"", "{}", "[]", R"({"version":2,"streams":{}})", R"({"version":1,"streams":{"a":{"exported":"x"}}})"})
    CHECK_FALSE(Positions::parse(other));
  positions.drop_before(6);
  CHECK(positions.find("a/b") == nullptr);
  CHECK(positions.find("c") != nullptr);
}

TEST_CASE("of too many streams the oldest is dropped") {
  Positions positions;
  for (std::size_t i = 0; i <= Positions::streams_max; ++i)
    positions.set(std::to_string(i),
                  {begin_cursor, begin_cursor, static_cast<std::int64_t>(i), std::nullopt});
  CHECK(positions.all().size() == Positions::streams_max);
  CHECK(positions.find("0") == nullptr);
}

TEST_CASE("positions of former versions are read without their marks") {
  const auto former = Positions::parse(
      R"({"version":1,"streams":{"s":{"exported":"900.1.0000000000000007","newest":5,"marks":["100.1.0000000000000007"]}}})");
  REQUIRE(former);
  CHECK(*former->find("s") == Position{at(9), begin_cursor, 5, std::nullopt, 0});
}

TEST_CASE("positions of many streams with long names are a text that can be read") {
  Positions positions;
  for (std::size_t i = 0; i < Positions::streams_max; ++i)
    positions.set(std::string(3000, 'n') + std::to_string(i), {at(100), at(50), 1, {}, 0});
  const std::string text = positions.text();
  CHECK(text.size() <= Positions::text_bytes_max);
  CHECK(Positions::parse(text));
}

}  // namespace earshot::otlp
