#include "base/hex.hpp"

#include <catch2/catch.hpp>

using namespace earshot;

TEST_CASE("bytes are two digits each") {
  CHECK(to_hex("") == "");
  CHECK(to_hex(std::string_view("\x00\x0f\xff\x80", 4)) == "000fff80");
  const unsigned char bytes[] = {1, 0xab};
  CHECK(to_hex(bytes, 2) == "01ab");
}

TEST_CASE("16 digits at once are the digits one by one") {
  std::uint64_t value = 0x0123456789abcdef;
  for (int i = 0; i < 1000; ++i) {
    std::string expected;
    append_hex(expected, value);
    char digits[17] = {};
    CHECK(write_hex(digits, value) == digits + 16);
    CHECK(digits == expected);
    value = value * 6364136223846793005u + 1442695040888963407u;
  }
}

TEST_CASE("numbers have a fixed number of digits") {
  std::string text = "x";
  append_hex(text, 0x1f);
  CHECK(text == "x000000000000001f");
  text.clear();
  append_hex(text, 0x1f, 2);
  CHECK(text == "1f");
}

TEST_CASE("only lower-case digits are parsed, 16 at most") {
  CHECK(parse_hex("00000000000000ff") == 255);
  CHECK(parse_hex("ffffffffffffffff") == ~0ull);
  CHECK(parse_hex("7") == 7);
  for (const char* text : {"", "FF", "0x1", "-1", " 1", "1 ", "g", "00000000000000000"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_hex(text));
  }
}

TEST_CASE("random digits differ each time") {
  CHECK(random_hex(0).empty());
  const std::string first = random_hex(1000);
  CHECK(first.size() == 2000);
  CHECK(is_hex(first));
  CHECK(first != random_hex(1000));
}
