// One run of a machine, a daemon, some agents and some clients, all of it out of one number.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace earshot::sim {

struct Outcome {
  std::string failure;  // empty: every client ended up with what the files say
  std::uint64_t events = 0, resets = 0, folds = 0;
};

/// `trace` hears what happens, line by line; empty: nobody listens.
Outcome run(std::uint64_t seed, const std::function<void(const std::string&)>& trace = {});

}  // namespace earshot::sim
