// `earshot token`: the token for programs that connect through TCP.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/system.hpp"
#include "cli/options.hpp"
#include "common/http.hpp"

namespace earshot::cli {
namespace {

std::string token_path(const ConnectOptions& options) {
  return options.token_file.empty() ? options.state_directory() + "/token" : options.token_file;
}

int print_token(std::string_view token) {
  Output out;
  out.write(safe_text(token) + "\n");
  return finish(out);
}

// Whether a daemon runs with this state directory, reachable or not.
bool is_locked(const std::string& state) {
  const Fd lock(::open((state + "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  return lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

int delete_token(const ConnectOptions& options, const HttpResult& result, const DaemonAddresses& addresses) {
  const std::string path = token_path(options);
  if (options.names_address() || is_locked(options.state_directory())) {
    print_message(format_connect_error(result.connect, addresses));
    print_message("the token was not changed");
    return exit_failed;
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    print_message("cannot delete " + safe_text(path) + ": " + std::strerror(errno));
    return exit_failed;
  }
  print_message("no daemon is running: " + safe_text(path) +
                " was deleted; the daemon creates a new token at its next start");
  return exit_ok;
}

int print_existing(const ConnectOptions& options) {
  const std::string path = token_path(options);
  const TextFile file = read_text_file(path);
  if (!file.error.empty() || file.text.empty()) {
    print_message("cannot read the token from " + safe_text(path) + ": " +
                  (file.error.empty() ? "the file is empty" : file.error) +
                  "; the daemon creates it when it starts: earshotd");
    return exit_failed;
  }
  if ((file.mode & 044) != 0)
    print_message("other users can read " + safe_text(path) + ": run chmod 600 " + safe_text(path) +
                  ", then earshot token --rotate");
  return print_token(file.text);
}

}  // namespace

int token_command(const TokenOptions& options) {
  if (!options.rotate) return print_existing(options.daemon);
  int exit_code = exit_ok;
  const auto addresses = find_addresses(options.daemon, exit_code);
  if (!addresses) return exit_code;
  const HttpResult result = send_request(*addresses, {.method = "POST", .target = "/v1/token/rotate"});
  if (result.response.unreachable) return delete_token(options.daemon, result, *addresses);
  if (!result.response.ok()) return print_http_error(result, *addresses);
  FrameParser parser;
  const auto response = parser.parse(result.response.body);
  const std::string token(response ? response->text("token") : std::string_view());
  if (!token.empty()) return print_token(token);
  print_message("the daemon returned no token; it may be in " + safe_text(token_path(options.daemon)));
  return exit_failed;
}

Command add_token(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("token", "print the token that other programs need to connect through TCP");
  const auto options = std::make_shared<TokenOptions>();
  command->add_flag("--rotate", options->rotate,
                    "create a new token; clients with the old one are disconnected");
  add_connect_options(*command, options->daemon);
  command->footer(
      "A program that has the token can read everything that you and your agents write on this machine. The\n"
      "commands of earshot do not need it: they use the Unix socket.\n\n"
      "Example:\n  curl -sN -H \"Authorization: Bearer $(earshot token)\" http://127.0.0.1:7717/v1/events\n\n"
      "Exit codes: 0 success; 1 there is no token, or the daemon refused; 2 usage error.");
  return {command, [options] { return token_command(*options); }};
}

}  // namespace earshot::cli
