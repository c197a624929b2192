// earshot: what coding agents are doing, in a terminal.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>

#include "cli/commands.hpp"

namespace {

using namespace earshot;
using namespace earshot::cli;

constexpr const char* about =
    "Listens to coding agents at work: what they do now, what they did, and who waits for you.\n"
    "`ls` and `tail` ask the daemon (earshotd); `replay` reads transcripts by itself.";

constexpr const char* examples =
    "Examples:\n"
    "  earshot ls                             the sessions, those that wait for you first\n"
    "  earshot tail                           what happens, as it happens\n"
    "  earshot tail --project api --type turn\n"
    "  earshot tail --json | jq .type         every frame, one a line\n"
    "  earshot replay ~/.claude --stats       what is in all transcripts\n"
    "\n"
    "Exit codes: 0 done, or stopped by ^C; 1 the daemon or a file could not be reached or read; 2 usage.\n"
    "`earshot COMMAND --help` tells more.";

constexpr const char* filter_help =
    "Filters may be repeated; * and ? are wildcards. A plain word is a name: `--project api` is */api,\n"
    "`--session 2eaa` the session that begins so, `--type turn` all of turn.*";

void add_filters(CLI::App& command, Filters& filters, bool types) {
  command.add_option("--project", filters.project, "only sessions of this project's directory")
      ->type_name("GLOB")
      ->group("Filters");
  command.add_option("--session", filters.session, "only this session")->type_name("GLOB")->group("Filters");
  command.add_option("--host", filters.host, "only sessions on this host")
      ->type_name("GLOB")
      ->group("Filters");
  if (types)
    command.add_option("--type", filters.type, "only events of this type")
        ->type_name("GLOB")
        ->group("Filters");
  // One value each time, so that what follows is never swallowed.
  for (const char* name : {"--project", "--session", "--host"})
    command.get_option(name)->allow_extra_args(false);
  if (types) command.get_option("--type")->allow_extra_args(false);
}

void add_daemon(CLI::App& command, DaemonWish& daemon) {
  command.add_option("--connect", daemon.connect, "the daemon's address, ws://HOST:PORT/v1/ws")
      ->type_name("URL")
      ->group("Daemon");
  command.add_option("--token-file", daemon.token_file, "its token (default: STATE/token)")
      ->type_name("FILE")
      ->group("Daemon");
  command
      .add_option("--state", daemon.state,
                  "its state directory (default: $XDG_STATE_HOME/earshot, ~/.local/state/earshot)")
      ->type_name("DIR")
      ->group("Daemon");
}

void add_colour(CLI::App& command, ColourWish& colour) {
  const std::map<std::string, ColourWish> wishes{
      {"auto", ColourWish::automatic}, {"always", ColourWish::always}, {"never", ColourWish::never}};
  command.add_option("--color", colour, "auto (default; heeds NO_COLOR), always or never")
      ->type_name("WHEN")
      ->transform(CLI::CheckedTransformer(wishes).description(""));
}

CLI::App* add_list(CLI::App& app, ListOptions& options) {
  CLI::App* command = app.add_subcommand("ls", "the sessions: who waits for you, who works, who rests");
  command->add_flag("--all", options.all, "sessions that are no longer live, too");
  command->add_flag("--json", options.json, "one JSON array of session frames");
  add_colour(*command, options.colour);
  add_filters(*command, options.filters, false);
  add_daemon(*command, options.daemon);
  command->footer(std::string(filter_help) +
                  "\n\nCONTEXT / TOTAL: tokens in the context now / read and written anew so far (cache "
                  "reads left out).\n\n"
                  "Examples:\n  earshot ls --project 'api*'\n  earshot ls --json | jq -r '.[] | "
                  "select(.status.state == \"waiting\") | .session'");
  return command;
}

// Flags of `tail` as given.
struct TailWords {
  bool json = false, pretty = false, no_snapshot = false;
};

CLI::App* add_tail(CLI::App& app, TailOptions& options, TailWords& words) {
  CLI::App* command = app.add_subcommand("tail", "follows what agents do, live, until ^C");
  command->add_flag("--json", words.json, "every frame as JSON, one a line (default unless on a terminal)");
  command->add_flag("--pretty", words.pretty, "a line for people each (default on a terminal)");
  command->add_flag("-v,--verbose", options.verbose,
                    "also thinking, token counts, what subagents say, checkpoints");
  command->add_flag("--no-snapshot", words.no_snapshot, "do not begin with what is going on now");
  add_colour(*command, options.colour);
  add_filters(*command, options.filters, true);
  add_daemon(*command, options.daemon);
  command->footer(std::string(filter_help) +
                  "\n\nExamples:\n  earshot tail --project api\n  earshot tail --type turn --type agent\n"
                  "  earshot tail --json --type 'tool.*' | jq -r '.tool'\n\n"
                  "When the daemon goes away, tail waits and comes back.\n"
                  "Exit codes: 0 stopped by ^C or SIGTERM, or nobody reads; 1 no daemon; 2 usage.");
  return command;
}

CLI::App* add_replay(CLI::App& app, ReplayOptions& options) {
  CLI::App* command = app.add_subcommand("replay", "the events of transcripts, as NDJSON; no daemon needed");
  command->add_option("FILE", options.files, "transcripts; a directory is searched for them; - is stdin")
      ->required();
  command->add_flag("--pretty", options.pretty, "a line for people each");
  command->add_flag("-v,--verbose", options.verbose,
                    "with --pretty: also thinking, token counts, what subagents say");
  const std::map<std::string, View> views{{"full", View::full}, {"meta", View::meta}};
  command->add_option("--view", options.view, "full (default), or meta: no text, no inputs, no outputs")
      ->type_name("VIEW")
      ->transform(CLI::CheckedTransformer(views).description(""));
  command->add_flag_callback(
      "--no-redact", [&options] { options.redact = false; }, "show what looks like a secret, too");
  command->add_flag("--stats", options.stats, "counts instead of events: every line accounted for");
  command->add_flag("--events", options.events, "with --stats: the events, too");
  command->add_flag("--json", options.json, "with --stats: one JSON object");
  command
      ->add_option("--agent", options.agent, "the subagent whose file it is (default: of agent-<ID>.jsonl)")
      ->type_name("ID");
  command->add_option("--stream", options.stream, "the stream's name (default: from the path)")
      ->type_name("NAME");
  command->add_option("--host", options.host, "the host's name (default: this one's)")->type_name("NAME");
  command
      ->add_option("--state", options.state,
                   "the daemon's state directory: cursors are then the daemon's own")
      ->type_name("DIR");
  add_colour(*command, options.colour);
  command->footer(
      "Examples:\n  earshot replay session.jsonl | jq -r .type | sort | uniq -c\n"
      "  earshot replay --pretty session.jsonl | less -R\n  zcat old.jsonl.gz | earshot replay -\n"
      "  earshot replay --stats ~/.claude/projects\n\nExit codes: 0 done; 1 a file could not be read; 2 "
      "usage.");
  return command;
}

// Null: the words go together.
const char* contradiction(const TailWords& tail, const ReplayOptions& replay) {
  if (tail.json && tail.pretty) return "--json and --pretty exclude each other";
  if ((replay.events || replay.json) && !replay.stats) return "--events and --json go with --stats";
  if (replay.verbose && !replay.pretty) return "--verbose goes with --pretty";
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is seen where we write
  CLI::App app(about, "earshot");
  app.set_version_flag("--version", "earshot " EARSHOT_VERSION, "the version");
  app.set_help_flag("-h,--help", "this help");
  app.require_subcommand(0, 1);
  app.footer(examples);
  app.get_formatter()->column_width(28);

  ListOptions list;
  TailOptions tail;
  ReplayOptions replay;
  const CLI::App* list_app = add_list(app, list);
  TailWords words;
  const CLI::App* tail_app = add_tail(app, tail, words);
  const CLI::App* replay_app = add_replay(app, replay);
  std::string topic;
  CLI::App* help_app = app.add_subcommand("help", "this help, or that of a command");
  help_app->add_option("COMMAND", topic, "the command");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ExtrasError& error) {
    const bool is_command = app.get_subcommands().empty() && argv[1][0] != '-';
    complain(is_command ? "there is no command `" + for_stderr(argv[1]) + "`" : for_stderr(error.what()));
    std::cerr << "`earshot --help` tells what is possible.\n";
    return exit_usage;
  } catch (const CLI::ParseError& error) {
    complain(for_stderr(error.what()));
    std::cerr << "`earshot --help` tells what is possible.\n";
    return exit_usage;
  }
  if (const char* why = contradiction(words, replay)) {
    complain(why);
    return exit_usage;
  }
  if (words.json) tail.format = Format::json;
  if (words.pretty) tail.format = Format::pretty;
  tail.snapshot = !words.no_snapshot;
  if (list_app->parsed()) return list_command(list);
  if (tail_app->parsed()) return tail_command(tail);
  if (replay_app->parsed()) return replay_command(replay);
  if (topic.empty()) {
    std::cout << app.help();
    return exit_ok;
  }
  for (const CLI::App* each : {list_app, tail_app, replay_app}) {
    if (each->get_name() != topic) continue;
    std::cout << each->help("earshot");
    return exit_ok;
  }
  complain("there is no command `" + for_stderr(topic) + "`; `earshot --help` lists them");
  return exit_usage;
}
