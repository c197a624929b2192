// The options, help and examples of each command, and the program's main function.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <map>
#include <type_traits>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/tail.hpp"
#include "common/arguments.hpp"
#include "common/completions.hpp"
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
    "  earshot search 'rate limit'              find it in all sessions, old ones too\n"
    "  earshot focus                            go to the terminal of the session that has waited longest\n"
    "  earshot status                           check the daemon\n"
    "  earshot statusline --follow              a line for a status bar, updated at each change\n"
    "  earshot tail --json | jq .type           every frame as JSON, one per line\n"
    "  earshot usage --since 7d --by project    tokens and cost of the last week; needs no daemon\n"
    "  earshot replay ~/.claude --stats         statistics of all transcripts; needs no daemon\n"
    "  earshot doctor                           diagnose problems\n"
    "\n"
    "Exit codes: 0 success, or stopped by ^C; 1 the daemon or a file cannot be reached or read; 2 usage "
    "error. `search`, `status` and `focus` have others: see their help.\n"
    "Run `earshot COMMAND --help` for the options of a command, `man earshot` for the manual.";

constexpr const char* filter_help =
    "Filters can be repeated; * and ? are wildcards. A plain word is a name: `--project api` matches */api,\n"
    "`--session 2eaa` the session whose id begins with it, `--type turn` all of turn.*";

/// `types`: also --type. A command with the argument SESSION has no --session.
void add_filters(CLI::App& command, Filters& filters, bool types) {
  // One value per option, so that a following argument is not consumed.
  const auto add = [&](const char* name, std::vector<std::string>& values, const char* description,
                       const char* type) {
    command.add_option(name, values, description)->type_name(type)->group("Filters")->allow_extra_args(false);
  };
  add("--project", filters.project, "only sessions in this project directory", "GLOB");
  if (command.get_option_no_throw("SESSION") == nullptr)
    add("--session", filters.session, "only this session", "SESSION");
  add("--program", filters.program, "only sessions of this agent program, such as codex", "GLOB");
  add("--host", filters.host, "only sessions on this host", "GLOB");
  if (types) add("--type", filters.type, "only events of this type", "GLOB");
}

CLI::Validator number_up_to(std::uint64_t most) {
  return CLI::Validator(
      [most](const std::string& word) {
        std::uint64_t number = 0;
        const char* const end = word.data() + word.size();
        const bool is_number = std::from_chars(word.data(), end, number) == std::from_chars_result{end, {}};
        return is_number && number >= 1 && number <= most
                   ? std::string()
                   : "`" + word + "` is not a number from 1 to " + format_grouped(most);
      },
      "");
}

/// Accepts these words only. CLI::CheckedTransformer would also accept, and name, the numbers of the values.
template <class Value>
CLI::Validator one_of(const std::map<std::string, Value>& values) {
  return CLI::Validator(
      [values](std::string& word) -> std::string {
        const auto found = values.find(word);
        if (found != values.end()) {
          word = std::to_string(static_cast<int>(found->second));
          return {};
        }
        std::vector<std::string> names;
        for (const auto& [name, value] : values) names.push_back(name);
        return one_of_words(std::move(names))(word);
      },
      "");
}

void add_colour(CLI::App& command, ColourMode& colour) {
  const std::map<std::string, ColourMode> modes{
      {"auto", ColourMode::automatic}, {"always", ColourMode::always}, {"never", ColourMode::never}};
  command.add_option("--colour,--color", colour, "use colours; auto (the default) respects NO_COLOR")
      ->type_name("auto|always|never")
      ->transform(one_of(modes));
}

