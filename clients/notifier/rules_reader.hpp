// Typed access to TOML values for the readers of rules and sinks. Problems are collected, not thrown.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/toml.hpp"
#include "notifier/rules_file.hpp"

namespace earshot::notifier {

/// A key and its value.
struct Item {
  std::string_view key;
  const toml::node& node;
};

struct RulesReader {
  using Names = std::span<const std::string_view>;

  std::string file;  // empty: built in
  std::string home;
  std::vector<Problem>& problems;

  void add_problem(const toml::source_region& at, std::string why) const;
  void add_problem(const Item& item, std::string why) const {
    add_problem(item.node.source(), std::move(why));
  }
  void add_type_error(const Item& item, std::string_view expected) const;
  void add_unknown_key(const toml::key& key, Names known) const;

  // Each reports a problem and returns nothing if the value has another type or format.
  std::optional<std::string> read_string(const Item& item) const;
  std::optional<bool> read_bool(const Item& item) const;
  /// A string, or an array of strings.
  std::optional<std::vector<std::string>> read_strings(const Item& item) const;
  std::optional<std::int64_t> read_duration(const Item& item) const;  // in milliseconds
  std::optional<std::vector<QuietHours>> read_quiet_hours(const Item& item) const;
  /// The index of the value in `choices`; the problem lists the allowed values.
  std::optional<std::size_t> read_choice(const Item& item, Names choices) const;
  /// With ~/ expanded.
  std::optional<std::string> read_path(const Item& item) const;
  std::string expand_home(const std::string& path) const;
};

}  // namespace earshot::notifier
