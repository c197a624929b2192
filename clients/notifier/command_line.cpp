// The options, help and examples of `earshot-notify`, and its main function.
#include <CLI/CLI.hpp>
#include <csignal>

#include "common/arguments.hpp"
#include "common/completions.hpp"
#include "common/format.hpp"
#include "common/output.hpp"
#include "notifier/commands.hpp"
#include "version/version.hpp"

namespace earshot::notifier {
namespace {

constexpr const char* examples =
    "Without a command it runs until it is stopped: it subscribes to the daemon and sends notices by rules.\n"
    "\n"
    "  earshot-notify                            run with the built-in rules, on the desktop\n"
    "  earshot-notify check                      validate and explain the rules\n"
    "  earshot-notify test permission            show what a permission request would send\n"
    "  earshot-notify test permission --send     send it\n"
    "  earshot tail --json | grep -m1 turn.finished | earshot-notify test -\n"
    "  earshot-notify why                        show recent decisions and deliveries\n"
    "\n"
    "SIGHUP makes it read the rules again.\n"
    "\n"
    "The rules file is $XDG_CONFIG_HOME/earshot/notify.toml (~/.config/earshot/notify.toml): `man "
    "earshot-notify`.\n"
    "\n"
    "Exit codes: 0 success, or stopped; 1 failure, or a broken sink; 2 wrong usage, or errors in the\n"
    "rules.";

struct Commands {
  CLI::App *check = nullptr, *test = nullptr, *why = nullptr, *completions = nullptr;
  std::function<int()> print_completions;
};

Commands add_commands(CLI::App& app, Options& options) {
  app.set_version_flag("--version", "earshot-notify " + version_text(), "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(0, 1);
  app.footer(examples);
  common::set_help_format(app);
  const auto add_rules = [&](CLI::App& command) {
    command.add_option("--rules", options.rules, "the rules file (default: ~/.config/earshot/notify.toml)")
        ->type_name("FILE");
  };
  const auto add_json = [&](CLI::App& command, const char* what) {
    command.add_flag("--json", options.json, what);
  };
  add_rules(app);
  app.add_flag("-v,--verbose", options.verbose, "log decisions to stderr");
  common::add_connect_options(app, options.daemon);

  Commands commands;
  commands.check = app.add_subcommand("check", "validate and explain the rules");
  commands.check->add_option("FILE", options.rules, "the rules file (default: ~/.config/earshot/notify.toml)")
      ->type_name("FILE");
  add_json(*commands.check, "one JSON object");

  commands.test = app.add_subcommand("test", "show what the rules would send");
  commands.test
      ->add_option(
          "EVENT", options.event,
          "an event type, a reason (permission, question, plan, auth), a file with a frame, or - for stdin")
      ->type_name("EVENT")
      ->required();
  commands.test->add_flag("--send", options.send, "also send it");
  add_rules(*commands.test);
  add_json(*commands.test, "the notices as JSON, one a line");

  commands.why =
      app.add_subcommand("why", "show recent decisions and deliveries, and the state of the sinks");
  commands.why->add_option("-n,--count", options.count, "the number of decisions (default: 30)")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000).description(""));
  commands.why
      ->add_option("--state", options.daemon.state,
                   "the daemon's state directory; the notifier's own is STATE/notify")
      ->type_name("DIR");
  add_json(*commands.why, "one JSON object a line; the last is the state of the sinks");

  commands.completions = app.add_subcommand("completions", "print the completion script of a shell");
  commands.print_completions = common::add_completions(*commands.completions, "earshot-notify");
  for (CLI::App* command : {commands.check, commands.test, commands.why, commands.completions})
    command->group("Commands");
  commands.check->footer(
      "Exit codes: 0 the rules are good; 1 a sink is broken; 2 wrong usage, or errors in the rules.");
  commands.test->footer(
      "Examples:\n"
      "  earshot-notify test permission            show what a permission request would send\n"
      "  earshot-notify test permission --send     send it\n"
      "  earshot tail --json | grep -m1 turn.finished | earshot-notify test -\n"
      "\n"
      "Exit codes: 0 success, also if no rule matches; 1 it could not be sent; 2 wrong usage, or errors in "
      "the\n"
      "rules.");
  commands.why->footer("Exit codes: 0 success; 1 no decisions yet, or a broken sink; 2 wrong usage.");
  return commands;
}

}  // namespace

int run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  common::set_program_name("earshot-notify");
  Options options;
  CLI::App app("Notifies you when a coding agent needs you: on the desktop, on your phone, in a channel.",
               "earshot-notify");
  const Commands commands = add_commands(app, options);
  if (argc > 1 && std::string_view(argv[1]) == "complete") {  // called by the completion scripts
    return common::write_stdout(common::complete_words(
        app, {argv + 2, argv + argc},
        [](const auto& value, const auto&) { return value.type == "EVENT" ? sample_words() : ""; }));
  }
  if (const auto exit_code = common::parse_arguments(app, argc, argv)) return *exit_code;
  if (commands.check->parsed()) return check_command(options);
  if (commands.test->parsed()) return test_command(options);
  if (commands.why->parsed()) return why_command(options);
  if (commands.completions->parsed()) return commands.print_completions();
  return run_command(options);
}

}  // namespace earshot::notifier
