#include "cli/health.hpp"

#include "common/frame.hpp"

namespace earshot::cli {

std::optional<Health> parse_health(std::string_view json) {
  FrameParser parser;
  const auto frame = parser.parse(json);
  if (!frame || frame->text("version").empty()) return std::nullopt;
  Health health;
  health.version = frame->text("version");
  health.host = frame->text("host");
  health.address = frame->text("address");
  health.socket = frame->text("socket");
  health.state = frame->text("state");
  health.pid = frame->integer("pid").value_or(0);
  health.uptime_s = frame->integer("uptime_s").value_or(0);
  for (const Fields& root : frame->objects("roots"))
    health.roots.push_back({std::string(root.text("name")), std::string(root.text("path")),
                            root.flag("present"), root.count("transcripts"), root.count("live")});
  const Fields watch = frame->object("watch");
  health.watch_mode = watch.text("mode");
  health.watch_problem = watch.text("problem");
  health.inotify_watches = watch.count("inotify_watches");
  for (const Fields& problem : frame->objects("problems"))
    health.problems.push_back({std::string(problem.text("path")), std::string(problem.text("reason")),
                               std::string(problem.text("advice"))});
  for (const Fields& host : frame->objects("hosts"))
    health.hosts.push_back(
        {std::string(host.text("name")), std::string(host.text("last_seen")), host.flag("online")});
  if (const Fields redaction = frame->object("redaction")) {
    health.redaction = redaction.flag("on");
    health.redaction_rules = redaction.array_size("rules");
  }
  health.connections = frame->count("connections");
  health.connections_max = frame->object("limits").count("connections");
  health.sessions = frame->count("sessions");
  return health;
}

}  // namespace earshot::cli
