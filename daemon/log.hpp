// What the daemon tells people, on stderr.
#pragma once
#include <string>
#include <string_view>

namespace earshot {

/// From here on spdlog writes lines that a terminal and a journal can show: what they say may hold the names
/// of files, which hold any bytes. `level`: trace, debug, info, warn, error, off. What goes to the logger
/// `audit` is told in all of them but `off`.
void start_log(const std::string& level);

/// Control characters as `\x1b`.
std::string visible(std::string_view text);

}  // namespace earshot
