#include "common/web_page.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

extern char** environ;

namespace earshot::common {
namespace {

constexpr std::chrono::seconds opener_time_max{3};  // one that takes longer is at work: it is left alone
constexpr std::chrono::milliseconds opener_beat{20};

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && value[0] != '\0';
}

}  // namespace

const char* browser_command() {
#ifdef __APPLE__
  return is_set("SSH_CONNECTION") ? nullptr : "open";
#else
  return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") ? "xdg-open" : nullptr;
#endif
}

bool is_web_address(std::string_view url) {
  if (!url.starts_with("http://") && !url.starts_with("https://")) return false;
  for (const char c : url) {
    if (c <= ' ' || c > '~' || c == '"' || c == '\'' || c == '`' || c == '\\') return false;
  }
  return true;
}

bool open_in_browser(const char* program, const std::string& url) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);  // ^C here is not meant for the browser
  std::string name = program, address = url;
  char* const words[] = {name.data(), address.data(), nullptr};
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, program, &files, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return false;
  const auto until = std::chrono::steady_clock::now() + opener_time_max;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) return true;
    std::this_thread::sleep_for(opener_beat);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace earshot::common
