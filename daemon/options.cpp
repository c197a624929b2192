#include "options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <filesystem>
#include <limits>
#include <numeric>
#include <sstream>
#include <stdexcept>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace earshot {
namespace {

constexpr std::uint16_t default_port = 7717;

/// As the words stand on the command line or in the file; nothing: not said there.
struct Said {
  std::vector<std::string> roots;
  std::optional<std::string> listen, state, recent, log_level, host, watch;
  std::optional<bool> demo;
};

struct Failure : std::runtime_error {  // for people; exit code 2
  using std::runtime_error::runtime_error;
};

// --- The file ---

std::string place(const std::string& file, const toml::source_region& at) {
  return file + ":" + std::to_string(at.begin.line) + ": ";
}

[[noreturn]] void wrong_type(const std::string& file, std::string_view key, const toml::node& node,
                             std::string_view wanted) {
  std::ostringstream type;
  type << node.type();
  throw Failure(place(file, node.source()) + "`" + std::string(key) + "` is " + std::string(wanted) +
                ", not " + (type.str() == "integer" || type.str() == "array" ? "an " : "a ") + type.str());
}

void read_roots(const std::string& file, const toml::node& node, Said& said) {
  constexpr std::string_view wanted = "an array of strings or a table of NAME = \"DIR\"";
  const auto take = [&](const toml::node& item, const std::string& name) {
    const auto text = item.value_exact<std::string>();
    if (!text) wrong_type(file, "root", item, wanted);
    said.roots.push_back(name.empty() ? *text : name + "=" + *text);
  };
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& item : *array) take(item, {});
  } else if (const toml::table* table = node.as_table()) {
    for (const auto& [name, item] : *table) take(item, std::string(name.str()));
  } else {
    wrong_type(file, "root", node, wanted);
  }
}

template <std::optional<std::string> Said::*field>
void read_text(const std::string& file, std::string_view key, const toml::node& node, Said& said) {
  said.*field = node.value_exact<std::string>();
  if (!(said.*field)) wrong_type(file, key, node, "a string");
}

struct Key {
  std::string_view name;
  void (*read)(const std::string& file, std::string_view key, const toml::node& node, Said& said);
};
constexpr Key keys[] = {
    {"root", [](const std::string& file, std::string_view, const toml::node& node,
                Said& said) { read_roots(file, node, said); }},
    {"listen", read_text<&Said::listen>},
    {"state", read_text<&Said::state>},
    {"recent", read_text<&Said::recent>},
    {"log-level", read_text<&Said::log_level>},
    {"host", read_text<&Said::host>},
    {"watch", read_text<&Said::watch>},
    {"demo",
     [](const std::string& file, std::string_view key, const toml::node& node, Said& said) {
       said.demo = node.value_exact<bool>();
       if (!said.demo) wrong_type(file, key, node, "true or false");
     }},
};

Said read_file(const std::string& file) {
  toml::table table;
  try {
    table = toml::parse_file(file);
  } catch (const toml::parse_error& error) {
    if (error.source().begin.line == 0) throw Failure(file + ": " + std::string(error.description()));
    throw Failure(place(file, error.source()) + std::string(error.description()));
  }
  Said said;
  for (const auto& [name, node] : table) {
    const auto key =
        std::find_if(std::begin(keys), std::end(keys), [&](const Key& k) { return k.name == name.str(); });
    if (key == std::end(keys)) {
      std::vector<std::string_view> known;
      for (const Key& k : keys) known.push_back(k.name);
      throw Failure(place(file, name.source()) + "unknown key `" + std::string(name.str()) +
                    "`; did you mean `" + std::string(nearest(name.str(), known)) + "`?");
    }
    key->read(file, key->name, node, said);
  }
  return said;
}

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
  if (!parsed.is_loopback()) {
    throw Failure("listen: " + address +
                  " is not a loopback address; transcripts are private, and a listener for other machines "
                  "(with TLS) is not "
                  "available yet");
  }
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

std::string own_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

Options decide(const Said& said, const Environment& environment) {
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
  options.host = said.host.value_or(own_host());
  if (options.host.empty()) throw Failure("host: a name is needed");
  options.demo = said.demo.value_or(false);
  if (options.state.empty()) throw Failure("state: a directory is needed");
  return options;
}

void override_with(Said& said, Said&& line) {
  if (!line.roots.empty()) said.roots = std::move(line.roots);
  for (const auto field :
       {&Said::listen, &Said::state, &Said::recent, &Said::log_level, &Said::host, &Said::watch}) {
    if (line.*field) said.*field = std::move(line.*field);
  }
  if (line.demo) said.demo = line.demo;
}

constexpr const char* examples = R"(Examples:
  earshotd                              listen to the usual places, serve on 127.0.0.1:7717
  earshotd --demo                       play a small invented session, to see what it does
  earshotd --root work=/srv/agents      listen to another directory, called `work`
  earshotd --listen 127.0.0.1:0         on any free port; the ready line says which

Every option is also a key of the configuration file:
  root = ["~/.claude", "work=/srv/agents"]
  recent = "7d"

The token that clients need is in the file `token` of the state directory; `earshot` finds it by itself.
Exit codes: 0 stopped by a signal, 1 something failed, 2 the command line or the file cannot be understood.)";

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

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known) {
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i);
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
      }
    }
    return row.back();
  };
  std::string_view best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string_view candidate : known) {
    const std::size_t d = distance(word, candidate);
    if (d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

Parsed parse_options(const std::vector<std::string>& words, const Environment& environment,
                     const std::string& version) {
  CLI::App app(
      "Listens to coding agents at work: tails their transcripts and tells what happens over WebSocket.",
      "earshotd");
  Said line;
  std::optional<std::string> config;
  bool demo = false;
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
  app.add_flag("--demo", demo, "Play a small invented session into a directory of its own")
      ->group("What to listen to");
  app.add_option("--listen", line.listen,
                 "A loopback address; port 0 picks a free one. Default: 127.0.0.1:7717")
      ->type_name("ADDR:PORT")
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
  app.set_help_flag("-h,--help", "Print this and exit")->group("General");
  app.set_version_flag("--version", "earshotd " + version, "Print the version and exit")->group("General");
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
  }
  if (demo) line.demo = true;
  try {
    Said said;
    std::error_code ignored;
    if (config) {
      said = read_file(*config);
    } else if (environment("HOME") || environment("XDG_CONFIG_HOME")) {
      const std::string file = below_home(environment, "XDG_CONFIG_HOME", ".config", "earshot/earshot.toml");
      if (std::filesystem::exists(file, ignored)) said = read_file(file);
    }
    override_with(said, std::move(line));
    parsed.options = decide(said, environment);
  } catch (const Failure& failure) {
    parsed.exit_code = 2;
    parsed.err = std::string("earshotd: ") + failure.what() + "\n";
  }
  return parsed;
}

}  // namespace earshot
