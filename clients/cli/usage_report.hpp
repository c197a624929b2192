// The report of `earshot usage`: sums by day, session, project, model or program, as a table or as JSON.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/recorded_usage.hpp"
#include "cli/style.hpp"

namespace earshot::cli {

struct UsageRow {
  std::string name;  // a day `2026-11-24`, the id of a session, a project, a model, a program; empty: unknown
  std::string project, program;  // of a session
  std::int64_t last_ms = 0;      // of its newest message; 0: unknown
  UsageSums sums;
  std::map<std::string, UsageSums, std::less<>> models;
};

/// What was read.
struct UsageSource {
  std::size_t transcripts = 0;
  std::uint64_t bytes = 0;
  std::optional<std::int64_t> since_ms;
};

class UsageReport {
 public:
  /// Days are those of the local time zone, in order; sessions are in the order of their last message; other
  /// rows by their tokens, most first. `usage` needs no more transcripts.
  UsageReport(RecordedUsage& usage, UsageBy by, const UsageSource& source);

  /// Numbers are complete if they fit the terminal, else rounded (12.3M).
  std::string table(const DisplayOptions& display) const;
  std::string json() const;

  const std::vector<UsageRow>& rows() const { return rows_; }
  const UsageRow& total() const { return total_; }

 private:
  std::string lines(const DisplayOptions& display, bool is_exact) const;
  std::string notes(const DisplayOptions& display) const;

  const UsageBy by_;
  const UsageSource source_;
  std::vector<UsageRow> rows_;
  UsageRow total_;
  std::uint64_t copies_ = 0;
  bool is_full_ = false;
};

}  // namespace earshot::cli
