#include "cli/daemon_address.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace earshot::cli {
namespace {

constexpr std::size_t small_file_bytes_max =
    4096;  // addresses, tokens and keys are one short line: more is not read

struct SmallFile {
  std::string text;     // without white space around it
  std::string error;    // empty: read
  bool shared = false;  // others than the owner may read it
};

SmallFile read_small_file(const std::string& path) {
  SmallFile file;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    file.error = std::strerror(errno);
    return file;
  }
  struct stat status {};
  char bytes[small_file_bytes_max];
  ssize_t size = -1;
  if (::fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode))
    errno = EINVAL;
  else
    size = ::read(descriptor, bytes, sizeof bytes);
  if (size < 0) file.error = std::strerror(errno);
  ::close(descriptor);
  if (size < 0) return file;
  file.shared = (status.st_mode & (S_IRGRP | S_IROTH)) != 0;
  std::string_view text(bytes, static_cast<std::size_t>(size));
  constexpr std::string_view space = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
  text = text.substr(0, text.find_last_not_of(space) + 1);
  file.text = text;
  return file;
}

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
    if (file.shared) address.warning = "others may read the token in " + path + " (chmod 600 " + path + ")";
  }
}

}  // namespace

std::string Endpoint::url() const {
  const bool bracketed = host.find(':') != host.npos;
  return "ws://" + (bracketed ? "[" + host + "]" : host) + ":" + port + path;
}

std::variant<Endpoint, std::string> parse_endpoint(std::string_view url) {
  constexpr std::string_view scheme = "ws://";
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

std::variant<DaemonAddress, std::string> find_daemon(const DaemonWish& wish) {
  const std::string state = wish.state.empty() ? default_state_directory() : wish.state;
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
    if (auto* why = std::get_if<std::string>(&endpoint))
      return address.address_from + " holds no address: " + *why;
    address.endpoint = std::get<Endpoint>(std::move(endpoint));
  }
  read_token(address, wish.token_file.empty() ? state + "/token" : wish.token_file);
  return address;
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

}  // namespace earshot::cli
