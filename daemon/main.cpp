// earshotd: parses options, constructs the daemon, runs it.
#include <openssl/crypto.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#ifdef EARSHOT_SYSTEMD
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#endif

#include <boost/asio.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/hex.hpp"
#include "config/options.hpp"
#include "daemon.hpp"
#include "demo/demo.hpp"
#include "log/log.hpp"
#include "service_command.hpp"
#include "team/event_store.hpp"
#include "version/version.hpp"

namespace {

namespace asio = boost::asio;
using namespace earshot;

int fail(const std::string& text) {
  std::fprintf(stderr, "earshotd: %s\n", text.c_str());
  return 1;
}

using serve::AuthError;
using serve::UnixError;
using serve::UnixListener;

/// The default path may belong to another daemon or may not exist: then the socket is in the state directory.
std::variant<UnixListener, UnixError> open_socket(const config::Options& options) {
  auto socket = UnixListener::open(options.socket);
  const auto* error = std::get_if<UnixError>(&socket);
  const std::string own = options.state + "/sock";
  if (!error || options.socket_given || options.socket == own) return socket;
  log_warn("{}; using {} instead", error->text, own);
  return UnixListener::open(own);
}

/// The socket was not configured explicitly, so TCP alone is enough.
UnixListener without_socket(const UnixError& error) {
  log_warn("{}; without a Unix socket, clients connect by TCP with the token", error.text);
  return {};
}

/// Writes `\x1b` for control characters.
class EscapingFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& into) override {
    for (const char c : message.payload) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x20 && byte != 0x7f) {
        into.push_back(c);
        continue;
      }
      for (const char digit : {'\\', 'x', hex_digits[byte >> 4], hex_digits[byte & 15]})
        into.push_back(digit);
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<EscapingFlag>(); }
};

/// All resources, or an error message for the user.
std::variant<StartupResources, std::string> acquire_startup_resources(const config::Options& options) {
  if (std::string error = make_private_directory(options.state); !error.empty()) return error;
  auto lock = serve::StateLock::acquire(options.state);
  if (const auto* error = std::get_if<AuthError>(&lock)) return error->text;
  if (const std::string& warning = std::get<0>(lock).warning(); !warning.empty())
    log_warn("{}; clients are served, but nothing is stored in this directory", warning);
  else
    remove_unfinished_files(options.state);
  auto secrets = serve::load_secrets(options.state, options.metrics_token_file);
  if (const auto* error = std::get_if<AuthError>(&secrets)) return error->text;
  for (const std::string& each : std::get<0>(secrets).set_aside) log_warn("{}", each);
  std::unique_ptr<boost::asio::ssl::context> tls;
  if (!options.tls_cert.empty()) {
    auto loaded = serve::load_tls(options.tls_cert, options.tls_key);
    if (const auto* error = std::get_if<AuthError>(&loaded)) return error->text;
    tls = std::get<0>(std::move(loaded));
  }
  auto socket = open_socket(options);
  if (const auto* error = std::get_if<UnixError>(&socket)) {
    if (options.socket_given || error->live) return error->text;
    socket = without_socket(*error);
  }
  return StartupResources{std::get<0>(std::move(secrets)), std::get<0>(std::move(lock)),
                          std::get<0>(std::move(socket)), std::move(tls)};
}

/// Configures spdlog. Control characters are escaped: messages contain file names, which are untrusted.
/// `level`: trace, debug, info, warn, error, off. The logger `audit` writes at every level but `off`.
void start_log(const std::string& level) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("earshotd"));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<EscapingFlag>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %*");
  spdlog::set_formatter(std::move(formatter));
  spdlog::set_level(spdlog::level::from_str(level));
  auto audit = std::make_shared<spdlog::logger>("audit", spdlog::default_logger()->sinks().front());
  audit->set_level(level == "off" ? spdlog::level::off : spdlog::level::info);
  spdlog::register_logger(std::move(audit));
}

// systemd's notification protocol. Without systemd these functions do nothing.

