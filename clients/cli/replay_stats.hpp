// The statistics of `earshot replay --stats`: every line is accounted for.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "cli/style.hpp"
#include "core/transcript.hpp"

namespace earshot::cli {

using Counts = std::map<std::string, std::uint64_t, std::less<>>;

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
  std::uint64_t repaired_lines_ = 0, undecided_records_ = 0, duplicates_ = 0, late_results_ = 0;
  std::uint64_t salvaged_lines_ = 0, reported_skipped_lines_ = 0;
  std::uint64_t unterminated_files_ = 0, unterminated_bytes_ = 0;
  double seconds_ = 0;
};

}  // namespace earshot::cli
