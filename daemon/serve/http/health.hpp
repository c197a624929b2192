// `/v1/health`: identity and state of the daemon, for `earshot doctor` and users.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "serve/http/team_metrics.hpp"

namespace earshot::serve {

struct Health {
  struct Root {
    std::string name, path;
    bool there = false;
    std::size_t transcripts = 0, live = 0;  // known; of those, followed
  };
  struct Watch {
    std::string mode;     // inotify, sweep, both
    std::string trouble;  // empty: none
    std::size_t inotify_watches = 0;
  };
  struct Trouble {
    std::string path, reason, advice;
  };
  struct Host {  // of a hub
    std::string name;
    bool online = false;
    std::string heard;  // RFC 3339
  };
  struct Redaction {
    bool on = false;
    std::vector<std::string> rules;  // active rules
  };

  std::string version, instance, host;
  std::int64_t pid = 0, uptime_s = 0;
  std::string state, address, socket;  // paths and a URL; empty: none
  std::vector<Root> roots;
  Watch watch;
  std::vector<Trouble> troubles;
  Redaction redaction;
  TeamMetrics team;
  std::vector<Host> hosts;
  std::size_t connections = 0, sessions = 0;
  std::vector<std::pair<std::string, std::uint64_t>> limits;  // by name
};

std::string health_json(const Health& health);

}  // namespace earshot::serve
