// Cursors and prefix hashes.
#include "core/cursor.hpp"

#include <catch2/catch.hpp>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

TEST_CASE("a cursor round-trips") {
  for (const Cursor& cursor : {Cursor{0, 0, 0}, Cursor{18234, 1, 0x9c1e44d0a1b2c3d4},
                               Cursor{UINT64_MAX, UINT32_MAX, UINT64_MAX}, Cursor{1, 0, 1}}) {
    CHECK(parse_cursor(to_string(cursor)) == cursor);
  }
  CHECK(to_string(Cursor{18234, 1, 0xc1e44d0a1b2c3d4}) == "18234.1.0c1e44d0a1b2c3d4");
}

TEST_CASE("parse_cursor accepts only the output of to_string") {
  const std::string mark = "0c1e44d0a1b2c3d4";
  REQUIRE(parse_cursor("1.1." + mark));
  for (const std::string& text : Lines{"",
                                       ".",
                                       "..",
                                       "1.1",
                                       "1.1.",
                                       "1.1.." + mark,
                                       ".1." + mark,
                                       "1.." + mark,
                                       "01.1." + mark,
                                       "1.01." + mark,
                                       "+1.1." + mark,
                                       "-1.1." + mark,
                                       " 1.1." + mark,
                                       "1.1." + mark + " ",
                                       "1.1." + mark + "0",
                                       "1.1." + mark.substr(1),
                                       "1.1.0C1E44D0A1B2C3D4",
                                       "1.1.0x1e44d0a1b2c3d4",
                                       "18446744073709551616.1." + mark,
                                       "1.4294967296." + mark,
                                       "1e1.1." + mark,
                                       "1.1." + mark + ".1",
                                       "a.1." + mark,
                                       "1.b." + mark,
                                       "1.1.gggggggggggggggg",
                                       std::string("1.1.") + mark + std::string(1, '\0')}) {
    INFO(text);
    CHECK_FALSE(parse_cursor(text).has_value());
  }
}

std::uint64_t prefix(std::string_view bytes, std::uint64_t key = 0) {
  PrefixHasher prefix_hash(key);
  prefix_hash.add(bytes);
  return prefix_hash.value();
}

TEST_CASE("the prefix hash does not depend on how the bytes are split") {
  const std::string bytes = "one\n\ntwo and a half\n" + std::string(100'000, 'x') + "\nlast\n";
  const std::uint64_t whole = prefix(bytes, 7);
  for (const std::size_t piece : {1u, 2u, 3u, 7u, 64u, 1000u, 99'999u}) {
    PrefixHasher prefix_hash(7);
    for (std::size_t i = 0; i < bytes.size(); i += piece)
      prefix_hash.add(std::string_view(bytes).substr(i, piece));
    CHECK(prefix_hash.value() == whole);
  }
}

TEST_CASE("bytes after the last LF do not count yet") {
  CHECK(prefix("one\nha") == prefix("one\n"));
  CHECK(prefix("ha") == prefix(""));
  CHECK(prefix("") == 0);
  CHECK(prefix("", 99) == 99);
}

TEST_CASE("the prefix hash depends on every byte, their order, the line ends and the key") {
  const std::uint64_t one = prefix("a\nb\n", 1);
  for (const char* other : {"a\nc\n", "b\na\n", "ab\n", "a\n\nb\n", "a\r\nb\n", "a\n", "a\nb\nb\n"})
    CHECK(prefix(other, 1) != one);
  CHECK(prefix("a\nb\n", 2) != one);
}

TEST_CASE("PrefixHash, LineHash and PrefixHasher agree") {
  PrefixHash prefix_hash(5);
  prefix_hash.add_line(std::string_view("hello\n"));
  LineHash hash;
  hash.begin(5);
  hash.add(std::string_view("he"));
  hash.add(std::string_view(""));
  hash.add(std::string_view("llo\n"));
  CHECK(prefix_hash.value() == hash.end());
  CHECK(prefix_hash.value() == prefix("hello\n", 5));
  LineHash moved(std::move(hash));
  moved.begin(prefix_hash.value());
  moved.add(std::string_view("more\n"));
  CHECK(moved.end() == prefix("hello\nmore\n", 5));
}

TEST_CASE("cursors grow, point behind their line, and have the hash of the prefix") {
  Records r;
  TranscriptOptions options;
  options.hash_key = 0x1234;
  Feed feed(
      {r.user("go"), r.text("x", "\"end_turn\""), "broken\n", r.user("next"), "\n", r.call("c1", "Bash")},
      options);
  REQUIRE(feed.cursors().size() > 5);
  Cursor last;
  for (const Cursor& cursor : feed.cursors()) {
    CHECK((cursor.offset > last.offset || (cursor.offset == last.offset && cursor.index == last.index + 1)));
    if (cursor.offset > last.offset) CHECK(cursor.index == 1);
    REQUIRE(cursor.offset <= feed.bytes().size());
    CHECK(feed.bytes()[cursor.offset - 1] == '\n');
    CHECK(cursor.prefix_hash == prefix(std::string_view(feed.bytes()).substr(0, cursor.offset), 0x1234));
    last = cursor;
  }
  CHECK(feed.transcript().end() == last);
}

TEST_CASE("after a line without events the end is that line's, at index 0") {
  Records r;
  const Feed feed({r.user("go"), "\n"});
  CHECK(feed.transcript().end().offset == feed.bytes().size());
  CHECK(feed.transcript().end().index == 0);
  CHECK(feed.transcript().end().prefix_hash == prefix(feed.bytes()));
}

TEST_CASE("the prefix hash covers byte order mark, CR, empty and skipped lines") {
  Records r;
  TranscriptOptions options;
  options.line_bytes_max = 1000;
  Feed feed(options);
  feed.write_cut("\xEF\xBB\xBF" + r.user("go").substr(0, 20) + "\r\n\r\n" + std::string(5000, 'x') +
                     "\n{{{\n" + r.user("on"),
                 3, 100);
  CHECK(feed.transcript().end().prefix_hash == prefix(feed.bytes()));
  CHECK(feed.transcript().end().offset == feed.bytes().size());
}

}  // namespace
}  // namespace earshot::test
