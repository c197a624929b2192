#include "service_command.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "agents/roots.hpp"
#include "service_manager.hpp"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace earshot {
namespace {

/// Path of the running executable; empty: it was replaced or removed.
std::string executable_path() {
  std::error_code failure;
#ifdef __APPLE__
  std::array<char, 4096> path{};
  std::uint32_t size = path.size();
  if (_NSGetExecutablePath(path.data(), &size) != 0) return {};
  const std::string found = std::filesystem::canonical(path.data(), failure).string();
#else
  const std::string found = std::filesystem::read_symlink("/proc/self/exe", failure).string();
#endif
  return !failure && std::filesystem::exists(found, failure) ? found : std::string();
}

std::string absolute(const std::string& path) {
  std::error_code ignored;
  return path.starts_with('/') ? path
                               : (std::filesystem::current_path(ignored) / path).lexically_normal().string();
}

/// Variables of this shell that change the service's paths; a service manager may not have them.
constexpr const char* variables[] = {"CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"};

service::ServiceSpec spec_of(const config::Options& options, const config::Environment& environment,
                             const std::string& home) {
  service::ServiceSpec spec;
  spec.program = executable_path();
  spec.arguments = options.service_arguments;
  spec.home = home;
  spec.state = absolute(options.state);
  for (const char* name : variables) {
    const auto value = environment(name);
    if (value && value->starts_with('/')) spec.environment.emplace_back(name, *value);
  }
  if (options.socket_given)
    spec.writable.push_back(std::filesystem::path(absolute(options.socket)).parent_path().string());
  const Roots roots = options.roots.empty() ? default_roots() : parse_roots(options.roots);
  for (const Root& root : roots.roots) spec.readable.push_back(root.path);
  for (const std::string& file : {options.config_file, options.tls_cert, options.tls_key})
    if (!file.empty()) spec.readable.push_back(absolute(file));
  return spec;
}

}  // namespace

int run_service_command(const config::Options& options, const config::Environment& environment) {
  const auto fail = [](const std::string& text, int code) {
    std::fprintf(stderr, "earshotd: %s\n", text.c_str());
    return code;
  };
  const service::Print print = [](const std::string& line) {
    std::printf("earshotd: %s\n", line.c_str());
    std::fflush(stdout);  // before the output of the commands
  };
  const auto home = environment("HOME");
  if (!home || !home->starts_with('/'))
    return fail("HOME is not set: it names the user whose service this is", service::invalid);
  if (!options.roots.empty()) {
    if (const Roots roots = parse_roots(options.roots); !roots.error.empty())
      return fail(roots.error, service::invalid);
  }
  const service::ServiceSpec spec = spec_of(options, environment, *home);
  if (spec.program.empty())
    return fail("this executable was replaced or removed since it started: run it again", service::failed);
#ifdef __APPLE__
  const service::Manager manager = service::launchd(spec, ::getuid());
#else
  const auto config = environment("XDG_CONFIG_HOME");
  const service::Manager manager =
      service::systemd(spec, config && config->starts_with('/') ? *config : *home + "/.config");
#endif
  return options.action == config::Options::Action::install_service
             ? service::install(manager, service::run_program, print)
             : service::uninstall(manager, service::run_program, print);
}

}  // namespace earshot
