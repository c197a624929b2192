// HashMap, HashSet, Rare and BoundedMap.
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

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

TEST_CASE("a map that is fitted keeps its entries, takes less memory and can grow") {
  for (const std::uint64_t count : {0, 1, 13, 404, 20'000}) {
    CAPTURE(count);
    HashMap<std::uint32_t> map;
    HashSet set;
    bool is_new = false;
    const auto key = [](std::uint64_t n) { return n * 0x9E3779B97F4A7C15; };
    for (std::uint64_t n = 0; n < count; ++n)
      map.insert(key(n), static_cast<std::uint32_t>(n), is_new), set.insert(key(n));
    const std::size_t before = set.memory_bytes();
    map.fit(), set.fit();
    CHECK(set.memory_bytes() <= before);
    CHECK(set.memory_bytes() <= count * 10 + 128);
    for (std::uint64_t n = 0; n < 2 * count; ++n) {
      const std::uint32_t* const found = map.find(key(n));
      REQUIRE((found != nullptr) == (n < count));
      if (found) REQUIRE(*found == n);
    }
    for (std::uint64_t n = count; n < 2 * count; ++n) REQUIRE(set.insert(key(n)));
    for (std::uint64_t n = 0; n < 2 * count; ++n) REQUIRE_FALSE(set.insert(key(n)));
    CHECK(map.size() == count);
    CHECK(set.size() == 2 * count);
  }
}

TEST_CASE("a rare value is the default until it is changed, for its owner alone") {
  Rare<std::vector<int>> changed, other;
  CHECK(changed->empty());
  changed.change().push_back(1);
  changed.change().push_back(2);
  CHECK(*changed == std::vector{1, 2});
  CHECK(other->empty());
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
