// Parsing of a program's arguments, and what it says about wrong ones.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace earshot::common {

constexpr int exit_usage = 2;

/// Prints a usage error and where `command` is explained, or the program if it is empty. Returns its exit
/// code.
int usage_error(const std::string& message, const std::string& command);

/// With the most similar command.
std::string unknown_command_message(const CLI::App& app, const std::string& name);

/// A check of an option: what is wrong with a word that is none of these; empty: nothing.
std::function<std::string(const std::string& word)> one_of_words(std::vector<std::string> known);

/// The exit code, if help, the version or an error was printed; nothing: the program goes on.
std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv);

}  // namespace earshot::common