void add_since(CLI::App& command, std::optional<std::int64_t>& since_ms, const std::string& description) {
  const auto parse = [&since_ms](const std::string& when) {
    since_ms = parse_since(when, now_ms());
    if (!since_ms)
      throw CLI::ValidationError("--since " + when, "not a time; write 10m, 2h, 14:03 or '2026-11-24 14:03'");
    if (*since_ms > now_ms()) print_message("--since " + safe_text(when) + " is in the future");
  };
  command
      .add_option_function<std::string>(
          "--since", parse,
          description + ": 90s, 10m, 2h, 3d ago, or a time such as 14:03 or '2026-11-24 14:03'")
      ->type_name("WHEN");
}

/// What the help of a command shows, and its flags.
template <class Options>
struct CommandText {
  struct Flag {
    const char* names;
    bool Options::*value;
    const char* description;
  };
  std::vector<Flag> flags;
  const char* footer;
};

/// `run` takes the options and, if the command needs the daemon, its addresses. `define` adds other options
/// than flags. Those for colours, filters and the connection follow if `Options` has members for them.
template <class Options, class RunWith>
Run define_command(CLI::App& command, const CommandText<Options>& text, RunWith run,
                   const std::function<void(CLI::App&, Options&)>& define = {}) {
  const auto options = std::make_shared<Options>();
  for (const auto& flag : text.flags) command.add_flag(flag.names, (*options).*flag.value, flag.description);
  if (define) define(command, *options);
  std::string footer = text.footer;
  if constexpr (requires { options->colour; }) add_colour(command, options->colour);
  if constexpr (requires { options->filters; }) {
    add_filters(command, options->filters, std::is_same_v<Options, TailOptions>);
    footer = std::string(filter_help) + "\n\n" + footer;
  }
  if constexpr (requires { options->daemon; }) add_connect_options(command, options->daemon);
  command.footer(footer);
  if constexpr (std::is_invocable_v<RunWith, const Options&>) {
    return [options, run] { return run(*options); };
  } else {
    return [options, run] {
      return with_daemon(options->daemon, [&](const auto& addresses) { return run(*options, addresses); });
    };
  }
}

const CommandText<ListOptions> ls_text = {
    {{"--all", &ListOptions::all, "also list sessions that are no longer live"},
     {"--json", &ListOptions::json, "print a JSON array of session frames"}},
    R"(CONTEXT: the share of the context's size that is used, or tokens if the size is unknown. COST: ~ marks an
estimate from a table of prices. WAITED / WORKED: how long the session waited for you, and how long it worked.
TOKENS: read and written so far, without cache reads. unseen: it finished, and you have not looked at it since
with `show`, `focus` or on its page. failed: its last turn failed. Below the table: how much of the accounts'
limits is used, and until when.
In a narrow terminal the less important columns are left out.

Examples:
  earshot ls --project 'api*'
  earshot ls --json | jq -r '.[] | select(.unseen) | .session')"};
Run add_ls(CLI::App& command) { return define_command(command, ls_text, list_command); }

const CommandText<TailOptions> tail_text = {
    {{"-v,--verbose", &TailOptions::verbose,
      "also show thinking, token counts, messages of subagents, checkpoints; of the sessions at the start "
      "also the context, the cost (~ marks an estimate) and how long they waited, worked and were idle"},
     {"--json", &TailOptions::json, "print every frame as JSON, one per line"}},
    R"(Examples:
  earshot tail --project api
  earshot tail --since 2h --type turn --type agent
  earshot tail --json --type 'tool.*' | jq -r '.tool // empty'

If the daemon is not running, tail waits for it; after a lost connection it prints the missed events.
Exit codes: 0 stopped by ^C or SIGTERM, or the output was closed; 1 the daemon refused the connection;
2 usage error.)"};
Run add_tail(CLI::App& app) {
  return define_command<TailOptions>(
      app, tail_text, tail_command, [](CLI::App& command, TailOptions& options) {
        add_since(command, options.since_ms, "start with the events since then");
        command
            .add_flag_callback(
                "--pretty", [] {}, "print readable lines (default)")
            ->excludes(command.get_option("--json"));
        command.add_flag_callback(
            "--no-snapshot", [&options] { options.snapshot = false; },
            "do not start with the current sessions");
      });
}

