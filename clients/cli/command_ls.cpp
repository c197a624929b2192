// `earshot ls`: the sessions and what they are doing.
#include <vector>

#include "cli/commands.hpp"
#include "cli/session_table.hpp"
#include "common/client.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t sessions_max = 100'000;  // more are not listed, and that is said

constexpr const char* nothing_yet =
    "no sessions yet\n"
    "  A session shows here while its process lives, or for a day after its transcript last grew.\n"
    "  Start an agent, or list older ones too: earshot ls --all\n";

constexpr const char* nothing_fits = "no session fits the filters\n";

bool has_filters(const Filters& filters) {
  return !filters.project.empty() || !filters.session.empty() || !filters.type.empty() ||
         !filters.host.empty();
}

std::string json_array(const std::vector<std::string>& frames, bool safe) {
  std::string out = "[";
  for (const std::string& frame : frames) {
    if (out.size() > 1) out += ",\n ";
    out += safe ? to_display_json(frame) : frame;
  }
  return out + "]\n";
}

}  // namespace

int list_command(const ListOptions& options) {
  const auto found = find_daemon(options.daemon);
  if (const auto* why = std::get_if<std::string>(&found)) {
    print_message(safe_text(*why));
    return options.daemon.connect.empty() && options.daemon.socket.empty() ? exit_failed : exit_usage;
  }
  const DaemonAddresses& addresses = std::get<DaemonAddresses>(found);

  const DisplayOptions display = stdout_display(options.colour);
  const std::int64_t now = now_ms();
  FrameParser parser;
  std::vector<std::string> frames;  // as JSON
  std::vector<SessionRow> rows;     // or as rows
  bool ready = false, refused = false;
  std::size_t left_out = 0;
  Client client;
  Handlers handlers;
  handlers.on_open = [&] { client.send(subscribe_request(options.filters, {.all = options.all})); };
  handlers.on_frame = [&](std::string_view json) {
    const auto frame = parser.parse(json);
    if (!frame) return true;
    const std::string_view type = frame->text("type");
    if (type == "error")
      print_message("the daemon says: " + safe_text(frame->text("message")) + " (" +
                    safe_text(frame->text("code")) + ")");
    refused = refused || type == "error";
    ready = type == "ready";
    if (type == "session" && frames.size() + rows.size() >= sessions_max) {
      ++left_out;
    } else if (type == "session" && options.json) {
      frames.emplace_back(json);
    } else if (type == "session") {
      rows.push_back(make_session_row(*frame, display.charset, now));
    }
    return !ready && !refused;
  };
  const ConnectResult result = client.run_any(addresses, handlers);
  if (const std::string& warning = result.address(addresses).warning; !warning.empty())
    print_message(safe_text(warning));
  if (refused) return exit_failed;
  if (!ready) {
    if (result.last().end_reason == EndReason::stopped) return exit_ok;  // ^C
    print_message(format_connect_error(result, addresses));
    return exit_failed;
  }
  Output out;
  if (options.json) {
    out.write(json_array(frames, is_terminal(1)));
  } else if (rows.empty()) {
    out.write(has_filters(options.filters) ? nothing_fits : nothing_yet);
  } else {
    out.write(format_session_table(std::move(rows), display));
  }
  out.flush();
  if (left_out > 0) print_message(std::to_string(left_out) + " more sessions are not listed: use filters");
  if (out.error().empty()) return exit_ok;
  print_message("cannot write: " + out.error());
  return exit_failed;
}

}  // namespace earshot::cli
