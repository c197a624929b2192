#include "config/options_file.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <sstream>

#include "config/options_toml.hpp"
#include "config/options_users.hpp"
#include "serve/limits.hpp"

namespace earshot {

std::string place(const std::string& file, const toml::source_region& at) {
  return file + ":" + std::to_string(at.begin.line) + ": ";
}

void wrong_type(const std::string& file, std::string_view key, const toml::node& node,
                std::string_view wanted) {
  std::ostringstream type;
  type << node.type();
  throw Failure(place(file, node.source()) + "`" + std::string(key) + "` is " + std::string(wanted) +
                ", not " + (type.str() == "integer" || type.str() == "array" ? "an " : "a ") + type.str());
}

void unknown(const std::string& file, const toml::key& name, const std::vector<std::string_view>& known) {
  throw Failure(place(file, name.source()) + "unknown key `" + std::string(name.str()) + "`; did you mean `" +
                std::string(nearest(name.str(), known)) + "`?");
}

namespace {

/// Of the live log, which all connections share.
struct {
  std::string_view name = "log_bytes";
  std::uint64_t min = 512 << 10, max = std::uint64_t{4} << 30;
} constexpr log_bytes;

void read_roots(const std::string& file, const toml::node& node, RawOptions& said) {
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

template <std::optional<std::string> RawOptions::*field>
void read_text(const std::string& file, std::string_view key, const toml::node& node, RawOptions& said) {
  said.*field = node.value_exact<std::string>();
  if (!(said.*field)) wrong_type(file, key, node, "a string");
}

template <std::optional<bool> RawOptions::*field>
void read_flag(const std::string& file, std::string_view key, const toml::node& node, RawOptions& said) {
  said.*field = node.value_exact<bool>();
  if (!(said.*field)) wrong_type(file, key, node, "true or false");
}

void read_names(const std::string& file, std::string_view key, const toml::node& node, RawOptions& said) {
  constexpr std::string_view wanted = "an array of names, such as [\"dev7.example\"]";
  const toml::array* array = node.as_array();
  if (!array) wrong_type(file, key, node, wanted);
  for (const toml::node& item : *array) {
    const auto name = item.value_exact<std::string>();
    if (!name) wrong_type(file, key, item, wanted);
    if (name->empty() || name->find_first_of("/:@ ") != std::string::npos)
      throw Failure(place(file, item.source()) + "`" + *name +
                    "` is no host name: write it without scheme and port");
    said.names.push_back(*name);
  }
}

void read_redaction(const std::string& file, std::string_view key, const toml::node& node, RawOptions& said) {
  const toml::table* table = node.as_table();
  if (!table) wrong_type(file, key, node, "a table of NAME = \"REGULAR EXPRESSION\"");
  for (const auto& [name, item] : *table) {
    const auto pattern = item.value_exact<std::string>();
    if (!pattern) wrong_type(file, name.str(), item, "a regular expression in quotes");
    said.redaction.emplace_back(name.str(), *pattern);
  }
}

std::uint64_t read_number(const std::string& file, std::string_view key, const toml::node& node,
                          std::uint64_t min, std::uint64_t max) {
  const std::string wanted = "a number from " + std::to_string(min) + " to " + std::to_string(max);
  const auto value = node.value_exact<std::int64_t>();
  if (!value) wrong_type(file, key, node, wanted);
  if (*value < 0 || static_cast<std::uint64_t>(*value) < min || static_cast<std::uint64_t>(*value) > max)
    throw Failure(place(file, node.source()) + "`" + std::string(key) + "` is " + wanted + ", not " +
                  std::to_string(*value));
  return static_cast<std::uint64_t>(*value);
}

void read_limits(const std::string& file, std::string_view key, const toml::node& node, RawOptions& said) {
  const toml::table* table = node.as_table();
  if (!table) wrong_type(file, key, node, "a table, [limits]");
  for (const auto& [name, item] : *table) {
    if (name.str() == log_bytes.name) {
      said.log_bytes = read_number(file, name.str(), item, log_bytes.min, log_bytes.max);
      continue;
    }
    const auto rules = serve::limit_rules();
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const auto& r) { return r.name == name.str(); });
    if (rule == rules.end()) {
      std::vector<std::string_view> known{log_bytes.name};
      for (const auto& r : rules) known.push_back(r.name);
      unknown(file, name, known);
    }
    serve::set_limit(said.limits, *rule, read_number(file, name.str(), item, rule->min, rule->max));
  }
  if (said.limits.silence <= said.limits.ping)
    throw Failure(place(file, node.source()) +
                  "`silence_ms` is more than `ping_ms`: a client is pinged before it is given up");
}

/// One key of [relay] or [hub].
template <class Words>
struct TeamKey {
  std::string_view name;
  void (*read)(const std::string& file, std::string_view key, const toml::node& node, Words& words);
};

void read_urls(const std::string& file, std::string_view key, const toml::node& node,
               team::BrokerConfig& link) {
  constexpr std::string_view wanted = "a URL or an array of them, such as \"nats://broker.example:4222\"";
  const auto take = [&](const toml::node& item) {
    const auto url = item.value_exact<std::string>();
    if (!url || url->empty()) wrong_type(file, key, item, wanted);
    link.urls.push_back(*url);
  };
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& item : *array) take(item);
  } else {
    take(node);
  }
}