const CommandText<ShowOptions> show_text = {
    {{"-v,--verbose", &ShowOptions::verbose, "also show thinking, tool outputs, token counts, checkpoints"},
     {"--json", &ShowOptions::json, "print the events as JSON, one per line"},
     {"--no-pager", &ShowOptions::no_pager, "print directly instead of using a pager"}},
    R"(On a terminal the output is shown in $PAGER (default: less -FRX). The cost is marked by ~ if it is an estimate.
Except with --json the session then counts as seen.

Examples:
  earshot show
  earshot show last --project api --turn 3 -v
  earshot show 2eaa --json | jq -r 'select(.type == "tool.invoked") | .tool'

To read a transcript without a daemon:  earshot replay FILE --pretty
Exit codes: 0 success; 1 no daemon, or no such session; 2 usage error, or several sessions match.)"};
Run add_show(CLI::App& app) {
  return define_command<
      ShowOptions>(app, show_text, show_command, [](CLI::App& command, ShowOptions& options) {
    command
        .add_option(
            "SESSION", options.session,
            "its id as shown by `ls`, or the beginning of it; default: the session with the latest activity")
        ->type_name("SESSION");
    command.add_option("--turn", options.turn, "only this turn")
        ->type_name("N")
        ->check(number_up_to(1'000'000'000));
  });
}

const CommandText<SearchOptions> search_text = {
    {{"--json", &SearchOptions::json, "print a JSON array of results as the protocol defines them"}},
    R"(Searches titles, prompts, answers and the inputs of tools; newest first. All words must occur in the same text;
a word also matches the beginning of a longer one. "two words" is a phrase, and -word excludes; put -- before a query
that begins with one. Upper and lower case are equal.

Examples:
  earshot search rate limit
  earshot search '"connection refused" -test' --project api --since 7d
  earshot search --kind prompt migration

Exit codes, as those of grep: 0 something was found; 1 nothing; 2 no daemon, search is off, or a usage error.)"};
Run add_search(CLI::App& app) {
  return define_command<SearchOptions>(
      app, search_text, search_command, [](CLI::App& command, SearchOptions& options) {
        command.add_option("QUERY", options.words, "words to search for")->type_name("QUERY")->required();
        add_since(command, options.since_ms, "only what was said since then");
        command.add_option("--kind", options.kinds, "only prompt, answer, tool (its input) or title")
            ->type_name("prompt|answer|tool|title")
            ->check(one_of_words({"prompt", "answer", "tool", "title"}))
            ->allow_extra_args(false);
        command.add_option("--limit", options.limit, "at most so many results (default: 20)")
            ->type_name("N")
            ->check(number_up_to(10'000));
      });
}

const CommandText<FocusOptions> focus_text = {
    {{"--json", &FocusOptions::json, "print one JSON object"}},
    R"(Selects the pane in tmux, or the window in GNU screen, kitty or WezTerm by their remote control, and raises the
terminal's window on an X display. Prints what it did, or which program and terminal hold the session and what
to do. The session then counts as seen.

Examples:
  earshot focus
  earshot focus last --project api
  tmux bind-key e run-shell 'earshot focus'

Exit codes: 0 the terminal is in front; 1 no daemon, no such session, or none that waits; 2 usage error, or
several sessions match; 4 no process of this machine runs the session; 5 its terminal cannot be brought to the
front.)"};
Run add_focus(CLI::App& app) {
  return define_command<FocusOptions>(
      app, focus_text, focus_command, [](CLI::App& command, FocusOptions& options) {
        command
            .add_option(
                "SESSION", options.session,
                "its id as shown by `ls`, or the beginning of it, or last; default: the session that has "
                "waited for you longest")
            ->type_name("SESSION");
      });
}

const CommandText<ReportOptions> status_text = {{{"--json", &ReportOptions::json, "print one JSON object"}},
                                                R"(Example:
  earshot status > /dev/null || earshot doctor

For a status bar use `earshot statusline`; to list sessions `earshot ls`.
Exit codes: 0 all right; 1 the daemon has problems or refused the request; 2 usage error; 3 no daemon.)"};
Run add_status(CLI::App& command) { return define_command(command, status_text, status_command); }

const CommandText<StatusLineOptions> statusline_text = {
    {{"--follow", &StatusLineOptions::follow,
      "print a new line at each change, until ^C; waits for the daemon if it is not running"},
     {"--limits", &StatusLineOptions::limits, "also show the account limit that is used most: 5h 62% 7d 18%"},
     {"--json", &StatusLineOptions::json,
      "print one JSON object per line, as status bars expect: text, class, tooltip and counts"}},
    R"(Examples:
  earshot statusline
  tmux set -g status-right '#(earshot statusline --follow --limits)'
  earshot statusline --follow --json       for waybar; other bars: RECIPES.md
  earshot statusline --install-hint        for the status line of Claude Code

The line counts the sessions that wait, that work, and that finished unseen; it is empty if there are none.
With --follow and no daemon it is: earshot?
With --from it is the line of one session: its model, context, cost and limits, and which other sessions need
you. It is printed within 50 ms, with or without a daemon, and the exit code is 0.
Exit codes: 0 success, or stopped by ^C; 1 no daemon; 2 usage error.)"};
Run add_statusline(CLI::App& app) {
  return define_command<StatusLineOptions>(
      app, statusline_text, statusline_command, [](CLI::App& command, StatusLineOptions& options) {
        CLI::Option* const from =
            command
                .add_option(
                    "--from", options.from,
                    "run as the status line command of this agent program: reads its JSON on stdin, and "
                    "passes that to the daemon")
                ->type_name("claude-code")
                ->check(one_of_words({"claude-code"}));
        CLI::Option* const hint = command.add_flag(
            "--install-hint", options.install_hint,
            "print what to add to which file of the agent program for that; changes nothing");
        for (const char* name : {"--follow", "--limits", "--json"})
          command.get_option(name)->excludes(from)->excludes(hint);
      });
}

const CommandText<ReplayOptions> replay_text = {
    {{"--pretty", &ReplayOptions::pretty, "print readable lines instead of JSON"},
     {"--stats", &ReplayOptions::stats, "print statistics instead of events"},
     {"-v,--verbose", &ReplayOptions::verbose,
      "with --pretty: also thinking, token counts, messages of subagents"},
     {"--events", &ReplayOptions::events, "with --stats: print the events, too"},
     {"--json", &ReplayOptions::json, "with --stats: print one JSON object"}},
    R"(Examples:
  earshot replay session.jsonl | jq -r .type | sort | uniq -c
  earshot replay --pretty session.jsonl | less -R
  zcat old.jsonl.gz | earshot replay -
  earshot replay --stats ~/.claude/projects

Exit codes: 0 success; 1 a file could not be read; 2 usage error.)"};
Run add_replay(CLI::App& app) {
  return define_command<ReplayOptions>(
      app, replay_text, replay_command, [](CLI::App& command, ReplayOptions& options) {
        command
            .add_option("FILE", options.files,
                        "transcripts; directories are searched for transcripts; - is stdin")
            ->type_name("FILE")
            ->required();
        const std::map<std::string, View> views{{"full", View::full}, {"meta", View::meta}};
        command.add_option("--view", options.view, "full (default), or meta: no text, inputs or outputs")
            ->type_name("full|meta")
            ->transform(one_of(views));
        command.add_flag_callback(
            "--no-redact", [&options] { options.redact = false; }, "do not redact secrets");
        const auto add = [&](const char* name, std::string& value, const char* description,
                             const char* type) {
          command.add_option(name, value, description)->type_name(type);
        };
        add("--agent", options.agent, "id of the subagent (default: from the name agent-<ID>.jsonl)", "ID");
        add("--stream", options.stream, "name of the stream (default: from the path)", "NAME");
        add("--host", options.host, "name of the host (default: this host)", "NAME");
        add("--state", options.state, "the daemon's state directory, to print the same cursors as the daemon",
            "DIR");
        for (const char* name : {"--events", "--json"})
          command.get_option(name)->needs(command.get_option("--stats"));
        command.get_option("--verbose")->needs(command.get_option("--pretty"));
      });
}

const CommandText<UsageOptions> usage_text = {
    {{"--json", &UsageOptions::json, "print one JSON object, with the models of each row"}},
    R"(Reads the transcripts on this machine, on all processors; it needs no daemon. On a team hub it does not see the
transcripts of other hosts: run it there.

A message that is in several transcripts (forks, resumed copies) counts once, with its largest counts, for the
day of its first line and for the session that had it first. Subagents count for their session. Days are those
of the local time zone. TOTAL is input, output, cache writes and cache reads together.
COST is what the program recorded. Otherwise it is estimated from a table of prices and marked with ~. Models that
are not in the table have no estimate; + marks a sum without them, and they are listed below.

Examples:
  earshot usage                                   tokens and cost by day
  earshot usage --since 7d --by project
  earshot usage --by session --since 00:00        today
  earshot usage --root ~/old/.claude --by model   another directory
  earshot usage --json | jq '.total.cost_usd'

Exit codes: 0 success; 1 a file could not be read; 2 usage error.)"};
Run add_usage(CLI::App& app) {
  return define_command<UsageOptions>(
      app, usage_text, usage_command, [](CLI::App& command, UsageOptions& options) {
        add_since(command, options.since_ms, "only messages since then");
        const std::map<std::string, UsageBy> groups{{"day", UsageBy::day},
                                                    {"session", UsageBy::session},
                                                    {"project", UsageBy::project},
                                                    {"model", UsageBy::model},
                                                    {"program", UsageBy::program}};
        command.add_option("--by", options.by, "what each row is (default: day)")
            ->type_name("day|session|project|model|program")
            ->transform(one_of(groups));
        command
            .add_option("--root", options.roots,
                        "a directory that agents write to, [PROGRAM:][NAME=]DIR as for earshotd; may be "
                        "repeated (default: those of all known programs)")
            ->type_name("DIR")
            ->allow_extra_args(false);
        command
            .add_option("--models", options.models,
                        "a file with prices of models (default: ~/.config/earshot/models.toml)")
            ->type_name("FILE");
      });
}

const CommandText<OpenOptions> open_text = {
    {{"--print", &OpenOptions::print, "only print the address"}},
    R"(The address contains a one-time code (60 s) that signs the browser in; from then on a bookmark of the page
suffices: see `earshot browsers`. Without a display the address is only printed: open it in a browser on this
machine, or on one that forwards the port (ssh -L 7717:127.0.0.1:7717 HOST).

Exit codes: 0 success; 1 no daemon; 2 usage error.)"};
Run add_open(CLI::App& command) { return define_command(command, open_text, open_command); }

const CommandText<BrowsersOptions> browsers_text = {
    {{"--all", &BrowsersOptions::all, "with revoke: all of them"},
     {"--json", &BrowsersOptions::json, "print the list as JSON"}},
    R"(`earshot open` signs a browser in; it stays signed in, also after a restart of the daemon, until it is revoked
here or on its page, or `earshot token --rotate` creates a new token. A browser that is revoked is disconnected at
once. At a hub users list and revoke their own browsers.

Examples:
  earshot browsers
  earshot browsers revoke 1f6c
  earshot browsers revoke --all

Exit codes: 0 success; 1 no daemon, or no such browser; 2 usage error.)"};
Run add_browsers(CLI::App& app) {
  return define_command<BrowsersOptions>(
      app, browsers_text, browsers_command, [](CLI::App& command, BrowsersOptions& options) {
        command.add_option("ACTION", options.action, "revoke: sign a browser out")
            ->type_name("revoke")
            ->check(CLI::Validator(
                [](const std::string& word) {
                  return word == "revoke" ? std::string()
                                          : "`" + word +
                                                "` is no action; write `earshot browsers` for the list, "
                                                "`earshot browsers revoke` to sign out";
                },
                ""));
        command.add_option("BROWSER", options.browser, "its id, or the beginning of it")
            ->type_name("BROWSER");
      });
}

const CommandText<TokenOptions> token_text = {
    {{"--rotate", &TokenOptions::rotate,
      "create a new token; clients with the old one are disconnected, and browsers signed out"}},
    R"text(A program that has the token can read everything that you and your agents write on this machine. The
commands of earshot do not need it: they use the Unix socket.

Example:
  curl -sN -H "Authorization: Bearer $(earshot token)" \
    http://127.0.0.1:7717/v1/events

Exit codes: 0 success; 1 there is no token, or the daemon refused; 2 usage error.)text"};
Run add_token(CLI::App& command) { return define_command(command, token_text, token_command); }

const CommandText<ReportOptions> doctor_text = {
    {{"--json", &ReportOptions::json, "print one JSON object"}},
    R"(Exit codes: 0 no problem, possibly warnings; 1 a problem was found; 2 usage error.)"};
Run add_doctor(CLI::App& command) { return define_command(command, doctor_text, doctor_command); }

Run add_help(CLI::App& command) {
  const auto topic = std::make_shared<std::string>();
  command.add_option("COMMAND", *topic, "the command")->type_name("COMMAND");
  return [&app = *command.get_parent(), topic] {
    const CLI::App* const about = topic->empty() ? &app : find_command(app, *topic);
    if (about == nullptr) return usage_error(unknown_command_message(app, *topic), {});
    return write_stdout(about == &app ? app.help() : about->help("earshot"));
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
    {"search", "search the text of all sessions", add_search},
    {"focus", "bring the terminal of a session to the front; by default the one that has waited longest",
     add_focus},
    {"status", "show whether the daemon is all right, and what it monitors", add_status},
    {"statusline", "print one line for a status bar: how many sessions wait and work", add_statusline},
    {"replay", "print the events of transcripts; needs no daemon", add_replay},
    {"usage", "show how many tokens were used and what they cost; needs no daemon", add_usage},
    {"open", "open the dashboard in a browser, signed in", add_open},
    {"browsers", "list the browsers that are signed in, or sign them out", add_browsers},
    {"token", "print the token that other programs need to connect through TCP", add_token},
    {"doctor", "find problems and explain how to solve them", add_doctor},
    {"completions", "print the completion script of a shell", add_completions},
    {"help", "show this help, or the help of a command", add_help},
};

}  // namespace

std::vector<Command> add_commands(CLI::App& app) {
  app.description(
      "Monitors coding agents: what they are doing now, what they did, and which ones wait for you.\n"
      "All commands except `replay` and `usage`, which read transcripts directly, connect to the daemon, "
      "earshotd.");
  app.set_version_flag("--version", "earshot " + version_text(), "show the version and the build");
  app.set_help_flag("-h,--help", "show this help");
  app.require_subcommand(0, 1);
  app.footer(examples);
  set_help_format(app);
  std::vector<Command> commands;
  for (const Entry& each : entries) {
    CLI::App* const command = app.add_subcommand(each.name, each.description)->group("Commands");
    commands.push_back({command, each.add(*command)});
  }
  return commands;
}

int run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is detected when writing
  CLI::App app("", "earshot");
  const std::vector<Command> commands = add_commands(app);
  if (argc > 1 &&
      std::string_view(argv[1]) == "complete") {  // not a command for users: its words are not options
    return write_stdout(complete_words(app, {argv + 2, argv + argc}));
  }
  if (const auto exit_code = parse_arguments(app, argc, argv)) return *exit_code;
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return write_stdout(app.help());
}

}  // namespace earshot::cli
