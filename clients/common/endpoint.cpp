#include "common/endpoint.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <sys/file.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>

#include "base/file.hpp"
#include "base/hex.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "common/format.hpp"

namespace earshot::common {
namespace {

constexpr std::size_t socket_path_bytes_max = 107;  // the kernel's sockaddr_un, without its NUL
constexpr int close_bad_token = 4501;

bool is_token(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c > '~') return false;  // not allowed in an HTTP header
  }
  return !text.empty();
}

bool is_host(std::string_view text) {
  for (const char c : text) {
    const bool is_allowed = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
    if (!is_allowed) return false;
  }
  return !text.empty();
}

void read_token(DaemonAddress& address, const std::string& path) {
  address.token_path = path;
  const TextFile file = read_text_file(path);
  if (!file.error.empty()) {
    address.token_error = file.error;
  } else if (!is_token(file.text)) {
    address.token_error = "contains no token";
  } else {
    address.token = file.text;
    if ((file.mode & 044) != 0)
      address.warning = "other users can read the token in " + path + "; fix it with: chmod 600 " + path;
  }
}

// Returns the reason if --socket is not a possible socket path.
std::string add_sockets(const ConnectOptions& options, const std::string& state, DaemonAddresses& addresses) {
  const auto add = [&](const std::string& path, const std::string& source) {
    DaemonAddress address;
    address.endpoint.socket = path;
    address.address_source = source;
    addresses.push_back(std::move(address));
  };
  if (!options.socket.empty()) {
    if (options.socket.size() > socket_path_bytes_max)
      return "--socket: the path is " + std::to_string(options.socket.size()) +
             " bytes long; the path of a socket has at most " + std::to_string(socket_path_bytes_max);
    add(options.socket, "--socket");
    return {};
  }
  const TextFile file = read_text_file(state + "/socket");
  const bool is_valid = file.text.starts_with('/') && file.text.size() <= socket_path_bytes_max;
  if (file.error.empty() && is_valid) add(file.text, "the file " + state + "/socket");
  // A given STATE belongs to another daemon than the one at the default socket.
  const std::string usual = options.state.empty() ? default_socket() : std::string();
  const bool exists = !usual.empty() && usual.size() <= socket_path_bytes_max && usual != file.text &&
                      stat_file(usual, Symlinks::follow).ok();
  if (exists) add(usual, "the default, below XDG_RUNTIME_DIR");
  return {};
}

// Whether STATE/lock names a process that has ended, and no other one holds it.
bool has_ended(const std::string& state) {
  const TextFile file = read_text_file(state + "/lock");
  const pid_t pid = static_cast<pid_t>(std::atoi(file.text.c_str()));
  return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH && !is_state_locked(state);
}

bool is_about_token(const ConnectionOutcome& outcome) {
  return outcome.http_status == 401 || outcome.close_code == close_bad_token;
}

std::string next_step(const ConnectionOutcome& outcome, const DaemonAddress& address) {
  if (outcome.end_reason == EndReason::unproven)
    return "Another program may listen there, or it has another token. Through an SSH tunnel the port must "
           "be the\n"
           "  daemon's own (ssh -L 7717:127.0.0.1:7717 HOST).\n"
           "  Diagnose the problem:  earshot doctor";
  if (outcome.end_reason == EndReason::unreachable)
    return "Is the daemon running? Start it:  earshotd\n  Diagnose the problem:  earshot doctor";
  if (is_about_token(outcome)) {
    if (address.token.empty())
      return "The daemon requires its token: pass its state directory with --state, or the file with "
             "--token-file.";
    return "The token does not match: pass the daemon's own state directory with --state DIR, or its token "
           "with "
           "--token-file FILE.";
  }
  if (outcome.http_status == 403 && address.endpoint.is_unix())
    return "The socket belongs to another user; a daemon serves its own user only. Start yours:  earshotd";
  if (outcome.http_status == 503) return "The daemon has reached its connection limit: try again later.";
  if (outcome.http_status == 429) return "The daemon received too many requests: try again later.";
  if (outcome.http_status != 0) return "A server listens there, but it refused the request: is it earshotd?";
  return {};
}

}  // namespace

