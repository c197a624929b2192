// `earshot open`: the dashboard, signed in.
#include <unistd.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "common/format.hpp"

namespace earshot::cli {
int open_command(const OpenOptions& options, const DaemonAddresses& addresses) {
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

}  // namespace earshot::cli
