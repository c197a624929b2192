// Generated sessions of every dialect and version, with damage as files have it. The same seed,
// the same bytes.
#pragma once
#include <cstdint>
#include <string>

namespace earshot::test {

struct Damage {
  bool any = true;  // false: every line is whole and of its dialect
};

/// About `records` lines of a session.
std::string generated_session(std::uint64_t seed, std::size_t records, Damage damage = {});

}  // namespace earshot::test
