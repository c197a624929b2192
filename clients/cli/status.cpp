// `earshot status`: whether the daemon is all right, and what it monitors.
#include <algorithm>
#include <charconv>
#include <map>

#include "base/json_writer.hpp"
#include "cli/commands.hpp"
#include "common/format.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t problems_max = 5;  // `earshot doctor` lists all
constexpr std::string_view state_names[] = {"waiting", "working", "idle", "unknown", "ended"};

using SessionCounts = std::map<std::string, std::uint64_t, std::less<>>;

// Parses the lines of the form: earshot_sessions{state="working"} 3
SessionCounts parse_session_counts(std::string_view metrics) {
  constexpr std::string_view name = "earshot_sessions{state=\"";
  SessionCounts counts;
  for (std::size_t at = metrics.find(name); at != metrics.npos; at = metrics.find(name, at)) {
    at += name.size();
    const std::size_t end = metrics.find("\"} ", at);
    if (end == metrics.npos) break;
    std::uint64_t count = 0;
    std::from_chars(metrics.data() + end + 3, metrics.data() + metrics.size(), count);
    counts[std::string(metrics.substr(at, end - at))] = count;
    at = end;
  }
  return counts;
}

std::string session_text(const Health& health, const SessionCounts& counts) {
  std::string details;
  for (const std::string_view state : state_names) {
    const auto found = counts.find(state);
    if (found == counts.end() || found->second == 0) continue;
    details += (details.empty() ? ": " : ", ") + std::to_string(found->second) + " " + std::string(state);
  }
  return std::to_string(health.sessions) + details;
}

std::string watch_text(const Health& health) {
  std::string text = "inotify";
  if (health.watch_mode == "sweep") {
    text = "periodic scans";
  } else if (health.inotify_watches > 0) {
    text += ", " + std::to_string(health.inotify_watches) +
            (health.inotify_watches == 1 ? " directory" : " directories");
  }
  return health.watch_problem.empty() ? text : text + "; " + health.watch_problem;
}

bool has_problem(const Health& health) { return !health.problems.empty() || !health.watch_problem.empty(); }

std::string health_text(const Health& health, const SessionCounts& counts, const DisplayOptions& display) {
  constexpr std::size_t name_columns = 10;
  const bool problem = has_problem(health);
  std::string out;
  const auto row = [&](std::string_view name, std::string_view text, Style style = Style::plain) {
    Line line;
    line.add(name, Style::dim).space(name_columns - name.size());
    out += line.add(to_display_line(text, display.charset), style).str(display) + "\n";
  };
  row("daemon",
      "earshotd " + health.version + " on " + health.host + ": " +
          (problem ? "running, with problems" : "all right") + ", up " +
          format_duration(Ms(health.uptime_s * 1000)) + ", pid " + std::to_string(health.pid),
      problem ? Style::note : Style::good);
  row("sessions", session_text(health, counts));
  const bool names_programs = std::any_of(
      health.roots.begin(), health.roots.end(),
      [](const Health::Root& root) { return !root.program.empty() && root.program != "claude-code"; });
  for (const Health::Root& root : health.roots)
    row("root", root.path +
                    (names_programs ? " (" + std::string(program_label(root.program)) + ")" : std::string()) +
                    ": " + (root.exists ? plural(root.transcripts, "transcript") : "does not exist yet"));
  row("watching", watch_text(health), health.watch_problem.empty() ? Style::plain : Style::note);
  const auto online = std::count_if(health.hosts.begin(), health.hosts.end(),
                                    [](const Health::Host& host) { return host.online; });
  if (!health.hosts.empty())
    row("hosts", std::to_string(online) + " of " + std::to_string(health.hosts.size()) + " online");
  for (std::size_t i = 0; i < std::min(health.problems.size(), problems_max); ++i)
    row("problem", health.problems[i].path + ": " + health.problems[i].reason, Style::bad);
  if (health.problems.size() > problems_max)
    row("problem", std::to_string(health.problems.size() - problems_max) + " more", Style::bad);
  if (problem) row("", "Details and solutions:  earshot doctor");
  return out;
}

