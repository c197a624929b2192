// ls, status, tail and show: what the daemon tells.
#include <memory>

#include "cli/options.hpp"
#include "cli/time_spec.hpp"
#include "common/format.hpp"

namespace earshot::cli {

Command add_ls(CLI::App& app) {
  CLI::App* command = app.add_subcommand("ls", "the sessions: who waits for you, who works, who rests");
  const auto options = std::make_shared<ListOptions>();
  command->add_flag("--all", options->all, "sessions that are no longer live, too");
  command->add_flag("--json", options->json, "one JSON array of session frames");
  add_colour(*command, options->colour);
  add_filters(*command, options->filters, false);
  add_connect_options(*command, options->daemon);
  command->footer(std::string(filter_help) +
                  "\n\nCONTEXT / TOTAL: tokens in the context now / read and written anew so far (cache "
                  "reads left out).\n\n"
                  "Examples:\n  earshot ls --project 'api*'\n  earshot ls --json | jq -r '.[] | "
                  "select(.status.state == \"waiting\") | .session'");
  return {command, [options] { return list_command(*options); }};
}

Command add_status(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("status", "one line for a status bar: how many wait for you, how many work");
  const auto options = std::make_shared<StatusOptions>();
  command->add_flag("--follow", options->follow,
                    "a new line at each change, until ^C; without a daemon it waits for one");
  command->add_flag("--json", options->json,
                    "one JSON object a line, as bars take it: text, class, tooltip and counts");
  add_filters(*command, options->filters, false);
  add_connect_options(*command, options->daemon);
  command->footer(std::string(filter_help) +
                  "\n\nExamples:\n  earshot status\n  tmux set -g status-right '#(earshot status --follow)'\n"
                  "  earshot status --follow --json       for waybar; more bars: RECIPES.md\n\n"
                  "Nobody waits or works: the line is empty. With --follow and no daemon: earshot?\n"
                  "Exit codes: 0 done, or stopped by ^C; 1 no daemon; 2 usage.");
  return {command, [options] { return status_command(*options); }};
}

Command add_tail(CLI::App& app) {
  struct Words {  // as given
    TailOptions options;
    std::string since;
    bool json = false, pretty = false, no_snapshot = false;
  };
  CLI::App* command = app.add_subcommand("tail", "follows what agents do, live, until ^C");
  const auto words = std::make_shared<Words>();
  TailOptions& options = words->options;
  command
      ->add_option("--since", words->since,
                   "begin with what happened since: 90s, 10m, 2h, 3d ago, or a time such as 14:03 or "
                   "'2026-11-24 14:03'")
      ->type_name("WHEN");
  command->add_flag("--json", words->json, "every frame as JSON, one a line (default unless on a terminal)");
  command->add_flag("--pretty", words->pretty, "a line for people each (default on a terminal)");
  command->add_flag("-v,--verbose", options.verbose,
                    "also thinking, token counts, what subagents say, checkpoints");
  command->add_flag("--no-snapshot", words->no_snapshot, "do not begin with what is going on now");
  add_colour(*command, options.colour);
  add_filters(*command, options.filters, true);
  add_connect_options(*command, options.daemon);
  command->footer(
      std::string(filter_help) +
      "\n\nExamples:\n  earshot tail --project api\n  earshot tail --since 2h --type turn --type agent\n"
      "  earshot tail --json --type 'tool.*' | jq -r '.tool'\n\n"
      "When the daemon goes away, tail waits, comes back and tells what it missed.\n"
      "Exit codes: 0 stopped by ^C or SIGTERM, or nobody reads; 1 no daemon; 2 usage.");
  return {command, [words] {
            if (words->json && words->pretty) return misused("--json and --pretty exclude each other");
            if (!words->since.empty()) {
              words->options.since_ms = parse_since(words->since, now_ms());
              if (!words->options.since_ms)
                return misused("--since " + words->since +
                               ": no such time; say 10m, 2h, 14:03 or '2026-11-24 14:03'");
            }
            if (words->json) words->options.format = Format::json;
            if (words->pretty) words->options.format = Format::pretty;
            words->options.snapshot = !words->no_snapshot;
            return tail_command(words->options);
          }};
}

Command add_show(CLI::App& app) {
  CLI::App* command = app.add_subcommand("show", "what a session did, turn by turn, from its beginning");
  const auto options = std::make_shared<ShowOptions>();
  command
      ->add_option("SESSION", options->session,
                   "its id, as `ls` shows it, or how that begins; `last`: the one that was active last")
      ->type_name("SESSION")
      ->required();
  command->add_option("--turn", options->turn, "only this turn")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40).description(""));
  command->add_flag("-v,--verbose", options->verbose,
                    "also thinking, what tools gave, token counts, checkpoints");
  command->add_flag("--json", options->json, "the events as JSON, one a line");
  command->add_flag("--no-pager", options->no_pager, "do not page what is longer than the terminal");
  add_colour(*command, options->colour);
  add_filters(*command, options->filters, false);
  command->remove_option(command->get_option("--session"));
  add_connect_options(*command, options->daemon);
  command->footer(
      "On a terminal it is paged through $PAGER (default: less -FRX).\n\n"
      "Examples:\n  earshot show last\n  earshot show last --project api --turn 3 -v\n"
      "  earshot show 2eaa --json | jq -r 'select(.type == \"tool.invoked\") | .tool' | sort | uniq -c\n\n"
      "Without a daemon:  earshot replay FILE --pretty\n"
      "Exit codes: 0 done; 1 no daemon, or no such session; 2 usage, or several sessions begin so.");
  return {command, [options] { return show_command(*options); }};
}

Command add_sessions(CLI::App& app) {
  CLI::App* command = app.add_subcommand("complete-sessions", "ids of live sessions, one a line");
  command->group("");  // for shells, not for people
  const auto daemon = std::make_shared<ConnectOptions>();
  add_connect_options(*command, *daemon);
  return {command, [daemon] { return sessions_command(*daemon); }};
}

}  // namespace earshot::cli
