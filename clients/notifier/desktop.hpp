// Desktop notifications. One implementation is compiled: desktop_bus, desktop_osascript or desktop_none.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "notifier/queued_notice.hpp"

namespace earshot::notifier {

/// The displayed notices. Kept across restarts to replace and close them.
struct ShownNotices {
  struct Entry {
    std::string slot;
    std::string notice;    // its id
    std::uint32_t id = 0;  // of the notification server
  };
  std::string server;  // identifies the server; ids of another server are invalid
  std::vector<Entry> entries;
};

class Desktop {
 public:
  static constexpr std::size_t entries_max = 200;     // above it the oldest is no longer replaced nor closed
  static constexpr std::int64_t reply_ms_max = 5000;  // without a reply by then the delivery failed

  /// Called on the desktop's thread.
  struct Callbacks {
    std::function<void(const std::string& key, const Delivery& delivery)> on_done;
    std::function<void()> on_clicked;                  // the user clicked a notice
    std::function<void(ShownNotices shown)> on_shown;  // the displayed notices changed
    std::function<void(std::string url)> on_open_failed;
  };
  static std::unique_ptr<Desktop> make(Callbacks callbacks, ShownNotices before);
  virtual ~Desktop() = default;

  /// Displays the notice, replacing the one with the same slot.
  virtual void show(const QueuedNotice& queued) = 0;
  /// Closes the notice if it is still the one displayed in the slot.
  virtual void close(const std::string& slot, const std::string& notice) = 0;
  /// Opens the URL in the browser.
  virtual void open(const std::string& url) = 0;
};

/// The command that displays the notice on macOS. Texts are arguments of a constant script.
std::vector<std::string> osascript_command(const Notice& notice);

/// Escapes `&`, `<` and `>` for servers with markup. In Slack's format this also disables mentions, channels
/// and links.
std::string escape_markup(std::string_view text);

}  // namespace earshot::notifier
