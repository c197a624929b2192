// `earshot doctor`: what is wrong, and what to do about it.
#include <algorithm>

#include "cli/commands.hpp"
#include "cli/doctor.hpp"
#include "common/format.hpp"
#include "common/http.hpp"
#include "common/small_file.hpp"
#include "version/version.hpp"

namespace earshot::cli {
namespace {

doctor::Probe meet(const DaemonAddresses& addresses) {
  doctor::Probe met;
  const HttpResult result = send_request(addresses, {.target = "/v1/health"});
  probe.address = result.connect.address(addresses).endpoint.url();
  probe.http_status = result.response.status;
  probe.trouble = probe.address + ": " + result.connect.last().text;
  if (!result.response.ok()) return met;
  probe.health = doctor::parse_health(result.response.body);
  if (!probe.health) probe.trouble = "its health is no JSON that is understood";
  return met;
}

std::vector<doctor::Root> roots_of(const doctor::Probe& probe) {
  std::vector<doctor::Root> roots;
  if (!probe.health || probe.health->roots.empty()) {
    roots = doctor::default_roots();
  } else {
    // The default places need not be there; what somebody named should be.
    const std::vector<doctor::Root> usual = doctor::default_roots();
    for (const doctor::Health::Root& each : probe.health->roots) {
      doctor::Root root;
      root.name = each.name;
      root.path = each.path;
      root.expected = std::none_of(usual.begin(), usual.end(),
                                   [&](const doctor::Root& u) { return u.path == each.path && !u.expected; });
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

int doctor_command(const DoctorOptions& options) {
  const auto found = find_daemon(options.daemon);
  doctor::Findings findings;
  const auto add = [&](doctor::Findings more) {
    findings.insert(findings.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
  };
  doctor::Probe met;
  DaemonAddresses addresses;
  if (const auto* why = std::get_if<std::string>(&found)) {
    if (!options.daemon.connect.empty() || !options.daemon.socket.empty()) {
      print_message(safe_text(*why));
      return exit_usage;
    }
    probe.trouble = *why;
  } else {
    addresses = std::get<DaemonAddresses>(found);
    met = meet(addresses);
  }
  const doctor::Health* const health = probe.health ? &*probe.health : nullptr;
  add(doctor::check_daemon(probe, std::string(build.version)));
  const bool told = health != nullptr && !health->state.empty() && options.daemon.state.empty();
  const std::string state = told ? health->state : options.daemon.state_directory();
  add(doctor::check_state(state, options.daemon.token_file, socket_of(probe, addresses), health != nullptr));
  const std::vector<doctor::Root> roots = roots_of(probe);
  const std::int64_t now = now_ms();
  add(doctor::check_roots(roots, now));
  std::uint64_t directories = 0;
  std::int64_t newest_ms = 0;
  for (const doctor::Root& root : roots) {
    directories += root.directories;
    newest_ms = std::max(newest_ms, root.newest_ms);
  }
  add(doctor::check_kernel(doctor::kernel(health == nullptr ? 0 : health->pid), directories, health));
  if (health != nullptr) add(doctor::check_health(*health));
  if (health != nullptr) add(doctor::check_hosts(*health, now));
  findings.push_back(doctor::check_disk(state, doctor::bytes_free(state)));
  findings.push_back(doctor::check_clock(now, newest_ms));

  Output out;
  out.write(options.json ? doctor::report_json(findings)
                         : doctor::report(findings, stdout_display(options.colour)));
  out.flush();
  return doctor::has_problem(findings) ? exit_failed : exit_ok;
}

}  // namespace earshot::cli
