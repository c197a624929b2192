// `earshot complete-sessions`: what a shell completes a session's id with.
#include "cli/commands.hpp"
#include "cli/name_resolver.hpp"
#include "common/client.hpp"

namespace earshot::cli {

int sessions_command(const ConnectOptions& daemon) {
  constexpr std::size_t sessions_max = 500;  // more are no help to choose from
  const auto found = find_daemon(daemon);
  if (!std::holds_alternative<DaemonAddresses>(found)) return exit_failed;
  Client client;
  Output out;
  FrameParser parser;
  std::size_t count = 0;
  Handlers handlers;
  handlers.on_open = [&] { client.send(subscribe_request({}, {.state = true})); };
  handlers.on_frame = [&](std::string_view json) {
    const auto frame = parser.parse(json);
    if (!frame) return true;
    const std::string_view type = frame->text("type");
    if (type == "session") {
      const std::string_view title = frame->text("title");
      const std::string about = std::string(last_component(frame->text("project"))) +
                                (title.empty() ? "" : ": " + std::string(title));
      out.write(to_display_line(frame->text("session"), Charset::ascii) + "\t" + safe_text(about) + "\n");
      ++count;
    }
    return type != "ready" && type != "error" && count < sessions_max;
  };
  const ConnectResult result = client.run_any(std::get<DaemonAddresses>(found), handlers);
  return result.last().end_reason == EndReason::stopped ? exit_ok : exit_failed;
}

}  // namespace earshot::cli
