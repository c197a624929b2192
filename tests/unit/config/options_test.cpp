// The options belong to the program, not to a room's library: they are compiled into their test.
#include "config/options.cpp"        // NOLINT(bugprone-suspicious-include)
#include "config/options_file.cpp"   // NOLINT(bugprone-suspicious-include)
#include "config/options_users.cpp"  // NOLINT(bugprone-suspicious-include)
#include "config/options_words.cpp"  // NOLINT(bugprone-suspicious-include)

#include <catch2/catch.hpp>
#include <map>

#include "unit/places.hpp"
#include "unit/serve/support.hpp"

using namespace earshot;

namespace {

struct Place {
  test::TemporaryDirectory home;
  std::map<std::string, std::string> variables{{"HOME", home.path}};

  Parsed parse(const std::vector<std::string>& words) const {
    const auto environment = [this](const char* name) -> std::optional<std::string> {
      const auto it = variables.find(name);
      if (it == variables.end()) return {};
      return it->second;
    };
    return parse_options(words, environment, "1.2.3");
  }
  /// What is said about a configuration file.
  Parsed parse_file(std::string_view text, std::vector<std::string> words = {}) const {
    test::write_text(home / "e.toml", text);
    words.insert(words.begin(), {"--config", home / "e.toml"});
    return parse(words);
  }
};

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("without a word, the defaults hold") {
  const Place place;
  const Parsed parsed = place.parse({});
  REQUIRE(parsed.options);
  REQUIRE(parsed.options->roots.empty());
  REQUIRE(parsed.options->listen.address().to_string() == "127.0.0.1");
  REQUIRE(parsed.options->listen.port() == 7717);
  REQUIRE(parsed.options->state == place.home.path + "/.local/state/earshot");
  REQUIRE(parsed.options->recent == std::chrono::hours(24));
  REQUIRE(parsed.options->watch == "both");
  REQUIRE_FALSE(parsed.options->sweep);
  REQUIRE_FALSE(parsed.options->host.empty());
  REQUIRE_FALSE(parsed.options->demo);
}

TEST_CASE("every option is taken from the command line") {
  const Place place;
  const Parsed parsed = place.parse({"--root", "/a", "--root", "work=/b", "--listen", "[::1]:0", "--state",
                                     "/s", "--recent", "7d", "--log-level", "debug", "--host", "dev7",
                                     "--watch", "sweep", "--sweep", "5m", "--demo"});
  REQUIRE(parsed.err == "");
  REQUIRE(parsed.options->roots == std::vector<std::string>{"/a", "work=/b"});
  REQUIRE(parsed.options->listen.address().to_string() == "::1");
  REQUIRE(parsed.options->listen.port() == 0);
  REQUIRE(parsed.options->state == "/s");
  REQUIRE(parsed.options->recent == std::chrono::hours(7 * 24));
  REQUIRE(parsed.options->log_level == "debug");
  REQUIRE(parsed.options->host == "dev7");
  REQUIRE(parsed.options->watch == "sweep");
  REQUIRE(parsed.options->sweep == std::chrono::minutes(5));
  REQUIRE(parsed.options->demo);
}

TEST_CASE("a character that is no blank is none, wherever one is looked for") {
  const Place place;
  const Parsed folded = place.parse_file("host = \"\"\"a\\\n\u00a7\"\"\"\n");
  REQUIRE(folded.err == "");
  REQUIRE(folded.options->host == "a\u00a7");
  for (const std::string text : {"\u033arp", "host = \u0301", "[a]\u1490", "[:", "[ =]"}) {
    CAPTURE(text);
    REQUIRE(says(place.parse_file(text).err, "e.toml:1: "));
  }
}

TEST_CASE("every option is also a key of the file, and the command line wins") {
  const Place place;
  const std::string file =
      "root = [\"/a\", \"work=/b\"]\nlisten = \"localhost:99\"\nstate = \"/s\"\nrecent = \"90m\"\n"
      "log-level = \"warn\"\nhost = \"dev7\"\nwatch = \"inotify\"\nsweep = \"2s\"\ndemo = true\n";
  const Parsed parsed = place.parse_file(file);
  REQUIRE(parsed.err == "");
  REQUIRE(parsed.options->roots == std::vector<std::string>{"/a", "work=/b"});
  REQUIRE(parsed.options->listen.port() == 99);
  REQUIRE(parsed.options->state == "/s");
  REQUIRE(parsed.options->recent == std::chrono::minutes(90));
  REQUIRE(parsed.options->log_level == "warn");
  REQUIRE(parsed.options->host == "dev7");
  REQUIRE(parsed.options->watch == "inotify");
  REQUIRE(parsed.options->sweep == std::chrono::seconds(2));
  REQUIRE(parsed.options->demo);
  const Parsed both = place.parse_file(file, {"--root", "/c", "--recent", "5s"});
  REQUIRE(both.options->roots == std::vector<std::string>{"/c"});
  REQUIRE(both.options->recent == std::chrono::seconds(5));
  REQUIRE(both.options->host == "dev7");
}

TEST_CASE("roots may be a table of names") {
  const Parsed parsed = Place().parse_file("[root]\nwork = \"/b\"\nhome = \"~/.claude\"\n");
  REQUIRE(parsed.options->roots == std::vector<std::string>{"home=~/.claude", "work=/b"});
}

TEST_CASE("the usual file is read when it is there, another one must be") {
  Place place;
  std::filesystem::create_directories(place.home / ".config/earshot");
  test::write_text(place.home / ".config/earshot/earshot.toml", "host = \"from-home\"\n");
  REQUIRE(place.parse({}).options->host == "from-home");
  place.variables["XDG_CONFIG_HOME"] = place.home / "xdg";
  REQUIRE(place.parse({}).options->host != "from-home");
  place.variables["XDG_STATE_HOME"] = "/elsewhere";
  REQUIRE(place.parse({}).options->state == "/elsewhere/earshot");
  place.variables["XDG_STATE_HOME"] = "relative";
  REQUIRE(place.parse({}).options->state == place.home / ".local/state/earshot");
  const Parsed missing = place.parse({"--config", place.home / "no.toml"});
  REQUIRE(missing.exit_code == 2);
  REQUIRE(says(missing.err, place.home / "no.toml"));
}

TEST_CASE("what is wrong in the file is told with its place") {
  const Place place;
  struct Row {
    std::string_view text, says;
  };
  const Row rows[] = {
      {"host = \"a\"\nrecnt = \"24h\"\n", "e.toml:2: unknown key `recnt`; did you mean `recent`?"},
      {"lissten = 7\n", "e.toml:1: unknown key `lissten`; did you mean `listen`?"},
      {"log_level = \"info\"\n", "did you mean `log-level`?"},
      {"\n\nrecent = 24\n", "e.toml:3: `recent` is a string, not an integer"},
      {"root = \"/a\"\n", "e.toml:1: `root` is an array of strings or a table"},
      {"root = [\"/a\",\n  7]\n", "e.toml:2: `root` is an array of strings or a table"},
      {"demo = \"yes\"\n", "e.toml:1: `demo` is true or false, not a string"},
      {"host = \"a\"\nhost = \"b\"\n", "e.toml:2: "},
      {"host = \n", "e.toml:1: "},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Parsed parsed = place.parse_file(row.text);
    CAPTURE(parsed.err);
    REQUIRE_FALSE(parsed.options);
    REQUIRE(parsed.exit_code == 2);
    REQUIRE(says(parsed.err, row.says));
  }
}

TEST_CASE("what is wrong on the command line is told, with code 2") {
  const Place place;
  struct Row {
    std::vector<std::string> words;
    std::string_view says;
  };
  const Row rows[] = {
      {{"--lisen", "x"}, "--lisen"},
      {{"stray"}, "stray"},
      {{"--listen"}, "--listen"},
      {{"--listen", "7717"}, "ADDR:PORT"},
      {{"--listen", "127.0.0.1:70000"}, "ADDR:PORT"},
      {{"--listen", "::1:7717"}, "ADDR:PORT"},
      {{"--listen", "0.0.0.0:7717"}, "not a loopback address"},
      {{"--listen", "192.168.1.5:7717"}, "TLS"},
      {{"--recent", "soon"}, "recent: `soon`"},
      {{"--log-level", "wrn"}, "did you mean `warn`?"},
      {{"--watch", "swep"}, "did you mean `sweep`?"},
      {{"--sweep", "0s"}, "sweep: `0s` is no duration of a second or more"},
      {{"--host", ""}, "host"},
      {{"--no-redact=22222222222222222222"}, "write it alone"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.words);
    const Parsed parsed = place.parse(row.words);
    CAPTURE(parsed.err);
    REQUIRE_FALSE(parsed.options);
    REQUIRE(parsed.exit_code == 2);
    REQUIRE(says(parsed.err, row.says));
  }
}

TEST_CASE("the socket is in the runtime directory, or beside the token") {
  Place place;
  REQUIRE(place.parse({}).options->socket == place.home.path + "/.local/state/earshot/sock");
  REQUIRE(place.parse({"--state", "/s"}).options->socket == "/s/sock");
  place.variables["XDG_RUNTIME_DIR"] = "/run/user/1000";
  REQUIRE(place.parse({}).options->socket == "/run/user/1000/earshot/sock");
  REQUIRE_FALSE(place.parse({}).options->socket_given);
  const Parsed given = place.parse({"--socket", "/tmp/a"});
  REQUIRE(given.options->socket == "/tmp/a");
  REQUIRE(given.options->socket_given);
  REQUIRE(place.parse_file("socket = \"/b\"").options->socket == "/b");
  place.variables["XDG_RUNTIME_DIR"] = "relative";
  REQUIRE(place.parse({"--state", "/s"}).options->socket == "/s/sock");
}

TEST_CASE("redaction is on unless somebody says otherwise") {
  const Place place;
  REQUIRE(place.parse({}).options->redact);
  REQUIRE_FALSE(place.parse({"--no-redact"}).options->redact);
  REQUIRE_FALSE(place.parse_file("redact = false").options->redact);
  REQUIRE(place.parse_file("redact = false", {"--redact"}).options->redact);
  const Parsed rules = place.parse_file("[redaction]\nours = 'OUR-[0-9]{8}'\n");
  REQUIRE(rules.options->redaction ==
          std::vector<std::pair<std::string, std::string>>{{"ours", "OUR-[0-9]{8}"}});
}

TEST_CASE("other machines are let in only with TLS and the owner's word") {
  const Place place;
  const std::string tls = "tls_cert = \"cert.pem\"\ntls_key = \"~/key.pem\"\n";
  const std::string listen = "listen = \"0.0.0.0:7717\"\n";
  for (const std::string& text : {listen, listen + "allow_remote = true\n", listen + tls}) {
    CAPTURE(text);
    const Parsed parsed = place.parse_file(text);
    REQUIRE(parsed.exit_code == 2);
    for (const std::string_view word : {"allow_remote = true", "tls_cert = ", "tls_key = ", "names = "})
      REQUIRE(says(parsed.err, word));
  }
  const Parsed good = place.parse_file(listen + "allow_remote = true\nnames = [\"dev7.example\"]\n" + tls);
  REQUIRE(good.err == "");
  REQUIRE(good.options->tls_cert == place.home / "cert.pem");  // beside the file
  REQUIRE(good.options->tls_key == place.home / "key.pem");
  REQUIRE(good.options->names == std::vector<std::string>{"dev7.example"});
  REQUIRE(good.options->remote_view == View::meta);
  REQUIRE(place.parse_file("remote_view = \"full\"").options->remote_view == View::full);
  REQUIRE(says(place.parse_file("remote_view = \"ful\"").err, "did you mean `full`?"));
  REQUIRE(says(place.parse_file("tls_cert = \"a\"").err, "tls_key"));
  REQUIRE(says(place.parse_file("tls_key = \"a\"").err, "tls_cert"));
  REQUIRE(says(place.parse_file("names = [\"https://a\"]").err, "no host name"));
  REQUIRE(says(place.parse_file("names = \"a\"").err, "an array of names"));
}

TEST_CASE("every limit can be set, within its bounds") {
  const Place place;
  std::string text = "[limits]\nlog_bytes = 1048576\n";
  for (const serve::LimitRule& rule : serve::limit_rules()) {
    const std::uint64_t value = rule.name == "ping_ms" ? rule.min : rule.min + 1;
    text += std::string(rule.name) + " = " + std::to_string(value) + "\n";
  }
  const Parsed parsed = place.parse_file(text);
  REQUIRE(parsed.err == "");
  for (const serve::LimitRule& rule : serve::limit_rules()) {
    CAPTURE(rule.name);
    REQUIRE(serve::limit_value(parsed.options->limits, rule) ==
            (rule.name == "ping_ms" ? rule.min : rule.min + 1));
    const std::uint64_t usual = serve::limit_value(serve::Limits{}, rule);
    REQUIRE(usual >= rule.min);
    REQUIRE(usual <= rule.max);
    const std::string line = "[limits]\n" + std::string(rule.name) + " = ";
    REQUIRE(says(place.parse_file(line + std::to_string(rule.max + 1)).err,
                 "e.toml:2: `" + std::string(rule.name)));
    REQUIRE(says(place.parse_file(line + std::to_string(rule.min - 1)).err, "a number from"));
  }
  REQUIRE(parsed.options->log_bytes_max == 1048576);
  REQUIRE(says(place.parse_file("[limits]\nconections = 7\n").err,
               "e.toml:2: unknown key `conections`; did you mean `connections`?"));
  REQUIRE(says(place.parse_file("[limits]\nconnections = \"many\"\n").err,
               "a number from 1 to 100000, not a string"));
  REQUIRE(says(place.parse_file("[limits]\nconnections = -5\n").err, "not -5"));
  REQUIRE(says(place.parse_file("[limits]\nping_ms = 50000\n").err, "`silence_ms` is more than `ping_ms`"));
  REQUIRE(says(place.parse_file("limits = 7\n").err, "a table, [limits]"));
}

namespace {

/// The example with the # of each setting taken away: what every daemon has, and what only one of a team has,
/// by the names of these tables.
std::map<std::string, std::string> example() {
  std::map<std::string, std::string> parts;
  std::string part;
  std::istringstream lines(test::read_text((test::sources() / "daemon/earshot.toml").string()));
  for (std::string line; std::getline(lines, line);) {
    const bool team = line.starts_with("#[");
    if (team && !line.starts_with("#[hub.users.")) part = line.substr(2, line.size() - 3);
    const bool setting = line.size() > 1 && line[0] == '#' && line[1] >= 'a' && line[1] <= 'z';
    parts[part] += (setting || team ? line.substr(1) : line) + "\n";
  }
  return parts;
}

bool tells(const std::string& text, std::string_view key) {
  return says(text, "\n" + std::string(key) + " = ");
}

template <class Words>
void check_team_keys(const std::string& text, const auto& own) {
  const auto look = [&](const auto& keys) {
    for (const auto& key : keys) {
      CAPTURE(key.name);
      CHECK((tells(text, key.name) || says(text, "[hub." + std::string(key.name) + ".")));
    }
  };
  look(link_keys<Words>);
  look(own);
}

}  // namespace

TEST_CASE("the example of a configuration tells a team's keys, and their defaults as they are") {
  const Place place;
  auto parts = example();
  check_team_keys<RelayWords>(parts["relay"], relay_keys);
  check_team_keys<HubWords>(parts["hub"], hub_keys);
  const Parsed relay = place.parse_file(parts["relay"], {"--host", "dev7"});
  REQUIRE(relay.err == "");
  CHECK(relay.options->relay->link.stream == team::BrokerConfig{}.stream);
  CHECK(relay.options->relay->full == RelayWords{}.full);
  CHECK(relay.options->relay->read == RelayWords{}.read);
  CHECK(relay.options->relay->link.nkey_seed == place.home / "dev7.nk");
  std::string with_hash = parts["hub"];
  const std::string_view to_be_put = "\"put the 64 digits here\"";
  CHECK(says(place.parse_file(with_hash).err, "64 hex digits"));  // nobody gets in by the example's token
  with_hash.replace(with_hash.find(to_be_put), to_be_put.size(), '"' + serve::sha256_hex("token") + '"');
  const Parsed hub = place.parse_file(with_hash);
  REQUIRE(hub.err == "");
  CHECK(hub.options->hub->durable == HubWords{}.durable);
  CHECK(hub.options->hub->sync == HubWords{}.sync);
  CHECK(hub.options->hub->shelf.age_ms == team::EventStoreLimits{}.age_ms);
  CHECK(hub.options->hub->shelf.bytes_max == team::EventStoreLimits{}.bytes_max);
  CHECK(hub.options->hub->shelf.hosts_max == team::EventStoreLimits{}.hosts_max);
  REQUIRE(hub.options->hub->users.size() == 1);
  CHECK(hub.options->hub->users[0].view == serve::User{}.view);
}

TEST_CASE("what is wrong with a team's configuration is said with its line and what to do") {
  struct Row {
    std::string_view text, said;
  };
  const Row rows[] = {
      {"[relay]\n", "e.toml:1: [relay] needs the broker's address: url = "},
      {"[hub]\ndurable = \"d\"\n", "e.toml:1: [hub] needs the broker's address"},
      {"[relay]\nurl = 7\n", "e.toml:2: `url`"},
      {"[relay]\nurl = []\n", "needs the broker's address"},
      {"[relay]\nurl = [\"\"]\n", "e.toml:2: `url`"},
      {"[relay]\nurl = \"nats://a\"\nview = \"ful\"\n", "\"meta\" or \"full\""},
      {"[relay]\nurl = \"nats://a\"\nreed = true\n", "e.toml:3: unknown key `reed`; did you mean `read`?"},
      {"[relay]\nurl = \"nats://a\"\nnkey = \"U\"\n", "`nkey` and `nkey_seed` belong together"},
      {"[relay]\nurl = \"nats://a\"\ntls_key = \"k\"\n", "`tls_cert` and `tls_key` belong together"},
      {"[hub]\nurl = \"nats://a\"\ndurable = \"a.b\"\n", "a name of letters and digits"},
      {"[hub]\nurl = \"nats://a\"\nkeep = \"0s\"\n", "a duration"},
      {"[hub]\nurl = \"nats://a\"\nhosts = 0\n", "a number from 1"},
      {"[hub]\nurl = \"nats://a\"\n[hub.users.ada]\nhosts = [\"a\"]\n", "user `ada` needs `token_sha256`"},
      {"[hub]\nurl = \"nats://a\"\n[hub.users.ada]\ntoken_sha256 = \"abc\"\n", "64 hex digits"},
      {"[hub]\nurl = \"nats://a\"\n[relay]\nurl = \"nats://a\"\n", "[relay] and [hub] are for two daemons"},
      {"host = \"a b\"\n[relay]\nurl = \"nats://a\"\n", "choose a name with --host"},
      {"root = [\"/a\"]\n[hub]\nurl = \"nats://a\"\n", "a hub listens to no directory of its own"},
      {"relay = 7\n", "a table, [relay]"},
      {"[relay]\nurl = \"nats://a\"\nread = true\n", "that needs view = \"full\", too"},
  };
  const Place place;
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Parsed parsed = place.parse_file(row.text);
    CHECK_FALSE(parsed.options);
    CHECK(parsed.exit_code == 2);
    CHECK(says(parsed.err, row.said));
  }
}

