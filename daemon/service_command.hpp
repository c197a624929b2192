// Installs and removes the user service: renders the systemd units or the launchd property list from the
// files in systemd/, writes it and runs the service manager's commands.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/options.hpp"

namespace earshot {

/// --install-service or --uninstall-service. Prints each step; returns the exit code.
int run_service_command(const config::Options& options, const config::Environment& environment);

}  // namespace earshot

namespace earshot::service {

/// The files in systemd/ at build time (service_files.cpp.in).
extern const std::string_view unit_file;    // user/earshot.service
extern const std::string_view socket_file;  // user/earshot.socket
extern const std::string_view plist_file;   // launchd/dev.earshot.earshotd.plist

/// The command of the service, and the paths its sandbox must allow. All paths are absolute.
struct ServiceSpec {
  std::string program;
  std::vector<std::string> arguments;
  std::string listen = {};  // ADDR:PORT that the service manager keeps; empty: none, as for any free port
  std::vector<std::pair<std::string, std::string>> environment;  // name, value
  std::string home;
  std::string state;                  // directory, writable
  std::vector<std::string> writable;  // further directories
  std::vector<std::string> readable;  // paths that a private /tmp would hide
};

struct RenderedFile {
  std::string text;
  std::string error;  // not empty: a value that the format cannot hold; for the user
};

RenderedFile render_unit(const ServiceSpec& spec);
std::string render_socket(const ServiceSpec& spec);
RenderedFile render_plist(const ServiceSpec& spec);

/// One argument of ExecStart=, quoted. systemd.service(5): `%` and `$` doubled, `\` and `"` escaped.
std::string quote_argument(std::string_view argument);
/// One path of ReadWritePaths= and similar settings, quoted; `$` has no meaning there.
std::string quote_path(std::string_view path);

/// Appends a last line with a checksum of `text`; `open` and `close` make that line a comment.
std::string with_checksum(std::string text, std::string_view open, std::string_view close);
/// `text` ends with a checksum that matches: --install-service wrote it and no one edited it.
bool is_unmodified(std::string_view text);

/// Exit codes.
constexpr int done = 0;
constexpr int failed = 1;   // a file could not be written, or the service did not start
constexpr int invalid = 2;  // the options cannot be written to a service file
constexpr int no_manager =
    3;  // the file is correct, but the manager did not answer; its commands were printed
constexpr int edited_file = 4;  // the file was edited: nothing was changed

struct Step {
  std::vector<std::string> command;
  /// Meaning of a failure: the manager is not there, the service has a problem, or nothing.
  enum class OnFailure { no_manager, service_problem, ignore } on_failure = OnFailure::service_problem;
};

struct ServiceFile {
  std::string path;  // absolute
  std::string text;  // empty: an existing one is left, and removed with the service
};

/// A service manager and the steps for one service.
struct Manager {
  std::vector<ServiceFile> files;
  std::vector<Step> install;       // after new files were written
  std::vector<Step> replace;       // after a file was changed
  std::vector<Step> stop;          // before the files are removed
  std::vector<Step> after_remove;  // after
  std::vector<std::string> links;  // links to the files, removed when the manager cannot do it
  std::vector<std::string> hints;  // printed after an install
  std::string start_failure_hint;  // printed when the service does not start
  std::string error;               // not empty: why none of this is possible
};

/// `config_home`: XDG_CONFIG_HOME or its default.
Manager systemd(const ServiceSpec& spec, const std::string& config_home);
Manager launchd(const ServiceSpec& spec, uid_t uid);

/// Runs a command; its exit code, or -1 if the program does not exist.
using Run = std::function<int(const std::vector<std::string>& command)>;
/// Prints one line for the user.
using Print = std::function<void(const std::string& line)>;

int install(const Manager& manager, const Run& run, const Print& print);
int uninstall(const Manager& manager, const Run& run, const Print& print);

/// Starts a program from PATH and waits for it; it inherits stdout and stderr.
int run_program(const std::vector<std::string>& command);

}  // namespace earshot::service
