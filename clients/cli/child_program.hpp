// Runs another program to its end: no shell is involved, so that ids and names are data.
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace earshot::cli {

struct ProgramResult {
  bool started = false;  // false: it is not installed, or cannot be executed
  int exit_code = -1;    // -1: it was killed, also when it took too long
  std::string out, err;  // at most output_bytes_max of each
  bool ok() const { return started && exit_code == 0; }
};

constexpr std::size_t output_bytes_max = 1 << 20;
constexpr std::chrono::seconds program_time_max{5};  // it is killed then

/// `words`: the program, searched in PATH, and its arguments. `environment`: NAME=VALUE each, in addition to
/// and in place of this process's own. stdin is empty.
ProgramResult run_program(const std::vector<std::string>& words,
                          const std::vector<std::string>& environment = {});

}  // namespace earshot::cli