TEST_CASE("a user whom more would be shown than was meant is refused, with what to do") {
  const std::string hash = "token_sha256 = \"" + serve::sha256_hex("a") + "\"\n";
  struct Row {
    std::string text, said;
  };
  const Row rows[] = {
      {"[hub.users.ada]\ntoken_sha256 = \"" + serve::sha256_hex("") + "\"\n",
       "e.toml:4: `token_sha256` is the SHA-256 of nothing: $TOKEN was not set. Make a token first"},
      {"[hub.users.ada]\ntoken_sha256 = \"" + serve::sha256_hex("\n") + "\"\n", "the SHA-256 of nothing"},
      {"[hub.users.ada]\n" + hash + "hosts = []\n",
       "e.toml:5: `hosts` is empty: say which ones he is shown; to "
       "show him all, leave the key out"},
      {"[hub.users.ada]\n" + hash + "projects = []\n", "e.toml:5: `projects` is empty"},
      {"[hub.users.ada]\n" + hash + "[hub.users.eve]\n" + hash, "users `ada` and `eve` have the same token"},
      {"[hub.users.nobody]\n" + hash, "`nobody` cannot be a user's name"},
      {"[hub.users.\"the owner\"]\n" + hash, "`the owner` cannot be a user's name"},
      {"[hub.users.ada]\ntoken_sha256 = 7\n", "64 hex digits"},
  };
  const Place place;
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Parsed parsed = place.parse_file("[hub]\nurl = \"nats://a\"\n" + row.text);
    CHECK_FALSE(parsed.options);
    CHECK(says(parsed.err, row.said));
  }
  const Parsed token =
      place.parse_file("[hub]\nurl = \"nats://a\"\n[hub.users.ada]\ntoken_sha256 = \"hush\"\n");
  CHECK_FALSE(says(token.err, "hush"));  // it may be the token itself
}

