// `earshot open` and `earshot token`: what lets a browser or another program in.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/commands.hpp"
#include "common/frame.hpp"
#include "common/http.hpp"
#include "common/small_file.hpp"
#include "common/web_page.hpp"

namespace earshot::cli {
namespace {

int not_found(const std::variant<DaemonAddresses, std::string>& found, const ConnectOptions& wish) {
  print_message(safe_text(std::get<std::string>(found)));
  return wish.connect.empty() && wish.socket.empty() ? exit_failed : exit_usage;
}

// An answer that helps nobody: why.
int refused(const HttpResult& result, const DaemonAddresses& addresses) {
  if (result.response.status == 404) {
    print_message("this daemon is older than this program and cannot do that: start it anew");
  } else {
    print_message(format_connect_error(result.connect, addresses));
  }
  return exit_failed;
}

int print_line(const std::string& text) {
  Output out;
  out.write(text + "\n");
  out.flush();
  if (out.error().empty()) return exit_ok;
  print_message("cannot write: " + out.error());
  return exit_failed;
}

std::string token_path(const ConnectOptions& wish) {
  return wish.token_file.empty() ? wish.state_directory() + "/token" : wish.token_file;
}

// Whether a daemon runs with this state directory, reachable or not.
bool is_locked(const std::string& state) {
  const int lock = ::open((state + "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (lock < 0) return false;
  const bool held = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(lock);
  return held;
}

int forget_token(const ConnectOptions& wish, const HttpResult& result, const DaemonAddresses& addresses) {
  const std::string path = token_path(wish);
  if (!wish.connect.empty() || !wish.socket.empty() || is_locked(wish.state_directory())) {
    print_message(format_connect_error(result.connect, addresses));
    print_message("the token stays as it is");
    return exit_failed;
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    print_message(safe_text(path) + ": " + std::strerror(errno));
    return exit_failed;
  }
  print_message("no daemon is running: " + safe_text(path) + " is gone; the next start makes a new token");
  return exit_ok;
}

}  // namespace

int open_command(const OpenOptions& options) {
  const auto found = find_daemon(options.daemon);
  if (!std::holds_alternative<DaemonAddresses>(found)) return not_found(found, options.daemon);
  const DaemonAddresses& addresses = std::get<DaemonAddresses>(found);
  const HttpResult result = send_request(addresses, {.method = "POST", .target = "/v1/codes"});
  if (!result.response.ok()) return refused(asked, addresses);
  FrameParser parser;
  const auto answer = parser.parse(result.response.body);
  const std::string url(answer ? answer->text("url") : std::string_view());
  if (!is_web_address(url)) {
    print_message("the daemon serves no web page: it listens on no port (--listen)");
    return exit_failed;
  }
  const std::string seconds = std::to_string(std::max<std::uint64_t>(answer->count("expires_in"), 1));
  if (is_terminal(STDOUT_FILENO)) print_message("good once, within " + seconds + " s:");
  const int exit_code = print_line(url);
  const char* const program = options.print ? nullptr : browser_command();
  if (exit_code == exit_ok && program != nullptr && !open_in_browser(program, url))
    print_message(std::string(program) + " could not open it: put the address into a browser yourself");
  return exit_code;
}

int token_command(const TokenOptions& options) {
  if (!options.rotate) {
    const std::string path = token_path(options.daemon);
    const SmallFile file = read_small_file(path);
    if (file.error.empty() && !file.text.empty()) {
      if (file.shared())
        print_message("others may read it: chmod 600 " + safe_text(path) + ", then earshot token --rotate");
      return print_line(safe_text(file.text));
    }
    print_message(safe_text(path) + ": " + (file.error.empty() ? "is empty" : file.error) +
                  "; the daemon makes it when it starts: earshotd");
    return exit_failed;
  }
  const auto found = find_daemon(options.daemon);
  if (!std::holds_alternative<DaemonAddresses>(found)) return not_found(found, options.daemon);
  const DaemonAddresses& addresses = std::get<DaemonAddresses>(found);
  const HttpResult result = send_request(addresses, {.method = "POST", .target = "/v1/token/rotate"});
  if (result.response.unreachable) return forget_token(options.daemon, asked, addresses);
  if (!result.response.ok()) return refused(asked, addresses);
  FrameParser parser;
  const auto answer = parser.parse(result.response.body);
  const std::string token(answer ? answer->text("token") : std::string_view());
  if (token.empty()) {
    print_message("the daemon gave no token; look at " + safe_text(token_path(options.daemon)));
    return exit_failed;
  }
  return print_line(safe_text(token));
}

}  // namespace earshot::cli
