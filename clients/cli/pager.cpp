#include "cli/style.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cli/style.hpp"

extern char** environ;

namespace earshot::cli {
namespace {

// The first word of a command is a program that can be run.
bool can_run(std::string_view command) {
  const std::string program(command.substr(0, command.find(' ')));
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (true) {
    const std::size_t end = rest.find(':');
    const std::string file = std::string(rest.substr(0, end)) + "/" + program;
    if (::access(file.c_str(), X_OK) == 0) return true;
    if (end == rest.npos) return false;
    rest.remove_prefix(end + 1);
  }
}

std::string wish() {
  const char* const pager = std::getenv("PAGER");
  return pager == nullptr ? "less -FRX" : pager;
}

}  // namespace

Pager::Pager(bool wanted) {
  const std::string command = wish();
  if (!wanted || !is_terminal(STDOUT_FILENO) || command.empty() || command == "cat" || !can_run(command))
    return;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  sigaddset(&usual, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  // -F: no paging of what fits; -R: colours; -X: what was read stays on the terminal.
  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each) environment.emplace_back(*each);
  if (std::getenv("LESS") == nullptr) environment.emplace_back("LESS=FRX");
  std::vector<char*> pointers;
  for (std::string& each : environment) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  std::string shell = "sh", option = "-c", script = command;
  char* const words[] = {shell.data(), option.data(), script.data(), nullptr};
  const int failed = ::posix_spawn(&child_, "/bin/sh", &files, &attributes, words, pointers.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  ::close(ends[0]);
  if (failed != 0) {
    child_ = 0;
    ::close(ends[1]);
    return;
  }
  descriptor_ = ends[1];
  interrupt_ = std::signal(SIGINT, SIG_IGN);
}

Pager::~Pager() {
  if (child_ == 0) return;
  ::close(descriptor_);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::signal(SIGINT, interrupt_);
}

}  // namespace earshot::cli
