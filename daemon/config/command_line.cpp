// Command line, environment and file → Options.
#include <CLI/CLI.hpp>
#include <deque>
#include <filesystem>
#include <memory>
#include <sstream>
#include <utility>

#include "base/help_text.hpp"
#include "base/sockets.hpp"
#include "base/text.hpp"
#include "config/option_table.hpp"
#include "redact/redactor.hpp"
#include "team/nats_client.hpp"
#include "team/payload.hpp"

namespace earshot::config {
namespace {

std::string below_home(const Environment& environment, const char* variable, std::string_view fallback,
                       std::string_view rest) {
  // The XDG specification: a relative path in these variables is ignored.
  if (const auto base = environment(variable); base && base->front() == '/')
    return *base + "/" + std::string(rest);
  const auto home = environment("HOME");
  if (!home)
    throw Error(std::string("neither ") + variable +
                " nor HOME is set: set one, or use --state and --config");
  return *home + "/" + std::string(fallback) + "/" + std::string(rest);
}

std::string default_socket(const Environment& environment, const std::string& state) {
  const auto runtime = environment("XDG_RUNTIME_DIR");
  return runtime && runtime->front() == '/' ? *runtime + "/earshot/sock" : state + "/sock";
}

/// Expands `~/`; a relative path is below `directory`.
std::string resolve(const std::string& path, const std::string& directory, const Environment& environment) {
  if (path.starts_with("~/")) {
    if (const auto home = environment("HOME")) return *home + path.substr(1);
  }
  return (std::filesystem::path(directory) / path).string();
}

/// Beyond loopback: only with `allow_remote` and TLS.
void check_remote(bool allow_remote, const Environment& environment, const std::string& directory,
                  Options& options) {
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    throw Error(options.tls_key.empty() ? "tls_cert needs its key: tls_key = \"FILE\""
                                        : "tls_key needs its certificate: tls_cert = \"FILE\"");
  }
  for (std::string* path : {&options.tls_cert, &options.tls_key, &options.metrics_token_file})
    if (!path->empty()) *path = resolve(*path, directory, environment);
  if (options.listen.address().is_loopback()) return;
  if (allow_remote && !options.tls_cert.empty()) return;
  throw Error("listen: " + options.listen.address().to_string() +
              " is not a loopback address: other machines could connect, and transcripts are private. To "
              "allow that, add to earshot.toml:\n"
              "  allow_remote = true\n"
              "  tls_cert = \"FILE\"   # TLS: a certificate chain in PEM\n"
              "  tls_key = \"FILE\"    # its key, readable by you only\n"
              "  names = [\"" +
              host_name() + "\"]  # this machine's name for those clients");
}

/// A daemon publishes what it monitors, or serves what others publish. Not both: events would circulate.
void check_team(const Environment& environment, const std::string& directory, Options& options) {
  if (!options.relay && !options.hub) return;
  const std::string section = options.hub ? "hub" : "relay";
  if (options.relay && options.hub)
    throw Error("[relay] and [hub] are for two daemons: one publishes, the other serves what was published");
  if (const std::string missing = team::missing_library(); !missing.empty())
    throw Error("[" + section + "]: " + missing);
  if (options.hub && (!options.roots.empty() || options.demo))
    throw Error("a hub monitors no directory of its own: start another earshotd with [relay] for that");
  if (options.relay && !team::is_host(options.host))
    throw Error("host: `" + options.host +
                "` cannot be published: [relay] accepts letters, digits, `.`, `-` and `_`, at most " +
                std::to_string(team::host_bytes_max) + "; choose a name with --host");
  team::BrokerConfig& broker = options.relay ? options.relay->broker : options.hub->broker;
  for (std::string* path :
       {&broker.credentials, &broker.nkey_seed, &broker.tls_ca, &broker.tls_cert, &broker.tls_key})
    if (!path->empty()) *path = resolve(*path, directory, environment);
}

constexpr const char* examples = R"(Examples:
  earshotd                              monitor the default directories, serve on 127.0.0.1:7717
  earshotd --demo                       play small demo sessions, to see what earshot does
  earshotd --root work=/srv/agents      monitor another directory, named `work`
  earshotd --listen 127.0.0.1:0         any free port; the first line on stdout names it
  earshotd --print-config > ~/.config/earshot/earshot.toml

Every option is also a key of earshot.toml (`log_level = "debug"`) and an environment variable
(EARSHOT_LOG_LEVEL=debug). The command line wins over the environment, the environment over the file.

Clients find the socket and the token in the state directory; `earshot` needs no configuration.
Exit codes: 0 stopped by a signal, 1 failure, 2 invalid command line or configuration;
--install-service and --uninstall-service: 3 the service manager did not answer, 4 the file was edited.)";

