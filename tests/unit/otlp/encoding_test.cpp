#include "otlp/encoding.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "base/hex.hpp"

namespace earshot::otlp {
namespace {

Span small_span() {
  Span span;
  span.context = {{0x0102030405060708, 0x090a0b0c0d0e0f10}, 0x1112131415161718};
  span.name = "x";
  span.start_ms = 1;
  span.end_ms = 2;
  span.attributes.number("n", std::int64_t{3});
  span.status = Span::Status::error;
  return span;
}

}  // namespace

TEST_CASE("a span as protobuf bytes") {
  // Written by hand from trace.proto: field and wire type, length, content.
  CHECK(earshot::to_hex(encode_span(small_span())) ==
        "0a10"
        "0102030405060708090a0b0c0d0e0f10"
        "1208"
        "1112131415161718"
        "2a0178"              // name
        "3001"                // kind
        "3940420f0000000000"  // start: 1,000,000 ns
        "4180841e0000000000"  // end
        "4a070a016e12021803"  // attribute n = 3
        "7a021802");          // status: error
}

TEST_CASE("times beyond the range of nanoseconds are cut") {
  Span span = small_span();
  span.start_ms = -1;
  span.end_ms = std::numeric_limits<std::int64_t>::max();
  const std::string hex = earshot::to_hex(encode_span(span));
  CHECK(hex.find("390000000000000000418029f4ffffffff7f") != hex.npos);  // 0 and 9,223,372,036,854,000,000
}

TEST_CASE("halves of messages are the messages, in their order, by host") {
  EncodedByHost from{{"a", {"1", "2", "3"}}, {"b", {"4", "5"}}};
  const EncodedByHost second = take_half(from);
  CHECK(from == EncodedByHost{{"a", {"1", "2", "3"}}});
  CHECK(second == EncodedByHost{{"b", {"4", "5"}}});
  EncodedByHost rest = take_half(from);
  CHECK(from == EncodedByHost{{"a", {"1", "2"}}});
  CHECK(rest == EncodedByHost{{"a", {"3"}}});
  CHECK(take_half(rest).empty());
  CHECK(count_of(rest) == 1);
  EncodedByHost uneven{{"a", {"1"}}, {"b", {"2", "3", "4"}}, {"c", {"5"}}};
  CHECK(take_half(uneven) == EncodedByHost{{"b", {"4"}}, {"c", {"5"}}});
  CHECK(uneven == EncodedByHost{{"a", {"1"}}, {"b", {"2", "3"}}});
}

TEST_CASE("the rejected part of an answer is read") {
  const std::string bytes = {'\x0a', '\x07', '\x08', '\x05', '\x12', '\x03', 'b', 'a', 'd'};
  const PartialSuccess partial = parse_answer(bytes);
  CHECK(partial.rejected == 5);
  CHECK(partial.message == "bad");
  for (const char* other : {"", "{}", "<html>", "\x0a\xff\xff\xff\xff", "\x0b"})
    CHECK(parse_answer(other).rejected == 0);
}

}  // namespace earshot::otlp
