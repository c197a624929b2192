// Tables that fit the terminal: columns are first narrowed, then dropped.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "cli/style.hpp"

namespace earshot::cli {

struct Cell {
  std::string text;  // displayable
  Style style = Style::plain;
};

struct Column {
  std::string title;
  std::size_t columns_min = 0;  // never narrower than this if it is shown
  std::size_t columns_max = 0;  // 0: as wide as its widest cell
  int rank = 0;                 // the highest rank is dropped first; 0: never
  bool right = false;           // aligned to the right
};

/// Columns without any text are omitted. Each line ends with a line end.
std::string format_table(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                         const DisplayOptions& display, bool titles = true);

}  // namespace earshot::cli