std::string Endpoint::authority() const {
  if (is_unix()) return "localhost";
  const bool bracketed = host.find(':') != host.npos;
  return (bracketed ? "[" + host + "]" : host) + ":" + port;
}

std::string Endpoint::url() const {
  return is_unix() ? "unix:" + socket : (tls ? "wss://" : "ws://") + authority() + path;
}

std::variant<Endpoint, std::string> parse_endpoint(std::string_view url) {
  Endpoint endpoint;
  endpoint.tls = url.starts_with("wss://");
  if (!endpoint.tls && !url.starts_with("ws://"))
    return std::string("expected an address like ws://127.0.0.1:7717/v1/ws or wss://HOST:7717/v1/ws");
  url.remove_prefix(url.find("//") + 2);
  if (const std::size_t slash = url.find('/'); slash != url.npos) {
    if (slash + 1 < url.size()) endpoint.path = url.substr(slash);
    url = url.substr(0, slash);
  }
  for (const char c : endpoint.path) {
    if (c <= ' ' || c > '~') return std::string("the path contains characters that are not allowed in a URL");
  }
  std::string_view port;
  if (url.starts_with('[')) {
    const std::size_t end = url.find(']');
    if (end == url.npos) return std::string("the closing ] of the IPv6 address is missing");
    endpoint.host = url.substr(1, end - 1);
    url.remove_prefix(end + 1);
    if (!url.empty() && url.front() != ':') return std::string("expected :PORT after ]");
    port = url.empty() ? url : url.substr(1);
    if (!url.empty() && port.empty()) return std::string("the port is missing");
  } else {
    const std::size_t colon = url.find(':');
    endpoint.host = url.substr(0, colon);
    if (colon != url.npos) {
      port = url.substr(colon + 1);
      if (port.empty()) return std::string("the port is missing");
    }
  }
  if (!is_host(endpoint.host)) return std::string("the host is missing or not a host name");
  if (!port.empty()) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc() || end != port.data() + port.size() || number == 0 || number > 65535) {
      return std::string("the port must be a number from 1 to 65535");
    }
    endpoint.port = std::to_string(number);
  }
  return endpoint;
}

std::string default_state_directory() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return std::string(state) + "/earshot";
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "" : home) + "/.local/state/earshot";
}

std::string default_socket() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime != nullptr && runtime[0] == '/' ? std::string(runtime) + "/earshot/sock" : std::string();
}

std::string ConnectOptions::state_directory() const {
  return state.empty() ? default_state_directory() : state;
}

std::variant<DaemonAddresses, std::string> find_daemon(const ConnectOptions& options) {
  const std::string state = options.state_directory();
  DaemonAddresses addresses;
  if (!options.connect.empty() && !options.socket.empty())
    return "--connect and --socket cannot be used together";
  if (options.connect.empty()) {
    if (const auto error = add_sockets(options, state, addresses); !error.empty()) return error;
    if (!options.socket.empty()) return addresses;
  }
  DaemonAddress address;
  address.address_source = "the default, as there is no " + state + "/address";
  if (!options.connect.empty()) {
    address.address_source = "--connect";
    auto endpoint = parse_endpoint(options.connect);
    if (auto* error = std::get_if<std::string>(&endpoint))
      return "--connect " + options.connect + ": " + *error;
    address.endpoint = std::get<Endpoint>(std::move(endpoint));
  } else if (const TextFile file = read_text_file(state + "/address");
             file.error.empty() && !file.text.empty()) {
    address.address_source = "the file " + state + "/address";
    auto endpoint = parse_endpoint(file.text);
    if (auto* error = std::get_if<std::string>(&endpoint)) {
      if (!addresses.empty()) return addresses;  // the socket remains
      return address.address_source + " contains no usable address: " + *error;
    }
    address.endpoint = std::get<Endpoint>(std::move(endpoint));
    if (has_ended(state)) address.unusable = "the daemon that wrote it has ended";
  }
  address.tls_ca = options.tls_ca;
  read_token(address, options.token_file.empty() ? state + "/token" : options.token_file);
  addresses.push_back(std::move(address));
  return addresses;
}

