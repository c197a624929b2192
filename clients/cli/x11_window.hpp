// Windows of an X server, found by the process that owns them, and brought to the front.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace earshot::cli {

/// The display's number of `:1.0`, `:1` or `unix:1`; nothing for a display of another machine.
std::optional<unsigned> local_display(std::string_view display);

struct X11Options {
  std::string display;    // of DISPLAY
  std::string authority;  // path of the Xauthority file; empty: the process's own, or none
};

struct X11Window {
  std::uint32_t id = 0;
  std::int64_t pid = 0;    // of the process that owns it
  std::size_t others = 0;  // further windows of that process
};

/// Activates a window of the first of `pids` that has one: through the window manager, or without one by
/// raising it and setting the input focus. Of several windows of that process `preferred` (0: none) is taken,
/// else the topmost one. Returns the reason if there is no window, or no display. Changes XAUTHORITY of this
/// process.
std::variant<X11Window, std::string> activate_x11_window(const X11Options& options,
                                                         const std::vector<std::int64_t>& pids,
                                                         std::uint32_t preferred);

}  // namespace earshot::cli
