// The command line: each function adds a command with its options. Help, completions and the tests of the
// manual are derived from it.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "common/common_options.hpp"

namespace earshot::cli {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  // after parsing; returns the exit code
};

Command add_ls(CLI::App& app);
Command add_status(CLI::App& app);
Command add_statusline(CLI::App& app);
Command add_tail(CLI::App& app);
Command add_show(CLI::App& app);
Command add_replay(CLI::App& app);
Command add_open(CLI::App& app);
Command add_token(CLI::App& app);
Command add_doctor(CLI::App& app);
Command add_completions(CLI::App& app);
/// Hidden: prints the ids with which a shell completes SESSION.
Command add_complete_sessions(CLI::App& app);

/// Adds all commands; `app` must outlive the result.
std::vector<Command> add_commands(CLI::App& app);

// Options that several commands have.
void add_filters(CLI::App& command, Filters& filters, bool types);
void add_colour(CLI::App& command, ColourMode& colour);

/// Prints a usage error and returns its exit code.
int usage_error(const std::string& message);
/// The message for words that the parser did not accept, with the most similar command or option.
std::string unknown_word_message(const CLI::App& app, const std::vector<std::string>& words);

extern const char* const filter_help;

}  // namespace earshot::cli
