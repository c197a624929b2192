// The daemon: is it there, is it ours, what does it say of itself?
#include "cli/doctor.hpp"

#include <algorithm>

#include "common/format.hpp"
#include "common/frame.hpp"

namespace earshot::cli::doctor {
namespace {

constexpr std::size_t troubles_max = 20;  // of more the number is told
constexpr std::size_t hosts_max = 20;     // likewise

std::string text_of(const Fields& fields, std::string_view key) { return std::string(fields.text(key)); }

}  // namespace

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
    health.roots.push_back({text_of(root, "name"), text_of(root, "path"), root.flag("there"),
                            root.count("transcripts"), root.count("live")});
  const Fields watch = frame->object("watch");
  health.watch_mode = watch.text("mode");
  health.watch_trouble = watch.text("trouble");
  health.inotify_watches = watch.count("inotify_watches");
  for (const Fields& trouble : frame->objects("troubles"))
    health.troubles.push_back(
        {text_of(trouble, "path"), text_of(trouble, "reason"), text_of(trouble, "advice")});
  for (const Fields& host : frame->objects("hosts"))
    health.hosts.push_back({text_of(host, "name"), text_of(host, "heard"), host.flag("online")});
  if (const Fields redaction = frame->object("redaction")) {
    health.redaction = redaction.flag("on");
    health.redaction_rules = redaction.array_size("rules");
  }
  health.connections = frame->count("connections");
  health.connections_max = frame->object("limits").count("connections");
  health.sessions = frame->count("sessions");
  return health;
}

Findings check_daemon(const Probe& probe, std::string_view own_version) {
  if (probe.health) {
    const Health& health = *probe.health;
    Findings findings;
    std::string text = "earshotd " + health.version + " runs";
    if (health.pid > 0) text += ", pid " + std::to_string(health.pid);
    text += ", for " + format_duration(health.uptime_s * 1000) + ", with " + std::to_string(health.sessions) +
            (health.sessions == 1 ? " session" : " sessions");
    findings.push_back({Level::ok, "daemon", text, {}});
    if (health.version != own_version)
      findings.push_back(
          {Level::warning, "version",
           "the daemon is " + health.version + ", this program " + std::string(own_version),
           "start the daemon again" +
               (health.pid > 0 ? ":  kill " + std::to_string(health.pid) + " && earshotd" : "")});
    findings.push_back({Level::ok, "door", probe.door, {}});
    return findings;
  }
  if (probe.http_status == 0)
    return {{Level::problem, "daemon", "does not run, or cannot be reached: " + probe.trouble, "earshotd"}};
  if (probe.http_status == 404)
    return {{Level::warning, "daemon", "one runs at " + probe.door + ", but is older than this program",
             "stop it and start it again:  earshotd"}};
  if (probe.http_status == 401 || probe.http_status == 403)
    return {{Level::problem, "daemon",
             "one runs at " + probe.door + ", but does not let us in: " + probe.trouble,
             "name its state directory:  earshot doctor --state DIR"}};
  return {{Level::problem, "daemon",
           "what answers at " + probe.door + " does not do so as a daemon: " + probe.trouble,
           "see what listens there:  ss -ltnp"}};
}

Findings check_health(const Health& health) {
  Findings findings;
  if (health.redaction && *health.redaction)
    findings.push_back(
        {Level::ok,
         "redaction",
         "secrets of " + std::to_string(health.redaction_rules) + " known shapes are blacked out",
         {}});
  if (health.redaction && !*health.redaction)
    findings.push_back({Level::warning, "redaction",
                        "is off: secrets in transcripts are shown as they stand there",
                        "write `redact = true` into earshot.toml"});
  for (std::size_t i = 0; i < std::min(health.troubles.size(), troubles_max); ++i) {
    const Health::Trouble& trouble = health.troubles[i];
    findings.push_back({Level::warning, "trouble", trouble.path + ": " + trouble.reason, trouble.advice});
  }
  if (health.troubles.size() > troubles_max)
    findings.push_back({Level::warning,
                        "trouble",
                        "and " + std::to_string(health.troubles.size() - troubles_max) + " more",
                        {}});
  if (health.connections_max > 0 && health.connections * 10 >= health.connections_max * 9)
    findings.push_back({Level::warning, "clients",
                        std::to_string(health.connections) + " of " + std::to_string(health.connections_max) +
                            " connections are taken",
                        "raise `connections` in [limits] of earshot.toml"});
  return findings;
}

Findings check_hosts(const Health& health, std::int64_t now_ms) {
  Findings findings;
  std::string heard;
  std::size_t online = 0, away = 0;
  for (const Health::Host& host : health.hosts) {
    if (host.online) {
      if (online++ < hosts_max) heard += (heard.empty() ? ": " : ", ") + host.name;
      continue;
    }
    if (away++ >= hosts_max) continue;
    std::string text = host.name + " is away";
    if (const auto since = parse_time(host.heard))
      text += ", last heard " + format_age(now_ms - *since) + " ago, " + format_local_day(*since) + ", " +
              format_local_clock(*since);
    findings.push_back({Level::warning, "host", text, "on that host:  earshot doctor"});
  }
  if (away > hosts_max)
    findings.push_back(
        {Level::warning, "host", "and " + std::to_string(away - hosts_max) + " more are away", {}});
  if (online > hosts_max) heard += ", …";
  if (online > 0)
    findings.insert(findings.begin(),
                    {Level::ok,
                     "hosts",
                     std::to_string(online) + (online == 1 ? " is heard" : " are heard") + heard,
                     {}});
  return findings;
}

}  // namespace earshot::cli::doctor
