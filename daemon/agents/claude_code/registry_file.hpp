// `<root>/sessions/<pid>.json`: what an agent program says about itself. Rewritten in place: read empty at
// times.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace earshot::status {

constexpr std::size_t entry_bytes_max = 64 << 10;  // a longer file is not read: its last state stays

/// One file. Empty or 0: not said.
struct RegistryEntry {
  std::int64_t pid = 0;
  std::string session, cwd, name, version;
  std::string proc_start;   // field 22 of /proc/<pid>/stat
  std::string pid_domain;   // Processes::pid_domain()
  std::string status;       // busy, idle, waiting, shell; empty in older versions
  std::string waiting_for;  // permission prompt, input needed, dialog open, …
  std::int64_t started_ms = 0, updated_ms = 0, status_updated_ms = 0;  // since 1970
  friend bool operator==(const RegistryEntry&, const RegistryEntry&) = default;

  std::int64_t said_ms() const {
    return status_updated_ms ? status_updated_ms : updated_ms ? updated_ms : started_ms;
  }
};

/// Nothing when it is not one JSON object (caught while it was written). Fields of a wrong type are absent.
std::optional<RegistryEntry> parse_entry(std::string_view json);

/// The pid in a registry file's name; nothing for others: `.key` files lie beside them and are secrets.
std::optional<std::int64_t> pid_of_name(std::string_view file_name);

}  // namespace earshot::status
