// Simulations. `build/release/tests/sim/sim SEED` prints the trace of a failed seed; after the correction the
// seed is kept below.
#include <spdlog/spdlog.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <initializer_list>

#include "agents/agent.hpp"
#include "run.hpp"

using namespace earshot;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t runs = 200;  // each takes ten times as long
#else
constexpr std::uint64_t runs = 2000;
#endif

void live(std::uint64_t seed, std::uint64_t& events) {
  const sim::Outcome outcome = sim::run(seed);
  events += outcome.events;
  if (!outcome.failure.empty()) FAIL_CHECK("seed " << seed << ": " << outcome.failure);
}

}  // namespace

TEST_CASE("every client of a simulated run has the events of the files") {
  spdlog::set_level(spdlog::level::off);
  std::uint64_t events = 0;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) live(seed, events);
  REQUIRE(events > runs * 100);  // enough events were compared
}

TEST_CASE("fault 98: a second subscription that resumes the same streams repeats no event") {
  spdlog::set_level(spdlog::level::off);
  std::uint64_t events = 0;
  for (std::uint64_t run = 0; run < runs / 4; ++run)
    live(sim::first_seed_with_second_subscriptions + run, events);
  REQUIRE(events > runs / 4 * 100);
}

TEST_CASE("fault 110: the cold streams of a session are found after any clean-up") {
  spdlog::set_level(spdlog::level::off);
  std::uint64_t events = 0;
  for (std::uint64_t run = 0; run < runs / 4; ++run) live(sim::first_seed_with_cold_files + run, events);
  REQUIRE(events > runs / 4 * 100);
}

TEST_CASE("every client has the events of every program's files") {
  spdlog::set_level(spdlog::level::off);
  for (std::size_t program = 1; program < agent_programs().size(); ++program) {
    std::uint64_t events = 0;
    for (std::uint64_t run = 0; run < runs / 8; ++run) live(program * sim::seeds_per_program + run, events);
    CAPTURE(agent_programs()[program]->program());
    REQUIRE(events > runs / 8 * 100);
  }
}

TEST_CASE("runs that failed once") {
  spdlog::set_level(spdlog::level::off);
  std::uint64_t events = 0;
  for (const std::uint64_t seed :
       {542u,  2249u, 2435u, 2747u, 2951u, 3093u, 3198u, 3325u, 3333u, 3796u, 3966u,
        4218u, 4249u, 4431u, 4905u, 4978u, 5296u, 5469u, 5714u, 5742u, 7574u, 8261u})
    live(seed, events);
  live(sim::first_seed_with_cold_files + 1183, events);
}

TEST_CASE("a run is deterministic") {
  spdlog::set_level(spdlog::level::off);
  for (const std::uint64_t seed : {3u, 1392u}) {
    std::string once, again;
    sim::run(seed, [&](const std::string& line) { once += line + '\n'; });
    sim::run(seed, [&](const std::string& line) { again += line + '\n'; });
    REQUIRE(once == again);
  }
}