template <class Words, auto field>
void read_link(const std::string& file, std::string_view key, const toml::node& node, Words& words) {
  const auto text = node.value_exact<std::string>();
  if (!text || text->empty()) wrong_type(file, key, node, "a string");
  words.link.*field = *text;
}

template <class Words, auto field>
void read_truth(const std::string& file, std::string_view key, const toml::node& node, Words& words) {
  const auto value = node.value_exact<bool>();
  if (!value) wrong_type(file, key, node, "true or false");
  words.*field = *value;
}

template <class Words>
constexpr TeamKey<Words> link_keys[] = {
    {"url", [](const std::string& file, std::string_view key, const toml::node& node,
               Words& words) { read_urls(file, key, node, words.link); }},
    {"stream", read_link<Words, &team::BrokerConfig::stream>},
    {"credentials", read_link<Words, &team::BrokerConfig::credentials>},
    {"nkey", read_link<Words, &team::BrokerConfig::nkey>},
    {"nkey_seed", read_link<Words, &team::BrokerConfig::nkey_seed>},
    {"tls_ca", read_link<Words, &team::BrokerConfig::tls_ca>},
    {"tls_cert", read_link<Words, &team::BrokerConfig::tls_cert>},
    {"tls_key", read_link<Words, &team::BrokerConfig::tls_key>},
};

constexpr TeamKey<RelayWords> relay_keys[] = {
    {"view",
     [](const std::string& file, std::string_view key, const toml::node& node, RelayWords& words) {
       const auto view = node.value_exact<std::string>();
       if (view != "meta" && view != "full") wrong_type(file, key, node, "\"meta\" or \"full\"");
       words.full = view == "full";
     }},
    {"read", read_truth<RelayWords, &RelayWords::read>},
};

constexpr TeamKey<HubWords> hub_keys[] = {
    {"durable",
     [](const std::string& file, std::string_view key, const toml::node& node, HubWords& words) {
       const auto name = node.value_exact<std::string>();
       if (!name || name->empty() || name->find_first_of(" .*>/\\") != std::string::npos ||
           name->starts_with("last_"))  // as relays call theirs
         wrong_type(file, key, node, "a name of letters and digits, which does not begin with last_");
       words.durable = *name;
     }},
    {"keep",
     [](const std::string& file, std::string_view key, const toml::node& node, HubWords& words) {
       const auto text = node.value_exact<std::string>();
       const auto keep = text ? parse_duration(*text) : std::nullopt;
       if (!keep || keep->count() == 0) wrong_type(file, key, node, "a duration, such as \"30d\"");
       words.shelf.age_ms = std::chrono::milliseconds(*keep).count();
     }},
    {"keep_bytes",
     [](const std::string& file, std::string_view key, const toml::node& node, HubWords& words) {
       words.shelf.bytes_max = read_number(file, key, node, 1 << 20, std::uint64_t{1} << 50);
     }},
    {"hosts", [](const std::string& file, std::string_view key, const toml::node& node,
                 HubWords& words) { words.shelf.hosts_max = read_number(file, key, node, 1, 1'000'000); }},
    {"sync", read_truth<HubWords, &HubWords::sync>},
    {"users", [](const std::string& file, std::string_view, const toml::node& node,
                 HubWords& words) { words.users = read_users(file, node); }},
};

