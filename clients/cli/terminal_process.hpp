// Which terminal a process of this user belongs to: its controlling terminal, its ancestors and its
// environment, from /proc.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::cli {

struct TerminalProcess {
  std::int64_t pid = 0, parent = 0;
  std::string name;  // of the executable, as the kernel cuts it
  std::string tty;   // `/dev/pts/3`; empty: none
};

/// The fields of /proc/<pid>/stat, whose name may contain any character; nothing for other text. `tty` is
/// found by its device number.
std::optional<TerminalProcess> parse_process_stat(std::string_view stat);

/// Nothing: there is no such process, or it cannot be read. A process without a controlling terminal has that
/// of its standard streams.
std::optional<TerminalProcess> read_process(std::int64_t pid);

constexpr std::size_t ancestors_max = 64;
/// The process itself first, then its parents, without process 1.
std::vector<TerminalProcess> process_and_ancestors(std::int64_t pid);

using ProcessEnvironment = std::map<std::string, std::string, std::less<>>;
/// Empty for a process of another user.
ProcessEnvironment read_process_environment(std::int64_t pid);

}  // namespace earshot::cli
