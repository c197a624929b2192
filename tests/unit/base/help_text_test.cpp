#include "base/help_text.hpp"

#include <catch2/catch.hpp>

namespace help_text_test {

using namespace earshot;

TEST_CASE("fault 160: a description continues below itself") {
  CHECK(wrap_help("  --since WHEN    start with the events since then, such as 90s ago\n", 40) ==
        "  --since WHEN    start with the events\n"
        "                  since then, such as\n"
        "                  90s ago\n");
  CHECK(wrap_help("          of a name that is wide: the text stands below it\n", 40) ==
        "          of a name that is wide: the\n"
        "          text stands below it\n");
}

TEST_CASE("fault 160: lines of a paragraph are joined, and broken anew") {
  CHECK(wrap_help("Text that was broken\nfor wider terminals.\nA new line after a sentence\n", 80) ==
        "Text that was broken for wider terminals.\nA new line after a sentence\n");
  CHECK(wrap_help("one two three four five six seven eight nine ten", 40) ==
        "one two three four five six seven eight\nnine ten\n");
  CHECK(
      wrap_help("  --watch HOW   how changes\n                are detected.\n                Default: both\n",
                80) == "  --watch HOW   how changes are detected.\n                Default: both\n");
  CHECK(wrap_help("what it does\nUsage: earshot\n", 80) == "what it does\nUsage: earshot\n");
}

TEST_CASE("fault 160: commands stay whole, and a long word is not broken") {
  const std::string command = "  earshot show 2eaa --json | jq -r .tool | sort | uniq -c\n";
  CHECK(wrap_help(command, 40) == command);
  const std::string word = std::string(50, 'x') + "\n";
  CHECK(wrap_help(word, 40) == word);
}

TEST_CASE("of several empty lines one is kept") {
  CHECK(wrap_help("\nOptions:\n\n\n  -h\n", 80) == "Options:\n\n  -h\n");
  CHECK(wrap_help("", 80).empty());
}

}  // namespace help_text_test
