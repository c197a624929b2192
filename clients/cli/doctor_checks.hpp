// What `earshot doctor` looks at. Details are gathered in one place and judged in another, so that judging
// can be tested without a kernel that is in trouble.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/roots.hpp"
#include "base/system.hpp"
#include "cli/commands.hpp"
#include "cli/style.hpp"
#include "common/endpoint.hpp"
#include "common/notifier_health.hpp"

namespace earshot::cli::doctor {

enum class Level { ok, warning, problem };

struct Finding {
  Level level = Level::ok;
  std::string what;    // the subject, one word
  std::string text;    // the finding
  std::string advice;  // what to do, usually a command; empty: nothing
};
using Findings = std::vector<Finding>;

/// The result of contacting the daemon.
struct Probe {
  std::optional<Health> health;
  int http_status = 0;  // 0: not reached
  std::string error;    // why there is no health
  std::string address;  // at which it was reached
};
Findings check_daemon(const Probe& probe, std::string_view own_version);
/// Redaction, connections and the problems that the daemon reports.
Findings check_health(const Health& health);
/// Of a hub: the hosts that are online or offline.
Findings check_hosts(const Health& health, std::int64_t now_ms);

/// A file or directory that only its owner may access; FileType::other is a socket.
Finding check_private(std::string_view what, const std::string& path, const FileStat& file, FileType type,
                      uid_t own, bool may_be_absent);

Findings check_state(const std::string& state, const std::string& token_file, const std::string& socket,
                     bool running);

/// A root directory and its transcripts.
struct Root {
  std::string name, path;
  const AgentProgram* program = &default_program();
  bool is_mixed = false;  // transcripts of all programs: a hub's
  bool expected = false;  // configured by the user: it should exist
  bool exists = false;
  std::uint64_t transcripts = 0, unreadable = 0, directories = 0;
  std::string unreadable_example;
  std::vector<std::string> damaged;  // compressed transcripts
  std::string error;                 // of the root itself
  std::int64_t newest_ms = 0;
};
/// Those of all agent programs, as earshotd finds them.
std::vector<Root> default_roots();
/// Those that variables or settings name, by this environment, and that are not `monitored` (paths).
std::vector<Root> unmonitored_roots(const std::vector<std::string>& monitored,
                                    const Environment& environment = process_environment);
/// Counts transcripts; opens compressed ones only.
void scan_root(Root& root);
Findings check_roots(const std::vector<Root>& roots, std::int64_t now_ms);
Findings check_unmonitored(const std::vector<Root>& roots);

struct Kernel {
  std::optional<std::uint64_t> watches_max, instances_max;                      // per user
  std::optional<std::uint64_t> namespace_watches_max, namespace_instances_max;  // per user namespace
  std::uint64_t watches_used = 0, instances_used = 0;  // by this user's visible processes
  std::uint64_t descriptors_max = 0;                   // of the daemon, or of this process
};
Kernel kernel(std::int64_t daemon_pid);
Findings check_kernel(const Kernel& kernel, std::uint64_t directories, const Health* health);

/// Sinks of notices that fail, and rules that could not be reloaded.
Findings check_notifier(const NotifierHealth& health);

Finding check_disk(const std::string& path, std::optional<std::uint64_t> bytes_free);
std::optional<std::uint64_t> bytes_free(std::string path);
Finding check_clock(std::int64_t now_ms, std::int64_t newest_ms);

std::string report(const Findings& findings, const DisplayOptions& display);
std::string report_json(const Findings& findings);
bool has_problem(const Findings& findings);

}  // namespace earshot::cli::doctor