template <class Words, class Keys>
void read_team(const std::string& file, std::string_view key, const toml::node& node, Words& words,
               const Keys& own) {
  const toml::table* table = node.as_table();
  if (!table) wrong_type(file, key, node, "a table, [" + std::string(key) + "]");
  for (const auto& [name, item] : *table) {
    std::vector<std::string_view> known;
    bool read = false;
    const auto look = [&](const auto& keys) {
      for (const auto& each : keys) {
        known.push_back(each.name);
        if (each.name != name.str()) continue;
        each.read(file, each.name, item, words);
        read = true;
      }
    };
    look(link_keys<Words>);
    look(own);
    if (!read) unknown(file, name, known);
  }
  const team::BrokerConfig& link = words.link;
  if (link.urls.empty())
    throw Failure(place(file, node.source()) + "[" + std::string(key) +
                  "] needs the broker's address: url = \"nats://broker.example:4222\"");
  if (link.nkey.empty() != link.nkey_seed.empty())
    throw Failure(place(file, node.source()) +
                  "`nkey` and `nkey_seed` belong together: a user's public key, and "
                  "the file with its seed");
  if (link.tls_cert.empty() != link.tls_key.empty())
    throw Failure(place(file, node.source()) + "`tls_cert` and `tls_key` belong together");
}

void read_relay(const std::string& file, std::string_view key, const toml::node& node, RawOptions& said) {
  const RelayWords& words = said.relay.emplace();
  read_team(file, key, node, *said.relay, relay_keys);
  if (words.read && !words.full)
    throw Failure(place(file, node.source()) +
                  "`read` lets whole records be read from elsewhere: that needs view = \"full\", too");
}
void read_hub(const std::string& file, std::string_view key, const toml::node& node, RawOptions& said) {
  read_team(file, key, node, said.hub.emplace(), hub_keys);
}

struct Key {
  std::string_view name;
  void (*read)(const std::string& file, std::string_view key, const toml::node& node, RawOptions& said);
};
constexpr Key keys[] = {
    {"root", [](const std::string& file, std::string_view, const toml::node& node,
                RawOptions& said) { read_roots(file, node, said); }},
    {"listen", read_text<&RawOptions::listen>},
    {"state", read_text<&RawOptions::state>},
    {"recent", read_text<&RawOptions::recent>},
    {"log-level", read_text<&RawOptions::log_level>},
    {"host", read_text<&RawOptions::host>},
    {"watch", read_text<&RawOptions::watch>},
    {"sweep", read_text<&RawOptions::sweep>},
    {"demo", read_flag<&RawOptions::demo>},
    {"socket", read_text<&RawOptions::socket>},
    {"redact", read_flag<&RawOptions::redact>},
    {"allow_remote", read_flag<&RawOptions::allow_remote>},
    {"tls_cert", read_text<&RawOptions::tls_cert>},
    {"tls_key", read_text<&RawOptions::tls_key>},
    {"names", read_names},
    {"remote_view", read_text<&RawOptions::remote_view>},
    {"redaction", read_redaction},
    {"limits", read_limits},
    {"relay", read_relay},
    {"hub", read_hub},
};

}  // namespace

RawOptions read_file(const std::string& file) {
  toml::table table;
  try {
    table = toml::parse_file(file);
  } catch (const toml::parse_error& error) {
    if (error.source().begin.line == 0) throw Failure(file + ": " + std::string(error.description()));
    throw Failure(place(file, error.source()) + std::string(error.description()));
  }
  RawOptions said;
  for (const auto& [name, node] : table) {
    const auto key =
        std::find_if(std::begin(keys), std::end(keys), [&](const Key& k) { return k.name == name.str(); });
    if (key == std::end(keys)) {
      std::vector<std::string_view> known;
      for (const Key& k : keys) known.push_back(k.name);
      unknown(file, name, known);
    }
    key->read(file, key->name, node, said);
  }
  return said;
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

}  // namespace earshot
