// earshot-notify: tells you when an agent needs you.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "common/common_options.hpp"
#include "common/diagnostics.hpp"
#include "notifier/commands.hpp"
#include "version/version.hpp"

namespace {

using namespace earshot;
using namespace earshot::notifier;

constexpr const char* examples =
    "Without a command it runs: it listens to the daemon and tells by its rules, until it is stopped.\n"
    "\n"
    "  earshot-notify                            with the rules that are built in, on the desktop\n"
    "  earshot-notify check                      are my rules good, and what do they come to?\n"
    "  earshot-notify test permission            what would be sent when an agent wants a permission?\n"
    "  earshot-notify test permission --send     send it\n"
    "  earshot tail --json | grep -m1 turn.finished | earshot-notify test -\n"
    "  earshot-notify why                        what was told lately, and what was not, and why\n"
    "\n"
    "Rules stand in $XDG_CONFIG_HOME/earshot/notify.toml (~/.config/earshot/notify.toml): `man "
    "earshot-notify`.\n"
    "\n"
    "Exit codes: 0 done, or stopped; 1 something cannot be done, or a sink is wrong; 2 usage, or the rules\n"
    "cannot be understood.";

int misused(const std::string& why) {
  common::print_message(common::safe_text(why));
  std::cerr << "`earshot-notify --help` tells what is possible.\n";
  return exit_usage;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  common::set_program_name("earshot-notify");
  Options options;
  CLI::App app("Tells you when a coding agent needs you: on the desktop, on your phone, in a channel.",
               "earshot-notify");
  app.set_version_flag("--version", "earshot-notify " + version_text(), "what build this is");
  app.set_help_flag("-h,--help", "this help");
  app.require_subcommand(0, 1);
  app.footer(examples);
  app.formatter(std::make_shared<common::HelpFormatter>());
  app.get_formatter()->column_width(28);
  const auto add_rules = [&](CLI::App& command) {
    command.add_option("--rules", options.rules, "the rules (default: ~/.config/earshot/notify.toml)")
        ->type_name("FILE");
  };
  const auto add_state = [&](CLI::App& command) {
    command
        .add_option("--state", options.daemon.state,
                    "the daemon's state directory; the notifier's own is STATE/notify")
        ->type_name("DIR");
  };
  const auto add_json = [&](CLI::App& command, const char* what) {
    command.add_flag("--json", options.json, what);
  };
  add_rules(app);
  app.add_flag("-v,--verbose", options.verbose, "say on stderr what is decided");
  common::add_connect_options(app, options.daemon);

  CLI::App* const check =
      app.add_subcommand("check", "judge the rules and say in plain words what they come to");
  check->add_option("FILE", options.rules, "the rules (default: ~/.config/earshot/notify.toml)")
      ->type_name("FILE");
  add_json(*check, "one JSON object");

  CLI::App* const test = app.add_subcommand("test", "show what the rules would send");
  test->add_option(
          "EVENT", options.event,
          "an event's type, a wait (permission, question, plan), a file with a frame, or - for stdin")
      ->type_name("EVENT")
      ->required();
  test->add_flag("--send", options.send, "really send it");
  add_rules(*test);
  add_json(*test, "the notices as JSON, one a line");

  CLI::App* const why = app.add_subcommand("why", "the last decisions: what was told, what was not, and why");
  why->add_option("-n,--count", options.count, "how many (default: 30)")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000).description(""));
  add_state(*why);
  add_json(*why, "one JSON object a line");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    return misused(error.what());
  } catch (const std::out_of_range&) {  // CLI11 2.1 lets it out: a flag was given a number beyond 64 bits
    return misused("a flag was given a value that it cannot have: write it alone");
  }
  if (check->parsed()) return check_command(options);
  if (test->parsed()) return test_command(options);
  if (why->parsed()) return why_command(options);
  return run_command(options);
}
