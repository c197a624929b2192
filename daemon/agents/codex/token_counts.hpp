// The token counts and rate limits of a stream, as its records report them.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/assembler.hpp"
#include "core/line_value.hpp"

namespace earshot::codex {

/// Emits usage.updated and limits.updated when something changed.
class TokenCounts {
 public:
  /// Reads a `token_count`. Copied history makes no events; its counts are known from then on.
  void read(const Value& body, bool is_copied, Assembler& to);
  /// Reads a `token_usage_record`, which versions from 0.160 on write with each response: the `token_count`
  /// that follows when its calls have ended repeats it, and counts what its process used, not the thread.
  void read_record(const Value& record, bool is_copied, Assembler& to);
  /// As a record stated it last, in tokens; 0: none did.
  std::uint64_t context() const { return context_; }

 private:
  struct Counts {
    Usage total;
    std::optional<Usage> last;
    std::optional<std::uint64_t> reasoning, context, window;
    friend bool operator==(const Counts&, const Counts&) = default;
  };
  struct Limit {
    std::string plan, reached;
    std::vector<LimitWindow> windows;
    std::vector<std::int64_t> resets;  // of each window, in seconds since 1970; 0: unknown
  };
  static constexpr std::size_t limits_max = 16;          // beyond, further ones are not reported
  static constexpr std::int64_t drift_seconds_max = 60;  // of a reset; more is a change

  static bool is_same(const Limit& one, const Limit& other);
  void read_usage(const Value& info, bool is_copied, Assembler& to);
  Usage account(const Usage& total, const std::optional<Usage>& message);
  void read_limit(const Value& json, Assembler& to);

  std::optional<Counts> counts_;                    // that were told last
  bool has_records_ = false, is_recorded_ = false;  // of responses: at all; since the last `token_count`
  std::uint64_t context_ = 0;
  Usage counted_, first_;                             // totals: the largest, and the first since they began
  std::map<std::string, Limit, std::less<>> limits_;  // by id
};

}  // namespace earshot::codex
