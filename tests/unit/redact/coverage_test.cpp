// Each row of the table in daemon/redact/README.md: a rule of gitleaks, ours that covers it, and a sample.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "base/file.hpp"
#include "base/text.hpp"
#include "canaries.hpp"
#include "samples.hpp"
#include "unit/places.hpp"

namespace earshot::test {
namespace {

struct Row {
  std::string name, rule, sample;  // no rule: the sample is the reason
};

std::vector<Row> read_table() {
  const SmallFile file = read_small_file((sources() / "daemon/redact/README.md").string(), 1 << 20);
  REQUIRE(file.ok());
  std::vector<Row> rows;
  std::istringstream lines(file.text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ")) continue;
    Row row;
    std::string_view rest = std::string_view(line).substr(1);
    for (std::string* cell : {&row.name, &row.rule, &row.sample}) {
      const std::size_t end = rest.find('|');
      REQUIRE(end != rest.npos);
      *cell = trim(rest.substr(0, end), " `");
      rest.remove_prefix(end + 1);
    }
    if (row.rule == "–") row.rule.clear();
    if (row.name != "gitleaks") rows.push_back(std::move(row));
  }
  return rows;
}

TEST_CASE("fault 94: each rule of gitleaks is covered as the table states, or has a reason") {
  const std::vector<Row> rows = read_table();
  CHECK(rows.size() > 200);
  std::set<std::string> names;
  const auto known = redactor().names();
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK_FALSE(row.sample.empty());
    if (row.rule.empty()) continue;
    CHECK(std::find(known.begin(), known.end(), row.rule) != known.end());
    int missed = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const Sample sample = expanded(row.sample, seed);
      const std::string& text = sample.text;
      const std::string longest = *std::max_element(sample.parts.begin(), sample.parts.end(),
                                                    [](auto& a, auto& b) { return a.size() < b.size(); });
      const std::string shown = clean("run: " + text + "\n");
      if (shown.find("[redacted:" + row.rule + "]") != std::string::npos &&
          shown.find(longest) == std::string::npos)
        continue;
      ++missed;
      UNSCOPED_INFO(text << " → " << shown);
    }
    CHECK(missed <= 1);  // a random token may resemble words
  }
}

}  // namespace
}  // namespace earshot::test
