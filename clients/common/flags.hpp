// What every client's command line has in common.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "common/endpoint.hpp"

namespace earshot::common {

/// Options as a person writes them: no REQUIRED, and no type that only repeats the name.
class Words : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional() || option->get_type_size() == 0) return {};
    return " " + option->get_type_name() + (option->get_expected_max() > 1 ? " ..." : "");
  }
};

/// --connect, --socket, --token-file, --state.
void add_daemon(CLI::App& command, DaemonWish& daemon);

}  // namespace earshot::common
