// The page that the daemon serves, shown to a person.
#pragma once
#include <string>
#include <string_view>

namespace earshot::common {

/// The program that opens addresses where there is something to see them on; null: there is no display.
const char* browser_command();

/// Only an http address of printable characters is ever handed to another program or printed.
bool is_web_address(std::string_view url);

/// False: it could not be started, or failed at once. Takes as long as the program does, 3 s at most.
bool open_in_browser(const char* program, const std::string& url);

}  // namespace earshot::common
