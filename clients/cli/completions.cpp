// `earshot completions`: shell completion scripts, derived from the CLI11 definition of the command line.
#include "cli/completions.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "cli/options.hpp"
#include "common/client.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

struct Value {
  std::string type;                  // empty: a flag
  std::vector<std::string> choices;  // of a|b|c
  bool many = false;
};

struct Option {
  std::vector<std::string> names;  // -v, --verbose
  std::string about;
  Value value;
};

struct Section {
  std::string name, about;
  std::vector<Option> options;
  std::vector<Value> positionals;
};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Value value_of(const CLI::Option& option) {
  Value value;
  if (option.get_items_expected_max() == 0) return value;
  value.type = option.get_type_name();
  if (value.type.find('|') != std::string::npos) value.choices = split(value.type, '|');
  value.many = option.get_expected_max() > 1;
  return value;
}

Section section_of(const CLI::App& app) {
  Section section{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      section.positionals.push_back(value_of(*option));
      continue;
    }
    Option one{{}, option->get_description(), value_of(*option)};
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    section.options.push_back(std::move(one));
  }
  return section;
}

std::vector<Section> sections_of(const CLI::App& app) {
  std::vector<Section> sections;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App* s) { return !s->get_group().empty(); }))
    sections.push_back(section_of(*each));
  return sections;
}

template <class Items, class Text>
std::string joined(const Items& items, std::string_view between, Text&& text) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += between;
    out += text(item);
  }
  return out;
}

const std::string& identity(const std::string& text) { return text; }

std::string command_names(const std::vector<Section>& sections) {
  return joined(sections, " ", [](const Section& s) { return s.name; });
}

// --- bash ---

// The command that sets COMPREPLY for a value.
std::string bash_value(const Value& value, const std::vector<Section>& sections) {
  if (!value.choices.empty()) return "_earshot_words '" + joined(value.choices, " ", identity) + "'";
  if (value.type == "FILE") return "compopt -o default 2>/dev/null";
  if (value.type == "DIR") return "compopt -o dirnames 2>/dev/null";
  if (value.type == "SESSION") return "_earshot_sessions";
  if (value.type == "COMMAND") return "_earshot_words '" + command_names(sections) + "'";
  return ":";
}

std::string bash_section(const Section& section, const std::vector<Section>& sections) {
  std::string out, words;
  for (const Option& option : section.options) {
    words += (words.empty() ? "" : " ") + joined(option.names, " ", identity);
    if (option.value.type.empty()) continue;
    out += "        " + joined(option.names, " | ", identity) + ") " + bash_value(option.value, sections) +
           "; return ;;\n";
  }
  if (!out.empty()) out = "      case $prev in\n" + out + "      esac\n";
  out += "      case $cur in\n        -*) _earshot_words '" + words + "'; return ;;\n      esac\n";
  if (section.name == "earshot") {
    out += "      _earshot_words '" + command_names(sections) + "'\n";
  } else if (!section.positionals.empty()) {
    out += "      " + bash_value(section.positionals.front(), sections) + "\n";
  }
  return out;
}

constexpr const char* bash_begin = R"SH(# bash completion for earshot, printed by `earshot completions bash`
_earshot_words() {
  # shellcheck disable=SC2207  # words have no blanks
  COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

_earshot_sessions() {
  _earshot_words "last $("${COMP_WORDS[0]}" complete-sessions 2>/dev/null | cut -f 1)"
}

_earshot() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev='' command='' i
  COMPREPLY=()
  if [ "$COMP_CWORD" -gt 0 ]; then prev=${COMP_WORDS[COMP_CWORD - 1]}; fi
  if [ "$cur" = = ]; then cur=''; elif [ "$prev" = = ]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      -*) ;;
      *) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  case $command in
    '')
)SH";

std::string bash(const Section& top, const std::vector<Section>& sections) {
  std::string out = bash_begin + bash_section(top, sections) + "      ;;\n";
  for (const Section& section : sections) {
    out += "    " + section.name + ")\n" + bash_section(section, sections) + "      ;;\n";
  }
  return out + "  esac\n}\n\ncomplete -F _earshot earshot\n";
}

