// replay, open, token and doctor.
#include <map>
#include <memory>

#include "cli/options.hpp"

namespace earshot::cli {

Command add_replay(CLI::App& app) {
  CLI::App* command = app.add_subcommand("replay", "the events of transcripts, as NDJSON; no daemon needed");
  const auto options = std::make_shared<ReplayOptions>();
  command->add_option("FILE", options->files, "transcripts; a directory is searched for them; - is stdin")
      ->type_name("FILE")
      ->required();
  command->add_flag("--pretty", options->pretty, "a line for people each");
  command->add_flag("-v,--verbose", options->verbose,
                    "with --pretty: also thinking, token counts, what subagents say");
  const std::map<std::string, View> views{{"full", View::full}, {"meta", View::meta}};
  command->add_option("--view", options->view, "full (default), or meta: no text, no inputs, no outputs")
      ->type_name("full|meta")
      ->transform(CLI::CheckedTransformer(views).description(""));
  command->add_flag_callback(
      "--no-redact", [options] { options->redact = false; }, "show what looks like a secret, too");
  command->add_flag("--stats", options->stats, "counts instead of events: every line accounted for");
  command->add_flag("--events", options->events, "with --stats: the events, too");
  command->add_flag("--json", options->json, "with --stats: one JSON object");
  const auto add = [&](const char* name, std::string& value, const char* what, const char* type) {
    command->add_option(name, value, what)->type_name(type);
  };
  add("--agent", options->agent, "the subagent whose file it is (default: of agent-<ID>.jsonl)", "ID");
  add("--stream", options->stream, "the stream's name (default: from the path)", "NAME");
  add("--host", options->host, "the host's name (default: this one's)", "NAME");
  add("--state", options->state, "the daemon's state directory: cursors are then the daemon's own", "DIR");
  add_colour(*command, options->colour);
  command->footer(
      "Examples:\n  earshot replay session.jsonl | jq -r .type | sort | uniq -c\n"
      "  earshot replay --pretty session.jsonl | less -R\n  zcat old.jsonl.gz | earshot replay -\n"
      "  earshot replay --stats ~/.claude/projects\n\nExit codes: 0 done; 1 a file could not be read; 2 "
      "usage.");
  return {command, [options] {
            if ((options->events || options->json) && !options->stats)
              return misused("--events and --json go with --stats");
            if (options->verbose && !options->pretty) return misused("--verbose goes with --pretty");
            return replay_command(*options);
          }};
}

Command add_open(CLI::App& app) {
  CLI::App* command = app.add_subcommand("open", "opens the daemon's web page, signed in");
  const auto options = std::make_shared<OpenOptions>();
  command->add_flag("--print", options->print, "only print the address");
  add_connect_options(*command, options->daemon);
  command->footer(
      "The address holds a code instead of the token: it is good once, and for a minute. Where there is no\n"
      "display it is printed only: open it in a browser on this machine, or on one that forwards the port\n"
      "(ssh -L 7717:127.0.0.1:7717 HOST).\n\n"
      "Exit codes: 0 done; 1 no daemon; 2 usage.");
  return {command, [options] { return open_command(*options); }};
}

Command add_token(CLI::App& app) {
  CLI::App* command = app.add_subcommand("token", "prints the token that opens the daemon's port");
  const auto options = std::make_shared<TokenOptions>();
  command->add_flag("--rotate", options->rotate,
                    "have a new one made; whoever used the old one is sent away");
  add_connect_options(*command, options->daemon);
  command->footer(
      "Who has the token reads all that agents and you said on this machine. The commands here need none:\n"
      "they come through the Unix socket.\n\n"
      "Example:\n  curl -sN -H \"Authorization: Bearer $(earshot token)\" http://127.0.0.1:7717/v1/events\n\n"
      "Exit codes: 0 done; 1 there is no token, or the daemon would not; 2 usage.");
  return {command, [options] { return token_command(*options); }};
}

Command add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "looks for what is wrong, and says what to do");
  const auto options = std::make_shared<DoctorOptions>();
  command->add_flag("--json", options->json, "one JSON object");
  add_colour(*command, options->colour);
  add_connect_options(*command, options->daemon);
  command->footer("Exit codes: 0 all is well, warnings aside; 1 there is a problem; 2 usage.");
  return {command, [options] { return doctor_command(*options); }};
}

}  // namespace earshot::cli
