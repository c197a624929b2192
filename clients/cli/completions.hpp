// Scripts by which shells complete the command line, made from what CLI11 knows of it.
#pragma once
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace earshot::cli {

/// `shell` is bash, zsh or fish. An option's type name says what completes its value: FILE, DIR, SESSION,
/// COMMAND, or the words of a list a|b|c; any other completes to nothing.
std::string completions(const CLI::App& app, std::string_view shell);

}  // namespace earshot::cli