TEST_CASE("no token at all is no user's, whatever the users' hashes are") {
  const std::vector<serve::User> users = {{"ada", serve::sha256_hex(""), {}, View::full}};
  CHECK(serve::find_user_by_token(users, "") == nullptr);
}

TEST_CASE("--hub makes a hub of the broker on this machine, or of the file's") {
  const Place place;
  const Parsed plain = place.parse({"--hub"});
  REQUIRE(plain.err == "");
  CHECK(plain.options->hub->link.urls == std::vector<std::string>{"nats://127.0.0.1:4222"});
  const Parsed filed = place.parse_file("[hub]\nurl = \"tls://b:1\"\n", {"--hub"});
  CHECK(filed.options->hub->link.urls == std::vector<std::string>{"tls://b:1"});
}

TEST_CASE("the example of a configuration tells every key, and the defaults as they are") {
  const std::string told = test::read_text((test::sources() / "daemon/earshot.toml").string());
  const std::string all = example()[""];
  for (const Key& key : keys) {
    CAPTURE(key.name);
    if (key.name == "relay" || key.name == "hub") continue;  // of them each daemon may have one
    const bool table = key.name == "redaction" || key.name == "limits";
    CHECK(says(all, table ? "\n[" + std::string(key.name) + "]\n" : "\n" + std::string(key.name) + " = "));
  }
  const Place place;
  const Options usual = place.parse({}).options.value();
  const Parsed as_it_is = place.parse_file(told), with_all = place.parse_file(all);
  REQUIRE(as_it_is.err == "");
  REQUIRE(with_all.err == "");
  CHECK(as_it_is.options->roots.empty());
  CHECK(as_it_is.options->redaction.empty());
  CHECK(with_all.options->redaction.size() == 1);
  CHECK(with_all.options->roots == std::vector<std::string>{"~/.claude"});
  for (const Options& options : {as_it_is.options.value(), with_all.options.value()}) {
    CHECK(options.listen == usual.listen);
    CHECK(options.recent == usual.recent);
    CHECK(options.log_level == usual.log_level);
    CHECK(options.watch == usual.watch);
    CHECK(options.demo == usual.demo);
    CHECK(options.redact == usual.redact);
    CHECK(options.remote_view == usual.remote_view);
    CHECK(options.log_bytes_max == usual.log_bytes_max);
    for (const serve::LimitRule& rule : serve::limit_rules()) {
      CAPTURE(rule.name);
      CHECK(says(all, "\n" + std::string(rule.name) + " = "));
      CHECK(serve::limit_value(options.limits, rule) == serve::limit_value(usual.limits, rule));
    }
  }
  CHECK(says(all, "\nallow_remote = false\n"));
}

