#include "core/escape_scan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace earshot::test {
namespace {

/// Text in which escapes and line ends are at any position of a block, and its padding.
std::string text_of(std::uint64_t seed, std::size_t bytes) {
  constexpr std::string_view parts[] = {"\\\\", "\\\"", "\\n",      "\\ud83d\\ude00", "\\u00e9",
                                        "a",    "\n",   "abcdefgh", "\\\\\\\\\\\\",   "u"};
  std::string text;
  while (text.size() < bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    text += parts[(seed >> 33) % std::size(parts)];
  }
  return text;
}

TEST_CASE("all escape scans find the same") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::string text = text_of(seed, 20 + seed * 3);
    std::string broken = text;
    if (seed % 4 == 0) broken[seed * 7 % text.size()] = "x\\u\n"[seed / 4 % 4];
    const std::size_t size = broken.size();
    broken.append(scan_padding, "\\u\n"[seed % 3]);
    ScannedLines expected;
    const bool valid = escape_scans().back().scan(std::string_view(broken).substr(0, size), expected);
    for (const NamedEscapeScan& one : escape_scans()) {
      INFO("kernel " << one.kernel << ", seed " << seed);
      ScannedLines found;
      if (one.scan(std::string_view(broken).substr(0, size), found) != valid) FAIL("another result");
      if (!valid) continue;
      if (found.line_ends != expected.line_ends) FAIL("other line ends");
      if (found.backslash_blocks != expected.backslash_blocks) FAIL("other blocks");
    }
  }
}

TEST_CASE("the escape scan accepts the escapes of JSON and surrogates in pairs") {
  const auto is_valid = [](std::string text) {
    const std::size_t size = text.size();
    text.append(scan_padding, '0');
    bool all = true, any = false;
    ScannedLines found;
    for (const NamedEscapeScan& one : escape_scans()) {
      const bool valid = one.scan(std::string_view(text).substr(0, size), found);
      all = all && valid, any = any || valid;
    }
    REQUIRE(all == any);
    return all;
  };
  for (int c = 1; c < 256; ++c)
    CHECK(is_valid({'\\', static_cast<char>(c), ' ', ' ', ' ', ' ', '\n'}) ==
          (std::string_view("\"\\/bfnrt").find(static_cast<char>(c)) != std::string_view::npos));
  CHECK(is_valid("\\u00Ff\n"));
  CHECK(is_valid("\\ud83d\\ude00\\udbff\\uDFFF\n"));
  for (const char* bad : {"\\u00g0\n", "\\ud83d\n", "\\ud83d \\ude00\n", "\\ude00\n", "\\ud83d\\u0041\n",
                          "\\ud83d\\ude00\\ude00\n", "\\\n", "\\\\\\\n"})
    CHECK(!is_valid(bad));
}

TEST_CASE("the escape scan marks the blocks with a backslash") {
  std::string text(1000, 'a');
  text[300] = '\\', text[301] = 'n';
  const std::size_t size = text.size();
  text.append(scan_padding, '\\');
  for (const NamedEscapeScan& one : escape_scans()) {
    ScannedLines found;
    REQUIRE(one.scan(std::string_view(text).substr(0, size), found));
    CHECK(found.may_have_backslash(290, 310));
    CHECK(found.may_have_backslash(0, 999));
    CHECK(!found.may_have_backslash(0, 200));
    CHECK(!found.may_have_backslash(400, 999));
  }
}

}  // namespace
}  // namespace earshot::test
