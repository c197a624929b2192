// earshotd: parses options, constructs the daemon, runs it.
#include <sys/resource.h>

#include <boost/asio.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "config/options.hpp"
#include "daemon.hpp"
#include "demo.hpp"
#include "service_command.hpp"
#include "startup.hpp"
#include "team/relayed_reader.hpp"
#include "version/version.hpp"

namespace {

namespace asio = boost::asio;
using namespace earshot;

int fail(const std::string& text) {
  std::fprintf(stderr, "earshotd: %s\n", text.c_str());
  return 1;
}

/// 1,000 clients and their transcripts need more descriptors than the default soft limit.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void feed_watchdog(asio::steady_timer& timer, std::chrono::microseconds period) {
  timer.expires_after(period / 2);
  timer.async_wait([&timer, period](boost::system::error_code ec) {
    if (ec) return;
    service_notify::alive();
    feed_watchdog(timer, period);
  });
}

int run(const config::Options& options) {
  asio::io_context io(1);
  std::unique_ptr<demo::Demo> demo;
  Roots roots;
  if (options.demo) demo = std::make_unique<demo::Demo>(io);
  if (options.hub) {
    std::error_code ignored;
    const auto path = std::filesystem::absolute(options.state + "/hub", ignored).lexically_normal();
    roots.roots.push_back({"hub", path.string(), true, &relayed_program()});
  } else if (!options.demo || !options.roots.empty()) {
    roots = options.roots.empty() ? default_roots() : parse_roots(options.roots);
  }
  if (!roots.error.empty()) {
    fail(roots.error);
    return 2;
  }
  if (demo) roots.roots.push_back({"demo", demo->root()});

  auto resources = acquire_startup_resources(options);
  if (const auto* error = std::get_if<std::string>(&resources)) return fail(*error);
  std::unique_ptr<Daemon> daemon;
  try {
    daemon =
        std::make_unique<Daemon>(io, options, roots.roots, std::get<StartupResources>(std::move(resources)),
                                 std::string(build.version));
  } catch (const boost::system::system_error& error) {
    const std::string where =
        options.listen.address().to_string() + ":" + std::to_string(options.listen.port());
    if (error.code() != boost::system::errc::address_in_use)
      return fail(where + ": " + error.code().message());
    return fail(where +
                " is in use, probably by another earshotd: stop that one, or choose another port with "
                "--listen 127.0.0.1:0");
  }

  asio::signal_set signals(io, SIGINT, SIGTERM);
  asio::steady_timer watchdog(io);
  signals.async_wait([&](boost::system::error_code ec, int) {
    if (ec) return;
    service_notify::stopping();
    if (demo) demo->stop();
    daemon->stop();
  });
  if (const auto period = service_notify::watchdog(); period.count() > 0) feed_watchdog(watchdog, period);
  daemon->start([&](const std::string& url) {
    std::printf("earshotd: listening on %s\n", url.c_str());
    std::fflush(stdout);
    service_notify::ready();
    if (demo) demo->start();
  });
  io.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto environment = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (!value || !*value) return {};
    return value;
  };
  const service_notify::InheritedSocket inherited = service_notify::inherited_socket();
  if (!inherited.error.empty()) return fail(inherited.error);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (inherited.descriptor >= 0)
    arguments.insert(arguments.end(), {"--listen", inherited.listen});  // the last --listen wins
  config::ParseResult parsed = config::parse_options(arguments, environment, version_text());
  std::fputs(parsed.out.c_str(), stdout);
  std::fputs(parsed.err.c_str(), stderr);
  if (!parsed.options) return parsed.exit_code;
  if (parsed.options->action != config::Options::Action::run)
    return run_service_command(*parsed.options, environment);
  parsed.options->listen_descriptor = inherited.descriptor;

  std::signal(SIGPIPE, SIG_IGN);  // writing to a closed pipe is an error code
  raise_descriptor_limit();
  start_log(parsed.options->log_level);
  try {
    return run(*parsed.options);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
