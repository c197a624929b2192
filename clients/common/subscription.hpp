// What a command asks the daemon for.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace earshot::common {

/// Globs, as typed. Lists are ORed, kinds are ANDed; an empty list lets all through.
struct Filters {
  std::vector<std::string> project, session, type, host;
};

struct SubscribeOptions {
  std::string id = "cli";
  bool snapshot = true;
  bool all = false;                // sessions that are not live too
  bool state = false;              // session frames only, no events
  bool catch_up = false;           // a slow reader gets what it missed, not fresh snapshots
  std::vector<std::string> after;  // `<stream>:<cursor>` each
};

/// A word without wildcards is a name: `api` is the project */api, `2eaa` the session that begins so, `turn`
/// the types turn.*.
std::string project_pattern(std::string_view typed);
std::string session_pattern(std::string_view typed);
std::string type_pattern(std::string_view typed);

/// The message, one JSON object.
std::string subscribe_message(const Filters& filters, const SubscribeOptions& options);

std::string unsubscribe_message(std::string_view id);

}  // namespace earshot::common
