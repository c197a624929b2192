#include "otlp/retry.hpp"

#include <catch2/catch.hpp>
#include <vector>

namespace earshot::otlp {
namespace {

using std::chrono::milliseconds;

std::vector<milliseconds> delays(std::uint64_t seed, int count) {
  Backoff backoff(seed);
  std::vector<milliseconds> result;
  for (int i = 0; i < count; ++i) result.push_back(backoff.next());
  return result;
}

Response answer(long status, std::string type = {}) {
  Response response;
  response.status = status;
  response.content_type = std::move(type);
  return response;
}

}  // namespace

TEST_CASE("delays double between half and all of their bound") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto found = delays(seed, 12);
    milliseconds bound = Backoff::delay_min;
    for (const milliseconds delay : found) {
      CHECK(delay >= bound / 2);
      CHECK(delay <= bound);
      bound = std::min(bound * 2, Backoff::delay_max);
    }
  }
}

TEST_CASE("the same seed gives the same delays, another one others") {
  CHECK(delays(1, 8) == delays(1, 8));
  CHECK(delays(1, 8) != delays(2, 8));
}

TEST_CASE("what the collector asks for is the least, within a limit, and an answer begins anew") {
  Backoff backoff(1);
  CHECK(backoff.next(milliseconds(5000)) == milliseconds(5000));
  CHECK(backoff.next(std::chrono::hours(24)) == Backoff::asked_max);
  for (int i = 0; i < 10; ++i) backoff.next();
  CHECK(backoff.next() >= Backoff::delay_max / 2);
  backoff.reset();
  CHECK(backoff.next() <= Backoff::delay_min);
}

TEST_CASE("only answers that say nothing about the data are retried") {
  for (const long status : {0, 301, 302, 307, 401, 403, 404, 407, 429, 502, 503, 504}) {
    CAPTURE(status);
    CHECK(is_retryable(answer(status)));
  }
  for (const long status : {200, 202, 400, 413, 415, 422, 500, 501}) {
    CAPTURE(status);
    CHECK_FALSE(is_retryable(answer(status)));
  }
  CHECK(is_retryable(answer(200, "text/html; charset=utf-8")));
  CHECK(is_retryable(answer(200, "Text/HTML")));
  CHECK_FALSE(is_retryable(answer(200, "text/plain")));
}

}  // namespace earshot::otlp
