#include "common/completions.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "common/arguments.hpp"
#include "common/output.hpp"

namespace earshot::common {
namespace {

// PROGRAM is replaced. The scripts treat each line as data, which is quoted when it is inserted: a session's
// id, title and project come from transcripts, which others may have written.

constexpr const char* bash_script = R"SH(# bash completion for PROGRAM, printed by `PROGRAM completions bash`
_PROGRAM() {
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

complete -F _PROGRAM PROGRAM
)SH";

constexpr const char* zsh_script = R"SH(#compdef PROGRAM
# zsh completion for PROGRAM, printed by `PROGRAM completions zsh`
_PROGRAM() {
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

if [[ $funcstack[1] == _PROGRAM ]]; then
  _PROGRAM "$@"
else
  compdef _PROGRAM PROGRAM
fi
)SH";

constexpr const char* fish_script = R"SH(# fish completion for PROGRAM, printed by `PROGRAM completions fish`
function __PROGRAM_complete
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

complete -c PROGRAM -f -a '(__PROGRAM_complete)'
)SH";

const std::map<std::string_view, const char*> scripts = {
    {"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

std::string command_words(const CLI::App& app) {
  std::string out;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    out += each->get_name() + "\t" + each->get_description() + "\n";
  return out;
}

// What the value of an option or an argument may be, by the name of its type.
std::string value_words(const CLI::App& app, const CLI::Option& option, const std::vector<std::string>& words,
                        const ValueWords& more) {
  std::string type = option.get_type_name();
  if (type == "FILE") return "\tfile\n";
  if (type == "DIR") return "\tdirectory\n";
  if (type == "COMMAND") return command_words(app);
  const bool is_literal = std::none_of(type.begin(), type.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!is_literal)
    return more ? more({type, option.get_name(), option.get_positional()}, words) : std::string();
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

// The command that the words name; null: none. Values of the options before it are not names.
const CLI::App* command_of(const CLI::App& app, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with('-')) return find_command(app, words[i]);
    if (option_before(app, words[i]) == nullptr) continue;
    i += i + 1 < words.size() && words[i + 1] == "=" ? 2 : 1;
  }
  return nullptr;
}

// How many of the words are arguments of the command, without its name, its options and their values.
std::size_t arguments_in(const CLI::App& app, const CLI::App& command,
                         const std::vector<std::string>& words) {
  std::size_t count = 0;
  bool is_named = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with('-')) {
      if (option_before(is_named ? command : app, words[i]) != nullptr)
        i += i + 1 < words.size() && words[i + 1] == "=" ? 2 : 1;
    } else if (is_named) {
      ++count;
    } else {
      is_named = true;
    }
  }
  return count;
}

// The argument that follows `given` others; null: there is none.
const CLI::Option* next_argument(const CLI::App& command, std::size_t given) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const auto words_max = static_cast<std::size_t>(option->get_items_expected_max());
    if (given < words_max) return option;
    given -= words_max;
  }
  return nullptr;
}

}  // namespace

std::string completion_script(std::string_view shell, std::string_view program) {
  constexpr std::string_view placeholder = "PROGRAM";
  const auto found = scripts.find(shell);
  std::string script = found == scripts.end() ? "" : found->second;
  for (std::size_t at = 0; (at = script.find(placeholder, at)) != script.npos; at += program.size())
    script.replace(at, placeholder.size(), program);
  return script;
}

std::function<int()> add_completions(CLI::App& command, std::string program) {
  const auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "which shell")
      ->type_name("bash|zsh|fish")
      ->required()
      ->check(one_of_words({"bash", "zsh", "fish"}));
  command.footer(
      "For the current shell:\n"
      "  source <(" +
      program +
      " completions bash)\n"
      "Permanently:\n"
      "  " +
      program + " completions bash > ~/.local/share/bash-completion/completions/" + program +
      "\n"
      "  " +
      program + " completions zsh > ~/.zfunc/_" + program +
      "\n"
      "  " +
      program + " completions fish > ~/.config/fish/completions/" + program +
      ".fish\n"
      "\n"
      "The directory must exist. zsh needs `fpath+=~/.zfunc` before `compinit` in ~/.zshrc.");
  return [shell, program] { return write_stdout(completion_script(*shell, program)); };
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (each->get_name() == name) return each;
  }
  return nullptr;
}

std::string complete_words(const CLI::App& app, std::vector<std::string> words, const ValueWords& more) {
  std::string current;
  if (!words.empty()) {
    current = std::move(words.back());
    words.pop_back();
  }
  const CLI::App* const found = command_of(app, words);
  const CLI::App& command = found == nullptr ? app : *found;
  // bash splits words at `=`.
  if (current == "=") current.clear();
  if (!words.empty() && words.back() == "=") words.pop_back();
  if (const CLI::Option* option = words.empty() ? nullptr : option_before(command, words.back()))
    return value_words(app, *option, words, more);
  if (const std::size_t equals = current.find('='); equals != current.npos) {
    const CLI::Option* const option = option_before(command, current.substr(0, equals));
    if (option == nullptr) return {};
    std::string out = value_words(app, *option, words, more);
    if (out.empty() || out.front() == '\t') return out;
    for (std::size_t at = 0; at < out.size(); at = out.find('\n', at) + 1) {
      out.insert(at, current, 0, equals + 1);
      at += equals + 1;
    }
    return out;
  }
  if (current.starts_with('-')) return option_words(command);
  if (found == nullptr) return command_words(app);
  const CLI::Option* const argument = next_argument(command, arguments_in(app, command, words));
  return argument == nullptr ? std::string() : value_words(app, *argument, words, more);
}

}  // namespace earshot::common