/// Without the library's notes: the value of a `--no-` flag, and which options exclude each other.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string program, CLI::AppFormatMode mode) const override {
    return wrap_help(CLI::Formatter::make_help(app, std::move(program), mode), help_columns());
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string names = CLI::Formatter::make_option_name(option, is_positional);
    for (std::size_t at = 0; (at = names.find('{')) != names.npos;) names.erase(at, names.find('}') + 1 - at);
    return names;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return {};
    return " " + option->get_type_name() + (option->get_expected_max() > 1 ? " ..." : "");
  }
};

/// The command line's requests that are no options.
struct Actions {
  bool install = false, uninstall = false, print_config = false;
};

/// Adds every option of the table to `app`. `read` collects the given values after parsing.
class CommandLine {
 public:
  explicit CommandLine(CLI::App& app) {
    for (const Option& option : option_table()) {
      if (option.scope == Scope::file) continue;
      Given& given = given_.emplace_back();
      given.option = &option;
      const std::string flag = flag_of(option);
      std::string description(option.description);
      if (option.kind == Kind::flag) {
        const bool is_on = option.default_value == "true";
        given.parsed =
            app.add_flag(is_on ? flag + ",!--no-" + flag.substr(2) : flag, given.flag, description);
      } else {
        if (!option.default_value.empty()) description += ".\nDefault: " + std::string(option.default_value);
        given.parsed = app.add_option(flag, given.values, description)->type_name(std::string(option.value));
        if (option.kind != Kind::root) given.parsed->expected(1);
      }
      given.parsed->group(std::string(option.group));
    }
  }

  Settings read() const {
    Settings settings;
    for (const Given& given : given_) {
      if (given.parsed->count() == 0) continue;
      const bool is_flag = given.option->kind == Kind::flag;
      settings[given.option->key] = {
          is_flag ? std::vector<std::string>{given.flag ? "true" : "false"} : given.values, false,
          flag_of(*given.option).substr(2)};
    }
    return settings;
  }

 private:
  struct Given {
    const Option* option = nullptr;
    std::vector<std::string> values;
    bool flag = false;
    CLI::Option* parsed = nullptr;
  };
  std::deque<Given> given_;  // CLI11 keeps references
};

void add_environment(Settings& settings, const Environment& environment) {
  for (const Option& option : option_table()) {
    if (option.scope == Scope::file || settings.contains(option.key)) continue;
    const std::string variable = variable_of(option);
    if (const auto value = environment(variable.c_str())) settings[option.key] = {{*value}, false, variable};
  }
}

using Inherited = std::optional<boost::asio::ip::tcp::endpoint>;

/// The inherited listener replaces the default; another `listen` that was chosen is an error. Port 0 is any
/// port.
void take_inherited(const Inherited::value_type& inherited, const Settings& settings, Options& options) {
  const auto chosen = std::exchange(options.listen, inherited);
  const auto given = settings.find("listen");
  const bool is_any_port = chosen.port() == 0 && chosen.address() == inherited.address();
  if (given == settings.end() || is_any_port || chosen == inherited) return;
  std::ostringstream text;
  text << given->second.origin << " is " << chosen << ", but the service manager passed a socket at "
       << inherited
       << ": change one of them. `earshotd --install-service` writes a socket for `listen`; the one of a "
          "package is changed with `systemctl --user edit earshot.socket`";
  throw Error(text.str());
}

