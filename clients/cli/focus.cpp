// `earshot focus`: the terminal of a session is brought to the front.
#include <vector>

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/gauges.hpp"
#include "cli/name_resolver.hpp"
#include "cli/terminal_focus.hpp"
#include "common/client.hpp"

namespace earshot::cli {
namespace {

// The chosen session.
struct Target {
  std::string session, host, label, program;
};

// Learns the live sessions, and chooses one.
class Chooser {
 public:
  explicit Chooser(const FocusOptions& options) : options_(options) {}

  std::string request() const {
    Filters filters = options_.filters;
    if (!options_.session.empty() && options_.session != "last") filters.session = {options_.session};
    return subscribe_request(filters, {.state = true});
  }

  bool receive(std::string_view json) {
    const auto frame = parser_.parse(json);
    if (!frame) return true;
    const std::string_view type = frame->text("type");
    if (type == "error") print_daemon_error(*frame);
    refused_ = refused_ || type == "error";
    ready_ = type == "ready";
    if (type == "welcome") host_ = frame->text("host");
    if (type == "session") add(*frame, json);
    return !ready_ && !refused_;
  }

  bool ready() const { return ready_; }
  bool refused() const { return refused_; }
  /// Of the daemon.
  const std::string& host() const { return host_; }

  /// The exit code if no session was chosen; the reason is printed.
  int choose(Target& target) {
    Selection selection;
    if (options_.session.empty()) {
      selection.frame = longest_wait_;
      selection.error = "no session waits for you; name one: earshot focus SESSION";
    } else {
      selection = options_.session == "last" ? selector_.last() : selector_.named(options_.session);
    }
    const auto frame = selection.frame.empty() ? std::nullopt : parser_.parse(selection.frame);
    if (!frame) {
      print_message(selection.error);
      return selection.ambiguous ? exit_usage : exit_failed;
    }
    const std::string_view project = frame->text("project");
    target.session = frame->text("session");
    target.host = frame->text("host");
    target.program = frame->text("program");
    target.label = safe_text(project.empty() ? frame->text("directory") : last_component(project));
    target.label += (target.label.empty() ? "" : " ") + ("(" + safe_text(short_id(target.session)) + ")");
    return exit_ok;
  }

 private:
  void add(const Fields& frame, std::string_view json) {
    selector_.add(frame, json);
    if (frame.object("status").text("state") != "waiting") return;
    const std::int64_t since_ms = status_since(frame).value_or(now_ms());
    if (!longest_wait_.empty() && since_ms >= longest_since_ms_) return;
    longest_wait_ = json;
    longest_since_ms_ = since_ms;
  }

  const FocusOptions& options_;
  FrameParser parser_;
  SessionSelector selector_;
  std::string host_, longest_wait_;
  std::int64_t longest_since_ms_ = 0;
  bool ready_ = false, refused_ = false;
};

DaemonAddresses sockets_of(const DaemonAddresses& addresses) {
  DaemonAddresses sockets;
  for (const DaemonAddress& address : addresses)
    if (address.endpoint.is_unix()) sockets.push_back(address);
  return sockets;
}

std::string focus_json(const Target& target, std::int64_t pid, const FocusReport& report) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("session", target.session).member("focused", report.focused);
  json.member_if_any("program", target.program).member("pid", pid);
  json.member_if_any("tty", report.tty).member_if_any("terminal", report.terminal);
  json.key("steps").array(report.steps, [&](const std::string& step) { json.value(step); });
  json.member_if_any("advice", report.advice).end_object();
  return out;
}

std::string report_text(const Target& target, std::int64_t pid, const FocusReport& report) {
  std::string text = (report.focused ? "focused " : "cannot bring to the front: ") + target.label + ", pid " +
                     std::to_string(pid);
  if (!report.tty.empty()) text += " on " + safe_text(report.tty);
  for (const std::string& step : report.steps) text += "\n  " + step;
  if (!report.advice.empty()) text += "\n  " + report.advice;
  return text + "\n";
}

}  // namespace

int focus_command(const FocusOptions& options, const DaemonAddresses& all) {
  const DaemonAddresses addresses = sockets_of(all);
  if (addresses.empty()) {
    if (const HttpResult result = send_request(all, {.target = "/v1/health"}); !result.response.ok())
      return print_http_error(result, all);
    print_message(
        "the daemon reports processes only through its Unix socket, which is not known here\n"
        "  Name it: --socket FILE, or --state DIR of the daemon");
    return exit_failed;
  }
  Chooser chooser(options);
  {
    Client client;
    Handlers handlers;
    handlers.on_open = [&] { client.send(chooser.request()); };
    handlers.on_frame = [&](std::string_view json) { return chooser.receive(json); };
    const ConnectResult result = client.run_any(addresses, handlers);
    if (chooser.refused()) return exit_failed;
    if (!chooser.ready()) {
      if (result.last().end_reason == EndReason::stopped) return exit_ok;  // ^C
      print_message(format_connect_error(result, addresses));
      return exit_failed;
    }
  }
  Target target;
  if (const int failed = chooser.choose(target); failed != exit_ok) return failed;
  if (!target.host.empty() && !chooser.host().empty() && target.host != chooser.host()) {
    print_message(target.label + " runs on the host " + safe_text(target.host) +
                  ": run `earshot focus` there");
    return exit_no_process;
  }
  const HttpResult answer =
      send_request(addresses, {.target = "/v1/process" + query({{"session", target.session}})});
  if (answer.response.status == 404) {
    print_message("no process of " + target.label +
                  " is known: it has ended, or the daemon is older than this program");
    return exit_no_process;
  }
  if (!answer.response.ok()) return print_http_error(answer, addresses);
  FrameParser parser;
  const auto process = parser.parse(answer.response.body);
  const std::int64_t pid = process ? process->integer("pid").value_or(0) : 0;
  if (pid <= 1 || !read_process(pid)) {
    print_message("the process of " + target.label + ", pid " + std::to_string(pid) +
                  ", does not exist here: it has ended, or the daemon runs in another container");
    return exit_no_process;
  }
  const FocusReport report = focus_terminal(pid, {});
  if (report.focused) mark_seen(addresses, target.session);
  Output out;
  if (options.json)
    out.write_json_line(focus_json(target, pid, report));
  else if (report.focused)
    out.write(report_text(target, pid, report));
  else
    print_message(trim(report_text(target, pid, report)));
  const int written = finish(out);
  return report.focused || written != exit_ok ? written : exit_not_focused;
}

}  // namespace earshot::cli
