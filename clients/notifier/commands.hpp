// The commands behind `earshot-notify`: each takes its options and gives the program's exit code.
#pragma once
#include <string>

#include "common/endpoint.hpp"

namespace earshot::notifier {

constexpr int exit_ok = 0;
constexpr int exit_failed = 1;  // it cannot be done here; or `check` or `test --send` found something wrong
constexpr int exit_usage = 2;   // the words or the rules cannot be understood

struct Options {
  common::ConnectOptions daemon;
  std::string rules;  // the file; empty: the default one
  bool verbose = false;
  bool json = false;
  std::string event;       // test
  bool send = false;       // test
  std::size_t count = 30;  // why
};

int run_command(const Options& options);
int check_command(const Options& options);
int test_command(const Options& options);
int why_command(const Options& options);

/// STATE/notify, where STATE is the daemon's state directory.
std::string own_directory(const Options& options);

}  // namespace earshot::notifier
