#include "config/options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "config/options_file.hpp"
#include "config/options_words.hpp"
#include "redact/redactor.hpp"
#include "team/broker_client.hpp"
#include "team/subjects.hpp"

namespace earshot {
namespace {

constexpr std::uint16_t default_port = 7717;

// --- What the words mean ---

boost::asio::ip::tcp::endpoint parse_listen(const std::string& text) {
  const Failure failure("listen: `" + text + "` is not ADDR:PORT, such as 127.0.0.1:7717 or [::1]:7717");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) throw failure;
  std::string address = text.substr(0, colon);
  const std::string digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) throw failure;
  if (address.empty() || address == "localhost") address = "127.0.0.1";
  if (address.size() > 2 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
  } else if (address.find(':') != std::string::npos) {
    throw failure;
  }
  boost::system::error_code ec;
  const auto parsed = boost::asio::ip::make_address(address, ec);
  if (ec) throw failure;
  return {parsed, port};
}

std::string one_of(std::string_view what, const std::string& word,
                   const std::vector<std::string_view>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return word;
  std::string list;
  for (const std::string_view name : known) list += (list.empty() ? "" : ", ") + std::string(name);
  throw Failure(std::string(what) + ": `" + word + "` is none of " + list + "; did you mean `" +
                std::string(nearest(word, known)) + "`?");
}

std::string below_home(const Environment& environment, const char* variable, std::string_view fallback,
                       std::string_view rest) {
  // The specification of these variables says that a relative path is to be ignored.
  if (const auto base = environment(variable); base && base->front() == '/')
    return *base + "/" + std::string(rest);
  const auto home = environment("HOME");
  if (!home) throw Failure(std::string("neither ") + variable + " nor HOME is set: say --state and --config");
  return *home + "/" + std::string(fallback) + "/" + std::string(rest);
}

std::string usual_socket(const Environment& environment, const std::string& state) {
  const auto runtime = environment("XDG_RUNTIME_DIR");
  return runtime && runtime->front() == '/' ? *runtime + "/earshot/sock" : state + "/sock";
}

std::string own_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

/// `~/` is the home directory; what is relative is below `directory`.
std::string file_path(const std::string& word, const std::string& directory, const Environment& environment) {
  if (word.starts_with("~/")) {
    if (const auto home = environment("HOME")) return *home + word.substr(1);
  }
  return (std::filesystem::path(directory) / word).string();
}

/// Other machines are let in only when the owner said so, and only encrypted.
void decide_remote(const RawOptions& said, const Environment& environment, const std::string& directory,
                   Options& options) {
  if (said.tls_cert.has_value() != said.tls_key.has_value()) {
    throw Failure(said.tls_cert ? "tls_cert needs the key that belongs to it: tls_key = \"FILE\""
                                : "tls_key needs the certificate that belongs to it: tls_cert = \"FILE\"");
  }
  if (said.tls_cert) options.tls_cert = file_path(*said.tls_cert, directory, environment);
  if (said.tls_key) options.tls_key = file_path(*said.tls_key, directory, environment);
  options.names = said.names;
  options.remote_view = one_of("remote_view", said.remote_view.value_or("meta"), {"meta", "full"}) == "full"
                            ? View::full
                            : View::meta;
  if (options.listen.address().is_loopback()) return;
  if (said.allow_remote.value_or(false) && said.tls_cert) return;
  throw Failure(
      "listen: " + options.listen.address().to_string() +
      " is not a loopback address: other machines could connect, and transcripts are private. If that "
      "is what you want, write into earshot.toml:\n"
      "  allow_remote = true\n"
      "  tls_cert = \"FILE\"   # TLS: a certificate chain in PEM\n"
      "  tls_key = \"FILE\"    # and its key, which only you can read\n"
      "  names = [\"" +
      own_host() + "\"]  # what this machine is called there");
}

/// A daemon tells what it hears here, or what others told: not both, so that nothing goes in a circle.
void decide_team(const RawOptions& said, const Environment& environment, const std::string& directory,
                 Options& options) {
  options.relay = said.relay;
  options.hub = said.hub;
  if (!options.relay && !options.hub) return;
  const std::string which = options.hub ? "hub" : "relay";
  if (options.relay && options.hub)
    throw Failure(
        "[relay] and [hub] are for two daemons: one publishes what it hears, the other tells what was "
        "published");
  if (const std::string missing = team::missing_library(); !missing.empty())
    throw Failure("[" + which + "]: " + missing);
  if (options.hub && (!options.roots.empty() || options.demo))
    throw Failure("a hub listens to no directory of its own: start another earshotd with [relay] for that");
  if (options.relay && !team::is_host(options.host))
    throw Failure("host: `" + options.host +
                  "` cannot be published under: [relay] takes letters, digits, `.`, `-` "
                  "and `_`, at most " +
                  std::to_string(team::host_bytes_max) + "; choose a name with --host");
  team::BrokerConfig& link = options.relay ? options.relay->link : options.hub->link;
  for (std::string* path : {&link.credentials, &link.nkey_seed, &link.tls_ca, &link.tls_cert, &link.tls_key})
    if (!path->empty()) *path = file_path(*path, directory, environment);
}

