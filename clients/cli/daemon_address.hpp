// Where the daemon listens and what opens its door.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace earshot::cli {

struct Endpoint {
  std::string host = "127.0.0.1";
  std::string port = "7717";
  std::string path = "/v1/ws";
  std::string url() const;
};

/// ws://HOST[:PORT][/PATH]; IPv6 in brackets. Nothing is looked up. Text: why it is none.
std::variant<Endpoint, std::string> parse_endpoint(std::string_view url);

struct DaemonWish {
  std::string connect;     // --connect; empty: not given
  std::string token_file;  // --token-file; empty: not given
  std::string state;       // --state; empty: the default
};

/// Where to connect, and how that was found, for people.
struct DaemonAddress {
  Endpoint endpoint;
  std::string token;          // empty: none was found
  std::string address_from;   // "--connect", "the file STATE/address", "the default, …"
  std::string token_from;     // the file's path
  std::string token_trouble;  // why there is no token
  std::string warning;        // the token may be known to others
};

/// $XDG_STATE_HOME/earshot, or ~/.local/state/earshot.
std::string default_state_directory();

/// --connect, else STATE/address, else ws://127.0.0.1:7717/v1/ws; the token of --token-file or STATE/token.
/// Text: an address that is none.
std::variant<DaemonAddress, std::string> find_daemon(const DaemonWish& wish);

/// The host's secret that marks are keyed with, from STATE/key. Text: why there is none.
std::variant<std::uint64_t, std::string> read_mark_key(const std::string& state_directory);

}  // namespace earshot::cli
