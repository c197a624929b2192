// The rules file, notify.toml: read, judged, and joined with the rules that are built in.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "notifier/rules.hpp"

namespace earshot::notifier {

/// The rules that are built in, as TOML: defaults.toml.
extern const char* const default_rules_text;

/// What is wrong, where, and what is allowed.
struct Problem {
  std::string file;
  int line = 0;  // 0: of the whole file
  std::string why;
  std::string text() const;
};

struct ReadRules {
  Rules rules;
  std::vector<Problem> problems;  // all of them; the rules are good only when there are none
};

/// The rules of `text` and, unless it says `defaults = false`, those that are built in; a rule that has the
/// name of a built-in one replaces it. `~/` in what it says of files is `home`.
ReadRules read_rules(std::string_view text, const std::string& file, const std::string& home);

/// $XDG_CONFIG_HOME/earshot/notify.toml, or ~/.config/earshot/notify.toml.
std::string default_rules_file();

/// The file's rules; only the built-in ones when it is the default one and there is none. A file that was
/// asked for must be there.
ReadRules load_rules(const std::string& file);  // empty: the default one

}  // namespace earshot::notifier
