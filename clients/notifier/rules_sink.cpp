// Reads one [sink.NAME] table.
#include <algorithm>

#include "notifier/rules_reader.hpp"

namespace earshot::notifier {
namespace {

constexpr std::int64_t timeout_ms_max = 60'000;
constexpr std::size_t command_arguments_max = 64;
constexpr std::size_t name_bytes_max = 64;

constexpr std::string_view kind_names[] = {"desktop", "json",   "slack",   "discord", "teams",
                                           "ntfy",    "gotify", "command", "bell"};
using Kinds = std::vector<SinkKind>;
using K = SinkKind;

struct Key {
  std::string_view name;
  std::vector<SinkKind> kinds;  // empty: any
  void (*read)(const RulesReader& reader, const toml::node& node, Sink& sink);
};

template <std::string Sink::*field>
void read_text(std::string_view key, const RulesReader& reader, const toml::node& node, Sink& sink) {
  if (auto value = reader.read_string(key, node)) sink.*field = *value;
}

template <SecretSource Sink::*source, std::string SecretSource::*field>
void read_source(std::string_view key, const RulesReader& reader, const toml::node& node, Sink& sink) {
  if (auto value = reader.read_string(key, node))
    sink.*source.*field = field == &SecretSource::file ? reader.expand_home(*value) : *value;
}

const std::vector<Key>& keys() {
  static const Kinds web{K::json, K::slack, K::discord, K::teams, K::ntfy, K::gotify};
  static const Kinds tokens{K::json, K::ntfy, K::gotify};
  static const std::vector<Key> all{
      {"url", web,
       [](const RulesReader& r, const toml::node& n, Sink& s) { read_text<&Sink::url>("url", r, n, s); }},
      {"url_file", web,
       [](const RulesReader& r, const toml::node& n, Sink& s) {
         read_source<&Sink::url_source, &SecretSource::file>("url_file", r, n, s);
       }},
      {"url_env", web,
       [](const RulesReader& r, const toml::node& n, Sink& s) {
         read_source<&Sink::url_source, &SecretSource::variable>("url_env", r, n, s);
       }},
      {"token_file", tokens,
       [](const RulesReader& r, const toml::node& n, Sink& s) {
         read_source<&Sink::token, &SecretSource::file>("token_file", r, n, s);
       }},
      {"token_env", tokens,
       [](const RulesReader& r, const toml::node& n, Sink& s) {
         read_source<&Sink::token, &SecretSource::variable>("token_env", r, n, s);
       }},
      {"secret_file",
       {K::json},
       [](const RulesReader& r, const toml::node& n, Sink& s) {
         read_source<&Sink::secret, &SecretSource::file>("secret_file", r, n, s);
       }},
      {"secret_env",
       {K::json},
       [](const RulesReader& r, const toml::node& n, Sink& s) {
         read_source<&Sink::secret, &SecretSource::variable>("secret_env", r, n, s);
       }},
      {"ca_file", web,
       [](const RulesReader& r, const toml::node& n, Sink& s) {
         if (auto value = r.read_string("ca_file", n)) s.ca_file = r.expand_home(*value);
       }},
      {"command",
       {K::command},
       [](const RulesReader& r, const toml::node& n, Sink& s) {
         if (n.as_array() == nullptr)
           return r.add_type_error("command", n,
                                   "an array, the program and its arguments (there is no shell)");
         if (auto value = r.read_strings("command", n)) s.command = *value;
         if (s.command.size() > command_arguments_max)
           r.add_problem(n.source(), "`command` has more than 64 arguments");
         if (!s.command.empty()) s.command.front() = r.expand_home(s.command.front());
       }},
      {"tty",
       {K::bell},
       [](const RulesReader& r, const toml::node& n, Sink& s) { read_text<&Sink::tty>("tty", r, n, s); }},
      {"timeout",
       {K::json, K::slack, K::discord, K::teams, K::ntfy, K::gotify, K::command},
       [](const RulesReader& r, const toml::node& n, Sink& s) {
         const auto ms = r.read_duration("timeout", n);
         if (!ms) return;
         s.timeout_ms = *ms;
         if (*ms < 100 || *ms > timeout_ms_max)
           r.add_problem(n.source(), "`timeout` must be from 100ms to 1m");
       }},
  };
  return all;
}

bool is_allowed(const Key& key, SinkKind kind) {
  return key.kinds.empty() || std::find(key.kinds.begin(), key.kinds.end(), kind) != key.kinds.end();
}

// Checks required and conflicting keys.
void check(const RulesReader& reader, const toml::table& table, const Sink& sink) {
  const auto add_problem = [&](const std::string& why) {
    reader.add_problem(table.source(), "sink " + sink.name + ": " + why);
  };
  if (sink.uses_http()) {
    const int sources = (sink.url.empty() ? 0 : 1) + (sink.url_source.file.empty() ? 0 : 1) +
                        (sink.url_source.variable.empty() ? 0 : 1);
    if (sources != 1) add_problem("set exactly one of `url`, `url_file` and `url_env`");
    if (!sink.url.empty() && !sink.url.starts_with("https://") && !sink.url.starts_with("http://"))
      add_problem("`url` must begin with https:// or http://");
    if (sink.url.find('@') != sink.url.npos &&
        sink.url.find('@') < std::min(sink.url.find('/', 8), sink.url.size()))
      add_problem(
          "`url` contains a user name or a password: move the URL to `url_file`, or use `token_file`");
  }
  if (!sink.token.file.empty() && !sink.token.variable.empty())
    add_problem("set only one of `token_file` and `token_env`");
  if (!sink.secret.file.empty() && !sink.secret.variable.empty())
    add_problem("set only one of `secret_file` and `secret_env`");
  if (sink.kind == K::gotify && !sink.token.is_set()) add_problem("gotify needs `token_file` or `token_env`");
  if (sink.kind == K::command && sink.command.empty())
    add_problem("`command` is missing: [\"program\", \"argument\"]");
}

}  // namespace

std::optional<Sink> read_sink(const RulesReader& reader, std::string_view name, const toml::table& table) {
  const std::size_t problems = reader.problems.size();
  Sink sink;
  sink.name = name;
  sink.line = static_cast<int>(table.source().begin.line);
  const bool is_name =
      !name.empty() && name.size() <= name_bytes_max && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '_';
      });
  if (!is_name) {  // it is part of file names in the spool
    reader.add_problem(table.source(), "a sink's name consists of letters, digits, - and _, at most 64");
    return std::nullopt;
  }
  const toml::node* const kind = table.get("kind");
  if (kind == nullptr) {
    reader.add_problem(
        table.source(),
        "sink " + sink.name +
            " has no `kind`: desktop, json, slack, discord, teams, ntfy, gotify, command or bell");
    return std::nullopt;
  }
  const auto which = reader.read_choice("kind", *kind, {std::begin(kind_names), std::end(kind_names)});
  if (!which) return std::nullopt;
  sink.kind = static_cast<SinkKind>(*which);
  for (const auto& [key, node] : table) {
    if (key.str() == "kind") continue;
    const auto known = std::find_if(keys().begin(), keys().end(), [&](const Key& each) {
      return each.name == key.str() && is_allowed(each, sink.kind);
    });
    if (known != keys().end()) {
      known->read(reader, node, sink);
      continue;
    }
    std::vector<std::string_view> names{"kind"};
    for (const Key& each : keys()) {
      if (is_allowed(each, sink.kind)) names.push_back(each.name);
    }
    reader.add_unknown_key(key, names);
  }
  check(reader, table, sink);
  if (reader.problems.size() > problems) return std::nullopt;
  return sink;
}

}  // namespace earshot::notifier
