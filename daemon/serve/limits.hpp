// The limits of a connection by name: [limits] of earshot.toml, /v1/health and /metrics.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "serve/server_context.hpp"

namespace earshot::serve {

struct LimitRule {
  using Member = std::variant<std::size_t Limits::*, int Limits::*, std::chrono::milliseconds Limits::*>;
  enum class Unit { count, bytes, duration };

  std::string_view name;
  Member member;
  std::uint64_t min, max;        // durations in milliseconds
  std::string_view description;  // and what happens at the limit

  /// Sizes have names that end in `_bytes`.
  Unit unit() const {
    if (std::holds_alternative<std::chrono::milliseconds Limits::*>(member)) return Unit::duration;
    return name.ends_with("_bytes") ? Unit::bytes : Unit::count;
  }
};

std::span<const LimitRule> limit_rules();
std::uint64_t limit_value(const Limits& limits, const LimitRule& rule);
/// `value` is within the rule's bounds.
void set_limit(Limits& limits, const LimitRule& rule, std::uint64_t value);

/// Every limit by name with its unit: `connections`, `write_bytes`, `ping_ms`.
std::vector<std::pair<std::string, std::uint64_t>> limit_values(const Limits& limits);

}  // namespace earshot::serve
