#include "otlp/status_waits.hpp"

#include <catch2/catch.hpp>

namespace earshot::otlp {
namespace {

const SpanContext first{{1, 2}, 3}, second{{4, 5}, 6};

StatusWait wait_at(std::int64_t since_ms, std::string session = "t") {
  return {"h", std::move(session), "r", "permission", "registry", since_ms, {}};
}

/// The turn of the only wait that has ended; nothing: it has none.
std::optional<SpanContext> turn_of_ended(StatusWaits& waits) {
  const auto ended = waits.take_ended();
  REQUIRE(ended.size() == 1);
  return ended[0].wait.turn;
}

}  // namespace

TEST_CASE("a wait belongs to the turn that was open when it began, whenever the turn is read") {
  StatusWaits waits;
  SECTION("the turns are read while it is open") {
    waits.begin(wait_at(500));
    waits.on_turn_started("t", first, 100);
    waits.on_turn_finished("t", 200);
    waits.on_turn_started("t", second, 300);
    waits.on_turn_finished("t", 600);
    waits.on_turn_started("t", first, 700);
    waits.end("t", 600);
    CHECK(waits.find("t") == nullptr);
    CHECK(turn_of_ended(waits) == second);
  }
  SECTION("the turns are read after its end") {
    waits.begin(wait_at(500));
    waits.end("t", 600);
    waits.on_turn_started("t", first, 100);
    waits.on_turn_started("other", second, 100);
    CHECK(turn_of_ended(waits) == first);
  }
  SECTION("no turn was open") {
    waits.begin(wait_at(500));
    waits.on_turn_started("t", first, 100);
    waits.on_turn_finished("t", 400);
    waits.end("t", 600);
    CHECK(turn_of_ended(waits) == std::nullopt);
  }
  CHECK(waits.take_ended().empty());
}

TEST_CASE("waits beyond the limits have no span") {
  StatusWaits waits;
  for (std::size_t i = 0; i <= StatusWaits::waits_max; ++i) waits.begin(wait_at(1, std::to_string(i)));
  CHECK(waits.find(std::to_string(StatusWaits::waits_max)) == nullptr);
  for (std::size_t i = 0; i < StatusWaits::waits_max; ++i) waits.end(std::to_string(i), 2);
  waits.begin(wait_at(1, "one more"));
  waits.end("one more", 2);
  CHECK(waits.take_ended().size() == StatusWaits::waits_max);
}

}  // namespace earshot::otlp
