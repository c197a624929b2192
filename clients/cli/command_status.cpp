// `earshot status`: one line for a status bar, once or again and again.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "cli/commands.hpp"
#include "cli/statusline.hpp"
#include "common/client.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

/// A bar that goes away closes its end. There may be nothing to write for days, so that is waited for, too;
/// then it is as if somebody had asked us to stop.
void stop_when_nobody_reads() {
  std::thread([] {
    pollfd out{STDOUT_FILENO, 0, 0};  // errors only: a file and a terminal have none
    while (::poll(&out, 1, -1) < 0 && errno == EINTR) {
    }
    ::kill(::getpid(), SIGTERM);
  }).detach();
}

/// A line each time that there is something else to say.
class Lines {
 public:
  void say(std::string line) {
    if (said_ && line == last_) return;
    said_ = true;
    out_.write(line + "\n");
    out_.flush();
    last_ = std::move(line);
  }
  bool over() const { return out_.closed() || !out_.error().empty(); }
  const std::string& error() const { return out_.error(); }

 private:
  Output out_;
  std::string last_;
  bool said_ = false;
};

class StatusLine {
 public:
  explicit StatusLine(const StatusOptions& options)
      : options_(options), bar_(stdout_display(ColourMode::never).charset) {}

  int run();

 private:
  ConnectResult visit(const DaemonAddresses& addresses);
  void show() { lines_.say(options_.json ? bar_.json() : bar_.line()); }
  void show_away(const std::string& why) {
    lines_.say(options_.json ? StatusLine::away_json(why) : StatusLine::away_line());
  }
  int ended() const;

  const StatusOptions& options_;  // the command's, which outlives this
  Client client_;
  FrameParser parser_;
  StatusLine bar_;
  Lines lines_;
  bool ready_ = false, refused_ = false;
};

ConnectResult StatusLine::visit(const DaemonAddresses& addresses) {
  ready_ = false;
  Handlers handlers;
  handlers.on_open = [&] {
    bar_.begin();
    client_.send(subscribe_request(options_.filters, {.state = true}));
  };
  handlers.on_frame = [&](std::string_view json) {
    const auto frame = parser_.parse(json);
    if (!frame) return true;
    const std::string_view type = frame->text("type");
    if (type == "error")
      print_message("the daemon says: " + safe_text(frame->text("message")) + " (" +
                    safe_text(frame->text("code")) + ")");
    refused_ = refused_ || type == "error";
    ready_ = ready_ || type == "ready";
    bar_.take(*frame, now_ms());
    return !refused_ && !lines_.over() && (options_.follow || !ready_);
  };
  handlers.on_idle = [&] {
    if (ready_ && options_.follow) show();
  };
  return client_.run_any(addresses, handlers);
}

int StatusLine::ended() const {
  if (!lines_.error().empty()) print_message("cannot write: " + lines_.error());
  return lines_.error().empty() && !refused_ ? exit_ok : exit_failed;
}

int StatusLine::run() {
  if (options_.follow) stop_when_nobody_reads();
  Backoff backoff;
  while (true) {
    const auto found = find_daemon(options_.daemon);  // again each time: it may have another address by now
    if (const auto* why = std::get_if<std::string>(&found)) {
      print_message(safe_text(*why));
      return options_.daemon.connect.empty() && options_.daemon.socket.empty() ? exit_failed : exit_usage;
    }
    const DaemonAddresses& addresses = std::get<DaemonAddresses>(found);
    const ConnectResult result = visit(addresses);
    const bool stopped = result.last().end_reason == EndReason::stopped;
    if (stopped && ready_ && !options_.follow) show();
    if (stopped) return ended();
    const std::string why = format_connect_error(result, addresses);
    if (!options_.follow || is_permanent(result.last())) {
      print_message(why);
      return exit_failed;
    }
    show_away(why.substr(0, why.find('\n')));
    if (ready_) backoff.reset();
    if (lines_.over() || !client_.pause(backoff.next_ms())) return ended();
  }
}

}  // namespace

int status_command(const StatusOptions& options) { return StatusLine(options).run(); }

}  // namespace earshot::cli
