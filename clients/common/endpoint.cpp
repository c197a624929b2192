#include "common/endpoint.hpp"

#include <sys/stat.h>

#include <charconv>
#include <cstdlib>

#include "common/small_file.hpp"

namespace earshot::common {
namespace {

constexpr std::size_t socket_path_bytes_max = 107;  // what the kernel's sockaddr_un holds

bool is_token(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c > '~') return false;  // it goes into an HTTP header
  }
  return !text.empty();
}

bool is_host(std::string_view text) {
  for (const char c : text) {
    const bool fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
    if (!fits) return false;
  }
  return !text.empty();
}

void read_token(DaemonAddress& address, const std::string& path) {
  address.token_from = path;
  const SmallFile file = read_small_file(path);
  if (!file.error.empty()) {
    address.token_trouble = file.error;
  } else if (!is_token(file.text)) {
    address.token_trouble = "holds no token";
  } else {
    address.token = file.text;
    if (file.shared()) address.warning = "others may read the token in " + path + " (chmod 600 " + path + ")";
  }
}

// Text: what was given cannot be a socket's path.
std::string add_sockets(const DaemonWish& wish, const std::string& state, Doors& doors) {
  const auto add = [&](const std::string& path, const std::string& from) {
    DaemonAddress door;
    door.endpoint.socket = path;
    door.address_from = from;
    doors.push_back(std::move(door));
  };
  if (!wish.socket.empty()) {
    if (wish.socket.size() > socket_path_bytes_max)
      return "--socket: the path has " + std::to_string(wish.socket.size()) + " bytes; a socket's has " +
             std::to_string(socket_path_bytes_max) + " at most";
    add(wish.socket, "--socket");
    return {};
  }
  const SmallFile named = read_small_file(state + "/socket");
  const bool fits = named.text.starts_with('/') && named.text.size() <= socket_path_bytes_max;
  if (named.error.empty() && fits) add(named.text, "the file " + state + "/socket");
  // Another STATE is another daemon: the usual socket is not its own.
  const std::string usual = wish.state.empty() ? default_socket() : std::string();
  struct stat status {};
  const bool there = !usual.empty() && usual.size() <= socket_path_bytes_max && usual != named.text &&
                     ::stat(usual.c_str(), &status) == 0;
  if (there) add(usual, "the default, below XDG_RUNTIME_DIR");
  return {};
}

}  // namespace

std::string Endpoint::authority() const {
  if (is_unix()) return "localhost";
  const bool bracketed = host.find(':') != host.npos;
  return (bracketed ? "[" + host + "]" : host) + ":" + port;
}

std::string Endpoint::url() const { return is_unix() ? "unix:" + socket : "ws://" + authority() + path; }

std::variant<Endpoint, std::string> parse_endpoint(std::string_view url) {
  constexpr std::string_view scheme = "ws://";
  if (url.starts_with("wss://"))
    return std::string(
        "this program does not speak TLS: go through ssh (ssh -L 7717:127.0.0.1:7717 HOST, then --connect "
        "ws://127.0.0.1:7717)");
  if (!url.starts_with(scheme)) return std::string("an address looks like ws://127.0.0.1:7717/v1/ws");
  url.remove_prefix(scheme.size());
  Endpoint endpoint;
  if (const std::size_t slash = url.find('/'); slash != url.npos) {
    if (slash + 1 < url.size()) endpoint.path = url.substr(slash);
    url = url.substr(0, slash);
  }
  for (const char c : endpoint.path) {
    if (c <= ' ' || c > '~') return std::string("the path has characters that a URL cannot have");
  }
  std::string_view port;
  if (url.starts_with('[')) {
    const std::size_t end = url.find(']');
    if (end == url.npos) return std::string("a ] is missing");
    endpoint.host = url.substr(1, end - 1);
    url.remove_prefix(end + 1);
    if (!url.empty() && url.front() != ':') return std::string("after ] comes :PORT");
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
  if (!is_host(endpoint.host)) return std::string("the host is missing, or is no name");
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

std::string DaemonWish::state_directory() const { return state.empty() ? default_state_directory() : state; }

std::variant<Doors, std::string> find_daemon(const DaemonWish& wish) {
  const std::string state = wish.state_directory();
  Doors doors;
  if (!wish.connect.empty() && !wish.socket.empty()) return "--connect and --socket exclude each other";
  if (wish.connect.empty()) {
    if (const auto why = add_sockets(wish, state, doors); !why.empty()) return why;
    if (!wish.socket.empty()) return doors;
  }
  DaemonAddress address;
  address.address_from = "the default, as there is no " + state + "/address";
  if (!wish.connect.empty()) {
    address.address_from = "--connect";
    auto endpoint = parse_endpoint(wish.connect);
    if (auto* why = std::get_if<std::string>(&endpoint)) return "--connect " + wish.connect + ": " + *why;
    address.endpoint = std::get<Endpoint>(std::move(endpoint));
  } else if (const SmallFile file = read_small_file(state + "/address");
             file.error.empty() && !file.text.empty()) {
    address.address_from = "the file " + state + "/address";
    auto endpoint = parse_endpoint(file.text);
    if (auto* why = std::get_if<std::string>(&endpoint)) {
      if (!doors.empty()) return doors;  // such as wss://: there is another way
      return address.address_from + " holds no address that helps: " + *why;
    }
    address.endpoint = std::get<Endpoint>(std::move(endpoint));
  }
  read_token(address, wish.token_file.empty() ? state + "/token" : wish.token_file);
  doors.push_back(std::move(address));
  return doors;
}

std::variant<std::uint64_t, std::string> read_mark_key(const std::string& state_directory) {
  const std::string path = state_directory + "/key";
  const SmallFile file = read_small_file(path);
  if (!file.error.empty()) return path + ": " + file.error;
  std::uint64_t key = 0;
  const char* const end = file.text.data() + file.text.size();
  const auto [read, error] = std::from_chars(file.text.data(), end, key, 16);
  if (file.text.size() != 16 || error != std::errc() || read != end) return path + ": is not 16 hex digits";
  return key;
}

}  // namespace earshot::common
