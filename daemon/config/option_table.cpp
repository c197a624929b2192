#include "config/option_table.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "agents/roots.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"

namespace earshot::config {
namespace {

using Values = std::vector<std::string>;

constexpr std::string_view what = "What to monitor", where = "Where to serve", remote = "Other machines",
                           secrets = "Secrets", general = "General";

std::optional<boost::asio::ip::tcp::endpoint> parse_endpoint(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {};
  std::string address = text.substr(0, colon);
  const std::string digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  if (address.empty() || address == "localhost") address = "127.0.0.1";
  if (address.size() > 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  else if (address.find(':') != std::string::npos)
    return {};
  boost::system::error_code ec;
  const auto parsed = boost::asio::ip::make_address(address, ec);
  if (ec) return {};
  return boost::asio::ip::tcp::endpoint{parsed, port};
}

const std::string& not_empty(const std::string& value, std::string_view what_it_is) {
  if (value.empty()) throw Error(std::string(what_it_is) + " is needed");
  return value;
}

const std::vector<Option>& table() {
  static const std::vector<Option> options = {
      Option("root", Kind::root, Scope::everywhere, what, "[PROGRAM:][NAME=]DIR", "",
             "[\"~/.claude\", \"work=/srv/agents\", \"codex:~/codex\"]",
             "A directory that an agent program writes to. Repeatable. PROGRAM is claude-code, codex, "
             "copilot or\n"
             "pi; without it, the directory's content decides.\n"
             "Default: where the programs write: $CLAUDE_CONFIG_DIR, ~/.claude, ~/.config/claude; "
             "$CODEX_HOME or\n"
             "~/.codex; $COPILOT_HOME or ~/.copilot; $PI_CODING_AGENT_DIR or ~/.pi/agent, and where\n"
             "$PI_CODING_AGENT_SESSION_DIR and the sessionDir of its settings say",
             {}, [](Options& o, const Values& v) { o.roots = v; }),
      Option("recent", Kind::duration, Scope::everywhere, what, "DURATION", "24h", "",
             "Transcripts that changed within this time are read at start; their sessions are live", {},
             [](Options& o, const Values& v) { o.recent = *parse_duration(v[0]); }),
      Option("watch", Kind::choice, Scope::everywhere, what, "HOW", "both", "",
             "How changes are detected: inotify, sweep (periodic stat of every file) or both",
             {"inotify", "sweep", "both"}, [](Options& o, const Values& v) { o.watch = v[0]; }),
      Option("sweep", Kind::duration, Scope::everywhere, what, "DURATION", "", "\"60s\"",
             "Interval of the sweep over every known transcript.\n"
             "Default: 60s, longer above 60,000 files, and 10s where inotify is unreliable (NFS, sshfs)",
             {}, [](Options& o, const Values& v) { o.sweep = *parse_duration(v[0]); }),
      Option("demo", Kind::flag, Scope::everywhere, what, "", "false", "",
             "Play small demo sessions, one of each program, in a directory of their own", {},
             [](Options& o, const Values& v) { o.demo = v[0] == "true"; }),
      Option("hub", Kind::flag, Scope::command_line, what, "", "false", "",
             "Run as a team hub: serve what other daemons publish instead of monitoring this machine.\n"
             "The broker is set in [hub] of earshot.toml. Default: nats://127.0.0.1:4222",
             {}, [](Options&, const Values&) {}),
      Option("listen", Kind::text, Scope::everywhere, where, "ADDR:PORT", "127.0.0.1:7717", "",
             "TCP address to listen on; port 0 picks a free one. Addresses beyond loopback need TLS and\n"
             "`allow_remote` in earshot.toml",
             {},
             [](Options& o, const Values& v) {
               const auto endpoint = parse_endpoint(v[0]);
               if (!endpoint)
                 throw Error("`" + v[0] + "` is not ADDR:PORT, such as 127.0.0.1:7717 or [::1]:7717");
               o.listen = *endpoint;
             }),
      Option("socket", Kind::path, Scope::everywhere, where, "PATH", "", "\"/run/user/1000/earshot/sock\"",
             "Unix socket for programs of this user; needs no token.\n"
             "Default: $XDG_RUNTIME_DIR/earshot/sock, or `sock` in the state directory",
             {},
             [](Options& o, const Values& v) {
               o.socket = not_empty(v[0], "a path");
               o.socket_given = true;
             }),
      Option("host", Kind::text, Scope::everywhere, where, "NAME", "", "\"dev7\"",
             "This machine's name in events. Default: its host name", {},
             [](Options& o, const Values& v) { o.host = not_empty(v[0], "a name"); }),
      Option("redact", Kind::flag, Scope::everywhere, secrets, "", "true", "",
             "Replace secrets of known formats with [redacted:KIND]", {},
             [](Options& o, const Values& v) { o.redact = v[0] == "true"; }),
      Option("search", Kind::flag, Scope::everywhere, general, "", "true", "",
             "Index the transcripts for `earshot search` and the page's history. Without it the index is "
             "deleted",
             {}, [](Options& o, const Values& v) { o.search = v[0] == "true"; }),
      Option("allow_remote", Kind::flag, Scope::file, remote, "", "false", "",
             "Allow `listen` on an address that other machines reach; needs a certificate", {},
             [](Options&, const Values&) {}),
      Option("tls_cert", Kind::path, Scope::file, remote, "FILE", "", "\"earshot.crt\"",
             "TLS certificate chain in PEM; relative to this file", {},
             [](Options& o, const Values& v) { o.tls_cert = v[0]; }),
      Option("tls_key", Kind::path, Scope::file, remote, "FILE", "", "\"earshot.key\"",
             "The certificate's private key", {}, [](Options& o, const Values& v) { o.tls_key = v[0]; }),
      Option("names", Kind::names, Scope::file, remote, "NAMES", "", "[\"dev7.example\"]",
             "Further host names by which clients may address this machine", {},
             [](Options& o, const Values& v) { o.names = v; }),
      Option("remote_view", Kind::choice, Scope::file, remote, "VIEW", "meta", "",
             "What TLS clients receive: meta (no text, inputs or outputs) or full", {"meta", "full"},
             [](Options& o, const Values& v) { o.remote_view = v[0] == "full" ? View::full : View::meta; }),
      Option("metrics_token_file", Kind::path, Scope::file, general, "FILE", "", "\"metrics_token\"",
             "Token that reads /metrics and nothing else; created if there is none; relative to this file",
             {}, [](Options& o, const Values& v) { o.metrics_token_file = v[0]; }),
      Option("state", Kind::path, Scope::everywhere, general, "DIR", "", "\"/home/ada/.local/state/earshot\"",
             "Directory of the token and the keys.\n"
             "Default: $XDG_STATE_HOME/earshot or ~/.local/state/earshot",
             {}, [](Options& o, const Values& v) { o.state = not_empty(v[0], "a directory"); }),
      Option("models", Kind::path, Scope::everywhere, general, "FILE", "", "\"models.toml\"",
             "Prices and context windows of models, before the built-in ones: see earshot.toml(5).\n"
             "Default: $XDG_CONFIG_HOME/earshot/models.toml, if it exists",
             {}, [](Options& o, const Values& v) { o.models_file = not_empty(v[0], "a file"); }),
      Option("config", Kind::path, Scope::command_line, general, "FILE", "", "",
             "Configuration file. Default: $XDG_CONFIG_HOME/earshot/earshot.toml, if it exists", {},
             [](Options& o, const Values& v) { o.config_file = v[0]; }),
      Option("log_level", Kind::choice, Scope::everywhere, general, "LEVEL", "info", "",
             "Log level on stderr: trace, debug, info, warn, error or off",
             {"trace", "debug", "info", "warn", "error", "off"},
             [](Options& o, const Values& v) { o.log_level = v[0]; }),
  };
  return options;
}

std::string absolute(const std::string& path) {
  std::error_code ignored;
  return path.starts_with('/') || path == "~" || path.starts_with("~/")
             ? path
             : (std::filesystem::current_path(ignored) / path).lexically_normal().string();
}

std::string absolute_root(const std::string& root) {
  const std::string_view directory = split_root(root).directory;
  return root.substr(0, root.size() - directory.size()) + absolute(std::string(directory));
}

std::string absolute_value(const Option& option, const std::string& value) {
  if (option.kind == Kind::path) return absolute(value);
  return option.kind == Kind::root ? absolute_root(value) : value;
}

}  // namespace

std::span<const Option> option_table() { return table(); }

std::string flag_of(const Option& option) {
  std::string flag = "--" + std::string(option.key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string variable_of(const Option& option) {
  std::string name = "EARSHOT_";
  for (const char c : option.key) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

void check(const Option& option, const Setting& setting) {
  const auto fail = [&](const std::string& why) { throw Error(setting.origin + ": " + why); };
  for (const std::string& value : setting.values) {
    switch (option.kind) {
      case Kind::duration: {
        const auto duration = parse_duration(value);
        if (!duration) fail("`" + value + "` is not a duration, such as 30s, 90m, 24h or 7d");
        if (option.default_value.empty() && *duration < std::chrono::seconds(1))
          fail("`" + value + "` is too short: the minimum is 1s");
        break;
      }
      case Kind::choice:
        if (std::find(option.choices.begin(), option.choices.end(), value) == option.choices.end()) {
          std::string list;
          for (const std::string_view choice : option.choices)
            list += (list.empty() ? "" : ", ") + std::string(choice);
          fail("`" + value + "` is not one of " + list + "; did you mean `" +
               std::string(nearest_word(value, option.choices)) + "`?");
        }
        break;
      case Kind::flag:
        if (value != "true" && value != "false") fail("`" + value + "` is neither true nor false");
        break;
      case Kind::names:
        if (value.empty() || value.find_first_of("/:@ ") != std::string::npos)
          fail("`" + value + "` is not a host name: write it without scheme and port");
        break;
      case Kind::text:
      case Kind::path:
      case Kind::root:
        break;
    }
  }
}

void apply_settings(const Settings& settings, Options& options) {
  for (const Option& option : table()) {
    const auto setting = settings.find(option.key);
    if (setting == settings.end()) {
      if (!option.default_value.empty()) option.apply(options, {std::string(option.default_value)});
      continue;
    }
    check(option, setting->second);
    try {
      option.apply(options, setting->second.values);
    } catch (const Error& error) {
      throw Error(setting->second.origin + ": " + error.what());
    }
  }
}

std::vector<std::string> service_arguments(const Settings& settings) {
  std::vector<std::string> arguments;
  for (const Option& option : table()) {
    const auto found = settings.find(option.key);
    if (found == settings.end() || option.scope == Scope::file) continue;
    const Setting& setting = found->second;
    const bool relative =
        std::any_of(setting.values.begin(), setting.values.end(),
                    [&](const std::string& value) { return absolute_value(option, value) != value; });
    if (setting.from_file && !relative) continue;
    for (const std::string& value : setting.values) {
      if (option.kind == Kind::flag) {
        arguments.push_back(value == "true" ? flag_of(option) : "--no-" + flag_of(option).substr(2));
        continue;
      }
      arguments.push_back(flag_of(option));
      arguments.push_back(absolute_value(option, value));
    }
  }
  return arguments;
}

}  // namespace earshot::config
