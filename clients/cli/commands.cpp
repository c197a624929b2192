#include "cli/commands.hpp"

#include <iostream>
#include <map>

#include "base/text.hpp"
#include "common/format.hpp"
#include "version/version.hpp"

namespace earshot::cli {
namespace {

constexpr const char* examples =
    "Examples:\n"
    "  earshot ls                               list sessions; those that wait for you come first\n"
    "  earshot tail                             follow all sessions live\n"
    "  earshot tail --since 30m --project api   the last half hour of a project, then live\n"
    "  earshot show                             read the latest session, turn by turn\n"
    "  earshot status                           check the daemon\n"
    "  earshot statusline --follow              a line for a status bar, updated at each change\n"
    "  earshot tail --json | jq .type           every frame as JSON, one per line\n"
    "  earshot replay ~/.claude --stats         statistics of all transcripts; needs no daemon\n"
    "  earshot doctor                           diagnose problems\n"
    "\n"
    "Exit codes: 0 success, or stopped by ^C; 1 the daemon or a file cannot be reached or read; 2 usage "
    "error.\n"
    "Run `earshot COMMAND --help` for the options of a command, `man earshot` for the manual.";

std::string unknown_command_message(const CLI::App& app, const std::string& name) {
  std::vector<std::string_view> names;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  const std::string_view nearest = suggest_word(name, names);
  return "unknown command `" + name + "`" +
         (nearest.empty() ? std::string() : "; did you mean `" + std::string(nearest) + "`?");
}

Run add_help(CLI::App& command) {
  const auto topic = std::make_shared<std::string>();
  command.add_option("COMMAND", *topic, "the command")->type_name("COMMAND");
  return [&app = *command.get_parent(), topic] {
    const CLI::App* const about = topic->empty() ? &app : find_command(app, *topic);
    if (about == nullptr) return usage_error(unknown_command_message(app, *topic));
    std::cout << (about == &app ? app.help() : about->help("earshot"));
    return exit_ok;
  };
}

struct Entry {
  const char *name, *description;
  Run (*add)(CLI::App& command);
};
constexpr Entry entries[] = {
    {"ls", "list sessions and their status; waiting ones come first", add_ls},
    {"tail", "follow what agents do, live, until ^C", add_tail},
    {"show", "read a session turn by turn, from its beginning", add_show},
    {"status", "show whether the daemon is all right, and what it monitors", add_status},
    {"statusline", "print one line for a status bar: how many sessions wait and work", add_statusline},
    {"replay", "print the events of transcripts; needs no daemon", add_replay},
    {"open", "open the dashboard in a browser, signed in", add_open},
    {"token", "print the token that other programs need to connect through TCP", add_token},
    {"doctor", "find problems and explain how to solve them", add_doctor},
    {"completions", "print the completion script of a shell", add_completions},
    {"help", "show this help, or the help of a command", add_help},
};

}  // namespace

const char* const filter_help =
    "Filters can be repeated; * and ? are wildcards. A plain word is a name: `--project api` matches */api,\n"
    "`--session 2eaa` the session whose id begins with it, `--type turn` all of turn.*";

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (each->get_name() == name) return each;
  }
  return nullptr;
}

int usage_error(const std::string& message) {
  print_message(safe_text(message));
  std::cerr << "Run `earshot --help` for a list of commands, `earshot COMMAND --help` for their options.\n";
  return exit_usage;
}

std::string unknown_word_message(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return "unknown argument";
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  const std::string word = words.front().substr(0, words.front().find('='));
  if (!word.starts_with('-')) {
    return parsed.empty() ? unknown_command_message(app, word) : "unexpected argument `" + word + "`";
  }
  const CLI::App& owner = parsed.empty() ? app : *parsed.front();
  std::vector<std::string> names;
  for (const CLI::Option* option : owner.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view nearest = suggest_word(word, known);
  std::string message = "unknown option `" + word + "`";
  if (!parsed.empty()) message += " of `earshot " + owner.get_name() + "`";
  return nearest.empty() ? message : message + "; did you mean `" + std::string(nearest) + "`?";
}

void add_filters(CLI::App& command, Filters& filters, bool types) {
  // One value per option, so that a following argument is not consumed.
  const auto add = [&](const char* name, std::vector<std::string>& values, const char* description,
                       const char* type) {
    command.add_option(name, values, description)->type_name(type)->group("Filters")->allow_extra_args(false);
  };
  add("--project", filters.project, "only sessions in this project directory", "GLOB");
  if (command.get_option_no_throw("SESSION") == nullptr)
    add("--session", filters.session, "only this session", "SESSION");
  add("--program", filters.program, "only sessions of this agent program, such as claude-code", "GLOB");
  add("--host", filters.host, "only sessions on this host", "GLOB");
  if (types) add("--type", filters.type, "only events of this type", "GLOB");
}

void add_colour(CLI::App& command, ColourMode& colour) {
  const std::map<std::string, ColourMode> modes{
      {"auto", ColourMode::automatic}, {"always", ColourMode::always}, {"never", ColourMode::never}};
  command.add_option("--colour,--color", colour, "use colours; auto (the default) respects NO_COLOR")
      ->type_name("auto|always|never")
      ->transform(CLI::CheckedTransformer(modes).description(""));
}

std::vector<Command> add_commands(CLI::App& app) {
  app.description(
      "Monitors coding agents: what they are doing now, what they did, and which ones wait for you.\n"
      "All commands except `replay` connect to the daemon, earshotd; `replay` reads transcripts directly.");
  app.set_version_flag("--version", "earshot " + version_text(), "show the version and the build");
  app.set_help_flag("-h,--help", "show this help");
  app.require_subcommand(0, 1);
  app.footer(examples);
  set_help_format(app);
  std::vector<Command> commands;
  for (const Entry& each : entries) {
    CLI::App* const command = app.add_subcommand(each.name, each.description);
    commands.push_back({command, each.add(*command)});
  }
  return commands;
}

int with_daemon(const ConnectOptions& options, const std::function<int(const DaemonAddresses&)>& run) {
  const auto found = find_daemon(options);
  if (const auto* addresses = std::get_if<DaemonAddresses>(&found)) return run(*addresses);
  print_message(safe_text(std::get<std::string>(found)));
  return options.names_address() ? exit_usage : exit_failed;
}

int with_daemon_until_done(const ConnectOptions& options,
                           const std::function<int(const DaemonAddresses&)>& attempt) {
  int result = try_again;
  while (result == try_again) result = with_daemon(options, attempt);
  return result;
}

void print_daemon_error(const Fields& error) {
  print_message("the daemon reported an error: " + safe_text(error.text("message")) + " (" +
                safe_text(error.text("code")) + ")");
}

int print_http_error(const HttpResult& result, const DaemonAddresses& addresses) {
  print_message(result.response.status == 404
                    ? "the daemon is older than this program: restart it with the installed version"
                    : format_connect_error(result.connect, addresses));
  return exit_failed;
}

int finish(Output& out) {
  out.flush();
  if (out.error().empty()) return exit_ok;
  print_message("cannot write the output: " + out.error());
  return exit_failed;
}

std::string json_line(std::string_view json, bool for_terminal) {
  return (for_terminal ? to_display_json(json) : std::string(json)) + "\n";
}

}  // namespace earshot::cli
