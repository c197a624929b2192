// Invented secrets from templates, so that no scanner takes a file of samples for a leak.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::test {

struct Sample {
  std::string text;
  std::vector<std::string> parts;  // the random ones
};

/// `{a20}` becomes 20 random letters and digits, the same for each call with this `seed`; the other letters
/// are listed at alphabet_of(). `{uuid}` is a UUID, `{key}` the word KEY, `\n` a line break.
Sample expanded(std::string_view written, std::uint64_t seed);

}  // namespace earshot::test
