#include "cli/commands.hpp"

#include <map>

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "common/format.hpp"
#include "version/version.hpp"

namespace earshot::cli {

int with_daemon(const ConnectOptions& options, const std::function<int(const DaemonAddresses&)>& run) {
  const auto found = find_daemon(options);
  if (const auto* addresses = std::get_if<DaemonAddresses>(&found)) return run(*addresses);
  print_message(safe_text(std::get<std::string>(found)));
  return options.names_address() ? exit_usage : exit_failed;
}

int with_daemon_until_done(const ConnectOptions& options,
                           const std::function<int(const DaemonAddresses&)>& attempt) {
  int result = try_again;
  while (result == try_again) result = with_daemon(options, attempt);
  return result;
}

void print_daemon_error(const Fields& error) {
  print_message("the daemon reported an error: " + safe_text(error.text("message")) + " (" +
                safe_text(error.text("code")) + ")");
}

int print_http_error(const HttpResult& result, const DaemonAddresses& addresses) {
  print_message(result.response.status == 404
                    ? "the daemon is older than this program: restart it with the installed version"
                    : format_connect_error(result.connect, addresses));
  return exit_failed;
}

void mark_seen(const DaemonAddresses& addresses, std::string_view session) {
  std::string body;
  JsonWriter(body).begin_object().member("session", session).end_object();
  send_request(addresses, {.method = "POST", .target = "/v1/seen", .body = body});
}

}  // namespace earshot::cli
