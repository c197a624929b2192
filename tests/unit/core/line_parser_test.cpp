// The line parser against simdjson's DOM, with every kernel that the processor supports.
#include "core/line_parser.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "unit/places.hpp"
#include "unit/support/line_check.hpp"

namespace earshot::test {
namespace {

namespace fs = std::filesystem;
using Kind = LineParser::Kind;

/// Collects lines to chunks and compares each.
class Chunks {
 public:
  Chunks(LineScanner::Kernel kernel, std::size_t chunk_bytes) : chunk_bytes_(chunk_bytes), check_(kernel) {}
  void add(std::string_view line) {
    text_ += line;
    text_ += '\n';
    if (text_.size() >= chunk_bytes_) finish();
  }
  LineCheck::Counts finish() {
    if (!text_.empty()) {
      // A Catch assertion costs more than the comparison.
      if (const std::string found = check_.compare(text_); !found.empty()) FAIL(found);
    }
    text_.clear();
    return check_.counts();
  }

 private:
  std::size_t chunk_bytes_;
  std::string text_;
  LineCheck check_;
};

/// Runs `test` with each kernel.
template <class Test>
void with_each_kernel(Test&& test) {
  for (const LineScanner::Kernel kernel : LineScanner::kernels()) {
    INFO("kernel " << static_cast<int>(kernel));
    test(kernel);
  }
}

/// `text` is called with every sequence of up to `length_max` of the parts.
template <class Text>
void each_sequence(const std::vector<std::string>& parts, std::size_t length_max, Text&& text) {
  for (std::size_t length = 0, all = 1; length <= length_max; ++length, all *= parts.size())
    for (std::size_t number = 0; number < all; ++number) {
      std::string sequence;
      for (std::size_t n = 0, rest = number; n < length; ++n, rest /= parts.size())
        sequence += parts[rest % parts.size()];
      text(sequence);
    }
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> each;
  for (const char c : text) each.emplace_back(1, c);
  return each;
}

std::vector<std::string> golden_lines() {
  std::vector<std::string> lines;
  for (const auto& entry : fs::directory_iterator(sources() / "tests/golden/seeds")) {
    if (entry.path().extension() != ".jsonl") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
  }
  return lines;
}

TEST_CASE("the line parser accepts the sequences of tokens that the DOM accepts") {
  with_each_kernel([](LineScanner::Kernel kernel) {
    const std::vector<std::string> tokens = {"{",     "}", "[",    "]", ",",       ":",
                                             "\"a\"", "0", "true", " ", "\"\\n\"", "1.5e1"};
    Chunks chunks(kernel, 4000), alone(kernel, 1);
    for (const std::string prefix : {"{", "{\"k\":", "{\"k\":[", "{\"k\":1,", ""})
      each_sequence(tokens, 3, [&](const std::string& sequence) {
        chunks.add(prefix + sequence);
        chunks.add(prefix + sequence + (prefix.ends_with('[') ? "]}" : "}"));
        alone.add(prefix + "\\" + sequence + "}");  // a chunk's index would fail
      });
    const LineCheck::Counts counts = chunks.finish();
    CHECK((counts.object > 0 && counts.refused > 0 && counts.blank > 0));
  });
}

TEST_CASE("the line parser reads the strings and numbers that the DOM reads") {
  with_each_kernel([](LineScanner::Kernel kernel) {
    Chunks alone(kernel, 1), together(kernel, 4000);  // a bad escape makes a chunk fail
    each_sequence(characters("\\u\"dDc8n0/x"), 3,
                  [&](const std::string& text) { alone.add("{\"k\":\"" + text + "\"}"); });
    for (const std::string high : {"", "\\ud83d", "\\uD83D", "\\u0041", "\\udc00"})
      each_sequence({"\\u", "d", "D", "c", "8", "00"}, 4,
                    [&](const std::string& text) { alone.add("{\"k\":\"" + high + text + "\"}"); });
    each_sequence(characters("-+.eE0159 a"), 4,
                  [&](const std::string& text) { together.add("{\"k\":" + text + "}"); });
    for (const std::string number :
         {"999999999999999999", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
          "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e308", "1e309", "1e-400",
          "-1e-400", "4.9e-324", "-0", "-0.0", "0.1e1", "1e99", "1e100", "123456789012345678.5e99"})
      together.add("{\"k\":" + number + ",\"n\":[" + number + "]}");
    together.add("{\"k\":0." + std::string(200, '1') + "}");
    together.add("{\"k\":" + std::string(400, '1') + "}");
    alone.finish();
    together.finish();
  });
}

TEST_CASE("the line parser has the nesting limit of the DOM") {
  with_each_kernel([](LineScanner::Kernel kernel) {
    Chunks chunks(kernel, 1);
    for (std::size_t depth = nesting_max - 4; depth <= nesting_max + 2; ++depth)
      for (const std::string inner : {"", "1", "[]", "{}", "{\"a\":1}"}) {
        chunks.add("{\"a\":" + std::string(depth, '[') + inner + std::string(depth, ']') + "}");
        std::string objects;
        for (std::size_t n = 0; n < depth; ++n) objects += "{\"a\":";
        chunks.add(objects + (inner.empty() ? "0" : inner) + std::string(depth, '}'));
      }
    chunks.finish();
  });
}

TEST_CASE("the line parser agrees with the DOM about mutated records") {
  const std::vector<std::string> lines = golden_lines();
  REQUIRE(!lines.empty());
  with_each_kernel([&](LineScanner::Kernel kernel) {
    std::uint64_t state = 7;
    const auto next = [&](std::size_t below) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<std::size_t>(state >> 33) % below;
    };
    LineCheck check(kernel);
    for (int round = 0; round < 1500; ++round) {
      std::string chunk;
      for (std::size_t count = 1 + next(4); count > 0; --count) {
        const std::string& line = lines[next(lines.size())];
        chunk += next(3) ? mutated(line.substr(0, next(2) ? 300 : line.npos), next) : line;
        chunk += '\n';
      }
      if (const std::string found = check.compare(chunk); !found.empty()) FAIL(found);
    }
  });
}

TEST_CASE("the line parser agrees with the DOM about recorded sessions") {
  LineCheck check(LineScanner::fastest_kernel());
  std::size_t files = 0;
  const auto compare = [&](const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text;
    for (std::string line; std::getline(file, line);) {
      text += line + '\n';
      if (text.size() < (64 << 10)) continue;
      if (const std::string found = check.compare(text); !found.empty()) FAIL(path << ": " << found);
      text.clear();
    }
    if (const std::string found = text.empty() ? "" : check.compare(text); !found.empty())
      FAIL(path << ": " << found);
    ++files;
  };
  constexpr std::uintmax_t bytes_max = 256 << 10;  // of a file
  if (fs::exists(corpus()))
    for (const auto& entry : fs::recursive_directory_iterator(corpus()))
      if (entry.is_regular_file() && entry.path().extension() == ".jsonl" && entry.file_size() < bytes_max)
        compare(entry.path());
  for (const auto& entry : fs::directory_iterator(sources() / "tests/golden/seeds")) compare(entry.path());
  CHECK(files > 0);
}

TEST_CASE("a value of an absent member is of no type") {
  LineParser parser;
  const std::string line = "{\"a\":null}\n" + std::string(scan_padding, ' ');
  const auto parsed = parser.parse(std::string_view(line).substr(0, 11));
  REQUIRE(parsed.kind == Kind::object);
  const Value absent = parsed.value.member("b");
  CHECK(!absent);
  CHECK(!absent.is_object());
  CHECK(absent.as_text().empty());
  CHECK(!absent.as_int());
  CHECK(!absent.as_double());
  CHECK(!absent.as_bool());
  CHECK(!absent.member("c"));
  CHECK(absent.items().empty());
  CHECK(absent.raw().empty());
  CHECK(parsed.value.member("a"));
}

TEST_CASE("a key that has a backslash is found by what it means") {
  with_each_kernel([](LineScanner::Kernel kernel) {
    CHECK(LineCheck(kernel).compare("{\"\\u0002a\":1,\"\\\\u0002a\":0,\"\\u0002a\":2}\n") == "");
  });
}

TEST_CASE("a line with a byte order mark is refused, whatever simdjson's version") {
  with_each_kernel([](LineScanner::Kernel kernel) {
    for (const std::string text : {"{}\n", "[1]\n", "1\n"}) {
      const std::string line = "\xEF\xBB\xBF" + text + std::string(scan_padding, ' ');
      LineParser parser(kernel);
      CHECK(parser.parse(std::string_view(line).substr(0, 3 + text.size())).kind == Kind::refused);
    }
  });
}

TEST_CASE("a value's text is as written, without white space around it") {
  LineParser parser;
  const std::string text = "{\"a\" : 12 , \"b\":[ 1 , \"\\u0041\" ] ,\"c\": \"x\\\"y\" }\r\n";
  const std::string line = text + std::string(scan_padding, '"');
  const auto parsed = parser.parse(std::string_view(line).substr(0, text.size()));
  REQUIRE(parsed.kind == Kind::object);
  CHECK(parsed.value.member("a").raw() == "12");
  CHECK(parsed.value.member("b").raw() == "[ 1 , \"\\u0041\" ]");
  CHECK(parsed.value.member("c").raw() == "\"x\\\"y\"");
  CHECK(parsed.value.text_of("c") == "x\"y");
  CHECK(parsed.value.raw() == std::string_view(text).substr(0, text.size() - 2));
}

TEST_CASE("a line longer than a chunk is parsed with a buffer of its own, which is freed") {
  LineParser parser;
  const std::string text =
      "{\"type\":\"user\",\"text\":\"" + std::string(LineParser::chunk_bytes_max, 'x') + "\\n\"}\n";
  const std::string line = text + std::string(scan_padding, '\0');
  for (int round = 0; round < 2; ++round) {
    const auto parsed = parser.parse(std::string_view(line).substr(0, text.size()));
    REQUIRE(parsed.kind == Kind::object);
    CHECK(parsed.value.text_of("text").size() == LineParser::chunk_bytes_max + 1);
    parser.release_long();
  }
  const std::string short_line = "{\"a\":\"b\"}\n" + std::string(scan_padding, '\0');
  CHECK(parser.parse(std::string_view(short_line).substr(0, 10)).value.text_of("a") == "b");
}

}  // namespace
}  // namespace earshot::test
