#include "notifier/sinks/sinks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/quantities.hpp"
#include "base/sockets.hpp"
#include "base/system.hpp"
#include "common/format.hpp"

extern char** environ;

namespace earshot::notifier {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t stderr_bytes_kept = 300;  // of the program's stderr
constexpr std::chrono::milliseconds kill_grace{500};
constexpr std::chrono::milliseconds poll_interval{10};

std::vector<char*> pointers(std::vector<std::string>& arguments) {
  std::vector<char*> out;
  for (std::string& argument : arguments) out.push_back(argument.data());
  out.push_back(nullptr);
  return out;
}

// Writes `text` to the program and reads the beginning of its stderr until it exits. False: not by `end`. A
// child that it leaves may hold its stderr open: that is not waited for.
bool run_to_exit(pid_t child, int& status, Fd& input, Fd& output, std::string_view text,
                 std::string& output_text, Clock::time_point end) {
  while (true) {
    const bool has_exited = ::waitpid(child, &status, WNOHANG) != 0;
    if (!has_exited && Clock::now() >= end) return false;
    if (input && text.empty()) input.reset();
    pollfd ready[2] = {{output.get(), POLLIN, 0}, {input.get(), POLLOUT, 0}};
    const auto interval = has_exited ? 0 : static_cast<int>(poll_interval.count());
    if (::poll(ready, 2, interval) < 0) ready[0].revents = ready[1].revents = 0;
    if ((ready[1].revents & (POLLOUT | POLLERR | POLLHUP)) != 0) {
      const ssize_t sent = send_no_wait(input.get(), text.data(), text.size());
      if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EAGAIN && errno != EINTR) text = {};  // the program closed its stdin
    }
    const bool has_output = (ready[0].revents & (POLLIN | POLLERR | POLLHUP)) != 0;
    if (has_output) {
      char piece[1024];
      const ssize_t got = ::read(output.get(), piece, sizeof piece);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) output.reset();
      if (got > 0 && output_text.size() < stderr_bytes_kept)
        output_text.append(piece, static_cast<std::size_t>(got));
    }
    if (has_exited && (!has_output || !output || output_text.size() >= stderr_bytes_kept)) return true;
  }
}

// True: the process exited.
bool wait_for(pid_t child, int& status, Clock::time_point end) {
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(poll_interval);
  }
  return true;
}

void end_group(pid_t child, int& status) {
  ::kill(-child, SIGTERM);
  if (!wait_for(child, status, Clock::now() + kill_grace)) {
    ::kill(-child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  ::kill(-child, SIGKILL);  // children that it left behind
}

}  // namespace

Delivery run_program(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                     std::string_view input, std::int64_t timeout_ms) {
  auto [ours, theirs] = open_socket_pair();  // not a pipe, which raises SIGPIPE
  if (!ours) return {.why = std::strerror(errno)};
  auto [output, output_end] = open_pipe();
  if (!output) return {.why = std::strerror(errno)};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output_end.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> arguments = command, all = environment;
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("EARSHOT_")) all.emplace_back(*each);
  }
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments.front().c_str(), &files, &attributes,
                                    pointers(arguments).data(), pointers(all).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0)
    return {.permanent = failed != EAGAIN && failed != ENOMEM,
            .why = arguments.front() + ": " + std::strerror(failed)};
  theirs.reset();
  output_end.reset();
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  std::string received;
  int status = 0;
  if (!run_to_exit(child, status, ours, output, input, received, end)) {
    end_group(child, status);
    return {.why = arguments.front() + " took longer than " + duration_literal(common::Ms(timeout_ms)) +
                   " and was stopped"};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {.done = true, .answer = "exited with 0"};
  std::string why =
      arguments.front() + (WIFEXITED(status) ? " exited with " + std::to_string(WEXITSTATUS(status))
                                             : " was killed by signal " + std::to_string(WTERMSIG(status)));
  if (const std::string line = clean_line(received, stderr_bytes_kept); !line.empty()) why += ": " + line;
  return {.why = std::move(why)};
}

Delivery run_command(const Sink& sink, const Notice& notice) {
  const std::vector<std::string> environment{"EARSHOT_ID=" + notice.id,
                                             "EARSHOT_RULE=" + notice.rule,
                                             "EARSHOT_TITLE=" + notice.title,
                                             "EARSHOT_BODY=" + notice.body,
                                             "EARSHOT_SESSION=" + notice.session,
                                             "EARSHOT_PROJECT=" + notice.project,
                                             "EARSHOT_HOST=" + notice.host,
                                             "EARSHOT_LINK=" + notice.link,
                                             "EARSHOT_URGENCY=" + std::string(urgency_name(notice.urgency))};
  return run_program(sink.command, environment, notice_json(notice) + "\n", sink.timeout_ms);
}

Delivery write_bell(const Sink& sink) {
  const std::string path = sink.tty.empty() ? "/dev/tty" : sink.tty;
  const Fd terminal(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!terminal) return {.permanent = true, .why = path + ": " + std::strerror(errno)};
  if (::isatty(terminal.get()) == 0) return {.permanent = true, .why = path + " is not a terminal"};
  if (::write(terminal.get(), "\a", 1) != 1)
    return {.permanent = errno != EAGAIN, .why = path + ": " + std::strerror(errno)};
  return {.done = true};
}

Worker::Worker() : thread_([this] { run(); }) {}

void Worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !work_.empty(); });
    if (stopping_) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace earshot::notifier
