// Each row of the table in daemon/redact/README.md: a rule of gitleaks, ours that covers it, and a sample.
#include <catch2/catch.hpp>
#include <charconv>
#include <set>
#include <sstream>

#include "base/file.hpp"
#include "base/text.hpp"
#include "canaries.hpp"
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

/// Random text, the same for each call with this `seed`.
class Digits {
 public:
  explicit Digits(std::uint64_t seed) : state_(seed) {}
  std::string take(std::string_view alphabet, std::size_t count) {
    std::string text;
    while (text.size() < count) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      text += alphabet[(state_ >> 33) % alphabet.size()];
    }
    return text;
  }

 private:
  std::uint64_t state_;
};

/// What `{a20}` and the like stand for.
std::string filled_in(std::string_view placeholder, Digits& digits) {
  constexpr std::string_view hex = "0123456789abcdef", small = "abcdefghijklmnopqrstuvwxyz0123456789",
                             capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
                             base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
                             all = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  if (placeholder == "key") return "KEY";
  if (placeholder == "uuid")
    return digits.take(hex, 8) + "-" + digits.take(hex, 4) + "-4" + digits.take(hex, 3) + "-a" +
           digits.take(hex, 3) + "-" + digits.take(hex, 12);
  std::size_t count = 0;
  std::from_chars(placeholder.data() + 1, placeholder.data() + placeholder.size(), count);
  REQUIRE(count > 0);
  switch (placeholder[0]) {
    case 'h':
      return digits.take(hex, count);
    case 'l':
      return digits.take(small, count);
    case 'U':
      return digits.take(capitals, count);
    case 'u':
      return digits.take(base32, count);
    case 'd':
      return digits.take("0123456789", count);
    default:
      return digits.take(all, count);
  }
}

/// The text of a sample; `longest` is its longest random part.
std::string expanded(std::string_view sample, std::uint64_t seed, std::string& longest) {
  Digits digits(seed);
  std::string text;
  for (std::size_t at = 0; at < sample.size(); ++at) {
    if (sample.substr(at).starts_with("\\n")) {
      text += '\n';
      ++at;
    } else if (sample[at] != '{') {
      text += sample[at];
    } else {
      const std::size_t end = sample.find('}', at);
      const std::string part = filled_in(sample.substr(at + 1, end - at - 1), digits);
      if (part.size() > longest.size()) longest = part;
      text += part;
      at = end;
    }
  }
  return text;
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
      std::string longest;
      const std::string text = expanded(row.sample, seed, longest);
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
