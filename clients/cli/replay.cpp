// `earshot replay`: the events of transcript files, without a daemon.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "agents/roots.hpp"
#include "agents/stream_name.hpp"
#include "agents/transcript_file.hpp"
#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "base/sockets.hpp"
#include "base/system.hpp"
#include "cli/commands.hpp"
#include "cli/event_formatter.hpp"
#include "common/format.hpp"
#include "core/event_json.hpp"
#include "core/transcript.hpp"
#include "redact/redactor.hpp"

namespace earshot::cli {
namespace {

// --- statistics: every line is accounted for ---

using Counts = std::map<std::string, std::uint64_t, std::less<>>;

constexpr std::size_t tally_names_max = 1000;  // a hostile file may contain any number; beyond this:
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
  StatsSection(const DisplayOptions& display, std::string& out)
      : name_columns_(display.columns == 0 ? name_columns_max
                                           : std::clamp(display.columns, name_columns_min + other_columns,
                                                        name_columns_max + other_columns) -
                                                 other_columns),
        display_(display),
        out_(out) {}

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
    row(name, format_grouped(number), note, depth);
  }
  void end() {
    const std::vector<Column> columns = {
        {"", name_columns_min, name_columns_, 0}, {"", 12, 0, 0, true}, {"", 8, 0, 0}};
    rows_.push_back({{std::string(name_columns_, '_'), Style::plain},
                     {std::string(12, '_'), Style::plain},
                     {"", Style::plain}});
    std::string text = format_table(columns, rows_, display_, false);
    // The last row only sets the widths, so that all sections are aligned.
    text.erase(text.rfind('\n', text.size() - 2) + 1);
    out_ += text;
    rows_.clear();
  }

 private:
  static constexpr std::size_t name_columns_min = 16, name_columns_max = 44;  // longer names are cut
  static constexpr std::size_t other_columns = 48;                            // that numbers and notes need

  const std::size_t name_columns_;
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

class ReplayStats {
 public:
  /// Called for each event: cheap enough for a million events per second.
  void count_event(const Event& event) {
    ++events_[event.body.index()];
    if (const auto* skipped = std::get_if<event::LineSkipped>(&event.body)) count_skipped(*skipped);
  }
  /// Call it after the last byte of a file.
  void add_file(const Transcript& transcript);
  void set_seconds(double seconds) { seconds_ = seconds; }

  std::string table(const DisplayOptions& display) const;
  std::string json() const;

 private:
  struct Dialect {
    std::uint64_t files = 0, lines = 0, records = 0;
    Counts types, unknown_types;  // unknown ones are also in `types`
  };
  void count_skipped(const event::LineSkipped& skipped);
  Counts events_by_type() const;

  std::array<std::uint64_t, std::variant_size_v<EventBody>> events_{};
  std::map<std::string, Dialect, std::less<>> dialects_;
  Counts unknown_types_, skipped_by_reason_;
  std::uint64_t files_ = 0, bytes_ = 0, lines_ = 0, empty_lines_ = 0, skipped_lines_ = 0, records_ = 0;
  std::uint64_t repaired_lines_ = 0, undecided_records_ = 0, duplicates_ = 0, late_results_ = 0, dropped_ = 0;
  std::uint64_t salvaged_lines_ = 0, reported_skipped_lines_ = 0;
  std::uint64_t unterminated_files_ = 0, unterminated_bytes_ = 0;
  double seconds_ = 0;
};

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
  dropped_ += counts.dropped;
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

  sheet.heading("Lines", format_grouped(lines_));
  sheet.row("with records", lines_ - empty_lines_ - skipped_lines_,
            format_grouped(records_) + " in a known dialect");
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
    sheet.heading("Dialect " + name, format_grouped(dialect.files) +
                                         (dialect.files == 1 ? " file, " : " files, ") +
                                         format_grouped(dialect.lines) + " lines, " +
                                         format_grouped(dialect.records) + " records");
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

  if (dropped_ > 0) {
    sheet.heading("Beyond a limit");
    sheet.row("dropped", dropped_, "calls, agents, results, texts and lists");
    sheet.end();
  }

  const Counts events = events_by_type();
  sheet.heading("Events", format_grouped(sum_of(events)));
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
  json.member("duplicates", duplicates_).member("late_results", late_results_).member("dropped", dropped_);
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
  return out;
}

// --- events ---

constexpr std::size_t read_bytes = 1 << 20;  // per read

struct Settings {
  const ReplayOptions& options;
  std::string host;
  std::uint64_t hash_key = 0;
  bool print = true;
  const TextFilter* filter = nullptr;  // null: secrets are not redacted
};

// Receives the events: prints them as JSON or as readable lines, counts them for the statistics, or both.
class Printer : public EventSink {
 public:
  Printer(const Settings& settings, EventFormatter* formatter, ReplayStats* stats, Output& out)
      : settings_(settings), formatter_(formatter), stats_(stats), out_(out) {
    encode_.view = settings.options.view;
    encode_.filter = settings.filter;
  }

  void begin(const Transcript& transcript, const TranscriptPlace& place) {
    transcript_ = &transcript;
    place_ = &place;
  }

