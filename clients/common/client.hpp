// A WebSocket connection to the daemon. Boost is not visible here.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "common/endpoint.hpp"

namespace earshot::common {

/// Delays between attempts to connect: exponential, with jitter, so that many clients do not reconnect at
/// once.
class Backoff {
 public:
  static constexpr std::int64_t first_ms = 250;
  static constexpr std::int64_t max_ms = 10'000;

  /// Between half of the current delay and all of it; the next one is twice as long.
  std::int64_t next_ms() {
    const std::int64_t ms = ms_ / 2 + std::uniform_int_distribution<std::int64_t>(0, ms_ / 2)(random_);
    ms_ = std::min(ms_ * 2, max_ms);
    return ms;
  }
  void reset() { ms_ = first_ms; }

 private:
  std::int64_t ms_ = first_ms;
  std::minstd_rand random_{std::random_device{}()};
};

/// Callbacks of one connection; null ones are skipped.
struct Handlers {
  std::function<void()> on_open;
  std::function<bool(std::string_view)> on_frame;  // one JSON object; return false to close the connection
  std::function<void()> on_idle;                   // every received frame was handled: flush output here
};

class Client {
 public:
  static constexpr std::size_t frame_bytes_max = 64 << 20;  // a longer frame ends the connection
  static constexpr int silence_seconds_max = 75;  // without a frame; the daemon sends a heartbeat every 30 s

  /// Handles SIGINT and SIGTERM during its lifetime: they end run(), run_any() and pause().
  Client();
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Connects and calls the handlers until the connection ends, on_frame() returns false or a signal arrives.
  /// May be called again.
  ConnectionOutcome run(const DaemonAddress& address, const Handlers& handlers);

  /// Runs the first of `addresses` (not empty) that can be reached.
  ConnectResult run_any(const DaemonAddresses& addresses, const Handlers& handlers);

  /// Sends one text frame, in order. Call it from handlers only.
  void send(std::string text);

  /// Thread-safe. Runs `work` on the thread that is in, or next enters, run(), run_any() or pause().
  void post(std::function<void()> work);

  /// Calls `on_expiry` once, on the same thread, after `ms`. There is one timer: setting it again replaces
  /// it.
  void set_timer(std::int64_t ms, std::function<void()> on_expiry);

  /// SIGHUP, which ends the program otherwise, calls `on_hangup` on the same thread from now on.
  void handle_hangup(std::function<void()> on_hangup);

  /// Ends run(), run_any() (outcome `stopped`) or pause(), which may be called again. Call it on the same
  /// thread.
  void interrupt();

  /// Sleeps. Returns false at once if a signal arrives or arrived before.
  bool pause(std::int64_t ms);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace earshot::common
