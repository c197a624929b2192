// The hosts that publish to a hub: whether each is online, and the last status of its sessions.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "serve/auth/access.hpp"
#include "serve/slices.hpp"
#include "serve/stream/session_store.hpp"
#include "status/status.hpp"

namespace earshot::team {

/// A status or a heartbeat.
struct StatusMessage {
  std::string subject, payload;
  std::int64_t time_ms = 0;  // of the broker's clock
  bool is_replayed = false;  // stored before the subscription began
};

/// Passes statuses from a thread of the broker's client to the event loop: the newest message of each
/// subject.
class StatusQueue {
 public:
  static constexpr std::size_t host_max = 20'000;    // subjects of a host; further ones are dropped
  static constexpr std::size_t total_max = 200'000;  // subjects; at the limit the hub connects again

  /// `first`: notify the event loop, which then takes messages until there are none.
  enum class Put { first, more, host_full, full };
  /// From any thread.
  Put put(StatusMessage message);
  /// Messages by escaped host, then by subject.
  using Messages = std::map<std::string, std::map<std::string, StatusMessage>>;
  /// Removes and returns all messages. None: the next put() notifies.
  Messages take();

 private:
  std::mutex mutex_;
  Messages hosts_;
  std::size_t size_ = 0;
  bool is_notified_ = false;
};

struct HostInfo {
  std::string name;
  bool online = false;
  std::string last_seen;  // RFC 3339, or empty
};

/// All calls and callbacks run on the event loop's thread.
class HostRegistry {
 public:
  static constexpr std::size_t sessions_max = 2000;      // per host; above it, the oldest becomes `unknown`
  static constexpr std::size_t session_bytes_max = 256;  // of a session's name; longer ones are ignored
  // Statuses of further sessions of a host that has sessions_max; above the rate they are ignored.
  static constexpr std::size_t evictions_burst = 20'000, evictions_per_second = 100;
  static constexpr std::size_t hosts_max = 10'000;  // further hosts are ignored
  static constexpr std::int64_t clock_tolerance_ms = 5000;
  static constexpr std::size_t offsets_max =
      3;  // heartbeats whose least delayed one shows the clock's offset

  using OnStatus = std::function<void(const std::string& session, const status::Status&)>;
  /// The status of all sessions without one of their own, by host. Called once per tick, as the receiver
  /// iterates over all sessions.
  using OnHosts = std::function<void(const status::HostStatuses&)>;
  HostRegistry(boost::asio::io_context& io, OnStatus on_status, OnHosts on_hosts);
  void start();
  void stop();

  /// The numbers in a status, replayed ones included, if they changed. Null: ignored.
  std::function<void(const std::string& session, const serve::ReportedNumbers&)> on_numbers;
  /// What to add to a host's times to get this machine's time, in ms; 0: its clock is off by no more than
  /// clock_tolerance_ms. Called when it changes noticeably. Null: ignored.
  std::function<void(const std::string& host, std::int64_t offset_ms)> on_clock;

  /// Ignores a message whose subject does not belong to its host.
  void on_message(const StatusMessage& message);
  /// Whether the broker is connected. While it is not, no host becomes offline. Null: always connected.
  std::function<bool()> is_connected;
  bool online(std::string_view host) const;
  std::vector<HostInfo> hosts() const;

 private:
  struct Host {
    enum class State { unknown, online, offline } state = State::unknown;  // unknown: replayed messages only
    Clock::time_point last_heartbeat;  // initially the start of the subscription
    std::int64_t last_seen_ms = 0;     // of the broker's clock, for users only
    std::uint64_t status_count = 0;
    serve::TokenBucket evictions{evictions_per_second, evictions_burst};
    std::deque<std::int64_t> offsets_ms;  // of the last heartbeats: the clock's offset and the delay
    std::int64_t offset_ms = 0;           // as on_clock received it
    struct Session {
      status::Status status;
      std::optional<status::Done> told;  // the last one that was passed on, or found
      serve::ReportedNumbers numbers;
      std::uint64_t number = 0;  // increases with each status of the host
    };
    std::map<std::string, Session> sessions;     // by `<session>@<host>`
    std::map<std::uint64_t, std::string> order;  // the sessions by the numbers of their statuses
    std::optional<std::string>
        passed_on;  // the last one, while those of all sessions are passed on in slices
  };

  void tick();
  void pass_on(const std::string& name, Host& host);
  void on_heartbeat(const std::string& name, Host& host, const StatusMessage& message,
                    std::string_view host_time);
  void update_clock(const std::string& name, Host& host, std::string_view host_time);
  bool store_status(Host& host, const std::string& session, const status::Status& status,
                    const serve::ReportedNumbers& numbers);
  void update_connection();

  const OnStatus on_status_;
  const OnHosts on_hosts_;
  status::HostStatuses changed_;  // since the last tick
  Timer tick_timer_;
  std::map<std::string, Host, std::less<>> hosts_;
  serve::Slices slices_;  // owned by hosts
  bool is_disconnected_ = false;
};

}  // namespace earshot::team
