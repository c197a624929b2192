#include "service_command.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "agents/roots.hpp"
#include "base/display_text.hpp"
#include "base/file.hpp"
#include "base/hex.hpp"
#include "base/text.hpp"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

extern char** environ;

namespace earshot::service {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view checksum_label = "Written by earshotd to install its service; checksum: ";
constexpr std::size_t file_bytes_max = 1 << 20;  // a larger service file is not ours
constexpr std::string_view default_state = "/.local/state/earshot";

/// `from` occurs exactly once in the embedded file; a unit test checks that.
void replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  assert(at != text.npos);
  if (at != text.npos) text.replace(at, from.size(), to);
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; });
}

std::string quote(std::string_view text, std::string_view doubled) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (doubled.find(c) != doubled.npos) out += c;
    out += c;
  }
  return out + '"';
}

/// Neither format can hold control characters. Empty: all values are valid.
std::string find_invalid(const ServiceSpec& spec) {
  std::vector<std::string> values = spec.arguments;
  values.insert(values.end(), spec.writable.begin(), spec.writable.end());
  for (const auto& [name, value] : spec.environment) values.push_back(value);
  values.insert(values.end(), {spec.program, spec.home, spec.state});
  const auto bad = std::find_if(values.begin(), values.end(), has_control_character);
  if (bad == values.end()) return {};
  return "`" + *bad + "` contains a control character, which a service file cannot hold: rename it";
}

bool below_tmp(const std::string& path) { return path.starts_with("/tmp/") || path.starts_with("/var/tmp/"); }

std::string checksum_line(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: detects edits, not attacks
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string line(checksum_label);
  append_hex(line, hash);
  return line;
}

/// The command as typed into a shell.
std::string shell_line(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) {
    line += line.empty() ? "" : " ";
    line += quote_for_shell(word);
  }
  return line;
}

/// What is at the path of a file.
struct ExistingFile {
  enum class Kind { none, same, generated, edited, unreadable } kind;
  std::string reason;  // of the last two
};

