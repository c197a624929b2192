// Command-line options that all clients share.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "common/endpoint.hpp"

namespace earshot::common {

/// Formats options as users type them: without REQUIRED, and without a type that repeats the name.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional() || option->get_type_size() == 0) return {};
    return " " + option->get_type_name() + (option->get_expected_max() > 1 ? " ..." : "");
  }
};

/// Adds --connect, --socket, --token-file and --state.
void add_connect_options(CLI::App& command, ConnectOptions& options);

}  // namespace earshot::common
