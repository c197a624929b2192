// Messages to the user on stderr.
#pragma once
#include <string>
#include <string_view>

#include "base/display_text.hpp"

namespace earshot::common {

/// Sets the name that prefixes messages and identifies the program to the daemon; `earshot` by default.
/// `name` must outlive the program.
void set_program_name(std::string_view name);
std::string_view program_name();

/// NAME/VERSION, for User-Agent.
std::string user_agent();

Charset charset_of_locale();

/// Text from outside (file names, peers' messages) on one line, control characters escaped.
std::string safe_text(std::string_view text);

/// Writes `PROGRAM: TEXT` and a line end to stderr.
void print_message(std::string_view text);

}  // namespace earshot::common
