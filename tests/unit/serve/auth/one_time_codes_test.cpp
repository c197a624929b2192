#include "serve/auth/one_time_codes.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "serve/auth/access.hpp"

using namespace earshot::serve;
using namespace std::chrono_literals;

namespace {
const OneTimeCodes::Time start{1h};
}

TEST_CASE("a code is good once") {
  OneTimeCodes codes;
  const std::string code = codes.make(start);
  REQUIRE(code.size() == 64);
  REQUIRE(code.find_first_not_of("0123456789abcdef") == std::string::npos);
  REQUIRE(codes.make(start) != code);
  REQUIRE_FALSE(codes.take(code.substr(1), start));
  REQUIRE_FALSE(codes.take("", start));
  REQUIRE(codes.take(code, start));
  REQUIRE_FALSE(codes.take(code, start));
  REQUIRE(codes.outstanding(start) == 1);
}

TEST_CASE("a code is good for a minute") {
  OneTimeCodes codes;
  const std::string first = codes.make(start), second = codes.make(start);
  REQUIRE(codes.take(first, start + 59s));
  REQUIRE_FALSE(codes.take(second, start + 60s));
  REQUIRE(codes.outstanding(start + 60s) == 0);
}

TEST_CASE("of too many codes the oldest is good no more") {
  OneTimeCodes codes;
  std::vector<std::string> made;
  for (std::size_t i = 0; i <= OneTimeCodes::outstanding_max; ++i) made.push_back(codes.make(start));
  REQUIRE(codes.outstanding(start) == OneTimeCodes::outstanding_max);
  REQUIRE_FALSE(codes.take(made.front(), start));
  for (std::size_t i = 1; i < made.size(); ++i) REQUIRE(codes.take(made[i], start));
}

TEST_CASE("a bucket gives its burst at once, then so many a second") {
  TokenBucket bucket(10, 3);
  REQUIRE(bucket.take(start));
  REQUIRE(bucket.take(start));
  REQUIRE(bucket.take(start));
  REQUIRE_FALSE(bucket.take(start));
  REQUIRE_FALSE(bucket.take(start + 50ms));
  REQUIRE(bucket.take(start + 150ms));
  REQUIRE_FALSE(bucket.take(start + 160ms));
  for (int i = 0; i < 3; ++i) REQUIRE(bucket.take(start + 1h));  // at most the burst
  REQUIRE_FALSE(bucket.take(start + 1h));
}
