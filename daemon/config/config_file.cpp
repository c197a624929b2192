// Reads and writes earshot.toml. Every error names the file, the line and the nearest known key.
#include <algorithm>
#include <boost/url/parse.hpp>
#include <cctype>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/hex.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"
#include "base/toml.hpp"
#include "config/option_table.hpp"
#include "serve/auth/access.hpp"
#include "serve/limits.hpp"

namespace earshot::config {
namespace {

std::string place_of(const std::string& file, const toml::source_region& at) {
  return file + ":" + std::to_string(at.begin.line) + ": ";
}

/// A TOML value with its place, for error messages. `node` outlives it.
struct TomlValue {
  const std::string& file;
  std::string_view key;
  const toml::node& node;

  /// Throws Error: `earshot.toml:12: <what>`.
  [[noreturn]] void fail(const std::string& what) const;
  /// Throws Error: the value is not `expected` ("a string").
  [[noreturn]] void fail_type(std::string_view expected) const;
  /// Throws Error: `name`, a key of this table, is none of `known`.
  [[noreturn]] void fail_unknown(const toml::key& name, const std::vector<std::string_view>& known) const;

  std::string text(std::string_view expected = "a string") const;  // not empty
  bool flag() const;
  View view() const;
  std::uint64_t number(std::uint64_t min, std::uint64_t max) const;
  std::uint64_t size(std::uint64_t min, std::uint64_t max) const;         // "16MiB"; or a number of bytes
  std::uint64_t duration_ms(std::uint64_t min, std::uint64_t max) const;  // "20s"
  std::vector<std::string> texts(std::string_view expected) const;        // a string or an array of strings
  const toml::table& table(std::string_view expected) const;
  TomlValue member(const toml::key& name, const toml::node& value) const { return {file, name.str(), value}; }
};

void TomlValue::fail(const std::string& what) const { throw Error(place_of(file, node.source()) + what); }

void TomlValue::fail_type(std::string_view expected) const {
  std::ostringstream type;
  type << node.type();
  fail("`" + std::string(key) + "` must be " + std::string(expected) + ", not " +
       (type.str() == "integer" || type.str() == "array" ? "an " : "a ") + type.str());
}

void TomlValue::fail_unknown(const toml::key& name, const std::vector<std::string_view>& known) const {
  throw Error(place_of(file, name.source()) + "unknown key `" + std::string(name.str()) +
              "`; did you mean `" + std::string(nearest_word(name.str(), known)) + "`?");
}

std::string TomlValue::text(std::string_view expected) const {
  const auto text = node.value_exact<std::string>();
  if (!text || text->empty()) fail_type(expected);
  return *text;
}

bool TomlValue::flag() const {
  const auto value = node.value_exact<bool>();
  if (!value) fail_type("true or false");
  return *value;
}

View TomlValue::view() const {
  const std::string view = text("\"meta\" or \"full\"");
  if (view != "meta" && view != "full") fail_type("\"meta\" or \"full\"");
  return view == "full" ? View::full : View::meta;
}

std::uint64_t TomlValue::number(std::uint64_t min, std::uint64_t max) const {
  const std::string expected = "a number from " + std::to_string(min) + " to " + std::to_string(max);
  const auto value = node.value_exact<std::int64_t>();
  if (!value) fail_type(expected);
  if (*value < 0 || static_cast<std::uint64_t>(*value) < min || static_cast<std::uint64_t>(*value) > max)
    fail("`" + std::string(key) + "` must be " + expected + ", not " + std::to_string(*value));
  return static_cast<std::uint64_t>(*value);
}

std::uint64_t TomlValue::size(std::uint64_t min, std::uint64_t max) const {
  const std::string expected = "a size from \"" + size_literal(min) + "\" to \"" + size_literal(max) + "\"";
  if (node.is_integer()) return number(min, max);
  const auto value = node.value_exact<std::string>();
  if (!value) fail_type(expected);
  const auto bytes = parse_size(*value);
  if (!bytes || *bytes < min || *bytes > max)
    fail("`" + std::string(key) + "` must be " + expected + ", not \"" + *value + "\"");
  return *bytes;
}

std::uint64_t TomlValue::duration_ms(std::uint64_t min, std::uint64_t max) const {
  const auto literal = [](std::uint64_t ms) {
    return duration_literal(std::chrono::milliseconds(static_cast<std::int64_t>(ms)));
  };
  const std::string expected = "a duration from \"" + literal(min) + "\" to \"" + literal(max) + "\"";
  const auto value = node.value_exact<std::string>();
  if (!value) fail_type(expected);
  const auto duration = parse_duration(*value);
  const auto ms = duration ? static_cast<std::uint64_t>(duration->count()) : 0;
  if (!duration || ms < min || ms > max)
    fail("`" + std::string(key) + "` must be " + expected + ", not \"" + *value + "\"");
  return ms;
}

std::vector<std::string> TomlValue::texts(std::string_view expected) const {
  const toml::array* array = node.as_array();
  if (!array) return {text(expected)};
  std::vector<std::string> all;
  for (const toml::node& item : *array) all.push_back(TomlValue{file, key, item}.text(expected));
  return all;
}

const toml::table& TomlValue::table(std::string_view expected) const {
  const toml::table* table = node.as_table();
  if (!table) fail_type(expected);
  return *table;
}

/// One key of a section. `T` is the struct that the section fills.
template <class T>
struct SectionKey {
  std::string_view name;
  std::string_view default_value;  // as TOML
  bool is_example;                 // `default_value` is an example, not the default
  std::string_view description;
  void (*read)(const TomlValue& value, T& into);
};

template <class T, auto field>
void read_broker_text(const TomlValue& value, T& into) {
  into.broker.*field = value.text();
}

template <class T>
const std::vector<SectionKey<T>>& broker_keys() {
  using team::BrokerConfig;
  static const std::vector<SectionKey<T>> keys = {
      {"url", "[\"nats://127.0.0.1:4222\"]", true,
       "The broker, nats://HOST:PORT or tls://HOST:PORT; several are tried in order. Required",
       [](const TomlValue& value, T& into) {
         into.broker.urls = value.texts("a URL or an array of them, such as \"nats://broker.example:4222\"");
       }},
      {"stream", "\"earshot\"", false, "JetStream stream of events; statuses are in <stream>_status",
       read_broker_text<T, &BrokerConfig::stream>},
      {"credentials", "\"earshot.creds\"", true, "Authentication: a .creds file,",
       read_broker_text<T, &BrokerConfig::credentials>},
      {"nkey", "\"UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4\"", true,
       "or a user's public nkey with the file of its seed,", read_broker_text<T, &BrokerConfig::nkey>},
      {"nkey_seed", "\"earshot.nk\"", true, "", read_broker_text<T, &BrokerConfig::nkey_seed>},
      {"tls_ca", "\"ca.pem\"", true, "or a client certificate and its key; tls_ca: the broker's authority",
       read_broker_text<T, &BrokerConfig::tls_ca>},
      {"tls_cert", "\"client.pem\"", true, "", read_broker_text<T, &BrokerConfig::tls_cert>},
      {"tls_key", "\"client.key\"", true, "", read_broker_text<T, &BrokerConfig::tls_key>},
  };
  return keys;
}

const std::vector<SectionKey<RelayOptions>>& relay_keys() {
  static const std::vector<SectionKey<RelayOptions>> keys = {
      {"view", "\"meta\"", false, "What leaves this machine: \"meta\" (names, times, numbers) or \"full\"",
       [](const TomlValue& value, RelayOptions& into) { into.full = value.view() == View::full; }},
      {"read", "false", false, "Whether hubs may request whole records; needs view = \"full\"",
       [](const TomlValue& value, RelayOptions& into) { into.read = value.flag(); }},
  };
  return keys;
}

/// An address of a page, with a slash at the end. It becomes part of links, so nothing may follow its path.
/// `what`: `a page`, and an example of its address.
std::string base_address(const TomlValue& value, const std::string& what, const std::string& example) {
  constexpr std::size_t bytes_max = 1024;
  std::string address = value.text();
  const boost::system::result<boost::urls::url_view> url = boost::urls::parse_uri(address);
  const bool is_page = url && (url->scheme() == "http" || url->scheme() == "https") && !url->host().empty() &&
                       !url->has_userinfo() && !url->has_query() && !url->has_fragment();
  if (!is_page || address.size() > bytes_max)
    value.fail("`" + std::string(value.key) + "` must be the address of " + what + ", such as \"" + example +
               "\": http or https, without user, query and fragment");
  if (!address.ends_with('/')) address += '/';
  return address;
}

const std::vector<SectionKey<HubOptions>>& hub_keys() {
  static const std::vector<SectionKey<HubOptions>> keys = {
      {"durable", "\"hub\"", false, "Name of the JetStream consumer; unique per hub",
       [](const TomlValue& value, HubOptions& into) {
         constexpr std::string_view expected = "a name of letters and digits that does not start with last_";
         const std::string name = value.text(expected);
         // Relays name their consumers last_<host>.
         if (name.find_first_of(" .*>/\\") != name.npos || name.starts_with("last_"))
           value.fail_type(expected);
         into.durable = name;
       }},
      {"keep", "\"30d\"", false, "Files without a new event for longer are deleted",
       [](const TomlValue& value, HubOptions& into) {
         into.store.age_ms = static_cast<std::int64_t>(value.duration_ms(1000, 36500ULL * 24 * 3600 * 1000));
       }},
      {"keep_bytes", "\"20GiB\"", false, "Above this total the largest host's oldest files are deleted",
       [](const TomlValue& value, HubOptions& into) {
         into.store.bytes_max = value.size(1 << 20, std::uint64_t{1} << 50);
       }},
      {"hosts", "1000", false, "Hosts beyond this number are not stored",
       [](const TomlValue& value, HubOptions& into) { into.store.hosts_max = value.number(1, 1'000'000); }},
      {"sync", "true", false, "Acknowledge a message after fsync; false: after write",
       [](const TomlValue& value, HubOptions& into) { into.sync = value.flag(); }},
      {"url_public", "\"https://hub.example/\"", true, "Address of the hub's page for the links in notices",
       [](const TomlValue& value, HubOptions& into) {
         into.url_public = base_address(value, "a page", "https://hub.example/");
       }},
  };
  return keys;
}

const std::vector<SectionKey<OtlpOptions>>& otlp_keys() {
  static const std::vector<SectionKey<OtlpOptions>> keys = {
      {"endpoint", "\"http://127.0.0.1:4318\"", true,
       "The collector's base URL, to which /v1/traces and so on is added. Without it nothing is exported",
       [](const TomlValue& value, OtlpOptions& into) {
         into.endpoint = base_address(value, "a collector", "http://127.0.0.1:4318");
       }},
      {"headers_file", "\"otlp_headers\"", true,
       "File of headers for each request, a line each, `Authorization: Bearer …`; readable by you only",
       [](const TomlValue& value, OtlpOptions& into) { into.headers_file = value.text(); }},
      {"tls_ca", "\"ca.pem\"", true, "Authority of the collector's certificate. Default: the system's",
       [](const TomlValue& value, OtlpOptions& into) { into.tls_ca = value.text(); }},
      {"view", "\"meta\"", false, "What leaves this machine: \"meta\" (names, times, numbers) or \"full\"",
       [](const TomlValue& value, OtlpOptions& into) { into.full = value.view() == View::full; }},
      {"traces", "true", false, "Export turns, tool calls, subagents, messages and waits as spans",
       [](const TomlValue& value, OtlpOptions& into) { into.traces = value.flag(); }},
      {"metrics", "true", false, "Export tokens, durations, sessions, cost and limits",
       [](const TomlValue& value, OtlpOptions& into) { into.metrics = value.flag(); }},
      {"logs", "false", false, "Export each event as a log record",
       [](const TomlValue& value, OtlpOptions& into) { into.logs = value.flag(); }},
      {"retain", "\"24h\"", false, "After an outage, and at the first start, older data is not exported",
       [](const TomlValue& value, OtlpOptions& into) {
         into.retain = std::chrono::milliseconds(
             static_cast<std::int64_t>(value.duration_ms(60'000, 36500ULL * 24 * 3600 * 1000)));
       }},
  };
  return keys;
}

/// The live log, shared by all connections.
struct {
  std::string_view name = "log_bytes";
  std::uint64_t min = 512 << 10, max = std::uint64_t{4} << 30;
} constexpr log_bytes;

template <class T>
const SectionKey<T>* find_key(const std::vector<SectionKey<T>>& keys, std::string_view name) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const auto& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

/// Keys of [relay] or [hub]. `extra(member)` handles one that is in neither list, or returns false.
template <class T>
void read_broker_section(const TomlValue& section, T& into, const std::vector<SectionKey<T>>& own,
                         auto extra) {
  for (const auto& [name, node] : section.table("a table, [" + std::string(section.key) + "]")) {
    const TomlValue member = section.member(name, node);
    const SectionKey<T>* key = find_key(broker_keys<T>(), name.str());
    if (!key) key = find_key(own, name.str());
    if (key) {
      key->read(member, into);
    } else if (!extra(member)) {
      std::vector<std::string_view> known;
      for (const auto* keys : {&broker_keys<T>(), &own})
        for (const auto& each : *keys) known.push_back(each.name);
      section.fail_unknown(name, known);
    }
  }
  const team::BrokerConfig& broker = into.broker;
  if (broker.urls.empty())
    section.fail("[" + std::string(section.key) +
                 "] needs the broker's address: url = \"nats://broker.example:4222\"");
  if (broker.nkey.empty() != broker.nkey_seed.empty())
    section.fail("`nkey` and `nkey_seed` are used together: a user's public key, and the file of its seed");
  if (broker.tls_cert.empty() != broker.tls_key.empty())
    section.fail("`tls_cert` and `tls_key` are used together");
}

std::vector<std::string> read_patterns(const TomlValue& value) {
  constexpr std::string_view expected = "an array of patterns, such as [\"dev*\"]";
  const toml::array* array = value.node.as_array();
  if (!array) value.fail_type(expected);
  if (array->empty())
    value.fail("`" + std::string(value.key) +
               "` is empty: list what the user may see; to show everything, remove the key; to show nothing, "
               "remove the user");
  std::vector<std::string> patterns = value.texts(expected);
  for (const std::string& pattern : patterns)
    if (pattern.size() > serve::Filter::pattern_bytes_max) value.fail_type(expected);
  return patterns;
}

/// The value is never repeated in an error: it may be the token itself.
std::string read_hash(const TomlValue& value) {
  const std::string expected =
      "the SHA-256 of a token, 64 hex digits in lower case, as `printf %s \"$TOKEN\" | sha256sum` prints it";
  const auto hash = value.node.value_exact<std::string>();
  if (!hash) value.fail_type(expected);
  if (hash->size() != 64 || !is_hex(*hash))
    value.fail("`" + std::string(value.key) + "` must be " + expected);
  for (const std::string_view empty : {"", "\n"})
    if (*hash == serve::sha256_hex(empty))
      value.fail("`" + std::string(value.key) +
                 "` is the SHA-256 of nothing: $TOKEN was not set. Make a token first: TOKEN=$(openssl rand "
                 "-hex 32)");
  return *hash;
}

serve::User read_user(const std::string& user_name, const TomlValue& section) {
  const toml::table& table = section.table("a table, [hub.users." + user_name + "]");
  // Audit lines print names, and `nobody` for connections without a user.
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '@';
  };
  if (user_name.empty() || user_name.size() > 64 || user_name == "nobody" ||
      !std::all_of(user_name.begin(), user_name.end(), is_plain))
    section.fail(
        "`" + user_name +
        "` is not a valid user name: use letters, digits, `.`, `-`, `_` and `@`; `nobody` is reserved");
  serve::User user;
  user.name = user_name;
  for (const auto& [name, node] : table) {
    const TomlValue value = section.member(name, node);
    if (name.str() == "token_sha256") {
      user.token_sha256 = read_hash(value);
    } else if (name.str() == "hosts") {
      user.allowed.host = read_patterns(value);
    } else if (name.str() == "projects") {
      user.allowed.project = read_patterns(value);
    } else if (name.str() == "view") {
      user.view = value.view();
    } else {
      section.fail_unknown(name, {"token_sha256", "hosts", "projects", "view"});
    }
  }
  if (user.token_sha256.empty())
    section.fail("user `" + user_name + "` needs `token_sha256`, the SHA-256 of a token");
  return user;
}

/// [hub.users.NAME]: users in addition to the owner. Throws Error for anything that could show more than
/// intended: no token, a token of two users, an empty list of hosts or projects.
std::vector<serve::User> read_users(const TomlValue& section) {
  std::vector<serve::User> users;
  for (const auto& [name, node] : section.table("a table of users, [hub.users.NAME]")) {
    const TomlValue value = section.member(name, node);
    serve::User user = read_user(std::string(name.str()), value);
    for (const serve::User& other : users)
      if (other.token_sha256 == user.token_sha256)
        value.fail("users `" + other.name + "` and `" + user.name +
                   "` have the same token: each needs a token of its own");
    users.push_back(std::move(user));
  }
  return users;
}

void read_relay(const TomlValue& section, Options& options) {
  RelayOptions& relay = options.relay.emplace();
  read_broker_section(section, relay, relay_keys(), [](const TomlValue&) { return false; });
  if (relay.read && !relay.full)
    section.fail("`read` gives hubs whole records: it needs view = \"full\" too");
}

void read_hub(const TomlValue& section, Options& options) {
  HubOptions& hub = options.hub.emplace();
  read_broker_section(section, hub, hub_keys(), [&](const TomlValue& member) {
    if (member.key != "users") return false;
    hub.users = read_users(member);
    return true;
  });
}

void read_otlp(const TomlValue& section, Options& options) {
  for (const auto& [name, node] : section.table("a table, [otlp]")) {
    if (name.str() == "protocol")
      section.member(name, node).fail("`protocol` is no key any more: it is always http/protobuf");
    const SectionKey<OtlpOptions>* key = find_key(otlp_keys(), name.str());
    if (!key) {
      std::vector<std::string_view> known;
      for (const auto& each : otlp_keys()) known.push_back(each.name);
      section.fail_unknown(name, known);
    }
    key->read(section.member(name, node), options.otlp_file);
  }
}

void read_redaction(const TomlValue& section, Options& options) {
  for (const auto& [name, node] : section.table("a table of NAME = 'REGULAR EXPRESSION'"))
    options.redaction.emplace_back(name.str(),
                                   section.member(name, node).text("a regular expression in quotes"));
}

void read_limits(const TomlValue& section, Options& options) {
  for (const auto& [name, node] : section.table("a table, [limits]")) {
    const TomlValue member = section.member(name, node);
    if (name.str() == log_bytes.name) {
      options.log_bytes_max = member.size(log_bytes.min, log_bytes.max);
      continue;
    }
    const auto rules = serve::limit_rules();
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const auto& each) { return each.name == name.str(); });
    if (rule == rules.end()) {
      std::vector<std::string_view> known{log_bytes.name};
      for (const auto& each : rules) known.push_back(each.name);
      section.fail_unknown(name, known);
    }
    using Unit = serve::LimitRule::Unit;
    const std::uint64_t value = rule->unit() == Unit::duration ? member.duration_ms(rule->min, rule->max)
                                : rule->unit() == Unit::bytes  ? member.size(rule->min, rule->max)
                                                               : member.number(rule->min, rule->max);
    serve::set_limit(options.limits, *rule, value);
  }
  if (options.limits.silence <= options.limits.ping)
    section.fail("`silence` must exceed `ping`: a client is pinged before it is dropped");
}

struct Section {
  std::string_view name;
  void (*read)(const TomlValue& section, Options& options);
};
constexpr Section sections[] = {{"redaction", read_redaction},
                                {"limits", read_limits},
                                {"relay", read_relay},
                                {"hub", read_hub},
                                {"otlp", read_otlp}};

/// The values of a top-level option, as the command line would have them.
std::vector<std::string> read_values(const Option& option, const TomlValue& value) {
  switch (option.kind) {
    case Kind::flag:
      return {value.flag() ? "true" : "false"};
    case Kind::names: {
      constexpr std::string_view expected = "an array of names, such as [\"dev7.example\"]";
      if (!value.node.is_array()) value.fail_type(expected);
      return value.texts(expected);
    }
    case Kind::root: {
      constexpr std::string_view expected = "an array of strings or a table of NAME = \"DIR\"";
      if (const toml::table* table = value.node.as_table()) {
        std::vector<std::string> roots;
        for (const auto& [name, node] : *table)
          roots.push_back(std::string(name.str()) + "=" + value.member(name, node).text(expected));
        return roots;
      }
      if (!value.node.is_array()) value.fail_type(expected);
      return value.texts(expected);
    }
    default: {
      const auto text = value.node.value_exact<std::string>();
      if (!text) value.fail_type("a string");
      return {*text};
    }
  }
}

// --- The example file ---

void append_comment(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.append("# ").append(text.substr(at, end - at)).append("\n");
    at = end + 1;
  }
}

void append_setting(std::string& out, std::string_view name, std::string_view value) {
  out.append("#").append(name).append(" = ").append(value).append("\n");
}

std::string toml_literal(const Option& option) {
  if (option.default_value.empty()) return std::string(option.example);
  return option.kind == Kind::flag ? std::string(option.default_value)
                                   : '"' + std::string(option.default_value) + '"';
}

std::string toml_literal(const serve::LimitRule& rule) {
  const std::uint64_t value = serve::limit_value(serve::Limits{}, rule);
  using Unit = serve::LimitRule::Unit;
  if (rule.unit() == Unit::count) return std::to_string(value);
  return '"' +
         (rule.unit() == Unit::bytes
              ? size_literal(value)
              : duration_literal(std::chrono::milliseconds(static_cast<std::int64_t>(value)))) +
         '"';
}

template <class T>
void append_section_keys(std::string& out, const std::vector<SectionKey<T>>& keys) {
  for (const SectionKey<T>& key : keys) {
    append_comment(out, key.description);
    append_setting(out, key.name, key.default_value);
  }
}

}  // namespace