Options decide(const RawOptions& said, const Environment& environment, const std::string& directory) {
  Options options;
  options.roots = said.roots;
  options.listen = parse_listen(said.listen.value_or("127.0.0.1:" + std::to_string(default_port)));
  options.state =
      said.state ? *said.state : below_home(environment, "XDG_STATE_HOME", ".local/state", "earshot");
  if (said.recent) {
    const auto recent = parse_duration(*said.recent);
    if (!recent) throw Failure("recent: `" + *said.recent + "` is no duration, such as 30s, 90m, 24h or 7d");
    options.recent = *recent;
  }
  options.log_level = one_of("log-level", said.log_level.value_or("info"),
                             {"trace", "debug", "info", "warn", "error", "off"});
  options.watch = one_of("watch", said.watch.value_or("both"), {"inotify", "sweep", "both"});
  if (said.sweep) {
    options.sweep = parse_duration(*said.sweep);
    if (!options.sweep || options.sweep->count() == 0)
      throw Failure("sweep: `" + *said.sweep + "` is no duration of a second or more, such as 1s, 60s or 5m");
  }
  options.host = said.host.value_or(own_host());
  if (options.host.empty()) throw Failure("host: a name is needed");
  options.demo = said.demo.value_or(false);
  if (options.state.empty()) throw Failure("state: a directory is needed");
  options.socket_given = said.socket.has_value();
  options.socket = options.socket_given ? *said.socket : usual_socket(environment, options.state);
  if (options.socket.empty()) throw Failure("socket: a path is needed");
  options.redact = said.redact.value_or(true);
  options.redaction = said.redaction;
  std::vector<redact::UserRule> rules;
  for (const auto& [name, pattern] : options.redaction) rules.push_back({name, pattern});
  if (const std::string error = redact::Redactor(std::move(rules)).error(); !error.empty())
    throw Failure("redaction: " + error);
  options.limits = said.limits;
  if (said.log_bytes) options.log_bytes_max = *said.log_bytes;
  decide_remote(said, environment, directory, options);
  decide_team(said, environment, directory, options);
  return options;
}

void override_with(RawOptions& said, RawOptions&& line) {
  if (!line.roots.empty()) said.roots = std::move(line.roots);
  for (const auto field :
       {&RawOptions::listen, &RawOptions::socket, &RawOptions::state, &RawOptions::recent,
        &RawOptions::log_level, &RawOptions::host, &RawOptions::watch, &RawOptions::sweep}) {
    if (line.*field) said.*field = std::move(line.*field);
  }
  if (line.demo) said.demo = line.demo;
  if (line.redact) said.redact = line.redact;
  if (line.hub && !said.hub) said.hub = line.hub;
}

constexpr const char* examples = R"(Examples:
  earshotd                              listen to the usual places, serve on 127.0.0.1:7717
  earshotd --demo                       play a small invented session, to see what it does
  earshotd --root work=/srv/agents      listen to another directory, called `work`
  earshotd --listen 127.0.0.1:0         on any free port; the ready line says which

Every option is also a key of the configuration file:
  root = ["~/.claude", "work=/srv/agents"]
  recent = "7d"
  [limits]
  connections = 200

The token that clients need is in the file `token` of the state directory; `earshot` finds it by itself.
Exit codes: 0 stopped by a signal, 1 something failed, 2 the command line or the file cannot be understood;
--install-service and --uninstall-service: 3 the service manager could not be told, 4 the file was changed.)";

}  // namespace

std::optional<std::chrono::seconds> parse_duration(std::string_view text) {
  struct Unit {
    char letter;
    std::int64_t seconds;
  };
  constexpr Unit units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
  constexpr std::int64_t count_max = 36500LL * 86400;  // a hundred years are no mistake yet
  if (text.size() < 2) return {};
  std::int64_t count = 0;
  const char* last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(text.data(), last, count);
  if (error != std::errc() || end != last || count < 0) return {};
  for (const Unit& unit : units) {
    if (unit.letter == *last && count <= count_max / unit.seconds)
      return std::chrono::seconds(count * unit.seconds);
  }
  return {};
}

