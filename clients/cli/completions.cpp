// `earshot completions`: the completion scripts of shells, and `earshot complete`, which they call: it prints
// the words that may follow a command line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "cli/commands.hpp"
#include "common/client.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t sessions_max = 500;  // offered at most

// The scripts treat each line as data, which is quoted when it is inserted: a session's id, title and project
// come from transcripts, which others may have written.

constexpr const char* bash_script = R"SH(# bash completion for earshot, printed by `earshot completions bash`
_earshot() {
  local cur=${COMP_WORDS[COMP_CWORD]} line word
  COMPREPLY=()
  if [ "$cur" = = ]; then cur=''; fi
  while IFS= read -r line; do
    case $line in
      $'\tfile') compopt -o default 2>/dev/null; return ;;
      $'\tdirectory') compopt -o dirnames 2>/dev/null; return ;;
    esac
    printf -v word %q "${line%%$'\t'*}"
    if [[ $word == "$cur"* ]]; then COMPREPLY+=("$word"); fi
  done < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}

complete -F _earshot earshot
)SH";

constexpr const char* zsh_script = R"SH(#compdef earshot
# zsh completion for earshot, printed by `earshot completions zsh`
_earshot() {
  local line word
  local -a described
  for line in "${(@f)$("${(Q)words[1]}" complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      '') continue ;;
      $'\tfile') _files; return ;;
      $'\tdirectory') _files -/; return ;;
    esac
    word=${${${line%%$'\t'*}//\\/\\\\}//:/\\:}
    described+=("$word:${line#*$'\t'}")
  done
  _describe -t words word described
}

if [[ $funcstack[1] == _earshot ]]; then
  _earshot "$@"
else
  compdef _earshot earshot
fi
)SH";

constexpr const char* fish_script = R"SH(# fish completion for earshot, printed by `earshot completions fish`
function __earshot_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] complete $words[2..-1] "$current" 2>/dev/null)
    switch "$lines[1]"
        case \tfile
            __fish_complete_path $current
        case \tdirectory
            __fish_complete_directories $current
        case '*'
            string join \n -- $lines
    end
end

complete -c earshot -f -a '(__earshot_complete)'
)SH";

const std::map<std::string, const char*> scripts = {
    {"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

// An id that is not displayable as it is, or that looks like an option, cannot be typed as an argument.
bool is_argument(std::string_view id) {
  return !id.empty() && id.front() != '-' && to_display_line(id, Charset::utf8) == id;
}

// The connection options of a command line that is being typed.
ConnectOptions connection_of(const std::vector<std::string>& words) {
  ConnectOptions options;
  const std::map<std::string, std::string*> values = {{"--connect", &options.connect},
                                                      {"--socket", &options.socket},
                                                      {"--token-file", &options.token_file},
                                                      {"--tls-ca", &options.tls_ca},
                                                      {"--state", &options.state}};
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (const auto found = values.find(words[i]); found != values.end()) *found->second = words[i + 1];
  return options;
}

// The live sessions; none without a daemon.
std::string session_words(const ConnectOptions& daemon) {
  std::string out = "last\tthe session with the latest activity\n";
  const auto found = find_daemon(daemon);
  const auto* const addresses = std::get_if<DaemonAddresses>(&found);
  if (addresses == nullptr) return out;
  Client client;
  FrameParser parser;
  std::size_t count = 0;
  Handlers handlers;
  handlers.on_open = [&] { client.send(subscribe_request({}, {.state = true})); };
  handlers.on_frame = [&](std::string_view json) {
    const auto frame = parser.parse(json);
    if (!frame) return true;
    const std::string_view type = frame->text("type"), id = frame->text("session"),
                           title = frame->text("title");
    if (type == "session" && is_argument(id)) {
      const std::string project(last_component(frame->text("project")));
      out += std::string(id) + "\t" + safe_text(project + (title.empty() ? "" : ": ") + std::string(title)) +
             "\n";
      ++count;
    }
    return type != "ready" && type != "error" && count < sessions_max;
  };
  client.run_any(*addresses, handlers);
  return out;
}

std::string command_words(const CLI::App& app) {
  std::string out;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    out += each->get_name() + "\t" + each->get_description() + "\n";
  return out;
}

// What the value of an option or an argument may be, by the name of its type.
std::string value_words(const CLI::App& app, const CLI::Option& option,
                        const std::vector<std::string>& words) {
  std::string type = option.get_type_name();
  if (type == "FILE") return "\tfile\n";
  if (type == "DIR") return "\tdirectory\n";
  if (type == "SESSION") return session_words(connection_of(words));
  if (type == "COMMAND") return command_words(app);
  if (type.find('|') == type.npos) return {};
  std::replace(type.begin(), type.end(), '|', '\n');
  return type + "\n";
}

std::string option_words(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_snames())
      out += "-" + name + "\t" + option->get_description() + "\n";
    for (const std::string& name : option->get_lnames())
      out += "--" + name + "\t" + option->get_description() + "\n";
  }
  return out;
}

// The option whose value is completed; null: none.
const CLI::Option* option_before(const CLI::App& command, const std::string& word) {
  const CLI::Option* const option = word.starts_with('-') ? command.get_option_no_throw(word) : nullptr;
  return option != nullptr && option->get_items_expected_max() > 0 ? option : nullptr;
}

}  // namespace

std::string complete_words(const CLI::App& app, std::vector<std::string> words) {
  std::string current;
  if (!words.empty()) {
    current = std::move(words.back());
    words.pop_back();
  }
  const auto name =
      std::find_if(words.begin(), words.end(), [](const auto& word) { return !word.starts_with('-'); });
  const CLI::App* const found = name == words.end() ? nullptr : find_command(app, *name);
  const CLI::App& command = found == nullptr ? app : *found;
  // bash splits words at `=`.
  if (current == "=") current.clear();
  if (!words.empty() && words.back() == "=") words.pop_back();
  if (const CLI::Option* option = words.empty() ? nullptr : option_before(command, words.back()))
    return value_words(app, *option, words);
  if (const std::size_t equals = current.find('='); equals != current.npos) {
    const CLI::Option* const option = option_before(command, current.substr(0, equals));
    if (option == nullptr) return {};
    std::string out = value_words(app, *option, words);
    if (out.empty() || out.front() == '\t') return out;
    for (std::size_t at = 0; at < out.size(); at = out.find('\n', at) + 1) {
      out.insert(at, current, 0, equals + 1);
      at += equals + 1;
    }
    return out;
  }
  if (current.starts_with('-')) return option_words(command);
  if (found == nullptr) return command_words(app);
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) return value_words(app, *option, words);
  return {};
}

Run add_completions(CLI::App& command) {
  const auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "which shell")
      ->type_name("bash|zsh|fish")
      ->required()
      ->transform(CLI::IsMember(scripts).description(""));
  command.footer(
      "For the current shell:\n"
      "  source <(earshot completions bash)\n"
      "Permanently:\n"
      "  earshot completions bash > ~/.local/share/bash-completion/completions/earshot\n"
      "  earshot completions zsh > ~/.zfunc/_earshot      (with fpath+=~/.zfunc before compinit in "
      "~/.zshrc)\n"
      "  earshot completions fish > ~/.config/fish/completions/earshot.fish");
  return [shell] {
    std::cout << scripts.at(*shell);
    return exit_ok;
  };
}

}  // namespace earshot::cli
