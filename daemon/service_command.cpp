#include "service_command.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "service/service.hpp"
#include "tail/roots.hpp"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace earshot {
namespace {

/// Where this very program lies; empty: it was replaced or removed meanwhile.
std::string own_path() {
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

std::string whole(const std::string& path) {
  std::error_code ignored;
  return path.starts_with('/') ? path
                               : (std::filesystem::current_path(ignored) / path).lexically_normal().string();
}

/// What this shell says and a service manager may not know.
constexpr const char* variables[] = {"CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"};

service::Job job_of(const Options& options, const Environment& environment, const std::string& home) {
  service::Job job;
  job.program = own_path();
  job.words = options.words;
  job.home = home;
  job.state = whole(options.state);
  for (const char* name : variables) {
    const auto value = environment(name);
    if (value && value->starts_with('/')) job.environment.emplace_back(name, *value);
  }
  if (options.socket_given)
    job.writable.push_back(std::filesystem::path(whole(options.socket)).parent_path().string());
  const tail::Roots roots = options.roots.empty() ? tail::default_roots() : tail::parse_roots(options.roots);
  for (const tail::Root& root : roots.roots) job.must_be_seen.push_back(root.path);
  for (const std::string& file : {options.config, options.tls_cert, options.tls_key})
    if (!file.empty()) job.must_be_seen.push_back(whole(file));
  return job;
}

}  // namespace

int run_errand(const Options& options, const Environment& environment) {
  const auto fail = [](const std::string& text, int code) {
    std::fprintf(stderr, "earshotd: %s\n", text.c_str());
    return code;
  };
  const service::Say say = [](const std::string& line) {
    std::printf("earshotd: %s\n", line.c_str());
    std::fflush(stdout);  // before what the commands say
  };
  const auto home = environment("HOME");
  if (!home || !home->starts_with('/'))
    return fail("HOME is not set: nobody can say whose service this is", service::unspeakable);
  if (!options.roots.empty()) {
    if (const tail::Roots roots = tail::parse_roots(options.roots); !roots.error.empty())
      return fail(roots.error, service::unspeakable);
  }
  const service::Job job = job_of(options, environment, *home);
  if (job.program.empty())
    return fail("this program is not where it was started from: start it again", service::failed);
#ifdef __APPLE__
  const service::Manager manager = service::launchd(job, ::getuid());
#else
  const auto config = environment("XDG_CONFIG_HOME");
  const service::Manager manager =
      service::systemd(job, config && config->starts_with('/') ? *config : *home + "/.config");
#endif
  return options.errand == Options::Errand::install_service
             ? service::install(manager, service::run_program, say)
             : service::uninstall(manager, service::run_program, say);
}

}  // namespace earshot
