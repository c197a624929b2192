// `earshot ls`: the sessions and their status.
#include <algorithm>
#include <vector>

#include "cli/commands.hpp"
#include "cli/gauges.hpp"
#include "cli/session_summary.hpp"
#include "common/client.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t rows_max = 100'000;  // beyond this only their number is printed

constexpr const char* no_sessions =
    "no sessions yet\n"
    "  A session is listed while its process runs, and for a day after its transcript\n"
    "  last grew. Start an agent, or list older sessions too: earshot ls --all\n";

constexpr const char* no_sessions_at_all =
    "no sessions yet\n"
    "  Start an agent. If one runs, diagnose the problem: earshot doctor\n";

constexpr const char* no_match = "no session matches the filters\n";

std::string unseen_line(std::size_t count, const DisplayOptions& display) {
  const std::string what = plural(count, "session") + (count == 1 ? " has" : " have");
  return Line().add(what + " finished unseen: earshot show SESSION", Style::dim).str(display) + "\n";
}

}  // namespace

int list_command(const ListOptions& options, const DaemonAddresses& addresses) {
  const DisplayOptions display = stdout_display(options.colour);
  const std::int64_t now = now_ms();
  FrameParser parser;
  std::vector<std::string> frames;  // with --json
  std::vector<SessionRow> rows;     // without
  LimitSummary limits(display.charset);
  bool ready = false, refused = false;
  std::size_t omitted = 0;
  Client client;
  Handlers handlers;
  handlers.on_open = [&] { client.send(subscribe_request(options.filters, {.all = options.all})); };
  handlers.on_frame = [&](std::string_view json) {
    const auto frame = parser.parse(json);
    if (!frame) return true;
    const std::string_view type = frame->text("type");
    if (type == "error") print_daemon_error(*frame);
    refused = refused || type == "error";
    ready = type == "ready";
    if (type == "session" && frames.size() + rows.size() >= rows_max) {
      ++omitted;
    } else if (type == "session" && options.json) {
      frames.emplace_back(json);
    } else if (type == "session") {
      rows.push_back(make_session_row(*frame, display.charset, now));
      limits.add(*frame);
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
    out.write_json_array(frames);
  } else if (rows.empty()) {
    out.write(!options.filters.empty() ? no_match : options.all ? no_sessions_at_all : no_sessions);
  } else {
    const auto unseen = std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.unseen; });
    out.write(format_session_table(std::move(rows), display));
    std::string lines = limits.lines(display, now);
    if (unseen > 0) lines += unseen_line(static_cast<std::size_t>(unseen), display);
    if (!lines.empty()) out.write("\n" + lines);
  }
  out.flush();
  if (omitted > 0) print_message("not listed: " + plural(omitted, "more session") + "; use filters");
  return finish(out);
}

}  // namespace earshot::cli
