// The sinks, where notices are sent: the desktop, commands and the bell, webhooks.
#pragma once
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "notifier/notice.hpp"

namespace earshot::notifier {

// --- commands and the bell (command.cpp): they block, and so run on a thread of their own

/// Runs the sink's command without a shell, with the notice as JSON on stdin and in EARSHOT_* variables. An
/// error includes the beginning of its stderr. After the sink's timeout it is killed with its children.
Delivery run_command(const Sink& sink, const Notice& notice);

/// Runs any program the same way.
Delivery run_program(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                     std::string_view input, std::int64_t timeout_ms);

/// Writes BEL to the sink's terminal or the controlling terminal.
Delivery write_bell(const Sink& sink);

/// One thread for blocking work, in order: commands, the bell, requests to the daemon.
class Worker {
 public:
  Worker();
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  void post(std::function<void()> work);  // ignored after stop()
  /// Waits for the running task; queued tasks are dropped.
  void stop();

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  bool stopping_ = false;
  std::thread thread_;
};

// --- webhooks (http.cpp): credentials, request bodies, and how they are sent

struct SecretError {
  std::string why;
};
/// The current value; empty if no source is set. A file that others can read is refused.
std::variant<std::string, SecretError> read_secret(const SecretSource& source);

/// HMAC-SHA256 in hex.
std::string sign(std::string_view key, std::string_view text);

struct WebhookRequest {
  std::string url;
  std::vector<std::string> headers;         // `Name: value`
  std::vector<std::string> secret_headers;  // sent only to the configured origin, not to redirect targets
  std::string body;                         // JSON
  std::string ca_file;
  std::int64_t timeout_ms = 0;
};

/// The current values of a sink's URL and secrets: read for each use, never in an argument or a log.
struct Credentials {
  std::string url, token, secret;
};
std::variant<Credentials, SecretError> read_credentials(const Sink& sink);

/// The request, or why there is none.
std::variant<WebhookRequest, SecretError> make_request(const Sink& sink, const Credentials& credentials,
                                                       const Notice& notice, std::int64_t now_ms);

/// The URL without parts that may be secret: https://hooks.example/…
std::string redact_url(std::string_view url);

/// Loopback, private, link-local, shared, multicast and reserved addresses, also embedded in IPv6, to which
/// redirects must not lead. Other address families are private.
bool is_private(const sockaddr* address);

/// The result of a delivery by HTTP status; `response` is the beginning of the response body.
Delivery delivery_result(long status, std::int64_t retry_after_ms, const std::string& response);

/// Sends the notice. Blocks up to the sink's timeout; `is_cancelled` is called at least once a second and
/// ends it earlier.
Delivery send_webhook(const Sink& sink, const Notice& notice, const std::function<bool()>& is_cancelled);

// --- the desktop

/// The displayed notices. Kept across restarts to replace and close them.
struct ShownNotices {
  struct Entry {
    std::string slot;
    std::string notice;    // its id
    std::uint32_t id = 0;  // of the notification server
    std::string link;      // of the session's page
    std::string session;   // whose terminal can be focused; empty: none
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::string server;  // identifies the server; ids of another server are invalid
  std::vector<Entry> entries;
  friend bool operator==(const ShownNotices&, const ShownNotices&) = default;
};

/// Desktop notifications. One implementation is compiled: for D-Bus (desktop_dbus.cpp), osascript or none.
class Desktop {
 public:
  static constexpr std::size_t entries_max = 200;     // above it the oldest is no longer replaced nor closed
  static constexpr std::int64_t reply_ms_max = 5000;  // without a reply by then the delivery failed

  /// Called on the desktop's thread.
  struct Callbacks {
    DeliveryCallback on_done;
    std::function<void(const ShownNotices::Entry& entry)> on_clicked;  // the user clicked a notice
    std::function<void(const ShownNotices::Entry& entry)> on_focus;    // chose to see the session's terminal
    std::function<void(ShownNotices shown)> on_shown;                  // the displayed notices changed
    std::function<void(std::string url)> on_open_failed;
    std::function<void(std::vector<std::string> command)> on_run_failed;
  };
  static std::unique_ptr<Desktop> make(Callbacks callbacks, ShownNotices before);
  virtual ~Desktop() = default;

  /// Displays the notice, replacing the one with the same slot.
  virtual void show(const QueuedNotice& queued) = 0;
  /// Closes the notice if it is still the one displayed in the slot.
  virtual void close(const std::string& slot, const std::string& notice);
  /// Opens the URL in the browser.
  virtual void open(const std::string& url) { callbacks_.on_open_failed(url); }
  /// Lets the user's service manager run the command, outside of this program's sandbox.
  virtual void run_outside(const std::vector<std::string>& command) { callbacks_.on_run_failed(command); }

 protected:
  explicit Desktop(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}
  Callbacks callbacks_;
};

/// The command that displays the notice on macOS. Texts are arguments of a constant script.
std::vector<std::string> osascript_command(const Notice& notice);

// --- all

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
  void run_outside(const std::vector<std::string>& command) { desktop_->run_outside(command); }
  /// Waits for deliveries in flight. Afterwards nothing may be sent.
  void stop();

 private:
  DeliveryCallback on_done_;
  std::atomic<std::chrono::steady_clock::time_point> stop_at_{std::chrono::steady_clock::time_point::max()};
  std::unique_ptr<Desktop> desktop_;
  std::map<std::string, Worker, std::less<>> workers_;  // sink → its thread
};

}  // namespace earshot::notifier
