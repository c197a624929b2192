// `earshot doctor`: finds problems and explains how to solve them.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/json_writer.hpp"
#include "cli/commands.hpp"
#include "cli/doctor_checks.hpp"
#include "common/format.hpp"
#include "version/version.hpp"

namespace earshot::cli {

namespace doctor {
namespace {

constexpr std::size_t what_columns = 11;

struct LevelStyle {
  std::string_view name;
  Glyph mark;
  Style style;
};
constexpr LevelStyle level_styles[] = {
    // indexed by Level
    {"ok", Glyph::ok, Style::good},
    {"warning", Glyph::waiting, Style::note},
    {"problem", Glyph::error, Style::bad},
};

const LevelStyle& style_of_level(Level level) { return level_styles[static_cast<std::size_t>(level)]; }

std::size_t count(const Findings& findings, Level level) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.level == level; }));
}

}  // namespace

bool has_problem(const Findings& findings) { return count(findings, Level::problem) > 0; }

std::string report(const Findings& findings, const DisplayOptions& display) {
  std::string out;
  DisplayOptions uncut = display;
  uncut.columns = 0;  // commands must be complete
  for (const Finding& finding : findings) {
    const LevelStyle& shown = style_of_level(finding.level);
    Line line;
    const std::string_view mark =
        finding.level == Level::warning ? std::string_view("!") : glyph(shown.mark, display.charset);
    line.add(mark, shown.style).space(1).add(finding.what, Style::bold);
    line.space(what_columns > finding.what.size() ? what_columns - finding.what.size() : 1);
    constexpr std::size_t margin = what_columns + 2, lines_max = 100, columns_min = 20;
    const std::size_t columns =
        display.columns == 0 ? 0 : std::max(display.columns, margin + columns_min) - margin;
    const std::string text = to_display_line(finding.text, display.charset);
    for (const std::string& part : wrap_text(text, columns, display.charset, lines_max).lines) {
      if (line.empty()) line.space(margin);
      line.add(part, finding.level == Level::ok ? Style::plain : shown.style);
      out += std::exchange(line, {}).str(uncut) + "\n";
    }
    if (finding.advice.empty()) continue;
    Line advice;
    advice.space(what_columns + 2).add(glyph(Glyph::arrow, display.charset), Style::dim).space(1);
    out += advice.add(to_display_code(finding.advice, display.charset), Style::bold).str(uncut) + "\n";
  }
  const std::size_t problems = count(findings, Level::problem), warnings = count(findings, Level::warning);
  std::string sum = problems + warnings == 0 ? "no problems found" : "";
  if (problems > 0) sum = plural(problems, "problem");
  if (warnings > 0) sum += (sum.empty() ? "" : ", ") + plural(warnings, "warning");
  return out + "\n" + sum + "\n";
}

std::string report_json(const Findings& findings) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("ok", !has_problem(findings));
  json.member("problems", count(findings, Level::problem))
      .member("warnings", count(findings, Level::warning));
  json.key("findings").array(findings, [&](const Finding& finding) {
    json.begin_object().member("level", style_of_level(finding.level).name).member("what", finding.what);
    json.member("text", finding.text).member_if_any("advice", finding.advice).end_object();
  });
  json.end_object();
  return out;
}

}  // namespace doctor

namespace {

doctor::Probe contact(const DaemonAddresses& addresses) {
  doctor::Probe probe;
  const HttpResult result = send_request(addresses, {.target = "/v1/health"});
  probe.address = result.connect.address(addresses).endpoint.url();
  probe.http_status = result.response.status;
  probe.error = probe.address + ": " + result.connect.last().text;
  if (!result.response.ok()) return probe;
  probe.health = parse_health(result.response.body);
  if (!probe.health) probe.error = "its response is not understood";
  return probe;
}

std::vector<doctor::Root> find_roots(const doctor::Probe& probe) {
  std::vector<doctor::Root> roots;
  if (!probe.health || probe.health->roots.empty()) {
    roots = doctor::default_roots();
  } else {
    // Default roots may be missing; configured ones should exist.
    const std::vector<doctor::Root> defaults = doctor::default_roots();
    for (const Health::Root& each : probe.health->roots) {
      doctor::Root root;
      root.name = each.name;
      root.path = each.path;
      root.is_mixed = each.program.empty();
      if (const AgentProgram* program = find_agent_program(each.program)) root.program = program;
      root.expected = std::none_of(defaults.begin(), defaults.end(), [&](const doctor::Root& other) {
        return other.path == each.path && !other.expected;
      });
      roots.push_back(std::move(root));
    }
  }
  for (doctor::Root& root : roots) doctor::scan_root(root);
  return roots;
}

std::string socket_of(const doctor::Probe& probe, const DaemonAddresses& addresses) {
  if (probe.health) return probe.health->socket;
  for (const DaemonAddress& address : addresses) {
    if (address.endpoint.is_unix()) return address.endpoint.socket;
  }
  return {};
}

}  // namespace

int doctor_command(const ReportOptions& options) {
  const auto found = find_daemon(options.daemon);
  doctor::Findings findings;
  const auto add = [&](doctor::Findings more) {
    findings.insert(findings.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
  };
  doctor::Probe probe;
  DaemonAddresses addresses;
  if (const auto* error = std::get_if<std::string>(&found)) {
    if (options.daemon.names_address()) {
      print_message(safe_text(*error));
      return exit_usage;
    }
    probe.error = *error;
  } else {
    addresses = std::get<DaemonAddresses>(found);
    probe = contact(addresses);
  }
  const Health* const health = probe.health ? &*probe.health : nullptr;
  add(doctor::check_daemon(probe, std::string(build.version)));
  const bool known = health != nullptr && !health->state.empty() && options.daemon.state.empty();
  const std::string state = known ? health->state : options.daemon.state_directory();
  add(doctor::check_state(state, options.daemon.token_file, socket_of(probe, addresses), health != nullptr));
  const std::vector<doctor::Root> roots = find_roots(probe);
  const std::int64_t now = now_ms();
  add(doctor::check_roots(roots, now));
  if (health != nullptr) {
    std::vector<std::string> monitored;
    for (const doctor::Root& root : roots) monitored.push_back(root.path);
    std::vector<doctor::Root> others = doctor::unmonitored_roots(monitored);
    for (doctor::Root& root : others) doctor::scan_root(root);
    add(doctor::check_unmonitored(others));
  }
  std::uint64_t directories = 0;
  std::int64_t newest_ms = 0;
  for (const doctor::Root& root : roots) {
    directories += root.directories;
    newest_ms = std::max(newest_ms, root.newest_ms);
  }
  add(doctor::check_kernel(doctor::kernel(health == nullptr ? 0 : health->pid), directories, health));
  if (health != nullptr) add(doctor::check_health(*health));
  if (health != nullptr) add(doctor::check_hosts(*health, now));
  NotifierHealth notifier;
  if (read_notifier_health(state + "/notify", notifier)) add(doctor::check_notifier(notifier));
  findings.push_back(doctor::check_disk(state, doctor::bytes_free(state)));
  findings.push_back(doctor::check_clock(now, newest_ms));

  Output out;
  if (options.json)
    out.write_json_line(doctor::report_json(findings));
  else
    out.write(doctor::report(findings, stdout_display(options.colour)));
  if (finish(out) != exit_ok) return exit_failed;
  return doctor::has_problem(findings) ? exit_failed : exit_ok;
}

}  // namespace earshot::cli