Parsed parse_options(const std::vector<std::string>& words, const Environment& environment,
                     const std::string& version) {
  CLI::App app(
      "Listens to coding agents at work: tails their transcripts and tells what happens over WebSocket.",
      "earshotd");
  RawOptions line;
  std::optional<std::string> config;
  bool demo = false, redact = true, install = false, uninstall = false, hub = false;
  app.add_option("--root", line.roots,
                 "A directory that an agent program writes into. More than one may be given.\n"
                 "Default: $CLAUDE_CONFIG_DIR, ~/.claude, ~/.config/claude")
      ->type_name("[NAME=]DIR")
      ->group("What to listen to");
  app.add_option("--recent", line.recent,
                 "Transcripts that changed within this time are read at the start. Default: 24h")
      ->type_name("DURATION")
      ->group("What to listen to");
  app.add_option("--watch", line.watch, "How changes are noticed: inotify, sweep or both. Default: both")
      ->type_name("HOW")
      ->group("What to listen to");
  app.add_option("--sweep", line.sweep,
                 "How often every known transcript is looked at, whatever the system reports.\n"
                 "Default: 60s, and 10s where its reports cannot be relied upon")
      ->type_name("DURATION")
      ->group("What to listen to");
  app.add_flag("--demo", demo, "Play a small invented session into a directory of its own")
      ->group("What to listen to");
  app.add_option("--listen", line.listen,
                 "Port 0 picks a free one. An address that other machines reach needs TLS and\n"
                 "`allow_remote` in the configuration file. Default: 127.0.0.1:7717")
      ->type_name("ADDR:PORT")
      ->take_last()
      ->group("Where to serve");
  app.add_option("--socket", line.socket,
                 "A Unix socket for programs of this user; no token is needed there.\n"
                 "Default: $XDG_RUNTIME_DIR/earshot/sock, or `sock` in the state directory")
      ->type_name("PATH")
      ->group("Where to serve");
  CLI::Option* redact_flag =
      app.add_flag("--redact,!--no-redact", redact,
                   "Replace secrets of known shapes by their kind, or do not. Default: replace")
          ->group("Where to serve");
  app.add_option("--host", line.host, "What this machine is called in events. Default: its host name")
      ->type_name("NAME")
      ->group("Where to serve");
  app.add_option("--state", line.state,
                 "Where the token is kept. Default: $XDG_STATE_HOME/earshot or ~/.local/state/earshot")
      ->type_name("DIR")
      ->group("General");
  app.add_option("--config", config,
                 "A TOML file. Default: $XDG_CONFIG_HOME/earshot/earshot.toml, if it is there")
      ->type_name("FILE")
      ->group("General");
  app.add_option("--log-level", line.log_level,
                 "trace, debug, info, warn, error or off, on stderr. Default: info")
      ->type_name("LEVEL")
      ->group("General");
  app.add_flag("--hub", hub,
               "Tell what the daemons of a team publish, instead of what happens here; [hub] in the\n"
               "configuration file says where. Default there: nats://127.0.0.1:4222")
      ->group("A team");
  CLI::Option* install_flag =
      app.add_flag("--install-service", install,
                   "Have the service manager (systemd, launchd) run this program for you, now and\n"
                   "whenever you log in, with the other options given here")
          ->group("As a service");
  app.add_flag("--uninstall-service", uninstall, "Stop that, and remove what was installed")
      ->excludes(install_flag)
      ->group("As a service");
  app.set_help_flag("-h,--help", "Print this and exit")->group("General");
  app.set_version_flag("--version", "earshotd " + version, "Print the version and what build it is, and exit")
      ->group("General");
  app.footer(examples);

  Parsed parsed;
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    parsed.exit_code = app.exit(error, out, err) == 0 ? 0 : 2;
    parsed.out = out.str();
    parsed.err = err.str().empty() ? "" : "earshotd: " + err.str();
    return parsed;
  } catch (const std::out_of_range&) {  // CLI11 2.1 lets it out: a flag was given a number beyond 64 bits
    parsed.exit_code = 2;
    parsed.err =
        "earshotd: a flag was given a value that it cannot have: write it alone, as --demo or --no-redact\n";
    return parsed;
  }
  if (demo) line.demo = true;
  if (hub) line.hub.emplace().link.urls = {"nats://127.0.0.1:4222"};
  if (redact_flag->count() > 0) line.redact = redact;
  try {
    RawOptions said;
    std::string directory;  // of the file: what it names is found from there
    std::error_code ignored;
    if (config) {
      said = read_file(*config);
      directory = std::filesystem::path(*config).parent_path().string();
    } else if (environment("HOME") || environment("XDG_CONFIG_HOME")) {
      const std::string file = below_home(environment, "XDG_CONFIG_HOME", ".config", "earshot/earshot.toml");
      if (std::filesystem::exists(file, ignored)) said = read_file(file);
      directory = std::filesystem::path(file).parent_path().string();
    }
    const RawOptions on_the_line = line;
    override_with(said, std::move(line));
    Options options = decide(said, environment, directory);
    options.config = config.value_or("");
    options.words = words_of(on_the_line, config, options);
    if (install) options.errand = Options::Errand::install_service;
    if (uninstall) options.errand = Options::Errand::uninstall_service;
    parsed.options = std::move(options);
  } catch (const Failure& failure) {
    parsed.exit_code = 2;
    parsed.err = std::string("earshotd: ") + failure.what() + "\n";
  }
  return parsed;
}

}  // namespace earshot
