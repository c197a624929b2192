#include "serve/slices.hpp"

#include <boost/asio.hpp>
#include <catch2/catch.hpp>
#include <string>

namespace slices_test {

using earshot::serve::Slice;
using earshot::serve::Slices;

namespace {

struct Bench {
  /// Needs `slices` turns of the loop.
  void begin(const char& owner, int slices) {
    const auto work = [this, owner, slices](Slice&) mutable {
      order += owner;
      return --slices == 0;
    };
    works.begin(&owner, work, [this, owner] { (order += owner) += '!'; });
  }
  boost::asio::io_context io{1};
  Slices works{io};
  std::string order;
};

}  // namespace

TEST_CASE("a slice ends after so many steps") {
  Slice slice;
  std::size_t steps = 1;
  while (!slice.is_over()) ++steps;
  REQUIRE(steps <= Slice::steps_max);
}

TEST_CASE("work that one slice is enough for is done at once") {
  Bench bench;
  const char a = 'a';
  bench.begin(a, 1);
  REQUIRE(bench.order == "aa!");
  REQUIRE(bench.works.pending() == 0);
}

TEST_CASE("the owners of longer work take turns, between which the loop serves others") {
  Bench bench;
  const char a = 'a', b = 'b';
  bench.begin(a, 3);
  bench.begin(b, 2);
  REQUIRE(bench.order == "ab");
  boost::asio::post(bench.io, [&] { bench.order += '.'; });
  bench.io.run();
  REQUIRE(bench.order == "aba.bb!aa!");
}

TEST_CASE("cancelled work is neither continued nor done") {
  Bench bench;
  const char a = 'a', b = 'b';
  bench.begin(a, 3);
  bench.begin(b, 2);
  bench.works.cancel(&a);
  bench.io.run();
  REQUIRE(bench.order == "abbb!");
}

}  // namespace slices_test
