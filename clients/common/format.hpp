// Texts for the user: names, messages on stderr, help. Durations, counts, times: base/quantities.hpp.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/display_text.hpp"
#include "base/quantities.hpp"

namespace CLI {
class App;
}

namespace earshot::common {

using Ms = std::chrono::milliseconds;

/// The first eight characters of the id of a session or an agent.
std::string_view short_id(std::string_view id);

/// `Codex CLI` for `codex`; another name is returned as it is.
std::string_view program_label(std::string_view program);

/// `api` of /home/u/api and C:\u\api; `path` itself if it has no component.
std::string_view last_component(std::string_view path);

/// `1 tool`, `2 tools`.
std::string plural(std::uint64_t count, std::string_view noun);

/// `$1,234.56`, from 10,000 on `$12,345`; `<$0.01` for less than a cent; an estimate begins with `~`. Empty
/// for what is no price: negative, not a number, or above 10^12.
std::string format_usd(double usd, bool is_estimate = false);

/// The length of an account limit's period, 1 minute or more: `5h`, `7d`, `1h30m`.
std::string period_text(std::int64_t minutes);

/// Sets the name that prefixes messages and identifies the program to the daemon; `earshot` by default.
/// `name` must outlive the program.
void set_program_name(std::string_view name);
std::string_view program_name();

/// NAME/VERSION, for User-Agent.
std::string user_agent();

/// UTF-8 also if LC_ALL, LC_CTYPE or LANG asks for it and that locale is not installed.
Charset charset_of_locale();

/// Text from outside (file names, peers' messages) on one line, control characters escaped.
std::string safe_text(std::string_view text);

/// Writes `PROGRAM: TEXT` and a line end to stderr.
void print_message(std::string_view text);

/// Formats help for the width of the terminal, with options as users type them: without REQUIRED, and without
/// a type that repeats the name.
void set_help_format(CLI::App& app);

}  // namespace earshot::common
