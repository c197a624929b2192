#include "notifier/desktop.hpp"

namespace earshot::notifier {

std::vector<std::string> osascript_command(const Notice& notice) {
  return {"osascript",
          "-e",
          "on run argv",
          "-e",
          "display notification (item 2 of argv) with title (item 1 of argv) subtitle (item 3 of argv)",
          "-e",
          "end run",
          "--",
          notice.title,
          notice.body,
          notice.urgency == Urgency::critical ? "earshot: needs your attention" : "earshot"};
}

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace earshot::notifier
