// The sinks: where notices are sent.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "notifier/notice.hpp"
#include "notifier/sinks/command.hpp"

namespace earshot::notifier {

/// The displayed notices. Kept across restarts to replace and close them.
struct ShownNotices {
  struct Entry {
    std::string slot;
    std::string notice;    // its id
    std::uint32_t id = 0;  // of the notification server
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::string server;  // identifies the server; ids of another server are invalid
  std::vector<Entry> entries;
  friend bool operator==(const ShownNotices&, const ShownNotices&) = default;
};

/// Desktop notifications. One implementation is compiled: desktop_dbus, desktop_osascript or desktop_none.
class Desktop {
 public:
  static constexpr std::size_t entries_max = 200;     // above it the oldest is no longer replaced nor closed
  static constexpr std::int64_t reply_ms_max = 5000;  // without a reply by then the delivery failed

  /// Called on the desktop's thread.
  struct Callbacks {
    DeliveryCallback on_done;
    std::function<void()> on_clicked;                  // the user clicked a notice
    std::function<void(ShownNotices shown)> on_shown;  // the displayed notices changed
    std::function<void(std::string url)> on_open_failed;
  };
  static std::unique_ptr<Desktop> make(Callbacks callbacks, ShownNotices before);
  virtual ~Desktop() = default;

  /// Displays the notice, replacing the one with the same slot.
  virtual void show(const QueuedNotice& queued) = 0;
  /// Closes the notice if it is still the one displayed in the slot.
  virtual void close(const std::string& slot, const std::string& notice);
  /// Opens the URL in the browser.
  virtual void open(const std::string& url) { callbacks_.on_open_failed(url); }

 protected:
  explicit Desktop(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}
  Callbacks callbacks_;
};

/// The command that displays the notice on macOS. Texts are arguments of a constant script.
std::vector<std::string> osascript_command(const Notice& notice);

/// Sends notices to sinks of all kinds. Sinks that block have a thread each, so that none delays another.
class Sinks {
 public:
  static constexpr std::chrono::milliseconds shutdown_grace{2000};  // for webhooks in flight at stop()

  /// The callbacks are called on threads of the sinks.
  Sinks(Desktop::Callbacks callbacks, ShownNotices shown);
  ~Sinks() { stop(); }

  /// Starts a delivery; on_done is called with its result.
  void send(const Sink& sink, const QueuedNotice& queued);
  void close(const std::string& slot, const std::string& notice) { desktop_->close(slot, notice); }
  void open(const std::string& url) { desktop_->open(url); }
  /// Waits for deliveries in flight. Afterwards nothing may be sent.
  void stop();

 private:
  DeliveryCallback on_done_;
  std::atomic<std::chrono::steady_clock::time_point> stop_at_{std::chrono::steady_clock::time_point::max()};
  std::unique_ptr<Desktop> desktop_;
  std::map<std::string, Worker, std::less<>> workers_;  // sink → its thread
};

}  // namespace earshot::notifier
