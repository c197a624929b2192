// The commands of `earshot-notify`. Each returns the program's exit code.
#pragma once
#include <string>

#include "common/arguments.hpp"
#include "common/endpoint.hpp"

namespace earshot::notifier {

constexpr int exit_ok = 0;
constexpr int exit_failed = 1;  // a failure of the system, or `check` or `test --send` found a broken sink
using common::exit_usage;       // also for errors in the rules

struct Options {
  common::ConnectOptions daemon;
  std::string rules;  // path; empty: the default file
  bool verbose = false;
  bool json = false;
  std::string event;       // test
  bool send = false;       // test
  std::size_t count = 30;  // why
};

/// The program: parses the command line and runs the command.
int run(int argc, char** argv);
/// Runs until it is stopped. A missing daemon, an invalid token and a missing session bus are retried.
int run_command(const Options& options);
/// Validates and explains the rules.
int check_command(const Options& options);
/// Shows what the rules would send; with `send`, sends it.
int test_command(const Options& options);
/// The events that `test` has samples of, for completions: a line each.
std::string sample_words();
/// Prints the last decisions, from the journal.
int why_command(const Options& options);

/// STATE/notify, where STATE is the daemon's state directory.
std::string notifier_directory(const Options& options);

}  // namespace earshot::notifier
