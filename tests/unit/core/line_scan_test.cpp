#include "core/line_scan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::test {
namespace {

/// What a scan of a text finds, for comparison.
struct Scanned {
  bool is_valid = false;
  std::vector<std::uint32_t> structurals, line_ends;
  std::string characters;
  std::vector<std::uint64_t> backslash_blocks;
  friend bool operator==(const Scanned&, const Scanned&) = default;
};

Scanned scan(LineScanner::Kernel kernel, std::string_view text, char padding = '0') {
  LineScanner scanner(kernel);
  REQUIRE(scanner.reserve(text.size()));
  const std::string padded = std::string(text) + std::string(scan_padding, padding);
  Scanned found{scanner.scan(std::string_view(padded).substr(0, text.size())), {}, {}, {}, {}};
  if (!found.is_valid) return found;
  found.structurals.assign(scanner.structurals(), scanner.structurals() + scanner.count());
  found.characters.assign(scanner.characters(), scanner.count());
  found.line_ends = scanner.line_ends();
  found.backslash_blocks = scanner.backslash_blocks();
  return found;
}

/// Fails unless each kernel finds what the portable one finds.
Scanned scan_with_all(std::string_view text, char padding = '0') {
  const Scanned expected = scan(LineScanner::Kernel::portable, text, padding);
  for (const LineScanner::Kernel kernel : LineScanner::kernels()) {
    INFO("kernel " << static_cast<int>(kernel) << ", text " << text);
    const Scanned found = scan(kernel, text, padding);
    if (!(found == expected)) FAIL("not as the portable kernel");
  }
  return expected;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % limit;
  }

 private:
  std::uint64_t state_;
};

/// Lines of strings, numbers and brackets in any order, with escapes, UTF-8 and line ends at any place of a
/// block.
std::string lines_of(Random& random, std::size_t bytes) {
  constexpr std::string_view in_strings[] = {
      "\\\\", "\\\"",         "\\n",      "\\ud83d\\ude00",   "\\u00e9", "a", "abcdefgh",
      "u",    "\\\\\\\\\\\\", "\xC3\xA9", "\xF0\x9F\x98\x80", "{[,:]}",  "  "};
  constexpr std::string_view outside[] = {"{",    "}",  "[",  "]",  ":",      ",",    " ",
                                          "\r\n", "\n", "\n", "12", "-0.5e3", "true", "null"};
  std::string text;
  while (text.size() < bytes) {
    if (random.below(3) > 0) {
      text += outside[random.below(std::size(outside))];
      continue;
    }
    text += '"';
    // Some are longer than a word of 64 blocks.
    const std::size_t end = text.size() + (random.below(40) == 0 ? 6000 : random.below(200));
    // One of `often` pieces is any of them.
    const std::string_view mostly = random.below(2) == 0 ? "plain" : "\xE5\xAD\x97 ";
    constexpr std::size_t frequencies[] = {1, 2, 30, 1000};
    const std::size_t often = frequencies[random.below(std::size(frequencies))];
    while (text.size() < end)
      text += random.below(often) == 0 ? in_strings[random.below(std::size(in_strings))] : mostly;
    text += '"';
  }
  return text + "\n";
}

TEST_CASE("all kernels find the same structural characters and line ends") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const std::string text = lines_of(random, 20 + seed * 5);
    const Scanned found = scan_with_all(text, "\\u\n\"\xC3"[seed % 5]);
    CHECK(found.is_valid);
    CHECK(found.line_ends.size() == static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
  }
}

TEST_CASE("all kernels refuse the same broken lines") {
  constexpr std::string_view broken[] = {"\"",
                                         "\\",
                                         "\n",
                                         "\x01",
                                         "\x1F",
                                         "\x7F",
                                         "\x80",
                                         "\xC3",
                                         "\xED\xA0\x80",
                                         "\xF0\x9F\x98",
                                         "\xFF",
                                         "\\ud83d",
                                         "\\ude00",
                                         "\\x",
                                         "u",
                                         "\xE2\x82\xAC",
                                         std::string_view("\0", 1)};
  std::size_t refused = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Random random(seed);
    std::string text = lines_of(random, 20 + random.below(9000));
    const std::string_view part = broken[random.below(std::size(broken))];
    const std::size_t at = random.below(text.size() - 1);
    text.replace(at, random.below(2) == 0 ? 0 : std::min(part.size(), text.size() - 1 - at), part);
    refused += !scan_with_all(text, "\\u\n\"\xA9"[seed % 5]).is_valid;
  }
  CHECK(refused > 2000);
  CHECK(refused < 3900);
}

TEST_CASE("lines of white space only are not scanned") {
  for (const std::string_view blank : {"\n", " \n", "\r\n\t\n"}) CHECK(!scan_with_all(blank).is_valid);
}

TEST_CASE("the scan accepts the escapes of JSON and surrogates in pairs") {
  const auto is_valid = [](std::string text) { return scan_with_all(text).is_valid; };
  for (int c = 1; c < 256; ++c) {
    INFO("character " << c);
    CHECK(is_valid({'"', '\\', static_cast<char>(c), ' ', ' ', '"', '\n'}) ==
          (std::string_view("\"\\/bfnrt").find(static_cast<char>(c)) != std::string_view::npos));
  }
  CHECK(is_valid("\"\\\"\"\n"));
  CHECK(is_valid("\"\\u00Ff\"\n"));
  CHECK(is_valid("\"\\ud83d\\ude00\\udbff\\uDFFF\"\n"));
  for (const char* bad :
       {"\"\\u00g0\"\n", "\"\\ud83d\"\n", "\"\\ud83d \\ude00\"\n", "\"\\ude00\"\n", "\"\\ud83d\\u0041\"\n",
        "\"\\ud83d\\ude00\\ude00\"\n", "\"\\\n", "\\\\\\\n", "\"\\u00e\"\n"})
    CHECK(!is_valid(bad));
}

TEST_CASE("the scan marks the blocks with a backslash") {
  std::string text = '"' + std::string(1000, 'a') + "\"\n";
  text[300] = '\\', text[301] = 'n';
  text.append(scan_padding, '\\');
  for (const LineScanner::Kernel kernel : LineScanner::kernels()) {
    LineScanner scanner(kernel);
    const std::size_t size = text.size() - scan_padding;
    REQUIRE(scanner.reserve(size));
    REQUIRE(scanner.scan(std::string_view(text).substr(0, size)));
    CHECK(scanner.may_have_backslash(290, 310));
    CHECK(scanner.may_have_backslash(0, 999));
    CHECK(!scanner.may_have_backslash(0, 200));
    CHECK(!scanner.may_have_backslash(400, 999));
  }
}

}  // namespace
}  // namespace earshot::test
