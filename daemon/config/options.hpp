// What the daemon was told to do: the command line, then the file, then defaults.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/server_context.hpp"
#include "team/broker_config.hpp"
#include "team/event_store.hpp"

namespace earshot {

/// [relay]: what is told here is published for a team's hub.
struct RelayWords {
  team::BrokerConfig link;
  bool full = false;  // else the meta view
  bool read = false;  // hubs may ask for whole records
};

/// [hub]: what other daemons published is told here.
struct HubWords {
  team::BrokerConfig link;
  std::string durable = "hub";
  team::EventStoreLimits shelf;
  bool sync = true;
  std::vector<serve::User> users;  // beside the owner
};

struct Options {
  enum class Errand { listen, install_service, uninstall_service } errand = Errand::listen;
  std::vector<std::string> words;  // what the command line said, for the service that is to be installed
  std::string config;              // the file that the command line asked for; empty: none
  std::vector<std::string> roots;  // `[NAME=]DIR`; empty: the usual places
  boost::asio::ip::tcp::endpoint listen;
  int listen_descriptor = -1;  // listens there already: the service manager opened it
  std::string state;           // directory
  std::chrono::seconds recent{24 * 3600};
  std::string log_level = "info";  // trace, debug, info, warn, error, off
  std::string host;
  std::string watch = "both";                 // inotify, sweep, both
  std::optional<std::chrono::seconds> sweep;  // how often every known file is looked at; the watchers know
  bool demo = false;

  std::string socket;         // path of the Unix socket
  bool socket_given = false;  // somebody asked for this one: no other one will do
  bool redact = true;
  std::vector<std::pair<std::string, std::string>> redaction;  // the owner's own rules: name → pattern
  std::string tls_cert, tls_key;                               // files; both or none
  std::vector<std::string> names;                              // further host names, for TLS
  View remote_view = View::meta;                               // of connections over TLS
  serve::Limits limits;
  std::size_t log_bytes_max = serve::LiveLog::bytes_max_default;

  std::optional<RelayWords> relay;
  std::optional<HubWords> hub;
};

/// Options, or a text and the code to exit with.
struct Parsed {
  std::optional<Options> options;
  int exit_code = 0;  // 0: help or the version was asked for; 2: it cannot be understood
  std::string out, err;
};

/// Reads one environment variable; nothing when it is not set or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// `words` without the program's name; `version` is what --version says behind it. Touches no file but the
/// configuration.
Parsed parse_options(const std::vector<std::string>& words, const Environment& environment,
                     const std::string& version);

/// `90m`, `24h`, `30s`, `7d`; nothing when it is no such text.
std::optional<std::chrono::seconds> parse_duration(std::string_view text);

}  // namespace earshot
