#include "service_manager.hpp"

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

/// The command as typed into a shell.
std::string shell_line(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) {
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

/// The file at the manager's path.
struct ExistingFile {
  enum class Kind { none, same, generated, edited, unreadable } kind;
  std::string reason;  // of the last two
};

ExistingFile inspect(const Manager& manager) {
  using Kind = ExistingFile::Kind;
  std::error_code failure;
  const fs::file_status status = fs::symlink_status(manager.file, failure);
  if (status.type() == fs::file_type::not_found) return {Kind::none, {}};
  if (failure) return {Kind::unreadable, failure.message()};
  if (status.type() == fs::file_type::symlink) {
    const fs::path target = fs::read_symlink(manager.file, failure);
    return {Kind::edited, target == "/dev/null" ? "is masked" : "is a link to " + target.string()};
  }
  if (status.type() != fs::file_type::regular) return {Kind::edited, "is not a regular file"};
  std::ifstream file(manager.file, std::ios::binary);
  std::ostringstream text;
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad()) return {Kind::unreadable, std::strerror(errno)};
  if (text.str() == manager.text) return {Kind::same, {}};
  if (is_unmodified(text.str())) return {Kind::generated, {}};
  return {Kind::edited, "was edited since --install-service wrote it"};
}

/// Replaces the file atomically. Empty: done; else the reason.
std::string write(const std::string& path, const std::string& text) {
  std::error_code failure;
  fs::create_directories(fs::path(path).parent_path(), failure);
  if (failure) return failure.message();
  const std::string temporary = path + ".new";
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file) {
      const std::string reason = std::strerror(errno);
      fs::remove(temporary, failure);
      return reason;
    }
  }
  fs::rename(temporary, path, failure);
  return failure ? failure.message() : std::string();
}

/// `done`, or the exit code for the first failed step; the remaining commands are then printed.
int run_steps(const std::vector<Step>& steps, const Manager& manager, const Run& run, const Print& print) {
  for (std::size_t n = 0; n < steps.size(); ++n) {
    const int code = run(steps[n].command);
    const std::string command = shell_line(steps[n].command);
    if (code == 0) {
      print("ran: " + command);
      continue;
    }
    if (steps[n].on_failure == Step::OnFailure::ignore && code > 0) continue;
    if (steps[n].on_failure == Step::OnFailure::service_problem && code > 0) {
      print("failed with exit code " + std::to_string(code) + ": " + command);
      if (!manager.start_failure_hint.empty()) print(manager.start_failure_hint);
      return failed;
    }
    print(code < 0 ? steps[n].command.front() + " is not installed here; where it is, run:"
                   : "the service manager did not answer (exit code " + std::to_string(code) +
                         "); in a login session of yours, run:");
    for (std::size_t rest = n; rest < steps.size(); ++rest) print("  " + shell_line(steps[rest].command));
    return no_manager;
  }
  return done;
}

}  // namespace

int install(const Manager& manager, const Run& run, const Print& print) {
  if (!manager.error.empty()) {
    print(manager.error);
    return invalid;
  }
  const ExistingFile found = inspect(manager);
  switch (found.kind) {
    case ExistingFile::Kind::unreadable:
      print(manager.file + ": " + found.reason);
      return failed;
    case ExistingFile::Kind::edited:
      print(manager.file + " " + found.reason +
            ": left unchanged. To install a new one, move it away and run this again; keep changes in a "
            "drop-in "
            "(systemctl --user edit)");
      return edited_file;
    case ExistingFile::Kind::same:
      print("already installed: " + manager.file);
      break;
    case ExistingFile::Kind::none:
    case ExistingFile::Kind::generated:
      if (const std::string error = write(manager.file, manager.text); !error.empty()) {
        print(manager.file + " cannot be written: " + error);
        return failed;
      }
      print((found.kind == ExistingFile::Kind::generated ? "replaced: " : "wrote: ") + manager.file);
  }
  const int code = run_steps(found.kind == ExistingFile::Kind::generated ? manager.replace : manager.install,
                             manager, run, print);
  if (code == failed) return code;
  for (const std::string& line : manager.hints) print(line);
  return code;
}

