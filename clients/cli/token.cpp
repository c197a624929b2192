// `earshot token`: the token for programs that connect through TCP.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/system.hpp"
#include "cli/commands.hpp"
#include "common/format.hpp"

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

int delete_token(const ConnectOptions& options, const HttpResult& result, const DaemonAddresses& addresses) {
  const std::string path = token_path(options);
  if (options.names_address() || is_state_locked(options.state_directory())) {
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

int rotate(const ConnectOptions& options, const DaemonAddresses& addresses) {
  const HttpResult result = send_request(addresses, {.method = "POST", .target = "/v1/token/rotate"});
  if (result.response.unreachable()) return delete_token(options, result, addresses);
  if (!result.response.ok()) return print_http_error(result, addresses);
  FrameParser parser;
  const auto response = parser.parse(result.response.body);
  const std::string token(response ? response->text("token") : std::string_view());
  if (!token.empty()) return print_token(token);
  print_message("the daemon returned no token; it may be in " + safe_text(token_path(options)));
  return exit_failed;
}

}  // namespace

int token_command(const TokenOptions& options) {
  if (!options.rotate) return print_existing(options.daemon);
  return with_daemon(options.daemon,
                     [&](const auto& addresses) { return rotate(options.daemon, addresses); });
}

}  // namespace earshot::cli
