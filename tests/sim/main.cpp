// sim: runs any number of simulations.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include <spdlog/spdlog.h>

#include "agents/agent.hpp"
#include "run.hpp"

namespace {

constexpr const char* usage =
    "usage: sim SEED              one run, with a trace\n"
    "       sim FROM COUNT        COUNT runs from this seed on; prints the failed ones\n"
    "       sim --for SECONDS     runs from a random seed on for this time, of every program in turn\n"
    "The seeds from n * 2^40 on are those of the n-th agent program; Claude Code is 0.\n";

int one(std::uint64_t seed) {
  const auto outcome = earshot::sim::run(seed, [](const std::string& line) { std::puts(line.c_str()); });
  std::printf("%s\n", outcome.failure.empty() ? "passed" : outcome.failure.c_str());
  return outcome.failure.empty() ? 0 : 1;
}

int many(std::uint64_t from, std::uint64_t count, std::chrono::seconds time) {
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  std::uint64_t events = 0, failed = 0, done = 0, reported = 0;
  for (; count == 0 || done < count; ++done) {
    const auto spent = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begun);
    if (count == 0 && spent >= time) break;
    const std::uint64_t program = count == 0 ? done % earshot::agent_programs().size() : 0;
    const std::uint64_t seed = from + done + program * earshot::sim::seeds_per_program;
    const auto outcome = earshot::sim::run(seed);
    events += outcome.events;
    if (!outcome.failure.empty()) {
      ++failed;
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), outcome.failure.c_str());
      std::fflush(stdout);
    }
    if (spent.count() / 10 > static_cast<long>(reported)) {
      reported = static_cast<std::uint64_t>(spent.count()) / 10;
      std::fprintf(stderr, "sim: %llu runs, %llu failed\n", static_cast<unsigned long long>(done + 1),
                   static_cast<unsigned long long>(failed));
    }
  }
  std::printf("%llu runs from seed %llu, %llu events compared, %llu failed\n",
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(from),
              static_cast<unsigned long long>(events), static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  spdlog::set_level(spdlog::level::off);
  if (count == 3 && std::strcmp(words[1], "--for") == 0)
    return many(std::random_device{}(), 0, std::chrono::seconds(std::atoll(words[2])));
  if (count == 2 && words[1][0] != '-') return one(std::strtoull(words[1], nullptr, 10));
  if (count == 3) return many(std::strtoull(words[1], nullptr, 10), std::strtoull(words[2], nullptr, 10), {});
  std::fputs(usage, stderr);
  return 2;
}
