// Notices on the desktop. One implementation is compiled in: desktop_bus, desktop_osascript or desktop_none.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "notifier/queued_notice.hpp"

namespace earshot::notifier {

/// What is on the screen, so that the next program can replace and close it.
struct Shown {
  struct Place {
    std::string slot;
    std::string notice;    // its id
    std::uint32_t id = 0;  // the server's
  };
  std::string server;  // who gave the ids: another one never gave them
  std::vector<Place> places;
};

class Desktop {
 public:
  static constexpr std::size_t places_max = 200;   // of more the oldest is no longer replaced nor closed
  static constexpr std::int64_t answer_ms = 5000;  // a server that takes longer has not shown it

  /// All are called on the desktop's own thread.
  struct Hooks {
    std::function<void(const std::string& key, const Delivery& delivery)> done;
    std::function<void()> opened;            // the person wants to see more
    std::function<void(Shown shown)> shown;  // it changed
    std::function<void(std::string url)> cannot_open;
  };
  static std::unique_ptr<Desktop> make(Hooks hooks, Shown before);
  virtual ~Desktop() = default;

  /// In the place of what the notice's slot shows.
  virtual void show(const QueuedNotice& queued) = 0;
  /// Only when the slot still shows this notice.
  virtual void close(const std::string& slot, const std::string& notice) = 0;
  /// In the browser, by the desktop's own means.
  virtual void open(const std::string& url) = 0;
};

/// The words that make macOS show it. Texts are arguments of a script that never changes.
std::vector<std::string> osascript_words(const Notice& notice);

/// `&`, `<` and `>` as a server wants them that understands markup; to Slack nothing is a mention, a channel
/// or a link without them.
std::string without_markup(std::string_view text);

}  // namespace earshot::notifier
