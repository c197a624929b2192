// The daemon's configuration as the rest of the program uses it, and how it is read: the command line wins
// over the environment, the environment over earshot.toml, earshot.toml over the defaults (option_table.hpp
// lists all options).
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/model_table.hpp"
#include "otlp/config.hpp"
#include "serve/server_context.hpp"
#include "team/event_store.hpp"
#include "team/nats_client.hpp"

namespace earshot::config {

/// [relay]: this daemon publishes its events for a team's hub.
struct RelayOptions {
  team::BrokerConfig broker;
  bool full = false;  // publish the full view instead of the meta view
  bool read = false;  // hubs may request whole records
};

/// [hub]: this daemon serves what other daemons publish.
struct HubOptions {
  team::BrokerConfig broker;
  std::string durable = "hub";  // the JetStream consumer's name
  team::EventStoreLimits store;
  bool sync = true;                // acknowledge a message only after fsync
  std::string url_public;          // of the page, with a slash at the end; empty: unknown
  std::vector<serve::User> users;  // in addition to the owner
};

/// [otlp]: as in the file. Absent keys may be set by OTEL_* variables.
struct OtlpOptions {
  std::string endpoint;
  std::string headers_file, tls_ca;  // files
  bool full = false;                 // export the full view instead of the meta view
  bool traces = true, metrics = true, logs = false;
  std::chrono::milliseconds retain = std::chrono::hours(24);
};

struct Options {
  enum class Action { run, install_service, uninstall_service } action = Action::run;
  std::vector<std::string> service_arguments;  // the arguments that reproduce this configuration as a service
  std::string config_file;                     // given with --config; empty: the default one, if it exists

  std::vector<std::string> roots;  // `[PROGRAM:][NAME=]DIR`; empty: the agent programs' default directories
  std::chrono::milliseconds recent{};
  std::string watch;                               // inotify, sweep, both
  std::optional<std::chrono::milliseconds> sweep;  // interval of the full sweep; unset: the watchers' default
  bool demo = false;

  boost::asio::ip::tcp::endpoint listen;
  int listen_descriptor = -1;  // a listening socket from the service manager; -1: none
  std::string socket;          // path of the Unix socket
  bool socket_given = false;   // configured, so failing to open it is an error
  std::string host;
  std::string state;               // directory
  std::string metrics_token_file;  // empty: none
  std::string models_file;         // empty: the default one, if it exists
  ModelTable models = ModelTable::built_in();
  std::string log_level;

  std::string tls_cert, tls_key;  // files; both or none
  std::vector<std::string> names;
  View remote_view = View::meta;  // of TLS connections
  bool redact = true;
  bool search = true;
  std::vector<std::pair<std::string, std::string>> redaction;  // the owner's rules: name, pattern
  serve::Limits limits;
  std::size_t log_bytes_max = serve::LiveLog::bytes_max_default;

  std::optional<RelayOptions> relay;
  std::optional<HubOptions> hub;
  OtlpOptions otlp_file;              // [otlp]
  std::optional<otlp::Config> otlp;   // with the OTEL_* variables; absent: nothing is exported
  std::vector<std::string> warnings;  // for users: unused settings
};

/// A configuration error, worded for the user; the program exits with code 2.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Options, or text to print and the code to exit with.
struct ParseResult {
  std::optional<Options> options;
  int exit_code = 0;  // 0: --help, --version or --print-config; 2: invalid
  std::string out, err;
};

/// Reads one environment variable; nothing when it is unset or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// `arguments` without the program's name; `version` is printed by --version. Reads no file but earshot.toml
/// and models.toml. `inherited`: the address of a listener that the service manager passed.
ParseResult parse_options(const std::vector<std::string>& arguments, const Environment& environment,
                          const std::string& version,
                          const std::optional<boost::asio::ip::tcp::endpoint>& inherited = {});

}  // namespace earshot::config
