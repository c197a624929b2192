#include "cli/replay_stats.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/json_writer.hpp"
#include "cli/table.hpp"
#include "common/format.hpp"
#include "core/event_json.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t tally_names_max =
    1000;  // beyond this (a hostile file may contain any number) they are counted as:
constexpr std::string_view other_names = "(other)";

void count(Counts& tally, std::string_view name, std::uint64_t number) {
  auto found = tally.find(name);
  if (found == tally.end()) {
    const bool full = tally.size() >= tally_names_max;
    found = tally.try_emplace(std::string(full ? other_names : name)).first;
  }
  found->second += number;
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ',');
  return digits;
}

// By descending count, then by name.
std::vector<std::pair<std::string, std::uint64_t>> sorted(const Counts& tally) {
  std::vector<std::pair<std::string, std::uint64_t>> all(tally.begin(), tally.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return all;
}

std::uint64_t sum_of(const Counts& tally) {
  std::uint64_t sum = 0;
  for (const auto& [name, number] : tally) sum += number;
  return sum;
}

// A heading and rows of names and numbers.
class StatsSection {
 public:
  static constexpr std::size_t name_columns = 44;  // longer names are cut

  StatsSection(const DisplayOptions& display, std::string& out) : display_(display), out_(out) {}

  void heading(std::string_view title, std::string_view rest = {}) {
    if (!out_.empty()) out_ += "\n";
    Line line;
    line.add(to_display_line(title, display_.charset), Style::bold);
    if (!rest.empty()) line.space(2).add(rest, Style::dim);
    out_ += line.str(display_) + "\n";
  }
  /// `depth` indents rows that are parts of a row above.
  void row(std::string_view name, std::string_view number, std::string_view note = {},
           std::size_t depth = 0) {
    rows_.push_back(
        {{std::string(2 + 2 * depth, ' ') + to_display_line(name, display_.charset), Style::plain},
         {std::string(number), Style::plain},
         {std::string(note), Style::dim}});
  }
  void row(std::string_view name, std::uint64_t number, std::string_view note = {}, std::size_t depth = 0) {
    row(name, grouped(number), note, depth);
  }
  void end() {
    static const std::vector<Column> columns = {
        {"", 16, name_columns, 0}, {"", 12, 0, 0, true}, {"", 8, 0, 0}};
    rows_.push_back({{std::string(name_columns, '_'), Style::plain},
                     {std::string(12, '_'), Style::plain},
                     {"", Style::plain}});
    std::string text = format_table(columns, rows_, display_, false);
    // The last row only sets the widths, so that all sections are aligned.
    text.erase(text.rfind('\n', text.size() - 2) + 1);
    out_ += text;
    rows_.clear();
  }

 private:
  const DisplayOptions& display_;
  std::string& out_;
  std::vector<std::vector<Cell>> rows_;
};

template <std::size_t... index>
void name_events(const std::array<std::uint64_t, sizeof...(index)>& numbers, Counts& out,
                 std::index_sequence<index...>) {
  ((numbers[index] > 0
        ? void(out[std::string(type_name(EventBody(std::in_place_index<index>)))] = numbers[index])
        : void()),
   ...);
}

void add_counts(JsonWriter& json, std::string_view name, const Counts& counts) {
  json.key(name).begin_object();
  for (const auto& [each, number] : counts) json.member(each, number);
  json.end_object();
}

}  // namespace

void ReplayStats::count_skipped(const event::LineSkipped& skipped) {
  count(skipped_by_reason_, skipped.reason, skipped.lines);
  if (skipped.salvaged) salvaged_lines_ += skipped.lines;
  reported_skipped_lines_ += skipped.lines;
}

void ReplayStats::add_file(const Transcript& transcript) {
  const RecordCounts& counts = transcript.counts();
  ++files_;
  bytes_ += transcript.bytes_read();
  lines_ += counts.lines;
  empty_lines_ += counts.empty_lines;
  skipped_lines_ += counts.skipped_lines;
  records_ += counts.records;
  repaired_lines_ += counts.repaired_lines;
  undecided_records_ += counts.undecided_records;
  duplicates_ += counts.duplicates;
  late_results_ += counts.late_results;
  if (transcript.pending_bytes() > 0) {
    ++unterminated_files_;
    unterminated_bytes_ += transcript.pending_bytes();
  }
  const std::string& name = transcript.state().dialect;
  Dialect& dialect = dialects_[name.empty() ? std::string("(undecided)") : name];
  ++dialect.files;
  dialect.lines += counts.lines;
  dialect.records += counts.records;
  for (const auto& [type, number] : counts.types) count(dialect.types, type, number);
  for (const auto& [type, number] : counts.unknown_types) {
    count(dialect.unknown_types, type, number);
    count(unknown_types_, type, number);
  }
}

