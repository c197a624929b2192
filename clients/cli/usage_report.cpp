#include "cli/usage_report.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

constexpr std::int64_t quarter_hour_ms = 15 * 60 * 1000;  // begins and ends in one day of every time zone

std::string local_day(std::int64_t ms) {
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  char text[32];
  if (localtime_r(&seconds, &parts) == nullptr) return {};
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

// The row of each message. What it depends on is compared by number or address first: there are many more
// messages than rows.
class Rows {
 public:
  Rows(UsageBy by, std::vector<UsageRow>& rows) : by_(by), rows_(rows) {}

  UsageRow& row_of(const RecordedUsage::Item& item) {
    const auto [known, is_new] = known_.try_emplace(key_of(item), 0);
    if (is_new) known->second = find(item);
    return rows_[known->second];
  }

 private:
  std::uintptr_t key_of(const RecordedUsage::Item& item) const {
    switch (by_) {
      case UsageBy::day:
        return static_cast<std::uintptr_t>(item.time_ms / quarter_hour_ms);
      case UsageBy::model:
        return reinterpret_cast<std::uintptr_t>(item.model.data());
      case UsageBy::session:
      case UsageBy::project:
      case UsageBy::program:
        return reinterpret_cast<std::uintptr_t>(&item.session);
    }
    return 0;
  }
  std::string name_of(const RecordedUsage::Item& item) const {
    switch (by_) {
      case UsageBy::day:
        return item.time_ms == 0 ? std::string() : local_day(item.time_ms);
      case UsageBy::model:
        return std::string(item.model);
      case UsageBy::session:
        return item.session.program + '\n' + item.session.id;
      case UsageBy::project:
        return item.session.project;
      case UsageBy::program:
        return item.session.program;
    }
    return {};
  }
  std::size_t find(const RecordedUsage::Item& item) {
    const auto [named, is_new] = by_name_.try_emplace(name_of(item), rows_.size());
    if (!is_new) return named->second;
    UsageRow& row = rows_.emplace_back();
    row.name = by_ == UsageBy::session ? item.session.id : named->first;
    if (by_ == UsageBy::session) {
      row.project = item.session.project;
      row.program = item.session.program;
    }
    return named->second;
  }

  const UsageBy by_;
  std::vector<UsageRow>& rows_;
  std::unordered_map<std::uintptr_t, std::size_t> known_;
  std::map<std::string, std::size_t> by_name_;
};

void count(UsageRow& row, const RecordedUsage::Item& item) {
  row.sums.add(item.sums);
  row.last_ms = std::max(row.last_ms, item.time_ms);
  auto model = row.models.find(item.model);
  if (model == row.models.end()) model = row.models.try_emplace(std::string(item.model)).first;
  model->second.add(item.sums);
}

void sort_rows(std::vector<UsageRow>& rows, UsageBy by) {
  std::sort(rows.begin(), rows.end(), [](const UsageRow& a, const UsageRow& b) {
    return std::tie(a.name, a.program) < std::tie(b.name, b.program);
  });
  if (by == UsageBy::day) return;
  std::stable_sort(rows.begin(), rows.end(), [&](const UsageRow& a, const UsageRow& b) {
    return by == UsageBy::session ? a.last_ms < b.last_ms
                                  : total_tokens(a.sums.tokens) > total_tokens(b.sums.tokens);
  });
}

// --- Table ---

// `$1,234.56`, `~$0.12` with an estimate in it, `$0.12+` if some tokens have no price; `-`: unknown.
std::string cost_text(const UsageSums& sums, bool has_partial_rows) {
  const std::optional<double> usd = sums.cost_usd();
  std::string text = usd ? format_usd(*usd, sums.has_estimate) : std::string();
  if (text.empty()) text = "-";
  if (has_partial_rows) text += usd && sums.unpriced_tokens > 0 ? "+" : " ";
  return text;
}

const char* title_of(UsageBy by) {
  switch (by) {
    case UsageBy::day:
      return "DAY";
    case UsageBy::session:
      return "SESSION";
    case UsageBy::project:
      return "PROJECT";
    case UsageBy::model:
      return "MODEL";
    case UsageBy::program:
      return "PROGRAM";
  }
  return "";
}

std::string label_of(const UsageRow& row, UsageBy by, Charset charset) {
  if (row.name.empty()) return by == UsageBy::day ? "(no time)" : "(unknown)";
  if (by == UsageBy::program) return std::string(program_label(row.name));
  return to_display_line(by == UsageBy::session ? short_id(row.name) : std::string_view(row.name), charset);
}

// --- JSON ---

constexpr const char* by_names[] = {"day", "session", "project", "model", "program"};  // by UsageBy

void add_sums(JsonWriter& json, const UsageSums& sums) {
  json.member("input", sums.tokens.input).member("output", sums.tokens.output);
  json.member("cache_read", sums.tokens.cache_read).member("cache_write", sums.tokens.cache_write);
  json.member("total", total_tokens(sums.tokens)).member("messages", sums.messages);
  if (const auto usd = sums.cost_usd()) {
    json.member("cost_usd", std::round(*usd * 1e6) / 1e6);
    json.member("cost_source", sums.cost_source());
  }
  if (sums.unpriced_tokens > 0) json.member("unpriced_tokens", sums.unpriced_tokens);
}

void add_name(JsonWriter& json, const UsageRow& row, UsageBy by) {
  json.key(by_names[static_cast<int>(by)]);
  if (row.name.empty())
    json.null();
  else
    json.value(row.name);
  if (by != UsageBy::session) return;
  json.member("program", row.program);
  json.member_if_any("project", row.project).member_if_any("last", format_time_if_valid(row.last_ms));
}

void add_row(JsonWriter& json, const UsageRow& row, std::optional<UsageBy> by) {
  json.begin_object();
  if (by) add_name(json, row, *by);
  add_sums(json, row.sums);
  if (by != UsageBy::model) {
    json.key("models").begin_array();
    for (const auto& [model, sums] : row.models) {
      json.begin_object().member("model", model);
      add_sums(json, sums);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
}

}  // namespace

UsageReport::UsageReport(RecordedUsage& usage, UsageBy by, const UsageSource& source)
    : by_(by), source_(source), is_full_(usage.is_full()) {
  Rows rows(by, rows_);
  usage.for_each(source.since_ms, [&](const RecordedUsage::Item& item) {
    count(rows.row_of(item), item);
    count(total_, item);
  });
  copies_ = usage.copies();
  sort_rows(rows_, by);
}

std::string UsageReport::lines(const DisplayOptions& display, bool is_exact) const {
  const bool has_projects = by_ == UsageBy::session;
  std::set<std::string_view> programs;
  for (const UsageRow& row : rows_) programs.insert(row.program);
  const auto number = [&](std::uint64_t value) {
    return Cell{is_exact ? format_grouped(value) : format_count(value), Style::plain};
  };
  std::vector<std::vector<Cell>> cells;
  const auto add = [&](const UsageRow& row, std::string label, Style style) {
    const Usage& used = row.sums.tokens;
    cells.push_back({{std::move(label), style},
                     {has_projects ? to_display_line(last_component(row.project), display.charset) : "",
                      style_of_name(row.project)},
                     {programs.size() > 1 ? std::string(program_label(row.program)) : "", Style::dim},
                     number(used.input),
                     number(used.output),
                     number(used.cache_write),
                     number(used.cache_read),
                     number(total_tokens(used)),
                     {cost_text(row.sums, total_.sums.unpriced_tokens > 0), Style::plain}});
    if (style == Style::bold)
      for (Cell& cell : cells.back()) cell.style = style;
  };
  for (const UsageRow& row : rows_) add(row, label_of(row, by_, display.charset), Style::plain);
  add(total_, "total", Style::bold);
  const std::vector<Column> columns = {
      {title_of(by_), 10, 44, 0},    {"PROJECT", 6, 24, 0},     {"PROGRAM", 0, 0, 1},
      {"INPUT", 0, 0, 0, true},      {"OUTPUT", 0, 0, 0, true}, {"CACHE WRITE", 0, 0, 2, true},
      {"CACHE READ", 0, 0, 2, true}, {"TOTAL", 0, 0, 0, true},  {"COST", 0, 0, 0, true}};
  return format_table(columns, cells, display);
}

std::string UsageReport::table(const DisplayOptions& display) const {
  DisplayOptions unlimited = display;
  unlimited.columns = 0;
  unlimited.palette = Palette::none;
  const std::string exact = lines(unlimited, true);
  const bool fits =
      display.columns == 0 || display_width(exact.substr(0, exact.find('\n'))) <= display.columns;
  return lines(display, fits) + notes(display);
}

std::string UsageReport::notes(const DisplayOptions& display) const {
  std::string out;
  const auto add = [&](const std::string& text) {
    for (const std::string& line : wrap_text(text, display.columns, display.charset, 20).lines)
      out += Line().add(line, Style::dim).str(display) + "\n";
  };
  if (total_.sums.has_estimate) add("~ estimated, or partly, from the price table");
  if (total_.sums.unpriced_tokens > 0) {
    constexpr std::size_t model_columns_max = 44;
    std::string models;
    for (const auto& [model, sums] : total_.models)
      if (sums.unpriced_tokens > 0)
        models += (models.empty() ? "" : ", ") + cut_to_width(to_display_line(model, display.charset),
                                                              model_columns_max,
                                                              glyph(Glyph::ellipsis, display.charset));
    add((total_.sums.cost_usd() ? "+ without " : "") + format_count(total_.sums.unpriced_tokens) +
        " tokens of models that have no price: " + models);
    add("Prices can be added: see --models, and man earshot.toml");
  }
  return out.empty() ? out : "\n" + out;
}

std::string UsageReport::json() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("by", by_names[static_cast<int>(by_)]);
  if (source_.since_ms) json.member("since", format_time_if_valid(*source_.since_ms));
  json.key("rows").array(rows_, [&](const UsageRow& row) { add_row(json, row, by_); });
  json.key("total");
  add_row(json, total_, std::nullopt);
  json.member("transcripts", source_.transcripts).member("bytes", source_.bytes).member("copies", copies_);
  if (is_full_) json.member("is_full", true);
  json.end_object();
  return out;
}

}  // namespace earshot::cli