Settings read_config_file(const std::string& file, Options& options) {
  toml::table table;
  try {
    table = toml::parse_file(file);
  } catch (const toml::parse_error& error) {
    if (error.source().begin.line == 0) throw Error(file + ": " + std::string(error.description()));
    throw Error(place_of(file, error.source()) + std::string(error.description()));
  }
  Settings settings;
  const TomlValue root{file, "", table};
  for (const auto& [name, node] : table) {
    const TomlValue value = root.member(name, node);
    const auto section = std::find_if(std::begin(sections), std::end(sections),
                                      [&](const Section& each) { return each.name == name.str(); });
    if (section != std::end(sections)) {
      section->read(value, options);
      continue;
    }
    std::vector<std::string_view> known;
    const Option* option = nullptr;
    for (const Option& each : option_table()) {
      if (each.scope == Scope::command_line) continue;
      known.push_back(each.key);
      if (each.key == name.str()) option = &each;
    }
    for (const Section& each : sections) known.push_back(each.name);
    if (!option) root.fail_unknown(name, known);
    settings[option->key] = {read_values(*option, value), true,
                             place_of(file, node.source()) + std::string(option->key)};
  }
  return settings;
}

std::string example_file() {
  std::string out =
      "# earshot.toml: the configuration of earshotd, with every default. Without this file the daemon "
      "behaves the same.\n"
      "# Copy what you change to ~/.config/earshot/earshot.toml, remove its #, and restart the daemon:\n"
      "#   systemctl --user restart earshot.service\n"
      "# The command line wins over the environment (EARSHOT_RECENT=7d), the environment over this file. See "
      "earshot.toml(5).\n";
  for (const Option& option : option_table()) {
    if (option.scope == Scope::command_line) continue;
    out += "\n";
    append_comment(out, option.description);
    append_setting(out, option.key, toml_literal(option));
  }
  out +=
      "\n# Redaction rules of your own: NAME = 'REGULAR EXPRESSION' (RE2 syntax). A match becomes "
      "[redacted:NAME].\n"
      "[redaction]\n#ticket = 'TICKET-[0-9]{6}'\n"
      "\n# --- Limits: what clients may use. Most users never change them. ---\n\n[limits]\n";
  append_comment(out, "Recent frames kept for all clients; older events are read from the transcripts");
  append_setting(out, log_bytes.name, '"' + size_literal(serve::LiveLog::bytes_max_default) + '"');
  for (const serve::LimitRule& rule : serve::limit_rules()) {
    append_comment(out, rule.description);
    append_setting(out, rule.name, toml_literal(rule));
  }
  out +=
      "\n# --- A team: publish this machine's events to NATS JetStream, for a hub (protocol/TEAM.md) "
      "---\n\n#[relay]\n";
  append_section_keys(out, broker_keys<RelayOptions>());
  append_section_keys(out, relay_keys());
  out +=
      "\n# --- A team's hub: serves what other daemons publish, monitors no directory of its own "
      "---\n\n#[hub]\n";
  append_section_keys(out, broker_keys<HubOptions>());
  append_section_keys(out, hub_keys());
  out +=
      "\n# Users in addition to the owner: a token each, of which only the hash is stored:\n"
      "#   TOKEN=$(openssl rand -hex 32); echo \"$TOKEN\"; printf %s \"$TOKEN\" | sha256sum\n"
      "#[hub.users.ada]\n#token_sha256 = \"put the 64 digits here\"\n"
      "# Patterns of the hosts and projects the user may see; without these keys all of them\n"
      "#hosts = [\"ada*\"]\n#projects = [\"/srv/api*\"]\n"
      "# How much of them: \"meta\" or \"full\"\n#view = \"meta\"\n";
  out +=
      "\n# --- OpenTelemetry: traces, metrics and logs for a collector (protocol/OTEL.md). Keys that are not "
      "set are\n# taken from the OTEL_EXPORTER_OTLP_* variables ---\n\n#[otlp]\n";
  append_section_keys(out, otlp_keys());
  return out;
}

}  // namespace earshot::config