std::string status_json(const Health& health, const SessionCounts& counts) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("ok", !has_problem(health)).member("version", health.version);
  json.member("host", health.host).member("pid", health.pid).member("uptime_s", health.uptime_s);
  json.key("sessions").begin_object().member("total", health.sessions);
  for (const auto& [state, count] : counts) json.member(state, count);
  json.end_object();
  json.key("roots").array(health.roots, [&](const Health::Root& root) {
    json.begin_object().member("name", root.name).member("path", root.path);
    json.member_if_any("program", root.program).member("exists", root.exists);
    json.member("transcripts", root.transcripts).member("live", root.live).end_object();
  });
  json.key("watch").begin_object().member("mode", health.watch_mode);
  json.member("inotify_watches", health.inotify_watches);
  json.member_if_any("problem", health.watch_problem).end_object();
  json.key("problems").array(health.problems, [&](const Health::Problem& problem) {
    json.begin_object().member("path", problem.path).member("reason", problem.reason);
    json.member_if_any("advice", problem.advice).end_object();
  });
  json.end_object();
  return out;
}

}  // namespace

int status_command(const ReportOptions& options, const DaemonAddresses& addresses) {
  const HttpResult result = send_request(addresses, {.target = "/v1/health"});
  if (result.response.unreachable()) {
    print_message(format_connect_error(result.connect, addresses));
    return exit_no_daemon;
  }
  if (!result.response.ok()) return print_http_error(result, addresses);
  auto health = parse_health(result.response.body);
  if (!health) {
    print_message("the response of the daemon is not understood; run `earshot doctor`");
    return exit_failed;
  }
  const HttpResult metrics = send_request(addresses, {.target = "/metrics"});
  const SessionCounts counts = parse_session_counts(metrics.response.body);
  if (!counts.empty()) {  // later ones than in the first response
    health->sessions = 0;
    for (const auto& [state, count] : counts) health->sessions += count;
  }
  Output out;
  if (options.json)
    out.write_json_line(status_json(*health, counts));
  else
    out.write(health_text(*health, counts, stdout_display(options.colour)));
  return finish(out) == exit_ok && !has_problem(*health) ? exit_ok : exit_failed;
}

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
                            std::string(root.text("program")), root.flag("present"),
                            root.count("transcripts"), root.count("live")});
  const Fields watch = frame->object("watch");
  health.watch_mode = watch.text("mode");
  health.watch_problem = watch.text("problem");
  health.inotify_watches = watch.count("inotify_watches");
  for (const Fields& problem : frame->objects("problems"))
    health.problems.push_back({std::string(problem.text("path")), std::string(problem.text("reason")),
                               std::string(problem.text("advice"))});
  for (const Fields& unknown : frame->objects("unknown_records"))
    health.unknown_records.push_back({std::string(unknown.text("program")),
                                      std::string(unknown.text("version")), unknown.object("types").names()});
  for (const Fields& host : frame->objects("hosts"))
    health.hosts.push_back(
        {std::string(host.text("name")), std::string(host.text("last_seen")), host.flag("online")});
  if (const Fields redaction = frame->object("redaction")) {
    health.redaction = redaction.flag("on");
    health.redaction_rules = redaction.array_size("rules");
  }
  if (const Fields search = frame->object("search"))
    health.search = Health::Search{search.flag("on"),
                                   search.flag("building"),
                                   search.count("indexed"),
                                   search.count("total"),
                                   search.count("documents"),
                                   search.count("bytes"),
                                   std::string(search.text("problem"))};
  health.connections = frame->count("connections");
  health.connections_max = frame->object("limits").count("connections");
  health.sessions = frame->count("sessions");
  return health;
}

}  // namespace earshot::cli
