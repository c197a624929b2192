#include "serve/http/health.hpp"

#include <string_view>

#include "base/json_writer.hpp"

namespace earshot::serve {

std::string health_json(const Health& health) {
  std::string out;
  JsonWriter json(out);
  json.begin_object()
      .member("version", health.version)
      .member("instance", health.instance)
      .member("host", health.host)
      .member("pid", health.pid)
      .member("uptime_s", health.uptime_s)
      .member("protocol", 1)
      .member("state", health.state)
      .member("address", health.address)
      .member("socket", health.socket);
  json.key("roots").array(health.roots, [&](const Health::Root& root) {
    json.begin_object()
        .member("name", root.name)
        .member("path", root.path)
        .member("there", root.there)
        .member("transcripts", root.transcripts)
        .member("live", root.live)
        .end_object();
  });
  json.key("watch")
      .begin_object()
      .member("mode", health.watch.mode)
      .member("trouble", health.watch.trouble)
      .member("inotify_watches", health.watch.inotify_watches)
      .end_object();
  json.key("troubles").array(health.troubles, [&](const Health::Trouble& trouble) {
    json.begin_object()
        .member("path", trouble.path)
        .member("reason", trouble.reason)
        .member("advice", trouble.advice)
        .end_object();
  });
  json.key("redaction")
      .begin_object()
      .member("on", health.redaction.on)
      .array_member("rules", health.redaction.rules)
      .end_object();
  if (!health.team.all.empty()) {
    json.key("team").begin_object();
    for (const TeamMetric& each : health.team.all) json.member(each.name, each.value);
    json.end_object();
  }
  if (!health.hosts.empty()) {
    json.key("hosts").array(health.hosts, [&](const Health::Host& host) {
      json.begin_object()
          .member("name", host.name)
          .member("online", host.online)
          .member("heard", host.heard)
          .end_object();
    });
  }
  json.member("connections", health.connections).member("sessions", health.sessions);
  json.key("limits").begin_object();
  for (const auto& [name, value] : health.limits) json.member(name, value);
  json.end_object().end_object();
  return out + "\n";
}

}  // namespace earshot::serve
