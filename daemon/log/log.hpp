// Log messages of the daemon. spdlog's own functions compile the formatting of every type in each file; these
// call the library's.
#pragma once
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <string_view>
#include <utility>

namespace earshot {

/// Formats the arguments and writes one message, if the logger has this level.
template <class... Args>
void log_to(spdlog::logger& logger, spdlog::level::level_enum level, fmt::format_string<Args...> text,
            const Args&... args) {
  if (logger.should_log(level))
    logger.log(level, spdlog::string_view_t(fmt::vformat(text, fmt::make_format_args(args...))));
}

template <class... Args>
void log_error(fmt::format_string<Args...> text, const Args&... args) {
  log_to<Args...>(*spdlog::default_logger_raw(), spdlog::level::err, text, args...);
}
template <class... Args>
void log_warn(fmt::format_string<Args...> text, const Args&... args) {
  log_to<Args...>(*spdlog::default_logger_raw(), spdlog::level::warn, text, args...);
}
template <class... Args>
void log_info(fmt::format_string<Args...> text, const Args&... args) {
  log_to<Args...>(*spdlog::default_logger_raw(), spdlog::level::info, text, args...);
}
template <class... Args>
void log_debug(fmt::format_string<Args...> text, const Args&... args) {
  log_to<Args...>(*spdlog::default_logger_raw(), spdlog::level::debug, text, args...);
}

}  // namespace earshot
