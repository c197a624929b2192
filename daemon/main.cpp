// earshotd: parse, wire up, run.
#include <sys/resource.h>

#include <boost/asio.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "config/options.hpp"
#include "daemon.hpp"
#include "demo.hpp"
#include "log.hpp"
#include "service_command.hpp"
#include "service_notify.hpp"
#include "team/relayed_reader.hpp"
#include "version/version.hpp"

namespace {

namespace asio = boost::asio;
using namespace earshot;

int fail(const std::string& text) {
  std::fprintf(stderr, "earshotd: %s\n", text.c_str());
  return 1;
}

/// A thousand clients and their transcripts need more descriptors than the usual soft limit.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void keep_watchdog_quiet(asio::steady_timer& timer, std::chrono::microseconds period) {
  timer.expires_after(period / 2);
  timer.async_wait([&timer, period](boost::system::error_code ec) {
    if (ec) return;
    notify::alive();
    keep_watchdog_quiet(timer, period);
  });
}

int run(const Options& options) {
  asio::io_context io(1);
  std::unique_ptr<demo::Demo> demo;
  tail::Roots roots;
  if (options.demo) demo = std::make_unique<demo::Demo>(io);
  if (options.hub) {
    std::error_code ignored;
    const auto path = std::filesystem::absolute(options.state + "/hub", ignored).lexically_normal();
    roots.roots.push_back({"hub", path.string(), true, true, &relayed_program()});
  } else if (!options.demo || !options.roots.empty()) {
    roots = options.roots.empty() ? tail::default_roots() : tail::parse_roots(options.roots);
  }
  if (!roots.error.empty()) {
    fail(roots.error);
    return 2;
  }
  if (demo) roots.roots.push_back({"demo", demo->root()});

  auto doors = acquire_startup_resources(options);
  if (const auto* error = std::get_if<std::string>(&doors)) return fail(*error);
  std::unique_ptr<Daemon> house;
  try {
    house = std::make_unique<Daemon>(io, options, roots.roots, std::get<StartupResources>(std::move(doors)),
                                     std::string(build.version));
  } catch (const boost::system::system_error& error) {
    const std::string where =
        options.listen.address().to_string() + ":" + std::to_string(options.listen.port());
    if (error.code() != boost::system::errc::address_in_use)
      return fail(where + ": " + error.code().message());
    return fail(where +
                " is in use, perhaps by another earshotd: stop that one, or choose another port with "
                "--listen 127.0.0.1:0");
  }

  asio::signal_set signals(io, SIGINT, SIGTERM);
  asio::steady_timer watchdog(io);
  signals.async_wait([&](boost::system::error_code ec, int) {
    if (ec) return;
    notify::stopping();
    if (demo) demo->stop();
    house->stop();
  });
  if (const auto period = notify::watchdog(); period.count() > 0) keep_watchdog_quiet(watchdog, period);
  house->start([&](const std::string& url) {
    std::printf("earshotd: listening on %s\n", url.c_str());
    std::fflush(stdout);
    notify::ready();
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
  const notify::HandedOver given = notify::handed_over();
  if (!given.error.empty()) return fail(given.error);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (given.descriptor >= 0) words.insert(words.end(), {"--listen", given.listen});  // the last one counts
  Parsed parsed = parse_options(words, environment, version_text());
  std::fputs(parsed.out.c_str(), stdout);
  std::fputs(parsed.err.c_str(), stderr);
  if (!parsed.options) return parsed.exit_code;
  if (parsed.options->errand != Options::Errand::listen) return run_errand(*parsed.options, environment);
  parsed.options->listen_descriptor = given.descriptor;

  std::signal(SIGPIPE, SIG_IGN);  // a closed stdout or stderr ends nothing
  raise_descriptor_limit();
  start_log(parsed.options->log_level);
  try {
    return run(*parsed.options);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
