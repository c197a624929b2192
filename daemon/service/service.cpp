#include "service/service.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

extern char** environ;

namespace earshot::service {
namespace {

namespace fs = std::filesystem;

/// As a shell takes it.
std::string shown(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += line.empty() ? "" : " ";
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-+=./:@%,") == word.npos;
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

/// What stands where the file belongs.
struct Found {
  enum class Kind { nothing, same, ours, somebody_s, trouble } kind;
  std::string why;  // of the last two
};

Found look(const Manager& manager) {
  using Kind = Found::Kind;
  std::error_code failure;
  const fs::file_status status = fs::symlink_status(manager.file, failure);
  if (status.type() == fs::file_type::not_found) return {Kind::nothing, {}};
  if (failure) return {Kind::trouble, failure.message()};
  if (status.type() == fs::file_type::symlink) {
    const fs::path target = fs::read_symlink(manager.file, failure);
    return {Kind::somebody_s, target == "/dev/null" ? "is masked" : "is a link to " + target.string()};
  }
  if (status.type() != fs::file_type::regular) return {Kind::somebody_s, "is no regular file"};
  std::ifstream file(manager.file, std::ios::binary);
  std::ostringstream text;
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad()) return {Kind::trouble, std::strerror(errno)};
  if (text.str() == manager.text) return {Kind::same, {}};
  if (is_untouched(text.str())) return {Kind::ours, {}};
  return {Kind::somebody_s, "is not as --install-service wrote it"};
}

/// Whole or not at all. Text: why not.
std::string write(const std::string& path, const std::string& text) {
  std::error_code failure;
  fs::create_directories(fs::path(path).parent_path(), failure);
  if (failure) return failure.message();
  const std::string fresh = path + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return std::strerror(errno);
  std::string_view rest = text;
  int error = 0;
  while (!rest.empty() && error == 0) {
    const ssize_t written = ::write(fd, rest.data(), rest.size());
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) error = errno;
  }
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(fresh.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(fresh.c_str());
  return std::strerror(error);
}

/// `done`, or the code of the first step that failed; then what is left to do has been said.
int take(const std::vector<Step>& steps, const Manager& manager, const Run& run, const Say& say) {
  for (std::size_t n = 0; n < steps.size(); ++n) {
    const int code = run(steps[n].words);
    const std::string command = shown(steps[n].words);
    if (code == 0) {
      say("ran: " + command);
      continue;
    }
    if (steps[n].weight == Step::Weight::none && code > 0) continue;
    if (steps[n].weight == Step::Weight::service && code > 0) {
      say("failed with exit code " + std::to_string(code) + ": " + command);
      if (!manager.in_trouble.empty()) say(manager.in_trouble);
      return failed;
    }
    say(code < 0 ? "there is no " + steps[n].words.front() + " here; where there is one, run:"
                 : "the service manager could not be told (exit code " + std::to_string(code) +
                       "); in a session of your own, run:");
    for (std::size_t rest = n; rest < steps.size(); ++rest) say("  " + shown(steps[rest].words));
    return untold;
  }
  return done;
}

}  // namespace

int install(const Manager& manager, const Run& run, const Say& say) {
  if (!manager.error.empty()) {
    say(manager.error);
    return unspeakable;
  }
  const Found found = look(manager);
  switch (found.kind) {
    case Found::Kind::trouble:
      say(manager.file + ": " + found.why);
      return failed;
    case Found::Kind::somebody_s:
      say(manager.file + " " + found.why +
          ": it was left alone. For a fresh one move it away and say this again; changes are best kept in a "
          "drop-in");
      return not_ours;
    case Found::Kind::same:
      say("already there: " + manager.file);
      break;
    case Found::Kind::nothing:
    case Found::Kind::ours:
      if (const std::string error = write(manager.file, manager.text); !error.empty()) {
        say(manager.file + " cannot be written: " + error);
        return failed;
      }
      say((found.kind == Found::Kind::ours ? "replaced: " : "wrote: ") + manager.file);
  }
  const int code =
      take(found.kind == Found::Kind::ours ? manager.replace : manager.install, manager, run, say);
  if (code == failed) return code;
  for (const std::string& line : manager.advice) say(line);
  return code;
}

int uninstall(const Manager& manager, const Run& run, const Say& say) {
  const Found found = look(manager);
  switch (found.kind) {
    case Found::Kind::trouble:
      say(manager.file + ": " + found.why);
      return failed;
    case Found::Kind::nothing:
      say("not installed: there is no " + manager.file);
      return done;
    case Found::Kind::somebody_s:
      say(manager.file + " " + found.why + ": it was left alone, and so was the service. To be rid of it:");
      for (const Step& step : manager.stop) say("  " + shown(step.words));
      say("  " + shown({"rm", manager.file}));
      for (const Step& step : manager.forget) say("  " + shown(step.words));
      return not_ours;
    case Found::Kind::same:
    case Found::Kind::ours:
      break;
  }
  const int stopped = take(manager.stop, manager, run, say);
  if (stopped == failed) return failed;  // it may still run: then its file stays
  std::error_code failure;
  if (!fs::remove(manager.file, failure) || failure) {
    say(manager.file + " cannot be removed: " + failure.message());
    return failed;
  }
  say("removed: " + manager.file);
  if (stopped == done) return take(manager.forget, manager, run, say);
  for (const std::string& link : manager.leaves) {
    if (fs::is_symlink(link, failure) && fs::remove(link, failure)) say("removed: " + link);
  }
  return stopped;
}

int run_program(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  if (::posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return -1;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace earshot::service
