// Every bound of a connection as people write it: `[limits]` of earshot.toml, /v1/health and /metrics.
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
  std::string_view name;  // with its unit
  Member member;
  std::uint64_t min, max;
};

std::span<const LimitRule> limit_rules();
std::uint64_t limit_value(const Limits& limits, const LimitRule& rule);
/// `value` is within the rule's bounds.
void set_limit(Limits& limits, const LimitRule& rule, std::uint64_t value);

/// All of them, by name.
std::vector<std::pair<std::string, std::uint64_t>> limit_values(const Limits& limits);

}  // namespace earshot::serve
