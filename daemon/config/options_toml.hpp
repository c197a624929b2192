// What is wrong with the configuration file, said with its place: for those who read its parts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/toml.hpp"

namespace earshot {

/// `earshot.toml:12: `
std::string place(const std::string& file, const toml::source_region& at);
/// Throw Failure (options_file.hpp).
[[noreturn]] void wrong_type(const std::string& file, std::string_view key, const toml::node& node,
                             std::string_view wanted);
[[noreturn]] void unknown(const std::string& file, const toml::key& name,
                          const std::vector<std::string_view>& known);

}  // namespace earshot
