// Shell completion scripts, derived from the CLI11 definition of the command line.
#pragma once
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace earshot::cli {

/// `shell` is bash, zsh or fish. The type name of an option selects the completion of its value: FILE, DIR,
/// SESSION, COMMAND, or the words of a list a|b|c; others are not completed.
std::string completions(const CLI::App& app, std::string_view shell);

}  // namespace earshot::cli
