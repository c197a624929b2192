// What `earshot doctor` looks at. Details are gathered in one place and judged in another, so that judging
// can be tested without a kernel that is in trouble.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/style.hpp"
#include "common/endpoint.hpp"

namespace earshot::cli::doctor {

enum class Level { ok, warning, problem };

struct Finding {
  Level level = Level::ok;
  std::string what;    // one word
  std::string text;    // what is the case
  std::string advice;  // what to do, mostly a command; empty: nothing
};
using Findings = std::vector<Finding>;

/// What /v1/health says; absent fields are empty.
struct Health {
  std::string version, host, address, socket, state;
  std::int64_t pid = 0, uptime_s = 0;
  struct Root {
    std::string name, path;
    bool there = false;
    std::uint64_t transcripts = 0, live = 0;
  };
  std::vector<Root> roots;
  std::string watch_mode, watch_trouble;
  std::uint64_t inotify_watches = 0;
  struct Trouble {
    std::string path, reason, advice;
  };
  std::vector<Trouble> troubles;
  struct Host {
    std::string name, heard;  // heard: RFC 3339; empty: not known
    bool online = false;
  };
  std::vector<Host> hosts;  // of a hub
  std::optional<bool> redaction;
  std::size_t redaction_rules = 0;
  std::uint64_t connections = 0, connections_max = 0, sessions = 0;
};
std::optional<Health> parse_health(std::string_view json);

/// The daemon as it was probe.
struct Probe {
  std::optional<Health> health;
  int http_status = 0;  // 0: it was not reached
  std::string trouble;  // why there is no health
  std::string door;     // through which it was reached
};
Findings check_daemon(const Probe& probe, std::string_view own_version);
/// Redaction and what the daemon itself complains of.
Findings check_health(const Health& health);
/// At a hub: who is heard, and who is not.
Findings check_hosts(const Health& health, std::int64_t now_ms);

/// A file or directory that must be ours alone.
struct PrivatePath {
  std::string path;
  int error = 0;  // errno of lstat
  mode_t mode = 0;
  uid_t owner = 0;
};
PrivatePath stat_private(const std::string& path);
/// `expected`: that it is absent is no trouble.
Finding check_private(std::string_view what, const PrivatePath& file, mode_t type, uid_t own,
                      bool may_be_absent);

Findings check_state(const std::string& state, const std::string& token_file, const std::string& socket,
                     bool running);

/// A root and what is below it.
struct Root {
  std::string name, path;
  bool expected = false;  // somebody asked for it: it should be there
  bool there = false;
  std::uint64_t transcripts = 0, unreadable = 0, directories = 0;
  std::string unreadable_example;
  std::string error;  // of the root itself
  std::int64_t newest_ms = 0;
};
/// $CLAUDE_CONFIG_DIR, ~/.claude, ~/.config/claude; the same directory once.
std::vector<Root> default_roots();
/// Counts; opens no file.
void scan_root(Root& root);
Findings check_roots(const std::vector<Root>& roots, std::int64_t now_ms);

struct Kernel {
  std::optional<std::uint64_t> watches_max, instances_max;                      // of a user
  std::optional<std::uint64_t> namespace_watches_max, namespace_instances_max;  // of a user namespace
  std::uint64_t watches_used = 0, instances_used = 0;  // by this user's processes that can be seen
  std::uint64_t descriptors_max = 0;                   // of the daemon, or of what is started from here
};
Kernel kernel(std::int64_t daemon_pid);
Findings check_kernel(const Kernel& kernel, std::uint64_t directories, const Health* health);

Finding check_disk(const std::string& path, std::optional<std::uint64_t> bytes_free);
std::optional<std::uint64_t> bytes_free(std::string path);
Finding check_clock(std::int64_t now_ms, std::int64_t newest_ms);

std::string report(const Findings& findings, const DisplayOptions& display);
std::string report_json(const Findings& findings);
bool has_problem(const Findings& findings);

}  // namespace earshot::cli::doctor
