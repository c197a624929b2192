// What to tell systemd and launchd.
#include "service/service.hpp"

namespace earshot::service {

Manager systemd(const Job& job, const std::string& config_home) {
  using Weight = Step::Weight;
  const std::string unit = "earshot.service";
  const auto step = [](Weight weight, std::vector<std::string> words) {
    words.insert(words.begin(), {"systemctl", "--user"});
    return Step{std::move(words), weight};
  };
  const Step reload = step(Weight::manager, {"daemon-reload"});
  Text text = unit_text(job);
  Manager manager;
  manager.file = config_home + "/systemd/user/" + unit;
  manager.text = std::move(text.text);
  manager.error = std::move(text.error);
  manager.install = {reload, step(Weight::service, {"enable", "--now", unit})};
  manager.replace = {reload, step(Weight::service, {"enable", unit}),
                     step(Weight::service, {"restart", unit})};
  manager.stop = {reload, step(Weight::service, {"disable", "--now", unit})};
  manager.forget = {reload};
  manager.leaves = {config_home + "/systemd/user/default.target.wants/" + unit};
  manager.advice = {
      "it runs while you have a session; to run it from boot on, without a login: loginctl enable-linger",
      "what it says: journalctl --user -u earshot.service"};
  manager.in_trouble =
      "why: journalctl --user -u earshot.service -n 30. With status 217/USER or 226/NAMESPACE this machine "
      "lets no "
      "user make namespaces: `systemctl --user edit earshot.service`, and there, below [Service]:\n"
      "  PrivateUsers=no\n  ProtectSystem=no\n  ProtectHome=no\n  PrivateTmp=no\n  PrivateMounts=no\n"
      "  PrivateDevices=no\n  PrivateIPC=no\n  InaccessiblePaths=\n  ReadWritePaths=\n  "
      "CapabilityBoundingSet=~\n"
      "  ProtectClock=no\n  ProtectControlGroups=no\n  ProtectHostname=no\n  ProtectKernelLogs=no\n"
      "  ProtectKernelModules=no\n  ProtectKernelTunables=no";
  return manager;
}

Manager launchd(const Job& job, uid_t uid) {
  using Weight = Step::Weight;
  const std::string label = "dev.earshot.earshotd";
  const std::string domain = "gui/" + std::to_string(uid);
  Text text = plist_text(job);
  Manager manager;
  manager.file = job.home + "/Library/LaunchAgents/" + label + ".plist";
  manager.text = std::move(text.text);
  manager.error = std::move(text.error);
  const Step bootout{{"launchctl", "bootout", domain + "/" + label},
                     Weight::none};  // fails when it is not loaded
  const Step bootstrap{{"launchctl", "bootstrap", domain, manager.file}, Weight::manager};
  manager.install = {bootstrap};
  manager.replace = {bootout, bootstrap};
  manager.stop = {bootout};
  manager.advice = {"what it says: " + job.home + "/Library/Logs/earshotd.log"};
  return manager;
}

}  // namespace earshot::service
