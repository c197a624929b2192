// `earshot usage`: tokens and cost over the transcripts of all programs, without a daemon.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agents/roots.hpp"
#include "agents/transcript_file.hpp"
#include "base/system.hpp"
#include "cli/commands.hpp"
#include "cli/usage_reader.hpp"
#include "cli/usage_report.hpp"
#include "common/format.hpp"
#include "models/model_table.hpp"

namespace earshot::cli {
namespace {

using std::chrono::milliseconds;

// One line on a terminal that is replaced, and removed at the end.
class ProgressLine {
 public:
  static constexpr milliseconds delay{1000};  // nothing is shown before

  explicit ProgressLine(std::uint64_t bytes_total)
      : bytes_total_(bytes_total), is_enabled_(is_terminal(STDERR_FILENO)) {}
  ~ProgressLine() {
    if (is_shown_) std::fputs("\r\x1b[K", stderr);
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(std::uint64_t bytes_read, milliseconds elapsed) {
    if (!is_enabled_ || elapsed < delay || bytes_total_ == 0) return;
    is_shown_ = true;
    const std::uint64_t percent = std::min<std::uint64_t>(100, bytes_read * 100 / bytes_total_);
    std::fprintf(stderr, "\r\x1b[Kreading transcripts: %u%% of %s", static_cast<unsigned>(percent),
                 format_bytes(bytes_total_).c_str());
    std::fflush(stderr);
  }

 private:
  const std::uint64_t bytes_total_;
  const bool is_enabled_;
  bool is_shown_ = false;
};

void print_errors(const std::vector<TranscriptSearch::Error>& errors) {
  constexpr std::size_t errors_max = 20;  // printed
  for (std::size_t n = 0; n < errors.size() && n < errors_max; ++n)
    print_message(safe_text(errors[n].path) + ": " + describe_read_error(errors[n].error));
  if (errors.size() > errors_max)
    print_message("and " + std::to_string(errors.size() - errors_max) + " more that cannot be read");
}

}  // namespace

int usage_command(const UsageOptions& options) {
  const Roots roots = options.roots.empty() ? default_roots() : parse_roots(options.roots);
  if (!roots.error.empty()) return usage_error(roots.error, "usage");
  const auto loaded = ModelTable::load(options.models, process_environment);
  if (const auto* error = std::get_if<std::string>(&loaded)) {
    print_message(safe_text(*error));
    return exit_usage;
  }

  int exit_code = exit_ok;
  for (const Root& root : roots.roots) {
    if (!root.expected) continue;
    if (const FileStat stat = stat_file(root.path, Symlinks::follow); !stat.is_directory()) {
      print_message(safe_text(root.path) + ": " + std::strerror(stat.error ? stat.error : ENOTDIR));
      exit_code = exit_failed;
    }
  }
  const UsageFiles files = find_usage_files(roots.roots, options.since_ms);
  RecordedUsage usage(std::get<ModelTable>(loaded));
  UsageReading reading;
  {
    ProgressLine progress(files.bytes);
    reading = read_usage(files, usage, [&](std::uint64_t bytes_read, milliseconds elapsed) {
      progress.update(bytes_read, elapsed);
    });
  }
  print_errors(files.errors);
  print_errors(reading.errors);
  if (!files.errors.empty() || !reading.errors.empty()) exit_code = exit_failed;
  if (usage.is_full())
    print_message("there are more than " + std::to_string(RecordedUsage::requests_max) +
                  " messages: copies of some are counted again");

  const UsageReport report(usage, options.by, {files.files.size(), reading.bytes, options.since_ms});
  Output out;
  if (options.json)
    out.write_json_line(report.json());
  else if (report.rows().empty())
    out.write(options.since_ms ? "no tokens were used since then\n"
                               : "no transcripts with tokens found\n"
                                 "  In another directory:  earshot usage --root DIR\n");
  else
    out.write(report.table(stdout_display(options.colour)));
  return std::max(exit_code, finish(out));
}

}  // namespace earshot::cli
