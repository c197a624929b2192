#include "base/json_scan.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace earshot;

TEST_CASE("a plain run ends at the first control character, quote or backslash, at any position") {
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
        if (at + 1 < size) text[at + 1] = '\xc3';  // behind the end: not part of the run
        bool ascii = false;
        REQUIRE(run_end(text, 0, ascii) == at);
        REQUIRE(ascii);
      }
      for (const char high : {'\x80', '\xff', '\xc3'}) {
        std::string text(size, ' ');
        text[at] = high;
        bool ascii = true;
        REQUIRE(run_end(text, 0, ascii) == size);
        REQUIRE_FALSE(ascii);
      }
    }
  }
}

TEST_CASE("escapes are decoded, surrogate pairs as one character") {
  const auto is = [](const JsonEscape& escape, std::size_t size, char32_t code_point, bool lone = false) {
    return escape.size == size && escape.code_point == code_point && escape.is_lone_surrogate == lone;
  };
  CHECK(is(parse_json_escape(R"(\n)", 0), 2, '\n'));
  CHECK(is(parse_json_escape(R"(x\/)", 1), 2, '/'));
  CHECK(is(parse_json_escape(R"(\u00e9)", 0), 6, 0xe9));
  CHECK(is(parse_json_escape(R"(\uD83D\uDE42)", 0), 12, 0x1f642));
  CHECK(is(parse_json_escape(R"(\uD83D\u0041)", 0), 6, 0xfffd, true));
  CHECK(is(parse_json_escape(R"(\uDE42\uD83D)", 0), 6, 0xfffd, true));
  CHECK(is(parse_json_escape(R"(\uD83D)", 0), 6, 0xfffd, true));
  for (const char* text : {R"(\)", R"(\x)", R"(\u)", R"(\u12)", R"(\u12g4)", R"(\u-123)", R"(\u 123)"}) {
    CAPTURE(text);
    CHECK(parse_json_escape(text, 0).size == 0);
  }
}

TEST_CASE("unescaped text keeps malformed escapes") {
  CHECK(unescape_json("plain") == "plain");
  CHECK(unescape_json(R"(a\"b\\c\u0041\n)") == "a\"b\\cA\n");
  CHECK(unescape_json(R"(\x\u12\)") == R"(\x\u12\)");
  CHECK(unescape_json(R"(\uD800)") == "\xef\xbf\xbd");
}

TEST_CASE("scalars are taken as JSON defines them") {
  for (const char* text : {"0", "-0", "12", "0.5", "1e5", "1E+5", "-1.25e-10", "true", "false", "null"}) {
    CAPTURE(text);
    CHECK(json_scalar_at(text, 0) == text);
    CHECK(json_scalar_at(std::string("[") + text + "]", 1) == text);
  }
  CHECK(json_scalar_at("01", 0) == "0");
  for (const char* text : {"", "-", ".5", "1.", "1e", "1e+", "+1", "tru", "NaN", "\"a\""}) {
    CAPTURE(text);
    CHECK(json_scalar_at(text, 0).empty());
  }
}

TEST_CASE("strings are scanned in plain runs, escapes and repaired bytes") {
  const auto pieces = [](std::string_view text) {
    std::string found;
    std::size_t at = 0;
    const bool is_valid = scan_json_string(text, at, [&](const JsonStringPiece& piece) {
      found += piece.is_plain ? "<" : piece.is_repaired ? "!" : "\\";
      found.append(piece.written).append("=").append(piece.decoded).append("@");
      found += std::to_string(piece.offset) + ">";
    });
    return found + (is_valid ? "" : "invalid") + std::to_string(at);
  };
  CHECK(pieces(R"("")") == "2");
  CHECK(pieces(R"("ab\tc" x)") == "<ab=ab@1>\\\\t=\t@3><c=c@5>7");
  CHECK(pieces("\"a\xff\"") == "<a=a@1>!\xef\xbf\xbd=\xef\xbf\xbd@2>4");
  CHECK(pieces(R"("\uD800")") == "!\xef\xbf\xbd=\xef\xbf\xbd@1>8");
  CHECK(pieces(R"("ab)") == "<ab=ab@1>invalid3");
  CHECK(pieces("\"a\nb\"") == "<a=a@1>invalid2");
  CHECK(pieces(R"("\x")") == "invalid1");
}
