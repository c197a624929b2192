// `/v1/health`: what this daemon is and how it is, for `earshot doctor` and for people.
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
    std::size_t transcripts = 0, live = 0;  // known below it; of those, read and followed
  };
  struct Watch {
    std::string mode;     // inotify, sweep, both
    std::string trouble;  // empty: all is well
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
    std::vector<std::string> rules;  // that look, by name
  };

  std::string version, instance, host;
  std::int64_t pid = 0, uptime_s = 0;
  std::string state, address, socket;  // paths and a URL; empty: there is none
  std::vector<Root> roots;
  Watch watch;
  std::vector<Trouble> troubles;
  Redaction redaction;
  TeamMetrics team;
  std::vector<Host> hosts;
  std::size_t connections = 0, sessions = 0;
  std::vector<std::pair<std::string, std::uint64_t>> limits;  // as they are called in [limits]
};

std::string health_json(const Health& health);

}  // namespace earshot::serve
