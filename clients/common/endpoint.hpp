// Where the daemon listens and what opens its doors.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace earshot::common {

struct Endpoint {
  std::string socket;  // a Unix socket's path; empty: host and port
  std::string host = "127.0.0.1";
  std::string port = "7717";
  std::string path = "/v1/ws";
  bool is_unix() const { return !socket.empty(); }
  /// ws://HOST:PORT/PATH, or unix:PATH: for people.
  std::string url() const;
  /// What an HTTP request's Host says.
  std::string authority() const;
};

/// ws://HOST[:PORT][/PATH]; IPv6 in brackets. Nothing is looked up. Text: why it is none.
std::variant<Endpoint, std::string> parse_endpoint(std::string_view url);

struct DaemonWish {
  std::string connect;     // --connect; empty: not given
  std::string socket;      // --socket; empty: not given
  std::string token_file;  // --token-file; empty: not given
  std::string state;       // --state; empty: the default
  std::string state_directory() const;
};

/// A way in, and how it was found, for people.
struct DaemonAddress {
  Endpoint endpoint;
  std::string token;          // empty: none was found, or none is needed
  std::string address_from;   // "--connect", "the file STATE/address", "the default, …"
  std::string token_from;     // the file's path; empty: a Unix socket needs none
  std::string token_trouble;  // why there is no token
  std::string warning;        // the token may be known to others
};

/// The ways in, in the order in which they are to be tried. Never empty.
using Doors = std::vector<DaemonAddress>;

/// $XDG_STATE_HOME/earshot, or ~/.local/state/earshot.
std::string default_state_directory();

/// $XDG_RUNTIME_DIR/earshot/sock; empty when the variable is not set.
std::string default_socket();

/// With --connect only that, with --socket only that. Else the socket that STATE/socket names; the default
/// socket, if it is there and no other STATE was asked for; and by TCP STATE/address, or the default
/// address. The token is that of --token-file or STATE/token. Text: what was given is no address.
std::variant<Doors, std::string> find_daemon(const DaemonWish& wish);

/// The host's secret that marks are keyed with, from STATE/key. Text: why there is none.
std::variant<std::uint64_t, std::string> read_mark_key(const std::string& state_directory);

}  // namespace earshot::common