std::variant<std::uint64_t, std::string> read_prefix_key(const std::string& state_directory) {
  const std::string path = state_directory + "/key";
  const TextFile file = read_text_file(path);
  if (!file.error.empty()) return path + ": " + file.error;
  const auto key = parse_hex(file.text);
  if (file.text.size() != 16 || !key) return path + ": not 16 hex digits";
  return *key;
}

TextFile read_text_file(const std::string& path) {
  constexpr std::size_t file_bytes_max = 64 << 10;
  const SmallFile file = read_small_file(path, file_bytes_max, Symlinks::follow);
  TextFile result;
  result.mode = file.stat.mode & 07777U;
  if (!file.ok()) {
    result.error = file.error_text();
    return result;
  }
  result.text = trim(file.text);
  return result;
}

bool is_state_locked(const std::string& state_directory) {
  const Fd lock(::open((state_directory + "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  return lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string make_nonce() { return random_hex(16); }

bool is_proof(std::string_view answer, std::string_view token, std::string_view nonce,
              std::string_view address) {
  if (answer.ends_with('\n')) answer.remove_suffix(1);
  const std::string message = std::string(nonce).append(address);
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(), mac, &size);
  const std::string expected = to_hex(mac, size);
  return answer.size() == expected.size() &&
         CRYPTO_memcmp(answer.data(), expected.data(), expected.size()) == 0;
}

std::string host_and_port(std::string_view address, unsigned port) {
  const bool bracketed = address.find(':') != address.npos;
  return (bracketed ? "[" : "") + std::string(address) + (bracketed ? "]:" : ":") + std::to_string(port);
}

ConnectionOutcome not_proven(int http_status, std::string_view text) {
  ConnectionOutcome outcome{EndReason::unproven, http_status, 0, "it did not prove that it is the daemon"};
  if (http_status == 429 || http_status == 503) outcome.end_reason = EndReason::refused;  // try again later
  if (http_status != 0 && http_status != 200) outcome.text += " (HTTP " + std::to_string(http_status) + ")";
  if (!text.empty()) outcome.text.append(" (").append(text).append(")");
  return outcome;
}

bool is_permanent(const ConnectionOutcome& outcome) {
  if (outcome.end_reason == EndReason::unproven) return true;
  if (outcome.end_reason == EndReason::refused)
    return outcome.http_status != 503 && outcome.http_status != 429;
  return outcome.close_code >= 4500 && outcome.close_code <= 4999;
}

std::string format_connect_error(const ConnectResult& result, const DaemonAddresses& addresses) {
  const ConnectionOutcome& outcome = result.last();
  const DaemonAddress& address = result.address(addresses);
  const bool no_token = address.token.empty() && !address.endpoint.is_unix();
  const char* what = outcome.end_reason == EndReason::unreachable ? "cannot reach the daemon at "
                     : is_about_token(outcome) && no_token        ? "a token is required by the daemon at "
                     : is_about_token(outcome)                    ? "the token was rejected by the daemon at "
                     : outcome.end_reason == EndReason::unproven  ? "the token was not sent to the server at "
                     : outcome.end_reason == EndReason::refused   ? "no earshot daemon answers at "
                                                                  : "lost the connection to the daemon at ";
  std::string text = what + safe_text(address.endpoint.url()) + ": " + safe_text(outcome.text) + "\n";
  for (std::size_t i = 0; i + 1 < result.outcomes.size(); ++i)
    text += "  also tried " + safe_text(addresses[i].endpoint.url()) + ": " +
            safe_text(result.outcomes[i].text) + "\n";
  text += "  address: " + safe_text(address.address_source);
  if (!address.token_path.empty()) text += "\n  token:   " + safe_text(address.token_path);
  if (!address.token_error.empty()) text += " (" + safe_text(address.token_error) + ")";
  const std::string next = next_step(outcome, address);
  return next.empty() ? text : text + "\n  " + next;
}

}  // namespace earshot::common
