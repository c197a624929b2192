// The hosts that publish to a hub: whether each is online, and the last status of its sessions.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "status/status.hpp"
#include "team/consumer.hpp"

namespace earshot::team {

struct HostInfo {
  std::string name;
  bool online = false;
  std::string last_seen;  // RFC 3339, or empty
};

/// All calls and callbacks run on the event loop's thread.
class HostRegistry {
 public:
  static constexpr std::size_t sessions_max = 2000;  // per host; above it, the oldest status is dropped
  static constexpr std::size_t hosts_max = 10'000;   // further hosts are ignored

  using OnStatus = std::function<void(const std::string& session, const status::Status&)>;
  /// The status of all sessions without one of their own, by host. Called once per tick, as the receiver
  /// iterates over all sessions.
  using OnHosts = std::function<void(const status::HostStatuses&)>;
  HostRegistry(boost::asio::io_context& io, OnStatus on_status, OnHosts on_hosts);
  void start();
  void stop();

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
    std::int64_t last_seen_ms = 0;     // of the broker's clock
    std::uint64_t status_count = 0;
    struct Session {
      status::Status status;
      std::uint64_t number = 0;  // increases with each status of the host
    };
    std::map<std::string, Session> sessions;  // by `<session>@<host>`
  };

  void tick();
  void set_offline(const std::string& name, Host& host);
  void on_heartbeat(const std::string& name, Host& host, const StatusMessage& message);
  static void store_status(Host& host, const std::string& session, const status::Status& status);
  void update_connection();

  const OnStatus on_status_;
  const OnHosts on_hosts_;
  status::HostStatuses changed_;  // since the last tick
  Timer tick_timer_;
  std::map<std::string, Host, std::less<>> hosts_;
  bool is_disconnected_ = false;
};

}  // namespace earshot::team