ExistingFile inspect(const ServiceFile& wanted) {
  using Kind = ExistingFile::Kind;
  std::error_code failure;
  const fs::file_status status = fs::symlink_status(wanted.path, failure);
  if (status.type() == fs::file_type::not_found) return {Kind::none, {}};
  if (failure) return {Kind::unreadable, failure.message()};
  if (status.type() == fs::file_type::symlink) {
    const fs::path target = fs::read_symlink(wanted.path, failure);
    return {Kind::edited, target == "/dev/null" ? "is masked" : "is a link to " + target.string()};
  }
  if (status.type() != fs::file_type::regular) return {Kind::edited, "is not a regular file"};
  const SmallFile file = read_small_file(wanted.path, file_bytes_max);
  if (!file.ok()) return {Kind::unreadable, file.error_text()};
  if (file.text == wanted.text) return {Kind::same, {}};
  if (is_unmodified(file.text)) return {Kind::generated, {}};
  return {Kind::edited, "was edited since --install-service wrote it"};
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

std::string quote_argument(std::string_view word) { return quote(word, "%$"); }
std::string quote_path(std::string_view path) { return quote(path, "%"); }

RenderedFile render_unit(const ServiceSpec& spec) {
  if (std::string error = find_invalid(spec); !error.empty()) return {{}, std::move(error)};
  if (spec.program.find_first_of("\"'\\") != spec.program.npos) {
    return {{},
            spec.program +
                ": systemd cannot run a program whose path contains a quote or a backslash; install it "
                "elsewhere"};
  }
  std::string start;
  for (const auto& [name, value] : spec.environment) {
    std::string pair = name;
    pair.append("=").append(value);
    start.append("Environment=").append(quote_path(pair)).append("\n");
  }
  start += "ExecStart=" + quote_path(spec.program);  // variables are expanded in arguments only
  for (const std::string& argument : spec.arguments) start.append(" ").append(quote_argument(argument));

  std::string created, writable;
  const auto allow_write = [&](const std::string& path) {
    created += " " + quote_argument(path);
    writable += (writable.empty() ? "" : " ") + quote_path(path);
  };
  if (spec.state == spec.home + std::string(default_state)) {
    created = " \"%h/.local/state/earshot\"";
    writable = "\"%h/.local/state/earshot\"";
  } else {
    allow_write(spec.state);
  }
  for (const std::string& path : spec.writable) allow_write(path);

  std::string text(unit_file);
  replace(text, "\nExecStart=/usr/bin/earshotd\n", "\n" + start + "\n");
  replace(text, "\nExecStartPre=+mkdir -p -m 0700 \"%h/.local/state/earshot\"\n",
          "\nExecStartPre=+mkdir -p -m 0700" + created + "\n");
  replace(text, "\nReadWritePaths=\"%h/.local/state/earshot\"\n", "\nReadWritePaths=" + writable + "\n");

  if (spec.listen.empty()) {
    replace(text, "\nRequires=earshot.socket\nAfter=earshot.socket\n", "\n# There is none: any free port.\n");
    replace(text, "\nAlso=earshot.socket\n", "\n");
  }

  std::vector<std::string> used = spec.readable;
  used.push_back(spec.program);
  used.push_back(spec.state);
  used.insert(used.end(), spec.writable.begin(), spec.writable.end());
  const auto hidden = std::find_if(used.begin(), used.end(), below_tmp);
  if (hidden != used.end()) {
    if (has_control_character(*hidden)) return {{}, find_invalid({.arguments = {*hidden}})};
    replace(text, "\nPrivateTmp=yes\n", "\n# A private /tmp would hide " + *hidden + "\nPrivateTmp=no\n");
  }
  return {with_checksum(std::move(text), "# ", ""), {}};
}

std::string render_socket(const ServiceSpec& spec) {
  if (spec.listen.empty()) return {};
  std::string text(socket_file);
  replace(text, "\nListenStream=127.0.0.1:7717\n", "\nListenStream=" + spec.listen + "\n");
  return with_checksum(std::move(text), "# ", "");
}

RenderedFile render_plist(const ServiceSpec& spec) {
  if (std::string error = find_invalid(spec); !error.empty()) return {{}, std::move(error)};
  const auto line = [](const std::string& argument) {
    return "    <string>" + escape_markup(argument) + "</string>\n";
  };
  std::string arguments = line(spec.program);
  for (const std::string& argument : spec.arguments) arguments += line(argument);
  std::string environment;
  for (const auto& [name, value] : spec.environment)
    environment.append("    <key>").append(escape_markup(name)).append("</key>\n").append(line(value));
  if (!environment.empty())
    environment = "  <key>EnvironmentVariables</key>\n  <dict>\n" + environment + "  </dict>\n";

  std::string text(plist_file);
  replace(text, "    <string>/usr/local/bin/earshotd</string>\n", arguments);
  replace(text, "  <key>RunAtLoad</key>\n", environment + "  <key>RunAtLoad</key>\n");
  for (int log = 0; log < 2; ++log)  // standard output and standard error
    replace(text, "/Users/you/Library/Logs/earshotd.log",
            escape_markup(spec.home) + "/Library/Logs/earshotd.log");
  return {with_checksum(std::move(text), "<!-- ", " -->"), {}};
}

std::string with_checksum(std::string text, std::string_view open, std::string_view close) {
  const std::string line = checksum_line(text);
  return std::move(text) + std::string(open) + line + std::string(close) + "\n";
}

bool is_unmodified(std::string_view text) {
  const std::size_t at = text.rfind(checksum_label);
  if (at == text.npos) return false;
  const std::size_t newline = text.rfind('\n', at);
  if (newline == text.npos) return false;
  const std::size_t begin = newline + 1;
  const std::string_view open = text.substr(begin, at - begin);
  if (open != "# " && open != "<!-- ") return false;
  return text == with_checksum(std::string(text.substr(0, begin)), open, open == "# " ? "" : " -->");
}

int install(const Manager& manager, const Run& run, const Print& print) {
  using Kind = ExistingFile::Kind;
  if (!manager.error.empty()) {
    print(manager.error);
    return invalid;
  }
  std::vector<const ServiceFile*> unwritten;
  bool replaces = false;
  for (const ServiceFile& file : manager.files) {
    if (file.text.empty()) continue;
    const ExistingFile found = inspect(file);
    if (found.kind == Kind::unreadable) {
      print(file.path + ": " + found.reason);
      return failed;
    }
    if (found.kind == Kind::edited) {
      print(file.path + " " + found.reason +
            ": left unchanged. To install a new one, move it away and run this again; keep changes in a "
            "drop-in "
            "(systemctl --user edit)");
      return edited_file;
    }
    if (found.kind != Kind::same) unwritten.push_back(&file);
    replaces |= found.kind == Kind::generated;
  }
  std::error_code ignored;
  for (const ServiceFile* file : unwritten) {
    const bool existed = fs::exists(file->path, ignored);
    fs::create_directories(fs::path(file->path).parent_path(), ignored);  // writing reports a failure
    if (const std::string error = write_private_file(file->path, file->text); !error.empty()) {
      print(error);
      return failed;
    }
    print((existed ? "replaced: " : "wrote: ") + file->path);
  }
  if (unwritten.empty()) print("already installed: " + manager.files.front().path);
  const int code = run_steps(replaces ? manager.replace : manager.install, manager, run, print);
  if (code == failed) return code;
  for (const std::string& line : manager.hints) print(line);
  return code;
}

int uninstall(const Manager& manager, const Run& run, const Print& print) {
  using Kind = ExistingFile::Kind;
  std::vector<std::string> paths;
  for (const ServiceFile& file : manager.files) {
    const ExistingFile found = inspect(file);
    if (found.kind == Kind::none) continue;
    if (found.kind == Kind::unreadable) {
      print(file.path + ": " + found.reason);
      return failed;
    }
    if (found.kind == Kind::edited) {
      print(file.path + " " + found.reason + ": files and service are left unchanged. To remove them:");
      for (const Step& step : manager.stop) print("  " + shell_line(step.command));
      for (const ServiceFile& each : manager.files) print("  " + shell_line({"rm", "-f", each.path}));
      for (const Step& step : manager.after_remove) print("  " + shell_line(step.command));
      return edited_file;
    }
    paths.push_back(file.path);
  }
  if (paths.empty()) {
    print("not installed: " + manager.files.front().path + " does not exist");
    return done;
  }
  const int stopped = run_steps(manager.stop, manager, run, print);
  if (stopped == failed) return failed;  // the service may still run: keep its files
  std::error_code failure;
  for (const std::string& path : paths) {
    if (!fs::remove(path, failure) || failure) {
      print(path + " cannot be removed: " + failure.message());
      return failed;
    }
    print("removed: " + path);
  }
  if (stopped == done) return run_steps(manager.after_remove, manager, run, print);
  for (const std::string& link : manager.links) {
    if (fs::is_symlink(link, failure) && fs::remove(link, failure)) print("removed: " + link);
  }
  return stopped;
}

Manager systemd(const ServiceSpec& spec, const std::string& config_home) {
  using OnFailure = Step::OnFailure;
  const std::string folder = config_home + "/systemd/user/", service = "earshot.service",
                    socket = "earshot.socket";
  std::error_code ignored;
  const bool socket_exists = fs::exists(folder + socket, ignored);
  const auto step = [&](std::vector<std::string> words, bool has_socket) {
    words.insert(words.begin(), {"systemctl", "--user"});
    if (has_socket) words.push_back(socket);
    words.push_back(service);
    return Step{std::move(words), OnFailure::service_problem};
  };
  const Step reload{{"systemctl", "--user", "daemon-reload"}, OnFailure::no_manager};
  RenderedFile rendered = render_unit(spec);
  Manager manager;
  manager.files = {{folder + service, std::move(rendered.text)}, {folder + socket, render_socket(spec)}};
  manager.error = std::move(rendered.error);
  const bool has_socket = socket_exists || !spec.listen.empty();
  manager.install = {reload, step({"enable", "--now"}, has_socket)};
  manager.replace = {reload, step({"enable"}, has_socket), step({"restart"}, has_socket)};
  manager.stop = {reload, step({"disable", "--now"}, socket_exists)};
  manager.after_remove = {reload};
  manager.links = {folder + "default.target.wants/" + service, folder + "sockets.target.wants/" + socket};
  manager.hints = {"it runs while you are logged in; to run it from boot on: loginctl enable-linger",
                   "its log: journalctl --user -u earshot.service -u earshot.socket"};
  manager.start_failure_hint =
      "the reason: journalctl --user -u earshot.service -u earshot.socket -n 30. Status 217/USER or "
      "226/NAMESPACE: this "
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
  const std::string file = spec.home + "/Library/LaunchAgents/" + label + ".plist";
  manager.files = {{file, std::move(rendered.text)}};
  manager.error = std::move(rendered.error);
  const Step bootout{{"launchctl", "bootout", domain + "/" + label},
                     OnFailure::ignore};  // fails when not loaded
  const Step bootstrap{{"launchctl", "bootstrap", domain, file}, OnFailure::no_manager};
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

namespace earshot {
namespace {

/// Path of the running executable; empty: it was replaced or removed.
std::string executable_path() {
  std::error_code failure;
#ifdef __APPLE__
  std::array<char, 4096> path{};
  std::uint32_t size = path.size();
  if (_NSGetExecutablePath(path.data(), &size) != 0) return {};
  const std::string found = std::filesystem::canonical(path.data(), failure).string();
#else
  const std::string found = std::filesystem::read_symlink("/proc/self/exe", failure).string();
#endif
  return !failure && std::filesystem::exists(found, failure) ? found : std::string();
}

std::string absolute(const std::string& path) {
  std::error_code ignored;
  return path.starts_with('/') ? path
                               : (std::filesystem::current_path(ignored) / path).lexically_normal().string();
}

/// Variables of this shell that change the service's paths; a service manager may not have them.
constexpr const char* variables[] = {
    "CLAUDE_CONFIG_DIR",           "CODEX_HOME",      "COPILOT_HOME",  "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"};

service::ServiceSpec spec_of(const config::Options& options, const config::Environment& environment,
                             const std::string& home) {
  service::ServiceSpec spec;
  spec.program = executable_path();
  spec.arguments = options.service_arguments;
  if (options.listen.port() != 0) {
    std::ostringstream listen;
    listen << options.listen;
    spec.listen = listen.str();
  }
  spec.home = home;
  spec.state = absolute(options.state);
  for (const char* name : variables) {
    const auto value = environment(name);
    if (value && value->starts_with('/')) spec.environment.emplace_back(name, *value);
  }
  if (options.socket_given)
    spec.writable.push_back(std::filesystem::path(absolute(options.socket)).parent_path().string());
  const Roots roots = options.roots.empty() ? default_roots() : parse_roots(options.roots);
  for (const Root& root : roots.roots) spec.readable.push_back(root.path);
  for (const std::string& file :
       {options.config_file, options.tls_cert, options.tls_key, options.metrics_token_file})
    if (!file.empty()) spec.readable.push_back(absolute(file));
  return spec;
}

}  // namespace

int run_service_command(const config::Options& options, const config::Environment& environment) {
  const auto fail = [](const std::string& text, int code) {
    std::fprintf(stderr, "earshotd: %s\n", text.c_str());
    return code;
  };
  const service::Print print = [](const std::string& line) {
    std::printf("earshotd: %s\n", line.c_str());
    std::fflush(stdout);  // before the output of the commands
  };
  const auto home = environment("HOME");
  if (!home || !home->starts_with('/'))
    return fail("HOME is not set: it names the user whose service this is", service::invalid);
  if (!options.roots.empty()) {
    if (const Roots roots = parse_roots(options.roots); !roots.error.empty())
      return fail(roots.error, service::invalid);
  }
  const service::ServiceSpec spec = spec_of(options, environment, *home);
  if (spec.program.empty())
    return fail("this executable was replaced or removed since it started: run it again", service::failed);
#ifdef __APPLE__
  const service::Manager manager = service::launchd(spec, ::getuid());
#else
  const auto config = environment("XDG_CONFIG_HOME");
  const service::Manager manager =
      service::systemd(spec, config && config->starts_with('/') ? *config : *home + "/.config");
#endif
  return options.action == config::Options::Action::install_service
             ? service::install(manager, service::run_program, print)
             : service::uninstall(manager, service::run_program, print);
}

}  // namespace earshot
