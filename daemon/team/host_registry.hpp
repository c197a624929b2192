// Which hosts a hub hears of, and what their sessions do: the last status of each, and whether anybody is
// there to tell a newer one.
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

struct HostSeen {
  std::string name;
  bool online = false;
  std::string heard;  // RFC 3339: when it was last heard
};

/// All calls and callbacks on the loop's thread.
class HostRegistry {
 public:
  static constexpr std::size_t sessions_max = 2000;  // of one host, whose status is known; the oldest goes
  static constexpr std::size_t hosts_max = 10'000;   // of more nothing is heard

  using Show = std::function<void(const std::string& session, const status::Status&)>;
  /// What those sessions of these hosts become of which their host said nothing. All hosts of a tick at once:
  /// each call looks at every session.
  using ShowHosts = std::function<void(const status::HostStatuses&)>;
  HostRegistry(boost::asio::io_context& io, Show show, ShowHosts show_hosts);
  void start();
  void stop();

  /// Nothing is believed of a host that was not published under its own subjects.
  void hear(const HeardStatus& heard);
  /// Whether anybody could be heard now: while the broker is away, nobody is said to be away for that.
  std::function<bool()> hears;
  bool online(std::string_view host) const;
  std::vector<HostSeen> seen() const;

 private:
  struct Host {
    enum class Is { unsure, online, away } is = Is::unsure;  // unsure: nothing but old words of it
    watch::Clock::time_point beat;                           // or since when we listen
    std::int64_t heard_ms = 0;
    std::uint64_t told = 0;  // statuses
    struct Session {
      status::Status status;
      std::uint64_t number = 0;  // the newest has the greatest
    };
    std::map<std::string, Session> sessions;  // as `<session>@<host>`
  };

  void tick();
  void away(const std::string& name, Host& host);
  void beat(const std::string& name, Host& host, const HeardStatus& heard);
  static void remember(Host& host, const std::string& session, const status::Status& status);
  void listen_again();

  const Show show_;
  const ShowHosts show_hosts_;
  status::HostStatuses changed_;  // since the last tick
  watch::Timer ticker_;
  std::map<std::string, Host, std::less<>> hosts_;
  bool deaf_ = false;
};

}  // namespace earshot::team
