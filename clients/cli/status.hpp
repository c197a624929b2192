// What the daemon reports about itself at /v1/health.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

/// Missing fields are empty.
struct Health {
  std::string version, host, address, socket, state;
  std::int64_t pid = 0, uptime_s = 0;
  struct Root {
    std::string name, path;
    bool exists = false;
    std::uint64_t transcripts = 0, live = 0;
  };
  std::vector<Root> roots;
  std::string watch_mode, watch_problem;
  std::uint64_t inotify_watches = 0;
  struct Problem {
    std::string path, reason, advice;
  };
  std::vector<Problem> problems;
  struct Host {
    std::string name, last_seen;  // last_seen: RFC 3339; empty: not known
    bool online = false;
  };
  std::vector<Host> hosts;  // of a hub
  std::optional<bool> redaction;
  std::size_t redaction_rules = 0;
  std::uint64_t connections = 0, connections_max = 0, sessions = 0;
};

/// Nothing if `json` is not the health of a daemon.
std::optional<Health> parse_health(std::string_view json);

}  // namespace earshot::cli
