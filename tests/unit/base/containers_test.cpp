// HashMap, HashSet and BoundedMap.
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "base/containers.hpp"

using namespace earshot;

TEST_CASE("a hash map has the entries of an ordered map") {
  std::mt19937_64 random(1);
  std::map<std::uint64_t, int> expected;
  HashMap<int> map;
  HashSet set;
  std::vector<std::uint64_t> keys{0, 1, ~0ull};
  while (keys.size() < 5000) keys.push_back(random());
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t key = keys[random() % keys.size()];
    if (key == 1) continue;  // 0 and 1 are one key
    bool is_new = false;
    const int value = map.insert(key, i, is_new);
    CHECK(is_new == expected.emplace(key, i).second);
    CHECK(value == expected[key]);
    CHECK(set.insert(key) == is_new);
  }
  CHECK(map.size() == expected.size());
  CHECK(set.size() == expected.size());
  for (const std::uint64_t key : keys) {
    const auto found = expected.find(key == 1 ? 0 : key);
    const int* const value = map.find(key);
    REQUIRE((value != nullptr) == (found != expected.end()));
    if (value) CHECK(*value == found->second);
    CHECK(set.contains(key) == (value != nullptr));
  }
  CHECK(map.find(12345) == nullptr);
  CHECK(HashMap<int>().find(0) == nullptr);
  CHECK_FALSE(HashSet().contains(0));
}

TEST_CASE("a bounded map drops the key inserted first") {
  BoundedMap<int, 2> map;
  map["a"] = 1;
  map["b"] = 2;
  map["a"] = 3;
  map["c"] = 4;
  CHECK(map.size() == 2);
  CHECK(map.find("a") == nullptr);
  REQUIRE(map.find("b"));
  CHECK(*map.find("b") == 2);
  map.erase("b");
  map.erase("none");
  map["d"] = 5;
  CHECK(map.size() == 2);
  CHECK(*map.find("c") == 4);
}
