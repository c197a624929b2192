#include "startup.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#ifdef EARSHOT_SYSTEMD
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#endif

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sstream>
#include <utility>

#include "base/hex.hpp"
#include "serve/websocket/acceptor.hpp"

namespace earshot {
namespace {

using serve::AuthError;
using serve::UnixError;
using serve::UnixListener;

/// The default path may belong to another daemon or may not exist: then the socket is in the state directory.
std::variant<UnixListener, UnixError> open_socket(const config::Options& options) {
  auto socket = UnixListener::open(options.socket);
  const auto* error = std::get_if<UnixError>(&socket);
  const std::string own = options.state + "/sock";
  if (!error || options.socket_given || options.socket == own) return socket;
  spdlog::warn("{}; using {} instead", error->text, own);
  return UnixListener::open(own);
}

/// The socket was not configured explicitly, so TCP alone is enough.
UnixListener without_socket(const UnixError& error) {
  spdlog::warn("{}; without a Unix socket, clients connect by TCP with the token", error.text);
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

}  // namespace

std::variant<StartupResources, std::string> acquire_startup_resources(const config::Options& options) {
  if (std::string error = make_private_directory(options.state); !error.empty()) return error;
  auto lock = serve::StateLock::acquire(options.state);
  if (const auto* error = std::get_if<AuthError>(&lock)) return error->text;
  if (const std::string& warning = std::get<0>(lock).warning(); !warning.empty())
    spdlog::warn("{}; clients are served, but nothing is stored in this directory", warning);
  else
    remove_unfinished_files(options.state);
  auto secrets = serve::load_secrets(options.state, options.metrics_token_file);
  if (const auto* error = std::get_if<AuthError>(&secrets)) return error->text;
  for (const std::string& each : std::get<0>(secrets).set_aside) spdlog::warn("{}", each);
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

}  // namespace earshot

namespace earshot::service_notify {

#ifdef EARSHOT_SYSTEMD

void ready() { sd_notify(0, "READY=1"); }
void stopping() { sd_notify(0, "STOPPING=1"); }
void alive() { sd_notify(0, "WATCHDOG=1"); }

std::chrono::microseconds watchdog() {
  std::uint64_t usec = 0;
  if (sd_watchdog_enabled(0, &usec) <= 0) return std::chrono::microseconds(0);
  return std::chrono::microseconds(usec);
}

InheritedSocket inherited_socket() {
  const int count = sd_listen_fds(1);
  if (count == 0) return {};
  InheritedSocket inherited;
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
  std::ostringstream text;
  text << endpoint;
  inherited.descriptor = SD_LISTEN_FDS_START;
  inherited.listen = text.str();
  return inherited;
}

#else

void ready() {}
void stopping() {}
void alive() {}
std::chrono::microseconds watchdog() { return std::chrono::microseconds(0); }
InheritedSocket inherited_socket() { return {}; }

#endif

}  // namespace earshot::service_notify
