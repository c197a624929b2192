#include "common/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "common/format.hpp"
#include "common/output.hpp"

namespace earshot::common {
namespace {

std::string parsed_command(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? std::string() : parsed.front()->get_name();
}

// Of words that the parser did not accept, with the most similar command or option.
std::string unknown_word_message(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return "unknown argument";
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  const std::string word = words.front().substr(0, words.front().find('='));
  if (!word.starts_with('-')) {
    return parsed.empty() ? unknown_command_message(app, word) : "unexpected argument `" + word + "`";
  }
  if (parsed.empty()) {
    const std::vector<const CLI::App*> commands = app.get_subcommands(
        [&](const CLI::App* command) { return command->get_option_no_throw(word) != nullptr; });
    if (!commands.empty())
      return "`" + word + "` follows a command, as in: " + std::string(program_name()) + " " +
             commands.front()->get_name() + " " + word + " …";
  }
  const CLI::App& owner = parsed.empty() ? app : *parsed.front();
  std::vector<std::string> names;
  for (const CLI::Option* option : owner.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (std::find(known.begin(), known.end(), word) != known.end())  // it stands before the command
    return "`" + word + "` follows the command: " + std::string(program_name()) + " " + owner.get_name() +
           " " + word + " …";
  const std::string_view nearest = suggest_word(word, known);
  std::string message = "unknown option `" + word + "`";
  if (!parsed.empty()) message += " of `" + std::string(program_name()) + " " + owner.get_name() + "`";
  return nearest.empty() ? message : message + "; did you mean `" + std::string(nearest) + "`?";
}

}  // namespace

int usage_error(const std::string& message, const std::string& command) {
  const std::string program(program_name());
  print_message(safe_text(message) + "\n" +
                (command.empty() ? "Run `" + program + " --help` for a list of commands."
                                 : "Run `" + program + " " + command + " --help` for its options."));
  return exit_usage;
}

std::string unknown_command_message(const CLI::App& app, const std::string& name) {
  std::vector<std::string_view> names;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  const std::string_view nearest = suggest_word(name, names);
  return "unknown command `" + name + "`" +
         (nearest.empty() ? std::string() : "; did you mean `" + std::string(nearest) + "`?");
}

std::function<std::string(const std::string& word)> one_of_words(std::vector<std::string> known) {
  return [known = std::move(known)](const std::string& word) {
    if (std::find(known.begin(), known.end(), word) != known.end()) return std::string();
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    return "`" + word + "` is none of " + names;
  };
}

std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& done) {
    std::ostringstream text;
    app.exit(done, text);
    return write_stdout(text.str());
  } catch (const CLI::ExtrasError& error) {
    return usage_error(unknown_word_message(app, app.remaining(true)), parsed_command(app));
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what(), parsed_command(app));
  } catch (const std::out_of_range&) {  // thrown by CLI11 2.1 for a flag with a number beyond 64 bits
    return usage_error("a flag has an invalid value; flags take none", parsed_command(app));
  }
}

}  // namespace earshot::common
