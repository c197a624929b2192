#include "cli/table.hpp"

#include <algorithm>
#include <numeric>

namespace earshot::cli {
namespace {

constexpr std::size_t gap = 2;  // between two columns

struct Layout {
  std::size_t index;  // of the column
  std::size_t width;
};

std::size_t total(const std::vector<Layout>& shown) {
  const std::size_t gaps = shown.empty() ? 0 : gap * (shown.size() - 1);
  return std::accumulate(shown.begin(), shown.end(), gaps,
                         [](std::size_t sum, const Layout& l) { return sum + l.width; });
}

std::vector<Layout> natural_layout(const std::vector<Column>& columns,
                                   const std::vector<std::vector<Cell>>& rows, bool titles) {
  std::vector<Layout> shown;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = 0;
    for (const std::vector<Cell>& row : rows) width = std::max(width, display_width(row[i].text));
    if (width == 0) continue;
    if (titles) width = std::max(width, display_width(columns[i].title));
    if (columns[i].columns_max > 0) width = std::min(width, columns[i].columns_max);
    shown.push_back({i, width});
  }
  return shown;
}

// Narrows the last columns first: the first ones identify the row.
void narrow(std::vector<Layout>& shown, const std::vector<Column>& columns, std::size_t room) {
  for (auto layout = shown.rbegin(); layout != shown.rend() && total(shown) > room; ++layout) {
    const std::size_t floor = columns[layout->index].columns_min;
    if (floor == 0 || layout->width <= floor) continue;
    layout->width -= std::min(layout->width - floor, total(shown) - room);
  }
}

bool drop_one(std::vector<Layout>& shown, const std::vector<Column>& columns) {
  const auto least = std::max_element(shown.begin(), shown.end(), [&](const Layout& a, const Layout& b) {
    return columns[a.index].rank < columns[b.index].rank;
  });
  if (least == shown.end() || columns[least->index].rank == 0) return false;
  shown.erase(least);
  return true;
}

void fit(std::vector<Layout>& shown, const std::vector<Column>& columns, std::size_t room) {
  const std::vector<Layout> wanted = shown;
  narrow(shown, columns, room);
  while (total(shown) > room && drop_one(shown, columns)) {
    for (Layout& layout : shown) {
      const auto before = std::find_if(wanted.begin(), wanted.end(),
                                       [&](const Layout& w) { return w.index == layout.index; });
      layout.width = before->width;
    }
    narrow(shown, columns, room);
  }
}

template <class CellOf>
void add_row(std::string& out, const std::vector<Layout>& shown, const std::vector<Column>& columns,
             const DisplayOptions& display, CellOf&& cell_of) {
  Line line;
  std::size_t pending = 0;  // spaces to add before the next text: none at the end of a line
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const Cell& cell = cell_of(shown[i].index);
    const std::string text = cut_to_width(cell.text, shown[i].width, glyph(Glyph::ellipsis, display.charset));
    const std::size_t spare = shown[i].width - display_width(text);
    const bool right = columns[shown[i].index].right;
    if (i > 0) pending += gap;
    if (right) pending += spare;
    if (!text.empty()) {
      line.space(pending).add(text, cell.style);
      pending = 0;
    }
    if (!right) pending += spare;
  }
  out += line.str(display) + "\n";
}

}  // namespace

std::string format_table(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                         const DisplayOptions& display, bool titles) {
  std::vector<Layout> shown = natural_layout(columns, rows, titles);
  if (display.columns > 0) fit(shown, columns, display.columns);
  std::string out;
  if (titles) {
    std::vector<Cell> heads;
    for (const Column& column : columns) heads.push_back({column.title, Style::dim});
    add_row(out, shown, columns, display, [&](std::size_t i) -> const Cell& { return heads[i]; });
  }
  for (const std::vector<Cell>& row : rows) {
    add_row(out, shown, columns, display, [&](std::size_t i) -> const Cell& { return row[i]; });
  }
  return out;
}

}  // namespace earshot::cli
