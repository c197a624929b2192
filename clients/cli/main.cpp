// earshot: the command-line client of earshotd.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <stdexcept>

#include "cli/commands.hpp"

int main(int argc, char** argv) {
  using namespace earshot::cli;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is detected when writing
  CLI::App app("", "earshot");
  const std::vector<Command> commands = add_commands(app);
  if (argc > 1 &&
      std::string_view(argv[1]) == "complete") {  // not a command for users: its words are not options
    std::cout << complete_words(app, {argv + 2, argv + argc});
    return exit_ok;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ExtrasError& error) {
    return usage_error(unknown_word_message(app, app.remaining(true)));
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  } catch (const std::out_of_range&) {  // thrown by CLI11 2.1 for a flag with a number beyond 64 bits
    return usage_error("a flag has an invalid value; flags take none");
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  std::cout << app.help();
  return exit_ok;
}
