#include "serve/auth/access.hpp"

#include <catch2/catch.hpp>

namespace access_test {

using namespace earshot::serve;
using namespace std::chrono_literals;

TEST_CASE("a token bucket allows its burst, then its rate") {
  TokenBucket bucket(10, 3);
  REQUIRE(bucket.take(TokenBucket::Time(1h)));
  REQUIRE(bucket.take(TokenBucket::Time(1h)));
  REQUIRE(bucket.take(TokenBucket::Time(1h)));
  REQUIRE_FALSE(bucket.take(TokenBucket::Time(1h)));
  REQUIRE_FALSE(bucket.take(TokenBucket::Time(1h) + 50ms));
  REQUIRE(bucket.take(TokenBucket::Time(1h) + 150ms));
  REQUIRE_FALSE(bucket.take(TokenBucket::Time(1h) + 160ms));
  for (int i = 0; i < 3; ++i) REQUIRE(bucket.take(TokenBucket::Time(1h) + 1h));  // at most the burst
  REQUIRE_FALSE(bucket.take(TokenBucket::Time(1h) + 1h));
}

}  // namespace access_test
