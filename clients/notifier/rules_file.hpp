// Reads the rules file, notify.toml, and adds the built-in rules.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "notifier/rules.hpp"

namespace earshot::notifier {

/// The built-in rules as TOML: the content of defaults.toml.
extern const char* const default_rules_text;

/// An error in the rules file.
struct Problem {
  std::string file;
  int line = 0;  // 0: concerns the file, not a line
  std::string why;
  std::string text() const;
};

struct ReadRules {
  Rules rules;
  std::vector<Problem> problems;  // in the order of lines; the rules are usable only without any
};

/// The rules of `text` and, unless it sets `defaults = false`, the built-in ones. A rule with the name of a
/// built-in rule replaces it. `~/` in paths is replaced by `home`.
ReadRules read_rules(std::string_view text, const std::string& file, const std::string& home);

/// $XDG_CONFIG_HOME/earshot/notify.toml, or ~/.config/earshot/notify.toml.
std::string default_rules_file();

/// The rules of `file`, which must exist. Empty: the default file, or only the built-in rules if that does
/// not exist.
ReadRules load_rules(const std::string& file);

}  // namespace earshot::notifier
