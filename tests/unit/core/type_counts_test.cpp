#include "core/type_counts.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace earshot;

TEST_CASE("records are counted by type, and unknown types apart too") {
  RecordCounts counts;
  TypeCounts types(counts);
  for (int n = 0; n < 3; ++n) types.add("user", false);
  types.add("assistant", false);
  types.add("novelty", true);
  types.add("", true);
  CHECK(counts.types ==
        decltype(counts.types){{"user", 3}, {"assistant", 1}, {"novelty", 1}, {"(no type)", 1}});
  CHECK(counts.unknown_types == decltype(counts.types){{"novelty", 1}, {"(no type)", 1}});
}

TEST_CASE("each type has a count of its own, however many there are") {
  RecordCounts counts;
  TypeCounts types(counts);
  for (int round = 1; round <= 3; ++round)
    for (int n = 0; n < 200; ++n) types.add("type/" + std::to_string(n), false);
  CHECK(counts.types.size() == 200);
  for (const auto& [name, count] : counts.types) {
    CAPTURE(name);
    CHECK(count == 3);
  }
}

TEST_CASE("types beyond the limit are counted together, and long names are cut") {
  RecordCounts counts;
  TypeCounts types(counts);
  for (std::size_t n = 0; n < TypeCounts::names_max + 5; ++n) types.add(std::to_string(n), false);
  CHECK(counts.types.size() == TypeCounts::names_max + 1);
  CHECK(counts.types.at("(other)") == 5);
  types.add(std::to_string(TypeCounts::names_max), false);
  types.add("0", false);
  CHECK(counts.types.at("(other)") == 6);
  CHECK(counts.types.at("0") == 2);

  RecordCounts few;
  TypeCounts(few).add(std::string(TypeCounts::name_bytes_max + 9, 'x'), false);
  CHECK(few.types.begin()->first == std::string(TypeCounts::name_bytes_max, 'x'));
}