  void on_event(const Event& event) override {
    if (stats_ != nullptr) stats_->count_event(event);
    if (!settings_.print) return;
    const std::string& recorded = transcript_->recorded_session();
    const bool is_recorded = place_->session.empty() || (place_->is_likely && !recorded.empty());
    const std::string& session = is_recorded ? recorded : place_->session;
    const StreamAddress address{settings_.host, place_->stream, session.empty() ? place_->stream : session};
    if (formatter_ == nullptr && !out_.is_terminal()) {
      append_event(out_.buffer(), event, address, encode_);
      out_.buffer() += '\n';
    } else {
      json_.clear();
      append_event(json_, event, address, encode_);
      if (formatter_ == nullptr) {
        out_.write_json_line(json_);
      } else if (const auto frame = parser_.parse(json_)) {
        formatter_->format(*frame, out_.buffer());
      }
    }
    out_.flush_if_full();
  }

 private:
  const Settings& settings_;
  EventFormatter* formatter_;  // null: JSON
  ReplayStats* stats_;         // null: not requested
  Output& out_;
  EncodeOptions encode_;
  const Transcript* transcript_ = nullptr;
  const TranscriptPlace* place_ = nullptr;
  FrameParser parser_;
  std::string json_;
};

class Replay {
 public:
  Replay(const Settings& settings, Printer& printer, ReplayStats* stats, const Output& out)
      : settings_(settings),
        printer_(printer),
        stats_(stats),
        out_(out),
        buffer_(new char[read_bytes + feed_padding]()) {}

  /// Returns false if the file could not be read to its end.
  bool file(const std::string& path) {
    TranscriptPlace place;
    TranscriptFile compressed;
    if (compressed.open(path) != 0 || !compressed.is_compressed()) compressed.close();
    const bool is_stdin = path == "-";
    const Fd opened(is_stdin || compressed.is_open() ? -1
                                                     : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    int error = is_stdin || compressed.is_open() || opened ? 0 : errno;
    std::uint64_t offset = 0;
    const auto read_next = [&]() -> ssize_t {
      if (!compressed.is_open())
        return ::read(is_stdin ? STDIN_FILENO : opened.get(), buffer_.get(), read_bytes);
      const long got = compressed.read_at(buffer_.get(), read_bytes, offset);
      if (got < 0) errno = static_cast<int>(-got);
      offset += static_cast<std::uint64_t>(std::max(got, 0L));
      return got < 0 ? -1 : got;
    };
    std::optional<Transcript> transcript;  // of the program that its beginning proves, or its path
    ssize_t size = 0;
    while (error == 0 && (size = read_next()) != 0) {
      if (size < 0) {
        error = errno == EINTR ? 0 : errno;
        continue;
      }
      if (!transcript) {
        const AgentProgram* const found = detect_program({buffer_.get(), static_cast<std::size_t>(size)});
        const AgentProgram& program = found ? *found : program_of_path(path);
        place = place_of(path, program);
        if (!settings_.options.agent.empty()) place.agent = settings_.options.agent;
        if (!settings_.options.stream.empty()) place.stream = settings_.options.stream;
        transcript.emplace(TranscriptOptions{
            .hash_key = settings_.hash_key, .own_agent = place.agent, .format = &program.format()});
        printer_.begin(*transcript, place);
      }
      transcript->feed({buffer_.get(), static_cast<std::size_t>(size)}, workspace_, printer_);
      if (out_.closed() || !out_.error().empty()) return true;
    }
    if (error != 0) {
      print_message(safe_text(path) + ": " + describe_read_error(error));
      return false;
    }
    if (!transcript) transcript.emplace(TranscriptOptions{});  // an empty file
    if (stats_ != nullptr) stats_->add_file(*transcript);
    return true;
  }

 private:
  const Settings& settings_;
  Printer& printer_;
  ReplayStats* stats_;
  const Output& out_;
  Workspace workspace_;
  std::unique_ptr<char[]> buffer_;
};

}  // namespace

int replay_command(const ReplayOptions& options) {
  Settings settings{options, options.host.empty() ? host_name() : options.host, 0,
                    !options.stats || options.events};
  if (!options.state.empty()) {
    const auto key = read_prefix_key(options.state);
    if (const auto* error = std::get_if<std::string>(&key)) {
      print_message(safe_text(*error));
      return exit_failed;
    }
    settings.hash_key = std::get<std::uint64_t>(key);
  }
  const redact::Redactor redactor;
  if (options.redact) settings.filter = &redactor;
  const DisplayOptions display = stdout_display(options.colour);
  Output out;
  ReplayStats stats;
  ReplayStats* const stats_if_requested = options.stats ? &stats : nullptr;
  std::optional<EventFormatter> formatter;
  if (options.pretty) formatter.emplace(display, options.verbose);
  Printer printer(settings, formatter ? &*formatter : nullptr, stats_if_requested, out);
  Replay replay(settings, printer, stats_if_requested, out);

  int exit_code = exit_ok;
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& path : options.files) {
    const TranscriptSearch search = transcripts_at(path);
    for (const auto& [directory, error] : search.errors)
      print_message(safe_text(directory) + ": " + std::strerror(error));
    if (!search.errors.empty()) exit_code = exit_failed;
    if (search.files.empty()) print_message(safe_text(path) + ": no transcripts found");
    for (const std::string& file : search.files) {
      if (out.closed() || !out.error().empty()) break;
      if (!replay.file(file)) exit_code = exit_failed;
    }
  }
  stats.set_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (options.stats && options.json)
    out.write_json_line(stats.json());
  else if (options.stats)
    out.write(stats.table(display));
  return std::max(exit_code, finish(out));
}

}  // namespace earshot::cli
