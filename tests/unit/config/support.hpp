#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/option_table.hpp"
#include "unit/support/temporary_directory.hpp"

namespace earshot::config {

/// A home directory and the environment of one invocation.
struct Fixture {
  test::TemporaryDirectory home;
  std::map<std::string, std::string> variables{{"HOME", home.path()}};

  ParseResult parse(const std::vector<std::string>& words) const {
    const auto environment = [this](const char* name) -> std::optional<std::string> {
      const auto it = variables.find(name);
      if (it == variables.end()) return {};
      return it->second;
    };
    return parse_options(words, environment, "1.2.3");
  }
  /// With `text` as earshot.toml.
  ParseResult parse_file(std::string_view text, std::vector<std::string> words = {}) const {
    home.write("e.toml", text);
    words.insert(words.begin(), {"--config", home / "e.toml"});
    return parse(words);
  }
};

}  // namespace earshot::config
