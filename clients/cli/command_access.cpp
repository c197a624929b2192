// `earshot open` and `earshot token`: what lets a browser or another program in.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/commands.hpp"
#include "common/connect_error.hpp"
#include "common/frame.hpp"
#include "common/http.hpp"
#include "common/small_file.hpp"
#include "common/web_page.hpp"

namespace earshot::cli {
namespace {

int not_found(const std::variant<Doors, std::string>& found, const DaemonWish& wish) {
  complain(for_stderr(std::get<std::string>(found)));
  return wish.connect.empty() && wish.socket.empty() ? exit_failed : exit_usage;
}

// An answer that helps nobody: why.
int refused(const HttpVisit& asked, const Doors& doors) {
  if (asked.answer.status == 404) {
    complain("this daemon is older than this program and cannot do that: start it anew");
  } else {
    complain(explain(asked.visit, doors));
  }
  return exit_failed;
}

int print_line(const std::string& text) {
  Output out;
  out.write(text + "\n");
  out.flush();
  if (out.error().empty()) return exit_ok;
  complain("cannot write: " + out.error());
  return exit_failed;
}

std::string token_path(const DaemonWish& wish) {
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

int forget_token(const DaemonWish& wish, const HttpVisit& asked, const Doors& doors) {
  const std::string path = token_path(wish);
  if (!wish.connect.empty() || !wish.socket.empty() || is_locked(wish.state_directory())) {
    complain(explain(asked.visit, doors));
    complain("the token stays as it is");
    return exit_failed;
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    complain(for_stderr(path) + ": " + std::strerror(errno));
    return exit_failed;
  }
  complain("no daemon is running: " + for_stderr(path) + " is gone; the next start makes a new token");
  return exit_ok;
}

}  // namespace

int open_command(const OpenOptions& options) {
  const auto found = find_daemon(options.daemon);
  if (!std::holds_alternative<Doors>(found)) return not_found(found, options.daemon);
  const Doors& doors = std::get<Doors>(found);
  const HttpVisit asked = ask(doors, {.method = "POST", .target = "/v1/codes"});
  if (!asked.answer.ok()) return refused(asked, doors);
  FrameParser parser;
  const auto answer = parser.parse(asked.answer.body);
  const std::string url(answer ? answer->text("url") : std::string_view());
  if (!is_web_address(url)) {
    complain("the daemon serves no web page: it listens on no port (--listen)");
    return exit_failed;
  }
  const std::string seconds = std::to_string(std::max<std::uint64_t>(answer->count("expires_in"), 1));
  if (is_terminal(STDOUT_FILENO)) complain("good once, within " + seconds + " s:");
  const int exit_code = print_line(url);
  const char* const program = options.print ? nullptr : opener();
  if (exit_code == exit_ok && program != nullptr && !open_in_browser(program, url))
    complain(std::string(program) + " could not open it: put the address into a browser yourself");
  return exit_code;
}

int token_command(const TokenOptions& options) {
  if (!options.rotate) {
    const std::string path = token_path(options.daemon);
    const SmallFile file = read_small_file(path);
    if (file.error.empty() && !file.text.empty()) {
      if (file.shared())
        complain("others may read it: chmod 600 " + for_stderr(path) + ", then earshot token --rotate");
      return print_line(for_stderr(file.text));
    }
    complain(for_stderr(path) + ": " + (file.error.empty() ? "is empty" : file.error) +
             "; the daemon makes it when it starts: earshotd");
    return exit_failed;
  }
  const auto found = find_daemon(options.daemon);
  if (!std::holds_alternative<Doors>(found)) return not_found(found, options.daemon);
  const Doors& doors = std::get<Doors>(found);
  const HttpVisit asked = ask(doors, {.method = "POST", .target = "/v1/token/rotate"});
  if (asked.answer.unreachable) return forget_token(options.daemon, asked, doors);
  if (!asked.answer.ok()) return refused(asked, doors);
  FrameParser parser;
  const auto answer = parser.parse(asked.answer.body);
  const std::string token(answer ? answer->text("token") : std::string_view());
  if (token.empty()) {
    complain("the daemon gave no token; look at " + for_stderr(token_path(options.daemon)));
    return exit_failed;
  }
  return print_line(for_stderr(token));
}

}  // namespace earshot::cli
