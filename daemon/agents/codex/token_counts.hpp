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
  void account(const std::optional<Usage>& message, bool is_copied, Assembler& to);
  void read_limit(const Value& json, Assembler& to);

  std::optional<Counts> counts_;
  std::uint64_t context_ = 0;
  Usage counted_, first_;                             // totals: the largest, and the first since they began
  std::map<std::string, Limit, std::less<>> limits_;  // by id
};

}  // namespace earshot::codex
