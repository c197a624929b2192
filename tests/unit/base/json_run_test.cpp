#include <catch2/catch.hpp>

#include "base/json_run.hpp"

using namespace earshot;

TEST_CASE("a run of text ends at the first control, quote or backslash, wherever that is") {
  for (std::size_t size = 0; size < 50; ++size) {
    for (std::size_t from = 0; from <= size; ++from) {
      bool ascii = false;
      REQUIRE(run_end(std::string(size, 'a'), from, ascii) == size);
      REQUIRE(ascii);
    }
    for (std::size_t at = 0; at < size; ++at) {
      for (const char end : {'"', '\\', '\0', '\n', '\x1f'}) {
        std::string text(size, '~');
        text[at] = end;
        if (at + 1 < size) text[at + 1] = '\xc3';  // behind the end: it does not count
        bool ascii = false;
        REQUIRE(run_end(text, 0, ascii) == at);
        REQUIRE(ascii);
      }
      for (const char beyond : {'\x80', '\xff', '\xc3'}) {
        std::string text(size, ' ');
        text[at] = beyond;
        bool ascii = true;
        REQUIRE(run_end(text, 0, ascii) == size);
        REQUIRE_FALSE(ascii);
      }
    }
  }
}