void notify_service([[maybe_unused]] const char* state) {
#ifdef EARSHOT_SYSTEMD
  sd_notify(0, state);
#endif
}

/// How often "WATCHDOG=1" must be sent; zero: no watchdog.
std::chrono::microseconds watchdog_period() {
  std::uint64_t usec = 0;
#ifdef EARSHOT_SYSTEMD
  if (sd_watchdog_enabled(0, &usec) <= 0) usec = 0;
#endif
  return std::chrono::microseconds(usec);
}

/// A listening TCP socket that the service manager opened (ListenStream=); -1: none.
struct InheritedSocket {
  int descriptor = -1;
  std::optional<asio::ip::tcp::endpoint> endpoint = {};
  std::string error = {};  // for the user; the socket cannot be used
};
InheritedSocket inherited_socket() {
  InheritedSocket inherited;
#ifdef EARSHOT_SYSTEMD
  const int count = sd_listen_fds(1);
  if (count == 0) return inherited;
  if (count < 0) {
    inherited.error = std::string("LISTEN_FDS names no valid sockets: ") + std::strerror(-count);
    return inherited;
  }
  boost::asio::ip::tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  const bool one = count == 1 && (sd_is_socket(SD_LISTEN_FDS_START, AF_INET, SOCK_STREAM, 1) > 0 ||
                                  sd_is_socket(SD_LISTEN_FDS_START, AF_INET6, SOCK_STREAM, 1) > 0);
  if (!one || ::getsockname(SD_LISTEN_FDS_START, endpoint.data(), &size) != 0) {
    inherited.error = "the service manager passed " + std::to_string(count) +
                      " sockets: earshotd takes one listening TCP socket (ListenStream=127.0.0.1:7717)";
    return inherited;
  }
  endpoint.resize(size);
  inherited.descriptor = SD_LISTEN_FDS_START;
  inherited.endpoint = endpoint;
#endif
  return inherited;
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
    notify_service("WATCHDOG=1");
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
  if (demo) roots.roots.insert(roots.roots.end(), demo->roots().begin(), demo->roots().end());

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
    notify_service("STOPPING=1");
    if (demo) demo->stop();
    daemon->stop();
  });
  if (const auto period = watchdog_period(); period.count() > 0) feed_watchdog(watchdog, period);
  daemon->start([&](const std::string& url) {
    std::printf("earshotd: listening on %s\n", url.c_str());
    std::fflush(stdout);
    notify_service("READY=1");
    if (demo) demo->start();
  });
  // One turn of the loop may serve many clients: an append does not wait for all of them.
  constexpr std::chrono::microseconds unpolled_max{50};
  while (io.run_one() > 0) daemon->poll_changes(unpolled_max);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto environment = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (!value || !*value) return {};
    return value;
  };
#ifdef __GLIBC__
  // A fixed threshold. By default glibc raises it to the size of the largest freed block, and the heap keeps
  // the memory of clients that have left.
  ::mallopt(M_TRIM_THRESHOLD, 128 << 10);
#endif
  const InheritedSocket inherited = inherited_socket();
  if (!inherited.error.empty()) return fail(inherited.error);
  config::ParseResult parsed =
      config::parse_options({argv + 1, argv + argc}, environment, version_text(), inherited.endpoint);
  if (std::fputs(parsed.out.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    return fail(std::string("cannot write the output: ") + std::strerror(errno));
  std::fputs(parsed.err.c_str(), stderr);
  if (!parsed.options) return parsed.exit_code;
  if (parsed.options->action != config::Options::Action::run)
    return run_service_command(*parsed.options, environment);
  parsed.options->listen_descriptor = inherited.descriptor;

  // A thread in a call that does not return, such as of the connection to a broker, may use OpenSSL until the
  // process has ended: nothing of OpenSSL is released before.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // writing to a closed pipe is an error code
  raise_descriptor_limit();
  start_log(parsed.options->log_level);
  for (const std::string& warning : parsed.options->warnings) log_warn("{}", warning);
  try {
    return run(*parsed.options);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