TEST_CASE("help teaches, and the version is one line") {
  const Parsed help = Place().parse({"--help"});
  REQUIRE(help.exit_code == 0);
  REQUIRE_FALSE(help.options);
  for (const std::string_view word :
       {"--root", "--listen", "--state", "--config", "--recent", "--log-level", "--host", "--watch",
        "--sweep", "--demo", "--socket", "--no-redact", "--version", "Examples:", "Exit codes:"}) {
    CAPTURE(word);
    REQUIRE(says(help.out, word));
  }
  const Parsed version = Place().parse({"--version"});
  REQUIRE(version.exit_code == 0);
  REQUIRE(version.out == "earshotd 1.2.3\n");
}

TEST_CASE("durations have a number and a unit") {
  struct Row {
    std::string_view text;
    std::int64_t seconds;  // -1: none
  };
  const Row rows[] = {{"30s", 30},
                      {"90m", 5400},
                      {"24h", 86400},
                      {"7d", 604800},
                      {"0s", 0},
                      {"", -1},
                      {"s", -1},
                      {"30", -1},
                      {"-5s", -1},
                      {"1.5h", -1},
                      {"5 h", -1},
                      {"99999999999999999999d", -1},
                      {"9999999999999d", -1},
                      {"5w", -1}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto parsed = parse_duration(row.text);
    REQUIRE((parsed ? parsed->count() : -1) == row.seconds);
  }
}

