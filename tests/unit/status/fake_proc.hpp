// A simulated /proc.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "status/process_table.hpp"
#include "unit/support/temporary_directory.hpp"

namespace earshot::status {

inline std::string stat_line(const std::string& name, const std::string& state, const std::string& start) {
  return "77 (" + name + ") " + state + " 1 77 77 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 " + start +
         " 12000 30 18446744073709551615\n";
}

struct FakeProc {
  test::TemporaryDirectory scratch;
  FakeProc() {
    scratch.write("machine-id", "abc123\n");
    scratch.write("proc/self/mounts", "proc " + scratch / "proc" + " proc rw,relatime 0 0\n");
    set_namespace("pid:[4026531836]");
  }
  void set_namespace(const std::string& target) const { link("proc/self/ns/pid", target); }
  void stat(int pid, const std::string& text) const {
    scratch.write("proc/" + std::to_string(pid) + "/stat", text);
  }
  /// `cwd`: empty if it may not be read. `start`: as /proc states it, in ticks since the machine started.
  void process(int pid, const std::vector<std::string>& arguments, const std::string& cwd,
               const std::string& state = "S", const std::string& start = "5") const {
    std::string command_line;
    for (const std::string& argument : arguments) command_line += argument + '\0';
    const std::string path = "proc/" + std::to_string(pid);
    scratch.write(path + "/cmdline", command_line);
    if (!cwd.empty()) link(path + "/cwd", cwd);
    stat(pid, stat_line("agent", state, start));
  }
  /// The start of a process that is this old, as process() takes it.
  static std::string start_of_age(std::int64_t age_ms) {
    timespec since_boot{};
    ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
    const std::int64_t now_ms = since_boot.tv_sec * 1000 + since_boot.tv_nsec / 1'000'000;
    return std::to_string((now_ms - age_ms) * ::sysconf(_SC_CLK_TCK) / 1000);
  }
  void exit(int pid) const { scratch.remove("proc/" + std::to_string(pid)); }
  ProcessTable processes() const { return ProcessTable(scratch / "proc", scratch / "machine-id"); }

 private:
  void link(const std::string& name, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(scratch / name).parent_path());
    std::filesystem::remove(scratch / name);
    std::filesystem::create_symlink(target, scratch / name);
  }
};

}  // namespace earshot::status
