#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "base/quantities.hpp"
#include "config/option_table.hpp"
#include "serve/limits.hpp"
#include "unit/config/support.hpp"
#include "unit/places.hpp"
#include "unit/serve/support.hpp"

using namespace earshot;
using namespace earshot::config;

namespace {

/// An input that is refused, and a part of the message.
template <class Input>
struct Refused {
  Input input;
  std::string error;
};
/// Requires that each input, parsed by `parse`, ends with exit code 2 and its message.
template <class Input>
void require_refused(const std::vector<Refused<Input>>& rows, const auto& parse) {
  for (const Refused<Input>& row : rows) {
    CAPTURE(row.input);
    const ParseResult parsed = parse(row.input);
    CAPTURE(parsed.err);
    CHECK_FALSE(parsed.options);
    CHECK(parsed.exit_code == 2);
    CHECK(parsed.err.find(row.error) != std::string::npos);
  }
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("without options the defaults apply") {
  const Fixture fixture;
  const ParseResult parsed = fixture.parse({});
  REQUIRE(parsed.options);
  REQUIRE(parsed.options->roots.empty());
  REQUIRE(parsed.options->listen.address().to_string() == "127.0.0.1");
  REQUIRE(parsed.options->listen.port() == 7717);
  REQUIRE(parsed.options->state == fixture.home.path() + "/.local/state/earshot");
  REQUIRE(parsed.options->recent == std::chrono::hours(24));
  REQUIRE(parsed.options->watch == "both");
  REQUIRE_FALSE(parsed.options->sweep);
  REQUIRE_FALSE(parsed.options->host.empty());
  REQUIRE_FALSE(parsed.options->demo);
}

TEST_CASE(
    "fault 144: a listener of the service manager replaces the default, and must be the one that was "
    "chosen") {
  const auto parse = [](const std::vector<std::string>& words, const char* address, std::uint16_t port) {
    const auto environment = [](const char* name) -> std::optional<std::string> {
      if (std::string_view(name) == "HOME") return "/home/ada";
      return {};
    };
    return parse_options(words, environment, "1.2.3", {{boost::asio::ip::make_address(address), port}});
  };
  REQUIRE(parse({}, "127.0.0.1", 7718).options->listen.port() == 7718);
  REQUIRE(parse({"--listen", "127.0.0.1:0"}, "127.0.0.1", 7718).options->listen.port() == 7718);
  REQUIRE(parse({"--listen", "[::1]:7718"}, "::1", 7718).options->listen.port() == 7718);
  const ParseResult other_port = parse({"--listen", "127.0.0.1:7719"}, "127.0.0.1", 7718);
  REQUIRE(other_port.exit_code == 2);
  REQUIRE(contains(other_port.err,
                   "listen is 127.0.0.1:7719, but the service manager passed a socket at 127.0.0.1:7718:"));
  REQUIRE(parse({"--listen", "127.0.0.1:7719"}, "::1", 7719).exit_code == 2);
  REQUIRE(parse({"--listen", "127.0.0.1:0"}, "::1", 7719).exit_code == 2);
  REQUIRE(contains(parse({}, "0.0.0.0", 7717).err, "not a loopback address"));
}

TEST_CASE("options are read from the command line") {
  const Fixture fixture;
  const ParseResult parsed = fixture.parse({"--root", "/a", "--root", "work=/b", "--listen", "[::1]:0",
                                            "--state", "/s", "--recent", "7d", "--log-level", "debug",
                                            "--host", "dev7", "--watch", "sweep", "--sweep", "5m", "--demo"});
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

TEST_CASE("non-ASCII characters are not taken for blanks") {
  const Fixture fixture;
  const ParseResult folded = fixture.parse_file("host = \"\"\"a\\\n\u00a7\"\"\"\n");
  REQUIRE(folded.err == "");
  REQUIRE(folded.options->host == "a\u00a7");
  for (const std::string text : {"\u033arp", "host = \u0301", "[a]\u1490", "[:", "[ =]"}) {
    CAPTURE(text);
    REQUIRE(contains(fixture.parse_file(text).err, "e.toml:1: "));
  }
}

TEST_CASE("options are read from earshot.toml, and the command line wins") {
  const Fixture fixture;
  const std::string file =
      "root = [\"/a\", \"work=/b\"]\nlisten = \"localhost:99\"\nstate = \"/s\"\nrecent = \"90m\"\n"
      "log_level = \"warn\"\nhost = \"dev7\"\nwatch = \"inotify\"\nsweep = \"2s\"\ndemo = true\n";
  const ParseResult parsed = fixture.parse_file(file);
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
  const ParseResult both = fixture.parse_file(file, {"--root", "/c", "--recent", "5s"});
  REQUIRE(both.options->roots == std::vector<std::string>{"/c"});
  REQUIRE(both.options->recent == std::chrono::seconds(5));
  REQUIRE(both.options->host == "dev7");
}

TEST_CASE("roots may be a table of names") {
  const ParseResult parsed = Fixture().parse_file("[root]\nwork = \"/b\"\nhome = \"~/.claude\"\n");
  REQUIRE(parsed.options->roots == std::vector<std::string>{"home=~/.claude", "work=/b"});
}

TEST_CASE("the default file is optional, a named one is required") {
  Fixture fixture;
  fixture.home.write(".config/earshot/earshot.toml", "host = \"from-home\"\n");
  REQUIRE(fixture.parse({}).options->host == "from-home");
  fixture.variables["XDG_CONFIG_HOME"] = fixture.home / "xdg";
  REQUIRE(fixture.parse({}).options->host != "from-home");
  fixture.variables["XDG_STATE_HOME"] = "/elsewhere";
  REQUIRE(fixture.parse({}).options->state == "/elsewhere/earshot");
  fixture.variables["XDG_STATE_HOME"] = "relative";
  REQUIRE(fixture.parse({}).options->state == fixture.home / ".local/state/earshot");
  const ParseResult missing = fixture.parse({"--config", fixture.home / "no.toml"});
  REQUIRE(missing.exit_code == 2);
  REQUIRE(contains(missing.err, fixture.home / "no.toml"));
}

TEST_CASE("an error in the file names the line") {
  const Fixture fixture;
  const std::vector<Refused<std::string>> rows = {
      {"host = \"a\"\nrecnt = \"24h\"\n", "e.toml:2: unknown key `recnt`; did you mean `recent`?"},
      {"lissten = 7\n", "e.toml:1: unknown key `lissten`; did you mean `listen`?"},
      {"log-level = \"info\"\n", "did you mean `log_level`?"},
      {"\n\nrecent = 24\n", "e.toml:3: `recent` must be a string, not an integer"},
      {"root = \"/a\"\n", "e.toml:1: `root` must be an array of strings or a table"},
      {"root = [\"/a\",\n  7]\n", "e.toml:2: `root` must be an array of strings or a table"},
      {"demo = \"yes\"\n", "e.toml:1: `demo` must be true or false, not a string"},
      {"host = \"a\"\nhost = \"b\"\n", "e.toml:2: "},
      {"host = \n", "e.toml:1: "},
  };
  require_refused(rows, [&](const std::string& text) { return fixture.parse_file(text); });
}

TEST_CASE("an error on the command line exits with code 2") {
  const Fixture fixture;
  const std::vector<Refused<std::vector<std::string>>> rows = {
      {{"--lisen", "x"}, "unknown option `--lisen`; did you mean `--listen`?"},
      {{"stray"}, "unexpected argument `stray`"},
      {{"--listen"}, "--listen"},
      {{"--listen", "7717"}, "ADDR:PORT"},
      {{"--listen", "127.0.0.1:70000"}, "ADDR:PORT"},
      {{"--listen", "::1:7717"}, "ADDR:PORT"},
      {{"--listen", "0.0.0.0:7717"}, "not a loopback address"},
      {{"--listen", "192.168.1.5:7717"}, "TLS"},
      {{"--recent", "soon"}, "recent: `soon` is not a duration"},
      {{"--log-level", "wrn"}, "did you mean `warn`?"},
      {{"--watch", "swep"}, "did you mean `sweep`?"},
      {{"--sweep", "0s"}, "sweep: `0s` is too short: the minimum is 1s"},
      {{"--host", ""}, "host"},
      {{"--no-redact=22222222222222222222"}, "write it alone"},
  };
  require_refused(rows, [&](const auto& words) { return fixture.parse(words); });
}

TEST_CASE("the socket is in the runtime directory or the state directory") {
  Fixture fixture;
  REQUIRE(fixture.parse({}).options->socket == fixture.home.path() + "/.local/state/earshot/sock");
  REQUIRE(fixture.parse({"--state", "/s"}).options->socket == "/s/sock");
  fixture.variables["XDG_RUNTIME_DIR"] = "/run/user/1000";
  REQUIRE(fixture.parse({}).options->socket == "/run/user/1000/earshot/sock");
  REQUIRE_FALSE(fixture.parse({}).options->socket_given);
  const ParseResult given = fixture.parse({"--socket", "/tmp/a"});
  REQUIRE(given.options->socket == "/tmp/a");
  REQUIRE(given.options->socket_given);
  REQUIRE(fixture.parse_file("socket = \"/b\"").options->socket == "/b");
  fixture.variables["XDG_RUNTIME_DIR"] = "relative";
  REQUIRE(fixture.parse({"--state", "/s"}).options->socket == "/s/sock");
}

TEST_CASE("redaction is on by default") {
  const Fixture fixture;
  REQUIRE(fixture.parse({}).options->redact);
  REQUIRE_FALSE(fixture.parse({"--no-redact"}).options->redact);
  REQUIRE_FALSE(fixture.parse_file("redact = false").options->redact);
  REQUIRE(fixture.parse_file("redact = false", {"--redact"}).options->redact);
  const ParseResult rules = fixture.parse_file("[redaction]\nours = 'OUR-[0-9]{8}'\n");
  REQUIRE(rules.options->redaction ==
          std::vector<std::pair<std::string, std::string>>{{"ours", "OUR-[0-9]{8}"}});
}

TEST_CASE("remote access needs TLS and allow_remote") {
  const Fixture fixture;
  const std::string tls = "tls_cert = \"cert.pem\"\ntls_key = \"~/key.pem\"\n";
  const std::string listen = "listen = \"0.0.0.0:7717\"\n";
  for (const std::string& text : {listen, listen + "allow_remote = true\n", listen + tls}) {
    CAPTURE(text);
    const ParseResult parsed = fixture.parse_file(text);
    REQUIRE(parsed.exit_code == 2);
    for (const std::string_view word : {"allow_remote = true", "tls_cert = ", "tls_key = ", "names = "})
      REQUIRE(contains(parsed.err, word));
  }
  const ParseResult good =
      fixture.parse_file(listen + "allow_remote = true\nnames = [\"dev7.example\"]\n" + tls);
  REQUIRE(good.err == "");
  REQUIRE(good.options->tls_cert == fixture.home / "cert.pem");  // relative to the file
  REQUIRE(good.options->tls_key == fixture.home / "key.pem");
  REQUIRE(good.options->names == std::vector<std::string>{"dev7.example"});
  REQUIRE(good.options->remote_view == View::meta);
  REQUIRE(fixture.parse_file("remote_view = \"full\"").options->remote_view == View::full);
  REQUIRE(contains(fixture.parse_file("remote_view = \"ful\"").err, "did you mean `full`?"));
  REQUIRE(contains(fixture.parse_file("tls_cert = \"a\"").err, "tls_key"));
  REQUIRE(contains(fixture.parse_file("tls_key = \"a\"").err, "tls_cert"));
  REQUIRE(contains(fixture.parse_file("names = [\"https://a\"]").err, "not a host name"));
  REQUIRE(contains(fixture.parse_file("names = \"a\"").err, "an array of names"));
}

namespace {

/// `value` of a limit, as earshot.toml has it.
std::string toml_value(const serve::LimitRule& rule, std::uint64_t value) {
  using Unit = serve::LimitRule::Unit;
  if (rule.unit() == Unit::count) return std::to_string(value);
  if (rule.unit() == Unit::bytes) return '"' + size_literal(value) + '"';
  return '"' + duration_literal(std::chrono::milliseconds(static_cast<std::int64_t>(value))) + '"';
}

}  // namespace

TEST_CASE("every limit can be set within its bounds") {
  const Fixture fixture;
  const auto sample = [](const serve::LimitRule& rule) {
    return rule.name == "ping" ? rule.min : rule.min + 1;
  };
  std::string text = "[limits]\nlog_bytes = \"1MiB\"\n";
  for (const serve::LimitRule& rule : serve::limit_rules())
    text += std::string(rule.name) + " = " + toml_value(rule, sample(rule)) + "\n";
  const ParseResult parsed = fixture.parse_file(text);
  REQUIRE(parsed.err == "");
  for (const serve::LimitRule& rule : serve::limit_rules()) {
    CAPTURE(rule.name);
    REQUIRE(serve::limit_value(parsed.options->limits, rule) == sample(rule));
    const std::uint64_t default_value = serve::limit_value(serve::Limits{}, rule);
    REQUIRE(default_value >= rule.min);
    REQUIRE(default_value <= rule.max);
    REQUIRE_FALSE(rule.description.empty());
    const std::string line = "[limits]\n" + std::string(rule.name) + " = ";
    for (const std::uint64_t outside : {rule.max + 1, rule.min - 1})
      REQUIRE(contains(fixture.parse_file(line + toml_value(rule, outside)).err,
                       "e.toml:2: `" + std::string(rule.name) + "` must be a"));
  }
  REQUIRE(parsed.options->log_bytes_max == 1 << 20);
  REQUIRE(contains(fixture.parse_file("[limits]\nconections = 7\n").err,
                   "e.toml:2: unknown key `conections`; did you mean `connections`?"));
  REQUIRE(contains(fixture.parse_file("[limits]\nconnections = \"many\"\n").err,
                   "a number from 1 to 100000, not a string"));
  REQUIRE(contains(fixture.parse_file("[limits]\nconnections = -5\n").err, "not -5"));
  REQUIRE(contains(fixture.parse_file("[limits]\nping = 20000\n").err, "must be a duration from"));
  REQUIRE(contains(fixture.parse_file("[limits]\nping = \"50s\"\n").err, "`silence` must exceed `ping`"));
  REQUIRE(contains(fixture.parse_file("limits = 7\n").err, "a table, [limits]"));
}

namespace {

/// The example file with the # of every setting removed, split at [relay] and [hub]: a daemon has at most one
/// of them.
std::map<std::string, std::string> uncommented_example() {
  std::map<std::string, std::string> parts;
  std::string part;
  std::istringstream lines(example_file());
  for (std::string line; std::getline(lines, line);) {
    const bool team = line.starts_with("#[");
    if (team && !line.starts_with("#[hub.users.")) part = line.substr(2, line.size() - 3);
    const bool setting = line.size() > 1 && line[0] == '#' && line[1] >= 'a' && line[1] <= 'z';
    parts[part] += (setting || team ? line.substr(1) : line) + "\n";
  }
  return parts;
}

}  // namespace

TEST_CASE("daemon/earshot.toml is what --print-config prints") {
  REQUIRE(test::read_text((test::sources() / "daemon/earshot.toml").string()) == example_file());
  REQUIRE(Fixture().parse({"--print-config"}).out == example_file());
}

TEST_CASE("the example file has the defaults of [relay] and [hub]") {
  const Fixture fixture;
  auto parts = uncommented_example();
  const ParseResult relay = fixture.parse_file(parts["relay"], {"--host", "dev7"});
  REQUIRE(relay.err == "");
  CHECK(relay.options->relay->broker.stream == team::BrokerConfig{}.stream);
  CHECK(relay.options->relay->full == RelayOptions{}.full);
  CHECK(relay.options->relay->read == RelayOptions{}.read);
  CHECK(relay.options->relay->broker.nkey_seed == fixture.home / "earshot.nk");
  std::string with_hash = parts["hub"];
  const std::string_view placeholder = "\"put the 64 digits here\"";
  CHECK(contains(fixture.parse_file(with_hash).err, "64 hex digits"));  // the example token is rejected
  with_hash.replace(with_hash.find(placeholder), placeholder.size(), '"' + serve::sha256_hex("token") + '"');
  const ParseResult hub = fixture.parse_file(with_hash);
  REQUIRE(hub.err == "");
  CHECK(hub.options->hub->durable == HubOptions{}.durable);
  CHECK(hub.options->hub->sync == HubOptions{}.sync);
  CHECK(hub.options->hub->url_public == "https://hub.example/");
  CHECK(hub.options->hub->store.age_ms == team::EventStoreLimits{}.age_ms);
  CHECK(hub.options->hub->store.bytes_max == team::EventStoreLimits{}.bytes_max);
  CHECK(hub.options->hub->store.hosts_max == team::EventStoreLimits{}.hosts_max);
  REQUIRE(hub.options->hub->users.size() == 1);
  CHECK(hub.options->hub->users[0].view == serve::User{}.view);
}

TEST_CASE("the public address of a hub ends with a slash") {
  const Fixture fixture;
  const auto address = [&](const std::string& text) {
    const ParseResult hub = fixture.parse_file("[hub]\nurl = \"nats://a\"\nurl_public = \"" + text + "\"\n");
    return hub.options ? hub.options->hub->url_public : hub.err;
  };
  CHECK(address("https://hub.example") == "https://hub.example/");
  CHECK(address("http://[::1]:8080/earshot") == "http://[::1]:8080/earshot/");
  CHECK(fixture.parse_file("[hub]\nurl = \"nats://a\"\n").options->hub->url_public.empty());
}

TEST_CASE("an error in a team section names the line and the fix") {
  const std::vector<Refused<std::string>> rows = {
      {"[relay]\n", "e.toml:1: [relay] needs the broker's address: url = "},
      {"[hub]\ndurable = \"d\"\n", "e.toml:1: [hub] needs the broker's address"},
      {"[relay]\nurl = 7\n", "e.toml:2: `url`"},
      {"[relay]\nurl = []\n", "needs the broker's address"},
      {"[relay]\nurl = [\"\"]\n", "e.toml:2: `url`"},
      {"[relay]\nurl = \"nats://a\"\nview = \"ful\"\n", "\"meta\" or \"full\""},
      {"[relay]\nurl = \"nats://a\"\nreed = true\n", "e.toml:3: unknown key `reed`; did you mean `read`?"},
      {"[relay]\nurl = \"nats://a\"\nnkey = \"U\"\n", "`nkey` and `nkey_seed` are used together"},
      {"[relay]\nurl = \"nats://a\"\ntls_key = \"k\"\n", "`tls_cert` and `tls_key` are used together"},
      {"[hub]\nurl = \"nats://a\"\ndurable = \"a.b\"\n", "a name of letters and digits"},
      {"[hub]\nurl = \"nats://a\"\nkeep = \"0s\"\n", "a duration"},
      {"[hub]\nurl = \"nats://a\"\nhosts = 0\n", "a number from 1"},
      {"[hub]\nurl = \"nats://a\"\nurl_public = \"hub.example\"\n",
       "e.toml:3: `url_public` must be the address of a page"},
      {"[hub]\nurl = \"nats://a\"\nurl_public = \"ftp://hub.example/\"\n", "http or https"},
      {"[hub]\nurl = \"nats://a\"\nurl_public = \"https://me@hub.example/\"\n", "without user"},
      {"[hub]\nurl = \"nats://a\"\nurl_public = \"https://hub.example/#code=1\"\n", "fragment"},
      {"[hub]\nurl = \"nats://a\"\nurl_public = \"https:///\"\n", "`url_public`"},
      {"[hub]\nurl = \"nats://a\"\nurl_public = 7\n", "`url_public` must be a string"},
      {"[hub]\nurl = \"nats://a\"\n[hub.users.ada]\nhosts = [\"a\"]\n", "user `ada` needs `token_sha256`"},
      {"[hub]\nurl = \"nats://a\"\n[hub.users.ada]\ntoken_sha256 = \"abc\"\n", "64 hex digits"},
      {"[hub]\nurl = \"nats://a\"\n[relay]\nurl = \"nats://a\"\n", "[relay] and [hub] are for two daemons"},
      {"host = \"a b\"\n[relay]\nurl = \"nats://a\"\n", "choose a name with --host"},
      {"root = [\"/a\"]\n[hub]\nurl = \"nats://a\"\n", "a hub monitors no directory of its own"},
      {"relay = 7\n", "a table, [relay]"},
      {"[relay]\nurl = \"nats://a\"\nread = true\n", "it needs view = \"full\" too"},
  };
  const Fixture fixture;
  require_refused(rows, [&](const std::string& text) { return fixture.parse_file(text); });
}

TEST_CASE("a user entry that could show too much is refused") {
  const std::string hash = "token_sha256 = \"" + serve::sha256_hex("a") + "\"\n";
  const std::vector<Refused<std::string>> rows = {
      {"[hub.users.ada]\ntoken_sha256 = \"" + serve::sha256_hex("") + "\"\n",
       "e.toml:4: `token_sha256` is the SHA-256 of nothing: $TOKEN was not set. Make a token first"},
      {"[hub.users.ada]\ntoken_sha256 = \"" + serve::sha256_hex("\n") + "\"\n", "the SHA-256 of nothing"},
      {"[hub.users.ada]\n" + hash + "hosts = []\n",
       "e.toml:5: `hosts` is empty: list what the user may see; "
       "to show everything, remove the key"},
      {"[hub.users.ada]\n" + hash + "projects = []\n", "e.toml:5: `projects` is empty"},
      {"[hub.users.ada]\n" + hash + "[hub.users.eve]\n" + hash, "users `ada` and `eve` have the same token"},
      {"[hub.users.nobody]\n" + hash, "`nobody` is not a valid user name"},
      {"[hub.users.\"the owner\"]\n" + hash, "`the owner` is not a valid user name"},
      {"[hub.users.ada]\ntoken_sha256 = 7\n", "64 hex digits"},
  };
  const Fixture fixture;
  require_refused(rows, [&](const std::string& text) {
    return fixture.parse_file("[hub]\nurl = \"nats://a\"\n" + text);
  });
  const ParseResult token =
      fixture.parse_file("[hub]\nurl = \"nats://a\"\n[hub.users.ada]\ntoken_sha256 = \"hush\"\n");
  CHECK_FALSE(contains(token.err, "hush"));  // the value may be the token itself
}

TEST_CASE("an empty token matches no user") {
  const std::vector<serve::User> users = {{"ada", serve::sha256_hex(""), {}, View::full}};
  CHECK(serve::find_user_by_token(users, "") == nullptr);
}

TEST_CASE("the option --hub uses the broker of the file, else the local one") {
  const Fixture fixture;
  const ParseResult plain = fixture.parse({"--hub"});
  REQUIRE(plain.err == "");
  CHECK(plain.options->hub->broker.urls == std::vector<std::string>{"nats://127.0.0.1:4222"});
  const ParseResult filed = fixture.parse_file("[hub]\nurl = \"tls://b:1\"\n", {"--hub"});
  CHECK(filed.options->hub->broker.urls == std::vector<std::string>{"tls://b:1"});
}

TEST_CASE("the example file has every option and limit with its default") {
  const std::string all = uncommented_example()[""];
  for (const Option& option : option_table()) {
    CAPTURE(option.key);
    CHECK(contains(all, "\n" + std::string(option.key) + " = ") == (option.scope != Scope::command_line));
  }
  const Fixture fixture;
  fixture.home.write("models.toml", "");
  const Options defaults = fixture.parse({}).options.value();
  const ParseResult commented = fixture.parse_file(example_file()), uncommented = fixture.parse_file(all);
  REQUIRE(commented.err == "");
  REQUIRE(uncommented.err == "");
  CHECK(commented.options->roots.empty());
  CHECK(commented.options->redaction.empty());
  CHECK(uncommented.options->redaction.size() == 1);
  for (const Options& options : {commented.options.value(), uncommented.options.value()}) {
    CHECK(options.listen == defaults.listen);
    CHECK(options.recent == defaults.recent);
    CHECK(options.log_level == defaults.log_level);
    CHECK(options.watch == defaults.watch);
    CHECK(options.demo == defaults.demo);
    CHECK(options.redact == defaults.redact);
    CHECK(options.remote_view == defaults.remote_view);
    CHECK(options.log_bytes_max == defaults.log_bytes_max);
    for (const serve::LimitRule& rule : serve::limit_rules()) {
      CAPTURE(rule.name);
      CHECK(contains(all, "\n" + std::string(rule.name) + " = "));
      CHECK(serve::limit_value(options.limits, rule) == serve::limit_value(defaults.limits, rule));
    }
  }
  CHECK(contains(all, "\nallow_remote = false\n"));
}

TEST_CASE("the option --help and --version") {
  const ParseResult help = Fixture().parse({"--help"});
  REQUIRE(help.exit_code == 0);
  REQUIRE_FALSE(help.options);
  for (const std::string_view word :
       {"--root", "--listen", "--state", "--config", "--recent", "--log-level", "--host", "--watch",
        "--sweep", "--demo", "--socket", "--no-redact", "--version", "Examples:", "Exit codes:"}) {
    CAPTURE(word);
    REQUIRE(contains(help.out, word));
  }
  const ParseResult version = Fixture().parse({"--version"});
  REQUIRE(version.exit_code == 0);
  REQUIRE(version.out == "earshotd 1.2.3\n");
}

namespace {

/// A valid value of an option that differs from its default.
std::string sample_value(const Option& option) {
  switch (option.kind) {
    case Kind::path:
      return "/tmp/earshot-sample";
    case Kind::root:
      return "work=/srv/agents";
    case Kind::duration:
      return "7m";
    case Kind::choice:
      return std::string(option.choices.front());
    case Kind::flag:
      return option.default_value == "true" ? "false" : "true";
    case Kind::names:
      return "dev7.example";
    case Kind::text:
      return option.key == "listen" ? "127.0.0.1:7999" : "dev7";
  }
  return {};
}

}  // namespace

TEST_CASE("FAULTS 84: an installed service runs with every option of the table that was given") {
  for (const bool from_environment : {false, true}) {
    for (const Option& option : option_table()) {
      if (option.scope == Scope::file) continue;
      CAPTURE(option.key, from_environment);
      Fixture fixture;
      std::string value = sample_value(option);
      if (option.key == "config") {
        value = fixture.home / "other.toml";
        fixture.home.write("other.toml", "recent = \"3m\"\n");
      }
      if (option.key == "models") {
        value = fixture.home / "models.toml";
        fixture.home.write("models.toml", "");
      }
      std::vector<std::string> expected = {flag_of(option), value};
      if (option.kind == Kind::flag)
        expected = {(value == "true" ? "--" : "--no-") + flag_of(option).substr(2)};
      if (from_environment) fixture.variables[variable_of(option)] = value;
      const ParseResult installed = fixture.parse(from_environment ? std::vector<std::string>{} : expected);
      REQUIRE(installed.err == "");
      REQUIRE(installed.options->service_arguments == expected);
      fixture.variables = {{"HOME", fixture.home.path()}};
      REQUIRE(fixture.parse(installed.options->service_arguments).options->service_arguments == expected);
    }
  }
}

TEST_CASE("the environment wins over the file, the command line over the environment") {
  Fixture fixture;
  fixture.variables["EARSHOT_RECENT"] = "5m";
  REQUIRE(fixture.parse({}).options->recent == std::chrono::minutes(5));
  REQUIRE(fixture.parse_file("recent = \"3m\"\n").options->recent == std::chrono::minutes(5));
  REQUIRE(fixture.parse({"--recent", "4m"}).options->recent == std::chrono::minutes(4));
  fixture.variables["EARSHOT_RECENT"] = "soon";
  REQUIRE(contains(fixture.parse({}).err, "EARSHOT_RECENT: `soon` is not a duration"));
}

TEST_CASE("relative paths from the file are absolute for a service") {
  const Fixture fixture;
  const ParseResult parsed = fixture.parse_file("state = \"st\"\nhost = \"dev7\"\n");
  REQUIRE(parsed.options->service_arguments ==
          std::vector<std::string>{"--state", std::filesystem::current_path().string() + "/st", "--config",
                                   fixture.home / "e.toml"});
}

TEST_CASE("the table of models: the default file, one beside earshot.toml, one of the command line") {
  Fixture fixture;
  const auto table = [](const std::string& pattern) {
    return "[[model]]\npattern = \"" + pattern + "\"\ninput = 1\noutput = 2\n";
  };
  const auto has = [](const ParseResult& parsed, std::string_view model) {
    REQUIRE(parsed.err == "");
    CHECK(parsed.options->models.find("claude-opus-4-5") != nullptr);
    return parsed.options->models.find(model) != nullptr;
  };
  CHECK_FALSE(has(fixture.parse({}), "mine"));
  fixture.home.write(".config/earshot/models.toml", table("mine"));
  CHECK(has(fixture.parse({}), "mine"));
  fixture.variables["XDG_CONFIG_HOME"] = fixture.home / "elsewhere";
  CHECK_FALSE(has(fixture.parse({}), "mine"));
  fixture.home.write("sub/other.toml", table("other"));
  const ParseResult from_file = fixture.parse_file("models = \"sub/other.toml\"\n");
  CHECK(has(from_file, "other"));
  CHECK(from_file.options->service_arguments ==
        std::vector<std::string>{"--config", fixture.home / "e.toml"});
  CHECK(has(fixture.parse({"--models", fixture.home / "sub/other.toml"}), "other"));
  fixture.variables["EARSHOT_MODELS"] = fixture.home / "sub/other.toml";
  CHECK(has(fixture.parse({}), "other"));
}

TEST_CASE("a bad table of models is refused, with file, line and key") {
  Fixture fixture;
  fixture.home.write(".config/earshot/models.toml", "[[model]]\npattern = \"x\"\ninput = -3\noutput = 2\n");
  const ParseResult parsed = fixture.parse({});
  CHECK(parsed.exit_code == 2);
  CHECK_FALSE(parsed.options);
  CHECK(parsed.err == "earshotd: " + fixture.home.path() +
                          "/.config/earshot/models.toml:3: `input` must be USD per million tokens, a number "
                          "from 0 to 1000000, not -3\n");
  CHECK(fixture.parse({"--models", "/nonexistent/m.toml"}).err ==
        "earshotd: /nonexistent/m.toml: No such file or directory\n");
  CHECK(contains(fixture.parse({"--models", ""}).err, "models"));
}

TEST_CASE("service arguments are the options given, with absolute paths") {
  const Fixture fixture;
  const auto arguments = [&](const std::vector<std::string>& given) {
    return fixture.parse(given).options->service_arguments;
  };
  const std::string here = std::filesystem::current_path().string();
  REQUIRE(arguments({"--install-service"}).empty());
  REQUIRE(arguments({"--install-service", "--root=~/.claude", "--root", "w=x/../agents", "--root",
                     "/srv/a=b"}) == std::vector<std::string>{"--root", "~/.claude", "--root",
                                                              "w=" + here + "/agents", "--root", "/srv/a=b"});
  REQUIRE(arguments({"--no-redact", "--demo", "--recent", "7d"}) ==
          std::vector<std::string>{"--recent", "7d", "--demo", "--no-redact"});
  REQUIRE(arguments({"--state", "st"}) == std::vector<std::string>{"--state", here + "/st"});
}

TEST_CASE("install and uninstall exclude each other") {
  const Fixture fixture;
  using Action = Options::Action;
  REQUIRE(fixture.parse({}).options->action == Action::run);
  REQUIRE(fixture.parse({"--install-service"}).options->action == Action::install_service);
  REQUIRE(fixture.parse({"--uninstall-service"}).options->action == Action::uninstall_service);
  REQUIRE(fixture.parse({"--install-service", "--uninstall-service"}).exit_code == 2);
}
