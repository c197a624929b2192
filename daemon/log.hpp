// The daemon's log on stderr.
#pragma once
#include <string>
#include <string_view>

namespace earshot {

/// Configures spdlog. Control characters are escaped: messages contain file names, which are untrusted.
/// `level`: trace, debug, info, warn, error, off. The logger `audit` writes at every level but `off`.
void start_log(const std::string& level);

/// Replaces control characters with `\x1b`.
std::string escape_controls(std::string_view text);

}  // namespace earshot
