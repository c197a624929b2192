#include "serve/stream/seen_marks.hpp"

#include <catch2/catch.hpp>

namespace seen_marks_test {

using earshot::serve::SeenMarks;

TEST_CASE("what was finished before the beginning, or before the mark, is seen") {
  SeenMarks marks(1000);
  REQUIRE(marks.seen_until("s1") == 1000);
  REQUIRE_FALSE(marks.mark("s1", 1000));
  REQUIRE(marks.size() == 0);
  REQUIRE(marks.mark("s1", 1500));
  REQUIRE_FALSE(marks.mark("s1", 1400));
  REQUIRE(marks.mark("s1", 1600));
  REQUIRE(marks.seen_until("s1") == 1600);
  REQUIRE(marks.seen_until("s2") == 1000);
  REQUIRE_FALSE(SeenMarks().mark("s1", 1'700'000'000'000));  // without a beginning everything is seen
}

TEST_CASE("marks are the same after they were written and read") {
  SeenMarks marks(1000);
  marks.mark("s1", 1500);
  marks.mark("quote\" and \\ and \xc3\xa9@dev7", 1600);
  const auto read = SeenMarks::parse(marks.text());
  REQUIRE(read);
  REQUIRE(read->text() == marks.text());
  REQUIRE(read->seen_until("quote\" and \\ and \xc3\xa9@dev7") == 1600);
}

TEST_CASE("text that is not a file of marks is refused") {
  SeenMarks marks(1000);
  marks.mark("s1", 1500);
  const std::string text = marks.text();
  for (std::size_t end = 0; end + 1 < text.size(); ++end) {
    CAPTURE(end);
    REQUIRE_FALSE(SeenMarks::parse(text.substr(0, end)));
  }
  for (const char* other :
       {"{}", "[]", "null", R"({"seen":2,"begin":1,"sessions":{}})", R"({"seen":1,"begin":-1,"sessions":{}})",
        R"({"seen":1,"begin":"1","sessions":{}})", R"({"seen":1,"begin":1,"sessions":[]})",
        R"({"seen":1,"begin":1,"sessions":{"a":"b"}})", R"({"seen":1,"begin":1,"sessions":{"a":1e300}})",
        R"({"seen":1,"sessions":{}})"}) {
    CAPTURE(other);
    REQUIRE_FALSE(SeenMarks::parse(other));
  }
}

TEST_CASE("above the limit the earliest mark becomes the beginning, so that nothing seen is unseen again") {
  SeenMarks marks(1000);
  for (std::size_t n = 0; n < SeenMarks::sessions_max + 10; ++n)
    REQUIRE(marks.mark("s" + std::to_string(n), 2000 + static_cast<std::int64_t>(n)));
  REQUIRE(marks.size() == SeenMarks::sessions_max);
  REQUIRE(marks.seen_until("s0") == 2009);
  REQUIRE(marks.seen_until("s20") == 2020);
  REQUIRE(marks.text().size() < SeenMarks::text_bytes_max);
  REQUIRE_FALSE(marks.mark(std::string(SeenMarks::session_bytes_max + 1, 'x'), 9000));
}

}  // namespace seen_marks_test
