// One simulation of a machine, a daemon, agents and clients, determined by its seed.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace earshot::sim {

struct Outcome {
  std::string failure;  // empty: every client has the events of the files
  std::uint64_t events = 0, resets = 0, folds = 0;
};

/// From this seed on to the next constant, some clients resume their streams by a second subscription, too.
constexpr std::uint64_t first_seed_with_second_subscriptions = std::uint64_t{1} << 32;

/// From this seed on, the files that exist at the start are too old to be read then.
constexpr std::uint64_t first_seed_with_cold_files = std::uint64_t{1} << 33;

/// The seeds from n × this on are those of the n-th program of agent_programs(); the first is 0.
constexpr std::uint64_t seeds_per_program = std::uint64_t{1} << 40;

/// `trace` is called for each step; may be empty.
Outcome run(std::uint64_t seed, const std::function<void(const std::string&)>& trace = {});

}  // namespace earshot::sim