Counts ReplayStats::events_by_type() const {
  Counts out;
  name_events(events_, out, std::make_index_sequence<std::variant_size_v<EventBody>>());
  return out;
}

std::string ReplayStats::table(const DisplayOptions& display) const {
  std::string out;
  StatsSection sheet(display, out);
  const double per_second = seconds_ > 0 ? static_cast<double>(bytes_) / seconds_ : 0;
  sheet.heading("Read");
  sheet.row("files", files_);
  sheet.row("bytes", format_bytes(bytes_), std::to_string(bytes_) + " bytes");
  sheet.row("time", format_duration(Ms(static_cast<std::int64_t>(seconds_ * 1000 + 0.5))),
            format_bytes(static_cast<std::uint64_t>(per_second)) + "/s");
  sheet.end();

  sheet.heading("Lines", grouped(lines_));
  sheet.row("with records", lines_ - empty_lines_ - skipped_lines_,
            grouped(records_) + " in a known dialect");
  if (undecided_records_ > 0) {
    sheet.row("of them before the dialect was known", undecided_records_, "records without events", 1);
  }
  if (repaired_lines_ > 0) sheet.row("of them repaired", repaired_lines_, {}, 1);
  sheet.row("empty", empty_lines_);
  sheet.row("skipped", skipped_lines_);
  for (const auto& [reason, number] : sorted(skipped_by_reason_)) sheet.row(reason, number, {}, 1);
  if (skipped_lines_ > reported_skipped_lines_) {
    sheet.row("not reported yet", skipped_lines_ - reported_skipped_lines_, "at the end of a file", 1);
  }
  if (salvaged_lines_ > 0) sheet.row("partly recovered", salvaged_lines_, {}, 1);
  if (unterminated_files_ > 0) {
    sheet.row("unterminated last lines", unterminated_files_,
              format_bytes(unterminated_bytes_) + ", not complete yet");
  }
  sheet.end();

  for (const auto& [name, dialect] : dialects_) {
    sheet.heading("Dialect " + name, grouped(dialect.files) + (dialect.files == 1 ? " file, " : " files, ") +
                                         grouped(dialect.lines) + " lines, " + grouped(dialect.records) +
                                         " records");
    for (const auto& [type, number] : sorted(dialect.types)) {
      sheet.row(type, number, dialect.unknown_types.contains(type) ? "unknown" : "");
    }
    sheet.end();
  }

  sheet.heading("Records without events");
  sheet.row("duplicates", duplicates_, "a uuid that occurred before");
  sheet.row("late results", late_results_, "of an abandoned call");
  sheet.row("of unknown types", sum_of(unknown_types_));
  sheet.end();

  const Counts events = events_by_type();
  sheet.heading("Events", grouped(sum_of(events)));
  for (const auto& [type, number] : sorted(events)) sheet.row(type, number);
  sheet.end();
  return out;
}

std::string ReplayStats::json() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.member("files", files_).member("bytes", bytes_).member("seconds", rounded(seconds_));
  json.member("mb_per_s", rounded(seconds_ > 0 ? static_cast<double>(bytes_) / 1e6 / seconds_ : 0.0));
  json.key("lines").begin_object();
  json.member("total", lines_).member("with_records", lines_ - empty_lines_ - skipped_lines_);
  json.member("empty", empty_lines_).member("skipped", skipped_lines_);
  json.member("salvaged", salvaged_lines_).member("repaired", repaired_lines_).end_object();
  add_counts(json, "skipped_by_reason", skipped_by_reason_);
  json.member("skipped_not_reported", skipped_lines_ - std::min(skipped_lines_, reported_skipped_lines_));
  json.key("unterminated").begin_object();
  json.member("files", unterminated_files_).member("bytes", unterminated_bytes_).end_object();
  json.member("records", records_).member("undecided_records", undecided_records_);
  json.member("duplicates", duplicates_).member("late_results", late_results_);
  add_counts(json, "unknown_types", unknown_types_);
  json.key("dialects").begin_object();
  for (const auto& [name, dialect] : dialects_) {
    json.key(name).begin_object();
    json.member("files", dialect.files).member("lines", dialect.lines).member("records", dialect.records);
    add_counts(json, "types", dialect.types);
    json.end_object();
  }
  json.end_object();
  add_counts(json, "events", events_by_type());
  json.end_object();
  return out + "\n";
}

}  // namespace earshot::cli
