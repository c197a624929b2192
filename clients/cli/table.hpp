// A table that fits: columns as wide as their cells, then narrowed, then dropped, until the terminal holds
// it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "cli/style.hpp"

namespace earshot::cli {

struct Cell {
  std::string text;  // printable
  Style style = Style::plain;
};

struct Column {
  std::string title;
  std::size_t columns_min = 0;  // never narrower than this, if it is shown
  std::size_t columns_max = 0;  // 0: as wide as its widest cell
  int rank = 0;                 // what is dropped first where room is short: the highest; 0 stays
  bool right = false;           // aligned to the right
};

/// Columns without any text are left out. The last column takes what room is left. Each line ends with a line
/// end.
std::string table(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                  const DisplayOptions& display, bool titles = true);

}  // namespace earshot::cli
