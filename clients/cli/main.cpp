// earshot: what coding agents are doing, in a terminal.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <stdexcept>

#include "cli/options.hpp"

int main(int argc, char** argv) {
  using namespace earshot::cli;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is seen where we write
  CLI::App app("", "earshot");
  const std::vector<Command> commands = add_commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ExtrasError& error) {
    const bool is_command = app.get_subcommands().empty() && argv[1][0] != '-';
    return misused(is_command ? "there is no command `" + std::string(argv[1]) + "`" : error.what());
  } catch (const CLI::ParseError& error) {
    return misused(error.what());
  } catch (const std::out_of_range&) {  // CLI11 2.1 lets it out: a flag was given a number beyond 64 bits
    return misused("a flag was given a value that it cannot have: write it alone");
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  std::cout << app.help();
  return exit_ok;
}
