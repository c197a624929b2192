// A WebSocket connection to the daemon. Nothing of Boost shows here.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/endpoint.hpp"

namespace earshot::common {

enum class Ending {
  stopped,      // a signal came, or on_message said that it is enough
  unreachable,  // no connection: nobody listens there, or no such host
  refused,      // the daemon answered, but not with a WebSocket; `http_status` says why
  closed,       // it was there and went away; `close_code` where it said one
};

struct Outcome {
  Ending ending = Ending::closed;
  int http_status = 0;
  int close_code = 0;  // 4500–4999: do not come back
  std::string text;    // for people; printable only after escaping: part of it may come from the other side
};

/// The doors that were tried, in order: how each attempt ended.
struct Visit {
  std::vector<Outcome> outcomes;  // never empty; all but the last are `unreachable`
  const Outcome& last() const { return outcomes.back(); }
  const DaemonAddress& door(const Doors& doors) const { return doors[outcomes.size() - 1]; }
};

struct Handlers {
  std::function<void()> on_open;
  std::function<bool(std::string_view)> on_message;  // one JSON object; false: enough, close
  std::function<void()> on_quiet;                    // all that has come was handled: flush
};

class Client {
 public:
  static constexpr std::size_t message_bytes_max = 64 << 20;  // a longer message ends the connection
  static constexpr int handshake_seconds = 5;                 // for the connection and the upgrade together
  static constexpr int silence_seconds = 60;  // without a byte, pings included, the connection is lost

  /// Catches SIGINT and SIGTERM from now on, for as long as it lives.
  Client();
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Connects, then calls the handlers until the connection or the wish to have one ends. May be called
  /// again.
  Outcome run(const Endpoint& endpoint, const std::string& token, const Handlers& handlers);

  /// Tries one door after the other until one is reached.
  Visit visit(const Doors& doors, const Handlers& handlers);

  /// Only inside a handler: one text message, in order.
  void send(std::string text);

  /// From any thread, for as long as this lives: `work` is done on the thread that is in run(), visit() or
  /// pause(), once one of these is called.
  void post(std::function<void()> work);

  /// Rings once, likewise, after so many milliseconds; there is one alarm, and setting it again replaces it.
  void set_alarm(std::int64_t ms, std::function<void()> ring);

  /// Waits; false when a signal came. A signal that came before counts.
  bool pause(std::int64_t ms);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace earshot::common