Options resolve_options(Settings settings, const Environment& environment, const Inherited& inherited) {
  Options options;
  std::string file, directory;
  if (const auto given = settings.find("config"); given != settings.end()) {
    file = given->second.values.back();
  } else if (environment("HOME") || environment("XDG_CONFIG_HOME")) {
    file = below_home(environment, "XDG_CONFIG_HOME", ".config", "earshot/earshot.toml");
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) file.clear();
  }
  if (!file.empty()) {
    directory = std::filesystem::path(file).parent_path().string();
    Settings from_file = read_config_file(file, options);
    settings.merge(from_file);  // keeps what is there
    if (const auto models = settings.find("models"); models != settings.end() && models->second.from_file)
      for (std::string& value : models->second.values)
        if (!value.empty()) value = resolve(value, directory, environment);
  }
  apply_settings(settings, options);
  if (inherited) take_inherited(*inherited, settings, options);
  if (options.state.empty())
    options.state = below_home(environment, "XDG_STATE_HOME", ".local/state", "earshot");
  if (options.socket.empty()) options.socket = default_socket(environment, options.state);
  if (options.host.empty()) options.host = host_name();
  const auto is_on = [&](std::string_view key) {
    const auto setting = settings.find(key);
    return setting != settings.end() && setting->second.values.back() == "true";
  };
  if (is_on("hub") && !options.hub) options.hub.emplace().broker.urls = {"nats://127.0.0.1:4222"};
  auto models = ModelTable::load(options.models_file, environment);
  if (const auto* error = std::get_if<std::string>(&models)) throw Error(*error);
  options.models = std::move(std::get<ModelTable>(models));
  std::vector<redact::UserRule> rules;
  for (const auto& [name, pattern] : options.redaction) rules.push_back({name, pattern});
  if (const std::string error = redact::Redactor(std::move(rules)).error(); !error.empty())
    throw Error("redaction: " + error);
  check_remote(is_on("allow_remote"), environment, directory, options);
  check_team(environment, directory, options);
  options.otlp = otlp_config(
      options.otlp_file, environment,
      [&](const std::string& path) { return resolve(path, directory, environment); }, options.warnings);
  options.service_arguments = service_arguments(settings);
  return options;
}

std::string unknown_word_message(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  const std::string word = words.empty() ? std::string() : words.front().substr(0, words.front().find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::string_view nearest =
      suggest_word(word, std::vector<std::string_view>(names.begin(), names.end()));
  return (word.starts_with('-') ? "unknown option `" : "unexpected argument `") + word + "`" +
         (nearest.empty() ? std::string() : "; did you mean `" + std::string(nearest) + "`?");
}

}  // namespace

ParseResult parse_options(const std::vector<std::string>& arguments, const Environment& environment,
                          const std::string& version, const Inherited& inherited) {
  CLI::App app("Monitors coding agents: tails their session transcripts and sends events over WebSocket.",
               "earshotd");
  CommandLine command_line(app);
  Actions actions;
  CLI::Option* install =
      app.add_flag("--install-service", actions.install,
                   "Install, enable and start a user service (systemd, launchd) with the options given")
          ->group("As a service");
  app.add_flag("--uninstall-service", actions.uninstall, "Stop the service and remove what was installed")
      ->excludes(install)
      ->group("As a service");
  app.add_flag("--print-config", actions.print_config,
               "Print an example earshot.toml with every default, and exit")
      ->group(std::string("General"));
  app.set_help_flag("-h,--help", "Print this help and exit")->group("General");
  app.set_version_flag("--version", "earshotd " + version, "Print version, commit and build type, and exit")
      ->group("General");
  app.footer(examples);
  app.formatter(std::make_shared<HelpFormatter>());

  ParseResult result;
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 expects
    app.parse(reversed);
  } catch (const CLI::ExtrasError&) {
    result.exit_code = 2;
    result.err = "earshotd: " + unknown_word_message(app) + "\nRun `earshotd --help` for its options.\n";
    return result;
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    result.exit_code = app.exit(error, out, err) == 0 ? 0 : 2;
    result.out = out.str();
    result.err = err.str().empty() ? "" : "earshotd: " + err.str();
    return result;
  } catch (const std::out_of_range&) {  // CLI11 2.1: a flag with a number beyond 64 bits
    result.exit_code = 2;
    result.err = "earshotd: a flag takes no such value: write it alone, as --demo or --no-redact\n";
    return result;
  }
  if (actions.print_config) {
    result.out = example_file();
    return result;
  }
  try {
    Settings settings = command_line.read();
    add_environment(settings, environment);
    Options options = resolve_options(std::move(settings), environment, inherited);
    if (actions.install) options.action = Options::Action::install_service;
    if (actions.uninstall) options.action = Options::Action::uninstall_service;
    result.options = std::move(options);
  } catch (const Error& error) {
    result.exit_code = 2;
    result.err = std::string("earshotd: ") + error.what() + "\n";
  }
  return result;
}

}  // namespace earshot::config
