// Reads earshot.toml. Every error names the file, the line and the nearest known key.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/toml.hpp"
#include "config/option_table.hpp"

namespace earshot::config {

/// The top-level options of `file`; its sections ([limits], [redaction], [relay], [hub]) are stored in
/// `options`. Throws Error.
Settings read_config_file(const std::string& file, Options& options);

/// A TOML value with its place, for error messages. `node` outlives it.
struct TomlValue {
  const std::string& file;
  std::string_view key;
  const toml::node& node;

  /// Throws Error: `earshot.toml:12: <what>`.
  [[noreturn]] void fail(const std::string& what) const;
  /// Throws Error: the value is not `expected` ("a string").
  [[noreturn]] void fail_type(std::string_view expected) const;
  /// Throws Error: `name`, a key of this table, is none of `known`.
  [[noreturn]] void fail_unknown(const toml::key& name, const std::vector<std::string_view>& known) const;

  std::string text(std::string_view expected = "a string") const;  // not empty
  bool flag() const;
  std::uint64_t number(std::uint64_t min, std::uint64_t max) const;
  std::uint64_t size(std::uint64_t min, std::uint64_t max) const;         // "16MiB"; or a number of bytes
  std::uint64_t duration_ms(std::uint64_t min, std::uint64_t max) const;  // "20s"
  std::vector<std::string> texts(std::string_view expected) const;        // a string or an array of strings
  const toml::table& table(std::string_view expected) const;
  TomlValue member(const toml::key& name, const toml::node& value) const { return {file, name.str(), value}; }
};

}  // namespace earshot::config