// --- zsh ---

// Escapes text inside '…' for _arguments and _describe.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += R"('\'')";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string zsh_action(const Value& value) {
  if (!value.choices.empty()) return "(" + joined(value.choices, " ", identity) + ")";
  if (value.type == "FILE") return "_files";
  if (value.type == "DIR") return "_files -/";
  if (value.type == "SESSION") return "_earshot_sessions";
  if (value.type == "COMMAND") return "_earshot_commands";
  return " ";
}

std::string zsh_value(const Value& value) {
  return value.type.empty()
             ? ""
             : ":" + zsh_text(value.choices.empty() ? value.type : "which") + ":" + zsh_action(value);
}

std::string zsh_option(const Option& option) {
  const std::string about = "[" + zsh_text(option.about) + "]" + zsh_value(option.value);
  const auto name = [&](const std::string& n) {
    return n.starts_with("--") && !option.value.type.empty() ? n + "=" : n;
  };
  if (option.value.many) return "'*" + name(option.names.back()) + about + "'";
  if (option.names.size() == 1) return "'" + name(option.names.front()) + about + "'";
  return "'(" + joined(option.names, " ", identity) + ")'{" + joined(option.names, ",", name) + "}'" + about +
         "'";
}

std::string zsh_arguments(const Section& section, std::string_view how, std::string_view indent) {
  std::string out = "_arguments " + std::string(how);
  const auto add = [&](const std::string& argument) { out += " \\\n" + std::string(indent) + argument; };
  for (const Option& option : section.options) add(zsh_option(option));
  for (const Value& value : section.positionals)
    add((value.many ? "'*" : "'1") + std::string(":") + zsh_value(value).substr(1) + "'");
  return out;
}

constexpr const char* zsh_begin = R"SH(#compdef earshot
# zsh completion for earshot, printed by `earshot completions zsh`
_earshot_sessions() {
  local -a sessions
  sessions=('last:the session with the latest activity')
  sessions+=(${(f)"$(earshot complete-sessions 2>/dev/null | sed -e 's/:/\\:/g' -e 's/\t/:/')"})
  _describe -t sessions session sessions
}

_earshot_commands() {
  local -a commands
  commands=(
)SH";

constexpr const char* zsh_middle = R"SH(  )
  _describe -t commands command commands
}

_earshot() {
  local curcontext=$curcontext state line
  typeset -A opt_args
  )SH";

constexpr const char* zsh_end = R"SH(  esac
}

if [[ $funcstack[1] == _earshot ]]; then
  _earshot "$@"
else
  compdef _earshot earshot
fi
)SH";

std::string zsh(const Section& top, const std::vector<Section>& sections) {
  std::string out = zsh_begin;
  for (const Section& section : sections)
    out += "    '" + section.name + ":" + zsh_text(section.about) + "'\n";
  out += zsh_middle + zsh_arguments(top, "-C", "    ");
  out += " \\\n    '1: :_earshot_commands' \\\n    '*:: :->rest'\n";
  out += "  [[ $state == rest ]] || return\n  case $line[1] in\n";
  for (const Section& section : sections)
    out += "    " + section.name + ")\n      " + zsh_arguments(section, "-s", "        ") + "\n      ;;\n";
  return out + zsh_end;
}

// --- fish ---

std::string fish_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

// The arguments of `complete`: whether the option takes a value, and its completions.
std::string fish_value(const Value& value, std::string_view value_flag) {
  if (value.type.empty()) return {};
  if (!value.choices.empty())
    return std::string(value_flag) + " -a " + fish_text(joined(value.choices, " ", identity));
  if (value.type == "FILE") return " -r -F";
  if (value.type == "DIR") return std::string(value_flag) + " -a '(__fish_complete_directories)'";
  if (value.type == "SESSION")
    return std::string(value_flag) + " -a 'last (earshot complete-sessions 2>/dev/null)'";
  return std::string(value_flag);
}

