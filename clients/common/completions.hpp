// Completion in shells: the scripts of `PROGRAM completions SHELL`, and the words of `PROGRAM complete`,
// which the scripts call. Both come from the program's table of options.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace earshot::common {

/// The script of `bash`, `zsh` or `fish`; empty: another shell.
std::string completion_script(std::string_view shell, std::string_view program);

/// Adds the argument SHELL and returns what prints the script, after parsing; the result is an exit code.
std::function<int()> add_completions(CLI::App& command, std::string program);

/// Null: there is no such command.
const CLI::App* find_command(const CLI::App& app, const std::string& name);

/// What is completed: a value of an option (`--project`), or an argument, of this type (`SESSION`, `EVENT`).
struct CompletedValue {
  std::string type, option;
  bool is_argument = false;
};

/// The words for a value, in the form of complete_words(); `words` is the command line before it.
using ValueWords = std::function<std::string(const CompletedValue&, const std::vector<std::string>& words)>;

/// What a shell may put in place of the last of `words`, which follow the name of the program. A line each,
/// `<word>` or `<word>\t<description>`, or the only line `\tfile` or `\tdirectory`: a path.
std::string complete_words(const CLI::App& app, std::vector<std::string> words, const ValueWords& more);

}  // namespace earshot::common
