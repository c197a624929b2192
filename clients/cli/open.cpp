// `earshot open`: the dashboard, signed in.
#include <unistd.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

int open(const OpenOptions& options, const DaemonAddresses& addresses) {
  const HttpResult result = send_request(addresses, {.method = "POST", .target = "/v1/codes"});
  if (!result.response.ok()) return print_http_error(result, addresses);
  FrameParser parser;
  const auto response = parser.parse(result.response.body);
  const std::string url(response ? response->text("url") : std::string_view());
  if (!is_web_address(url)) {
    print_message("the daemon serves no web page, as it listens on no port: start it with --listen");
    return exit_failed;
  }
  const std::string seconds = std::to_string(std::max<std::uint64_t>(response->count("expires_in"), 1));
  if (is_terminal(STDOUT_FILENO)) print_message("valid once, within " + seconds + " s:");
  Output out;
  out.write(url + "\n");
  const int exit_code = finish(out);
  const char* const browser = options.print ? nullptr : browser_command();
  if (exit_code == exit_ok && browser != nullptr && !open_in_browser(browser, url))
    print_message(std::string(browser) + " failed to open a browser: open the address yourself");
  return exit_code;
}

}  // namespace

int open_command(const OpenOptions& options) {
  return with_daemon(options.daemon, [&](const auto& addresses) { return open(options, addresses); });
}

Command add_open(CLI::App& app) {
  const auto define = [](CLI::App& command, OpenOptions& options) {
    command.add_flag("--print", options.print, "only print the address");
    command.footer(
        "The address contains a code instead of the token: it is valid once, for a minute. Without a display "
        "it is\n"
        "only printed: open it in a browser on this machine, or on one that forwards the port\n"
        "(ssh -L 7717:127.0.0.1:7717 HOST).\n\n"
        "Exit codes: 0 success; 1 no daemon; 2 usage error.");
  };
  return add_command(app, "open", "open the dashboard in a browser, signed in", open_command, define);
}

}  // namespace earshot::cli
