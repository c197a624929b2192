// What a program tells people on stderr.
#pragma once
#include <string>
#include <string_view>

#include "common/text.hpp"

namespace earshot::common {

/// What the program is called, in what it says to people and to the daemon; `earshot` unless it is said. The
/// text outlives the program.
void set_program(std::string_view name);
std::string_view program();

/// NAME/VERSION, for User-Agent.
std::string user_agent();

Charset charset_of_locale();

/// Control characters escaped: for names and messages from outside that go to stderr.
std::string for_stderr(std::string_view text);

/// `PROGRAM: …` on stderr, with a line end.
void complain(std::string_view text);

}  // namespace earshot::common
