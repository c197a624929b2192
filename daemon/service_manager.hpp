// Installs and removes the user service: writes the service manager's file and runs the manager's commands.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "service_file.hpp"

namespace earshot::service {

/// Exit codes.
constexpr int done = 0;
constexpr int failed = 1;   // a file could not be written, or the service did not start
constexpr int invalid = 2;  // the options cannot be written to a service file
constexpr int no_manager =
    3;  // the file is correct, but the manager did not answer; its commands were printed
constexpr int edited_file = 4;  // the file was edited: nothing was changed

struct Step {
  std::vector<std::string> command;
  /// Meaning of a failure: the manager is not there, the service has a problem, or nothing.
  enum class OnFailure { no_manager, service_problem, ignore } on_failure = OnFailure::service_problem;
};

/// A service manager and the steps for one service.
struct Manager {
  std::string file;  // absolute path
  std::string text;
  std::vector<Step> install;       // after a new file was written
  std::vector<Step> replace;       // after the file was changed
  std::vector<Step> stop;          // before the file is removed
  std::vector<Step> after_remove;  // after
  std::vector<std::string> links;  // links to the file, removed when the manager cannot do it
  std::vector<std::string> hints;  // printed after an install
  std::string start_failure_hint;  // printed when the service does not start
  std::string error;               // not empty: why none of this is possible
};

/// `config_home`: XDG_CONFIG_HOME or its default.
Manager systemd(const ServiceSpec& spec, const std::string& config_home);
Manager launchd(const ServiceSpec& spec, uid_t uid);

/// Runs a command; its exit code, or -1 if the program does not exist.
using Run = std::function<int(const std::vector<std::string>& command)>;
/// Prints one line for the user.
using Print = std::function<void(const std::string& line)>;

int install(const Manager& manager, const Run& run, const Print& print);
int uninstall(const Manager& manager, const Run& run, const Print& print);

/// Starts a program from PATH and waits for it; it inherits stdout and stderr.
int run_program(const std::vector<std::string>& command);

}  // namespace earshot::service