std::string fish_section(const Section& section, const std::vector<Section>& sections) {
  const bool top = section.name == "earshot";
  const std::string head = top ? "complete -c earshot -n __fish_use_subcommand"
                               : "complete -c earshot -n '__fish_seen_subcommand_from " + section.name + "'";
  std::string out;
  for (const Option& option : section.options) {
    out += head;
    for (const std::string& name : option.names)
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    out += fish_value(option.value, " -x") + " -d " + fish_text(option.about) + "\n";
  }
  for (const Value& value : section.positionals) {
    if (value.type == "COMMAND") {
      out += head + " -a " + fish_text(command_names(sections)) + "\n";
    } else if (const std::string words = fish_value(value, ""); !words.empty()) {
      out += head + words + "\n";
    }
  }
  return out;
}

std::string fish(const Section& top, const std::vector<Section>& sections) {
  std::string out =
      "# fish completion for earshot, printed by `earshot completions fish`\ncomplete -c earshot -f\n";
  out += fish_section(top, sections);
  for (const Section& section : sections)
    out += "complete -c earshot -n __fish_use_subcommand -a " + section.name + " -d " +
           fish_text(section.about) + "\n";
  for (const Section& section : sections) out += fish_section(section, sections);
  return out;
}

}  // namespace

std::string completions(const CLI::App& app, std::string_view shell) {
  const Section top = section_of(app);
  const std::vector<Section> sections = sections_of(app);
  if (shell == "bash") return bash(top, sections);
  return shell == "zsh" ? zsh(top, sections) : fish(top, sections);
}

int sessions_command(const ConnectOptions& daemon) {
  constexpr std::size_t sessions_max = 500;
  const auto found = find_daemon(daemon);
  if (!std::holds_alternative<DaemonAddresses>(found)) return exit_failed;
  Client client;
  Output out;
  FrameParser parser;
  std::size_t count = 0;
  Handlers handlers;
  handlers.on_open = [&] { client.send(subscribe_request({}, {.state = true})); };
  handlers.on_frame = [&](std::string_view json) {
    const auto frame = parser.parse(json);
    if (!frame) return true;
    const std::string_view type = frame->text("type");
    if (type == "session") {
      const std::string_view title = frame->text("title");
      const std::string description = std::string(last_component(frame->text("project"))) +
                                      (title.empty() ? "" : ": " + std::string(title));
      out.write(to_display_line(frame->text("session"), Charset::ascii) + "\t" + safe_text(description) +
                "\n");
      ++count;
    }
    return type != "ready" && type != "error" && count < sessions_max;
  };
  const ConnectResult result = client.run_any(std::get<DaemonAddresses>(found), handlers);
  return result.last().end_reason == EndReason::stopped ? exit_ok : exit_failed;
}

Command add_completions(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completions", "print the completion script of a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "which shell")
      ->type_name("bash|zsh|fish")
      ->required()
      ->transform(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  command->footer(
      "For the current shell:\n"
      "  source <(earshot completions bash)\n"
      "Permanently:\n"
      "  earshot completions bash > ~/.local/share/bash-completion/completions/earshot\n"
      "  earshot completions zsh > ~/.zfunc/_earshot      (with fpath+=~/.zfunc before compinit in "
      "~/.zshrc)\n"
      "  earshot completions fish > ~/.config/fish/completions/earshot.fish");
  return {command, [&app, shell] {
            std::cout << completions(app, *shell);
            return exit_ok;
          }};
}

Command add_complete_sessions(CLI::App& app) {
  CLI::App* command = app.add_subcommand("complete-sessions", "print the ids of live sessions, one per line");
  command->group("");  // hidden: for the completion scripts
  const auto daemon = std::make_shared<ConnectOptions>();
  add_connect_options(*command, *daemon);
  return {command, [daemon] { return sessions_command(*daemon); }};
}

}  // namespace earshot::cli
