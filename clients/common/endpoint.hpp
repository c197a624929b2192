// Where the daemon listens, how a connection to it ended, and the messages when there is none.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace CLI {
class App;
}

namespace earshot::common {

struct Endpoint {
  std::string socket;  // path of a Unix socket; empty: host and port
  std::string host = "127.0.0.1";
  std::string port = "7717";
  std::string path = "/v1/ws";
  bool tls = false;
  bool is_unix() const { return !socket.empty(); }
  /// For display: ws://HOST:PORT/PATH, wss://… or unix:PATH.
  std::string url() const;
  /// The value of an HTTP request's Host header.
  std::string authority() const;
};

/// Parses ws:// or wss://HOST[:PORT][/PATH], an IPv6 address in brackets; no name is resolved. Returns the
/// reason if `url` is not such an address.
std::variant<Endpoint, std::string> parse_endpoint(std::string_view url);

/// The connection options of a command line; empty: not given.
struct ConnectOptions {
  std::string connect;     // --connect
  std::string socket;      // --socket
  std::string token_file;  // --token-file
  std::string tls_ca;      // --tls-ca
  std::string state;       // --state
  std::string state_directory() const;
  bool names_address() const { return !connect.empty() || !socket.empty(); }
};
void add_connect_options(CLI::App& command, ConnectOptions& options);

struct DaemonAddress {
  Endpoint endpoint;
  std::string token;           // empty: none found, or none needed
  std::string address_source;  // for display: "--connect", "the file STATE/address", "the default, …"
  std::string token_path;      // empty: a Unix socket, which needs no token
  std::string token_error;     // why there is no token
  std::string warning;         // the token's file is readable by other users
  std::string tls_ca;          // file with trusted certificates; empty: those of the system
  std::string unusable;        // why it is not used: the daemon that wrote the address has ended

  /// Over plain TCP any local user may listen: the daemon proves that it has the token before that is sent.
  bool needs_proof() const { return !token.empty() && !endpoint.is_unix() && !endpoint.tls; }
};

/// Addresses of one daemon, in the order in which to try them. Never empty.
using DaemonAddresses = std::vector<DaemonAddress>;

/// $XDG_STATE_HOME/earshot, or ~/.local/state/earshot.
std::string default_state_directory();

/// $XDG_RUNTIME_DIR/earshot/sock; empty if the variable is not set.
std::string default_socket();

/// With --connect or --socket only that address. Otherwise: the socket named in STATE/socket; the default
/// socket if it exists and no other STATE was given; STATE/address or the default TCP address. The token is
/// read from --token-file or STATE/token. Returns the reason if an option or a file holds no valid address.
std::variant<DaemonAddresses, std::string> find_daemon(const ConnectOptions& options);

/// The host's secret key of prefix hashes, from STATE/key. Returns the reason if there is none.
std::variant<std::uint64_t, std::string> read_prefix_key(const std::string& state_directory);

/// Whether a daemon runs with this state directory, reachable or not.
bool is_state_locked(const std::string& state_directory);

/// A file of one line, without the white space around it.
struct TextFile {
  std::string text;
  std::string error;  // empty: the file was read
  unsigned mode = 0;  // permissions
};
TextFile read_text_file(const std::string& path);

enum class EndReason {
  stopped,      // a signal arrived, or a handler closed the connection
  unreachable,  // no connection: nothing listens there, or the name cannot be resolved
  refused,      // the server answered, but not with a WebSocket; see `http_status`
  unproven,     // the server did not prove that it has the token, which was not sent to it
  closed,       // an open connection ended; see `close_code` if the daemon gave one
};

struct ConnectionOutcome {
  EndReason end_reason = EndReason::closed;
  int http_status = 0;
  int close_code = 0;  // 4500–4999: do not reconnect
  std::string text;    // for the user; escape it: part of it may come from the peer
};

// The proof: before the token is sent over plain TCP, a random nonce is sent with GET /v1/proof?nonce=NONCE.
// The address is part of the proof, so that a listener elsewhere cannot pass on the answer of the daemon.
constexpr std::size_t proof_bytes_max = 1024;  // a longer answer is none
std::string make_nonce();
/// `address`: HOST:PORT of the other end of the connection, as numbers; IPv6 in brackets.
bool is_proof(std::string_view answer, std::string_view token, std::string_view nonce,
              std::string_view address);
/// HOST:PORT of an address and a port.
std::string host_and_port(std::string_view address, unsigned port);
/// The outcome of an answer that is no proof. `http_status` 0: there was no answer, for the reason `text`.
ConnectionOutcome not_proven(int http_status, std::string_view text = {});

/// How the attempts on a list of addresses ended, in order.
struct ConnectResult {
  std::vector<ConnectionOutcome> outcomes;  // never empty; all but the last are `unreachable`
  const ConnectionOutcome& last() const { return outcomes.back(); }
  const DaemonAddress& address(const DaemonAddresses& addresses) const {
    return addresses[outcomes.size() - 1];
  }
};

/// Whether to give up: a rejected token, or a close code that forbids reconnecting (4500–4999).
bool is_permanent(const ConnectionOutcome& outcome);

/// What failed, with which addresses and token, and what to do next: several lines for stderr, without the
/// last line end.
std::string format_connect_error(const ConnectResult& result, const DaemonAddresses& addresses);

}  // namespace earshot::common