TEST_CASE("what a service is to be told is what the command line said, with whole paths") {
  const Place place;
  const auto words = [&](const std::vector<std::string>& given) { return place.parse(given).options->words; };
  const std::string here = std::filesystem::current_path().string();
  REQUIRE(words({"--install-service"}).empty());
  REQUIRE(words({"--install-service", "--root=~/.claude", "--root", "w=x/../agents", "--root", "/srv/a=b"}) ==
          std::vector<std::string>{"--root", "~/.claude", "--root", "w=" + here + "/agents", "--root",
                                   "/srv/a=b"});
  REQUIRE(words({"--no-redact", "--demo", "--recent", "7d"}) ==
          std::vector<std::string>{"--recent", "7d", "--demo", "--no-redact"});
  REQUIRE(words({"--state", "st"}) == std::vector<std::string>{"--state", here + "/st"});
}

TEST_CASE("one errand at a time") {
  const Place place;
  using Errand = Options::Errand;
  REQUIRE(place.parse({}).options->errand == Errand::listen);
  REQUIRE(place.parse({"--install-service"}).options->errand == Errand::install_service);
  REQUIRE(place.parse({"--uninstall-service"}).options->errand == Errand::uninstall_service);
  REQUIRE(place.parse({"--install-service", "--uninstall-service"}).exit_code == 2);
}
