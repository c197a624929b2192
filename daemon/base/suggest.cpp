#include "base/suggest.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace earshot {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // distances of a's beginning to each beginning of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known) {
  std::string_view best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string_view suggest_word(std::string_view word, const std::vector<std::string_view>& known) {
  const std::string_view best = nearest_word(word, known);
  const std::size_t distance_max = std::max<std::size_t>(2, word.size() / 3);
  const std::size_t distance = edit_distance(word, best);
  return distance <= distance_max && distance < word.size() ? best : std::string_view{};
}

}  // namespace earshot
