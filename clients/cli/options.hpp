// The command line as CLI11 knows it: one function a command says its options and what runs it. Help,
// completions and the manual are held together by it.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "cli/commands.hpp"
#include "common/common_options.hpp"

namespace earshot::cli {

using namespace common;

/// A command and what runs it once the words were parsed; the program's exit code.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

Command add_ls(CLI::App& app);
Command add_status(CLI::App& app);
Command add_tail(CLI::App& app);
Command add_show(CLI::App& app);
Command add_replay(CLI::App& app);
Command add_open(CLI::App& app);
Command add_token(CLI::App& app);
Command add_doctor(CLI::App& app);
/// Hidden: the ids that a shell completes SESSION with.
Command add_sessions(CLI::App& app);

/// All of the above, completions and help; `app` outlives what is returned.
std::vector<Command> add_commands(CLI::App& app);

// What several commands have.
void add_filters(CLI::App& command, Filters& filters, bool types);
void add_colour(CLI::App& command, ColourMode& colour);

/// Says what is wrong with the words, and how to learn more; the exit code.
int misused(const std::string& why);

extern const char* const filter_help;

}  // namespace earshot::cli
