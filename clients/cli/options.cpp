// The whole command line, and what its commands have in common.
#include "cli/options.hpp"

#include <iostream>
#include <map>
#include <memory>

#include "cli/completions.hpp"
#include "version/version.hpp"

namespace earshot::cli {
namespace {

constexpr const char* examples =
    "Examples:\n"
    "  earshot ls                             the sessions, those that wait for you first\n"
    "  earshot status --follow                one line for a status bar, at each change\n"
    "  earshot tail                           what happens, as it happens\n"
    "  earshot tail --since 30m --project api what happened in the last half hour, too\n"
    "  earshot show last                      what the last session did, turn by turn\n"
    "  earshot tail --json | jq .type         every frame, one a line\n"
    "  earshot replay ~/.claude --stats       what is in all transcripts; no daemon needed\n"
    "  earshot doctor                         when something does not work\n"
    "\n"
    "Exit codes: 0 done, or stopped by ^C; 1 the daemon or a file could not be reached or read; 2 usage.\n"
    "`earshot COMMAND --help` tells more, `man earshot` all.";

Command add_completions(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completions", "what a shell needs to complete these commands");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "which shell")
      ->type_name("bash|zsh|fish")
      ->required()
      ->transform(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  command->footer(
      "To have them now:\n"
      "  source <(earshot completions bash)\n"
      "To have them always:\n"
      "  earshot completions bash > ~/.local/share/bash-completion/completions/earshot\n"
      "  earshot completions zsh > ~/.zfunc/_earshot      (with fpath+=~/.zfunc before compinit in "
      "~/.zshrc)\n"
      "  earshot completions fish > ~/.config/fish/completions/earshot.fish");
  return {command, [&app, shell] {
            std::cout << completions(app, *shell);
            return exit_ok;
          }};
}

Command add_help(CLI::App& app) {
  CLI::App* command = app.add_subcommand("help", "this help, or that of a command");
  const auto topic = std::make_shared<std::string>();
  command->add_option("COMMAND", *topic, "the command")->type_name("COMMAND");
  return {command, [&app, topic] {
            if (topic->empty()) {
              std::cout << app.help();
              return exit_ok;
            }
            for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
              if (each->get_name() != *topic) continue;
              std::cout << each->help("earshot");
              return exit_ok;
            }
            print_message("there is no command `" + safe_text(*topic) + "`; `earshot --help` lists them");
            return exit_usage;
          }};
}

}  // namespace

const char* const filter_help =
    "Filters may be repeated; * and ? are wildcards. A plain word is a name: `--project api` is */api,\n"
    "`--session 2eaa` the session that begins so, `--type turn` all of turn.*";

int misused(const std::string& why) {
  print_message(safe_text(why));
  std::cerr << "`earshot --help` tells what is possible.\n";
  return exit_usage;
}

void add_filters(CLI::App& command, Filters& filters, bool types) {
  // One value each time, so that what follows is never swallowed.
  const auto add = [&](const char* name, std::vector<std::string>& values, const char* what,
                       const char* type) {
    command.add_option(name, values, what)->type_name(type)->group("Filters")->allow_extra_args(false);
  };
  add("--project", filters.project, "only sessions of this project's directory", "GLOB");
  add("--session", filters.session, "only this session", "SESSION");
  add("--host", filters.host, "only sessions on this host", "GLOB");
  if (types) add("--type", filters.type, "only events of this type", "GLOB");
}

void add_colour(CLI::App& command, ColourMode& colour) {
  const std::map<std::string, ColourMode> wishes{
      {"auto", ColourMode::automatic}, {"always", ColourMode::always}, {"never", ColourMode::never}};
  command.add_option("--colour,--color", colour, "auto (default) heeds NO_COLOR")
      ->type_name("auto|always|never")
      ->transform(CLI::CheckedTransformer(wishes).description(""));
}

std::vector<Command> add_commands(CLI::App& app) {
  app.description(
      "Listens to coding agents at work: what they do now, what they did, and who waits for you.\n"
      "All but `replay` ask the daemon, earshotd; `replay` reads transcripts by itself.");
  app.set_version_flag("--version", "earshot " + version_text(), "the version, and what build it is");
  app.set_help_flag("-h,--help", "this help");
  app.require_subcommand(0, 1);
  app.footer(examples);
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(28);
  return {add_ls(app),          add_status(app),   add_tail(app),  add_show(app),
          add_replay(app),      add_open(app),     add_token(app), add_doctor(app),
          add_completions(app), add_sessions(app), add_help(app)};
}

}  // namespace earshot::cli
