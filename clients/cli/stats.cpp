#include "cli/replay_stats.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "cli/table.hpp"
#include "common/format.hpp"
#include "core/event_json.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t tally_names_max =
    1000;  // more names (a hostile file may invent them) are counted together as this:
constexpr std::string_view other_names = "(other)";

void count(Counts& tally, std::string_view name, std::uint64_t number) {
  auto found = tally.find(name);
  if (found == tally.end()) {
    const bool full = tally.size() >= tally_names_max;
    found = tally.try_emplace(std::string(full ? other_names : name)).first;
  }
  found->second += number;
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ',');
  return digits;
}

// Names by falling count, then by name.
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

// A heading, then names and numbers. Rows of number 0 are the caller's choice.
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
  /// `depth` indents: what is a part of the row above.
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
    std::string text = table(columns, rows_, display_, false);
    // The last row only held the columns open, so that all sheets are aligned.
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

class JsonObject {
 public:
  explicit JsonObject(std::string& out) : out_(out) { out_ += '{'; }
  ~JsonObject() { out_ += '}'; }
  std::string& key(std::string_view name) {
    if (out_.back() != '{') out_ += ',';
    append_string(out_, name);
    return out_ += ':';
  }
  void number(std::string_view name, std::uint64_t value) { key(name) += std::to_string(value); }
  void number(std::string_view name, double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.3f", value);
    key(name) += text;
  }
  void tally(std::string_view name, const Counts& tally) {
    key(name);
    JsonObject inner(out_);
    for (const auto& [each, number] : tally) inner.number(each, number);
  }

 private:
  std::string& out_;
};

}  // namespace

void ReplayStats::count_skipped(const event::LineSkipped& skipped) {
  count(skipped_by_reason_, skipped.reason, skipped.lines);
  if (skipped.salvaged) salvaged_lines_ += skipped.lines;
  told_skipped_lines_ += skipped.lines;
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
  sheet.row("time", format_duration(static_cast<std::int64_t>(seconds_ * 1000 + 0.5)),
            format_bytes(static_cast<std::uint64_t>(per_second)) + "/s");
  sheet.end();

  sheet.heading("Lines", grouped(lines_));
  sheet.row("with records", lines_ - empty_lines_ - skipped_lines_, grouped(records_) + " read in a dialect");
  if (undecided_records_ > 0) {
    sheet.row("of them before any dialect showed", undecided_records_, "records; no events", 1);
  }
  if (repaired_lines_ > 0) sheet.row("of them repaired", repaired_lines_, {}, 1);
  sheet.row("empty", empty_lines_);
  sheet.row("skipped", skipped_lines_);
  for (const auto& [reason, number] : sorted(skipped_by_reason_)) sheet.row(reason, number, {}, 1);
  if (skipped_lines_ > told_skipped_lines_) {
    sheet.row("not told yet", skipped_lines_ - told_skipped_lines_, "a run at a file's end", 1);
  }
  if (salvaged_lines_ > 0) sheet.row("salvaged in part", salvaged_lines_, {}, 1);
  if (unterminated_files_ > 0) {
    sheet.row("unterminated tails", unterminated_files_,
              format_bytes(unterminated_bytes_) + ", not lines yet");
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

  sheet.heading("Records apart");
  sheet.row("duplicates", duplicates_, "a uuid seen before: no event");
  sheet.row("late results", late_results_, "of a call that was abandoned: no event");
  sheet.row("of unknown types", sum_of(unknown_types_), "no event");
  sheet.end();

  const Counts events = events_by_type();
  sheet.heading("Events", grouped(sum_of(events)));
  for (const auto& [type, number] : sorted(events)) sheet.row(type, number);
  sheet.end();
  return out;
}

std::string ReplayStats::json() const {
  std::string out;
  {
    JsonObject all(out);
    all.number("files", files_);
    all.number("bytes", bytes_);
    all.number("seconds", seconds_);
    all.number("mb_per_s", seconds_ > 0 ? static_cast<double>(bytes_) / 1e6 / seconds_ : 0.0);
    {
      all.key("lines");
      JsonObject lines(out);
      lines.number("total", lines_);
      lines.number("with_records", lines_ - empty_lines_ - skipped_lines_);
      lines.number("empty", empty_lines_);
      lines.number("skipped", skipped_lines_);
      lines.number("salvaged", salvaged_lines_);
      lines.number("repaired", repaired_lines_);
    }
    all.tally("skipped_by_reason", skipped_by_reason_);
    all.number("skipped_not_told", skipped_lines_ - std::min(skipped_lines_, told_skipped_lines_));
    {
      all.key("unterminated");
      JsonObject tails(out);
      tails.number("files", unterminated_files_);
      tails.number("bytes", unterminated_bytes_);
    }
    all.number("records", records_);
    all.number("undecided_records", undecided_records_);
    all.number("duplicates", duplicates_);
    all.number("late_results", late_results_);
    all.tally("unknown_types", unknown_types_);
    {
      all.key("dialects");
      JsonObject dialects(out);
      for (const auto& [name, dialect] : dialects_) {
        dialects.key(name);
        JsonObject one(out);
        one.number("files", dialect.files);
        one.number("lines", dialect.lines);
        one.number("records", dialect.records);
        one.tally("types", dialect.types);
      }
    }
    all.tally("events", events_by_type());
  }
  return out + "\n";
}

}  // namespace earshot::cli
