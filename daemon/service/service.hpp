// `earshotd --install-service`: the service manager's file is written or removed, and the manager is told.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "service/service_text.hpp"

namespace earshot::service {

/// Exit codes.
constexpr int done = 0;
constexpr int failed = 1;       // a file could not be written, or the service did not come up
constexpr int unspeakable = 2;  // as for any word that cannot be understood
constexpr int untold =
    3;  // the file is as it should be, but the manager could not be told: the commands are said
constexpr int not_ours = 4;  // somebody changed the file: nothing was touched

struct Step {
  std::vector<std::string> words;
  /// What a failure means: all is in vain without the manager, or the service is in trouble, or nothing.
  enum class Weight { manager, service, none } weight = Weight::service;
};

/// One kind of service manager, with what is to be done for one job.
struct Manager {
  std::string file;  // absolute
  std::string text;
  std::vector<Step> install;        // after a new file was written
  std::vector<Step> replace;        // after the file was changed
  std::vector<Step> stop;           // before the file is removed
  std::vector<Step> forget;         // after
  std::vector<std::string> leaves;  // links that belong to the file, removed when the manager cannot do it
  std::vector<std::string> advice;  // told after an install
  std::string in_trouble;           // told when the service does not come up
  std::string error;                // not empty: none of this is possible, and why
};

/// `config_home` is XDG_CONFIG_HOME or what stands for it.
Manager systemd(const Job& job, const std::string& config_home);
Manager launchd(const Job& job, uid_t uid);

/// Exit code of a command; -1: there is no such program.
using Run = std::function<int(const std::vector<std::string>& words)>;
/// One line for people.
using Say = std::function<void(const std::string& line)>;

int install(const Manager& manager, const Run& run, const Say& say);
int uninstall(const Manager& manager, const Run& run, const Say& say);

/// Starts a program from PATH and waits for it; what it says goes where ours goes.
int run_program(const std::vector<std::string>& words);

}  // namespace earshot::service
