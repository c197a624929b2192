// Typed access to TOML values, shared by the readers of rules and sinks. Problems are collected, not thrown.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/toml.hpp"
#include "notifier/rules_file.hpp"

namespace earshot::notifier {

struct RulesReader {
  std::string file;  // empty: built in
  std::string home;
  std::vector<Problem>& problems;

  void add_problem(const toml::source_region& at, std::string why) const;
  void add_type_error(std::string_view key, const toml::node& node, std::string_view expected) const;
  void add_unknown_key(const toml::key& key, const std::vector<std::string_view>& known) const;

  std::optional<std::string> read_string(std::string_view key, const toml::node& node) const;
  std::optional<bool> read_bool(std::string_view key, const toml::node& node) const;
  /// A string, or an array of strings.
  std::optional<std::vector<std::string>> read_strings(std::string_view key, const toml::node& node) const;
  std::optional<std::int64_t> read_duration(std::string_view key, const toml::node& node) const;
  std::optional<std::vector<QuietHours>> read_quiet_hours(std::string_view key, const toml::node& node) const;
  /// The index of the value in `choices`; the problem lists the allowed values.
  std::optional<std::size_t> read_choice(std::string_view key, const toml::node& node,
                                         const std::vector<std::string_view>& choices) const;
  std::string expand_home(const std::string& value) const;  // with ~/ expanded
};

/// The file's defaults for rules without `sinks` and `quiet`.
struct Defaults {
  std::vector<std::string> sinks{"desktop"};
  std::vector<QuietHours> quiet;
};

/// Nothing if the rule has problems or is disabled (`enabled = false`). Sets `name` in each case.
std::optional<Rule> read_rule(const RulesReader& reader, const toml::table& table, std::string& name);
std::optional<Sink> read_sink(const RulesReader& reader, std::string_view name, const toml::table& table);

}  // namespace earshot::notifier
