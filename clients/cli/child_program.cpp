#include "cli/child_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "base/sockets.hpp"

extern char** environ;

namespace earshot::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> merged(const std::vector<std::string>& environment) {
  std::vector<std::string> all = environment;
  const auto name = [](std::string_view entry) { return entry.substr(0, entry.find('=') + 1); };
  for (char** each = environ; *each != nullptr; ++each) {
    bool is_replaced = false;
    for (const std::string& other : environment) is_replaced = is_replaced || name(other) == name(*each);
    if (!is_replaced) all.emplace_back(*each);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// False: the other end is closed.
bool read_into(std::string& text, int fd) {
  char bytes[16 << 10];
  const ssize_t got = ::read(fd, bytes, sizeof bytes);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  if (text.size() < output_bytes_max) text.append(bytes, static_cast<std::size_t>(got));
  return true;
}

// Reads both outputs until the program has closed them; false: it takes too long.
bool collect(ProgramResult& result, Fd& out, Fd& err, Clock::time_point until) {
  while (out || err) {
    pollfd polled[] = {{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    if (::poll(polled, 2, static_cast<int>(left)) < 0 && errno != EINTR) return false;
    if (polled[0].revents != 0 && !read_into(result.out, out.get())) out.reset();
    if (polled[1].revents != 0 && !read_into(result.err, err.get())) err.reset();
  }
  return true;
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& words,
                          const std::vector<std::string>& environment) {
  ProgramResult result;
  FdPair out = open_pipe(), err = open_pipe();
  if (!out || !err || words.empty()) return result;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out.second.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.second.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;  // this program ignores SIGPIPE
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> arguments = words, variables = merged(environment);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words.front().c_str(), &files, &attributes,
                                    pointers(arguments).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return result;
  result.started = true;
  out.second.reset();
  err.second.reset();
  if (!collect(result, out.first, err.first, Clock::now() + program_time_max)) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace earshot::cli