int uninstall(const Manager& manager, const Run& run, const Print& print) {
  const ExistingFile found = inspect(manager);
  switch (found.kind) {
    case ExistingFile::Kind::unreadable:
      print(manager.file + ": " + found.reason);
      return failed;
    case ExistingFile::Kind::none:
      print("not installed: " + manager.file + " does not exist");
      return done;
    case ExistingFile::Kind::edited:
      print(manager.file + " " + found.reason + ": file and service are left unchanged. To remove them:");
      for (const Step& step : manager.stop) print("  " + shell_line(step.command));
      print("  " + shell_line({"rm", manager.file}));
      for (const Step& step : manager.after_remove) print("  " + shell_line(step.command));
      return edited_file;
    case ExistingFile::Kind::same:
    case ExistingFile::Kind::generated:
      break;
  }
  const int stopped = run_steps(manager.stop, manager, run, print);
  if (stopped == failed) return failed;  // the service may still run: keep its file
  std::error_code failure;
  if (!fs::remove(manager.file, failure) || failure) {
    print(manager.file + " cannot be removed: " + failure.message());
    return failed;
  }
  print("removed: " + manager.file);
  if (stopped == done) return run_steps(manager.after_remove, manager, run, print);
  for (const std::string& link : manager.links) {
    if (fs::is_symlink(link, failure) && fs::remove(link, failure)) print("removed: " + link);
  }
  return stopped;
}

Manager systemd(const ServiceSpec& spec, const std::string& config_home) {
  using OnFailure = Step::OnFailure;
  const std::string unit = "earshot.service";
  const auto step = [](OnFailure on_failure, std::vector<std::string> command) {
    command.insert(command.begin(), {"systemctl", "--user"});
    return Step{std::move(command), on_failure};
  };
  const Step reload = step(OnFailure::no_manager, {"daemon-reload"});
  RenderedFile rendered = render_unit(spec);
  Manager manager;
  manager.file = config_home + "/systemd/user/" + unit;
  manager.text = std::move(rendered.text);
  manager.error = std::move(rendered.error);
  manager.install = {reload, step(OnFailure::service_problem, {"enable", "--now", unit})};
  manager.replace = {reload, step(OnFailure::service_problem, {"enable", unit}),
                     step(OnFailure::service_problem, {"restart", unit})};
  manager.stop = {reload, step(OnFailure::service_problem, {"disable", "--now", unit})};
  manager.after_remove = {reload};
  manager.links = {config_home + "/systemd/user/default.target.wants/" + unit};
  manager.hints = {"it runs while you are logged in; to run it from boot on: loginctl enable-linger",
                   "its log: journalctl --user -u earshot.service"};
  manager.start_failure_hint =
      "the reason: journalctl --user -u earshot.service -n 30. Status 217/USER or 226/NAMESPACE: this "
      "machine "
      "does not let users create namespaces. Run `systemctl --user edit earshot.service` and add below "
      "[Service]:\n"
      "  PrivateUsers=no\n  ProtectSystem=no\n  ProtectHome=no\n  PrivateTmp=no\n  PrivateMounts=no\n"
      "  PrivateDevices=no\n  PrivateIPC=no\n  InaccessiblePaths=\n  ReadWritePaths=\n  "
      "CapabilityBoundingSet=~\n"
      "  ProtectClock=no\n  ProtectControlGroups=no\n  ProtectHostname=no\n  ProtectKernelLogs=no\n"
      "  ProtectKernelModules=no\n  ProtectKernelTunables=no";
  return manager;
}

Manager launchd(const ServiceSpec& spec, uid_t uid) {
  using OnFailure = Step::OnFailure;
  const std::string label = "dev.earshot.earshotd";
  const std::string domain = "gui/" + std::to_string(uid);
  RenderedFile rendered = render_plist(spec);
  Manager manager;
  manager.file = spec.home + "/Library/LaunchAgents/" + label + ".plist";
  manager.text = std::move(rendered.text);
  manager.error = std::move(rendered.error);
  const Step bootout{{"launchctl", "bootout", domain + "/" + label},
                     OnFailure::ignore};  // fails when not loaded
  const Step bootstrap{{"launchctl", "bootstrap", domain, manager.file}, OnFailure::no_manager};
  manager.install = {bootstrap};
  manager.replace = {bootout, bootstrap};
  manager.stop = {bootout};
  manager.hints = {"its log: " + spec.home + "/Library/Logs/earshotd.log"};
  return manager;
}

int run_program(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
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
