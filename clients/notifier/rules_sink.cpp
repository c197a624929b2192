// Reads one [sink.NAME] table.
#include <algorithm>

#include "notifier/rules_reader.hpp"

namespace earshot::notifier {
namespace {

constexpr std::int64_t timeout_ms_max = 60'000;
constexpr std::size_t command_words_max = 64;
constexpr std::size_t name_bytes_max = 64;

constexpr std::string_view kind_names[] = {"desktop", "json",   "slack",   "discord", "teams",
                                           "ntfy",    "gotify", "command", "bell"};
using Kinds = std::vector<SinkKind>;
using K = SinkKind;

struct Key {
  std::string_view name;
  std::vector<SinkKind> of;  // empty: any
  void (*read)(const Reader& reader, const toml::node& node, Sink& sink);
};

template <std::string Sink::*field>
void read_text(std::string_view key, const Reader& reader, const toml::node& node, Sink& sink) {
  if (auto said = reader.text(key, node)) sink.*field = *said;
}

template <SecretPlace Sink::*place, std::string SecretPlace::*field>
void read_place(std::string_view key, const Reader& reader, const toml::node& node, Sink& sink) {
  if (auto said = reader.text(key, node))
    sink.*place.*field = field == &SecretPlace::file ? reader.path(*said) : *said;
}

const std::vector<Key>& keys() {
  static const Kinds web{K::json, K::slack, K::discord, K::teams, K::ntfy, K::gotify};
  static const Kinds tokens{K::json, K::ntfy, K::gotify};
  static const std::vector<Key> all{
      {"url", web,
       [](const Reader& r, const toml::node& n, Sink& s) { read_text<&Sink::url>("url", r, n, s); }},
      {"url_file", web,
       [](const Reader& r, const toml::node& n, Sink& s) {
         read_place<&Sink::url_at, &SecretPlace::file>("url_file", r, n, s);
       }},
      {"url_env", web,
       [](const Reader& r, const toml::node& n, Sink& s) {
         read_place<&Sink::url_at, &SecretPlace::variable>("url_env", r, n, s);
       }},
      {"token_file", tokens,
       [](const Reader& r, const toml::node& n, Sink& s) {
         read_place<&Sink::token, &SecretPlace::file>("token_file", r, n, s);
       }},
      {"token_env", tokens,
       [](const Reader& r, const toml::node& n, Sink& s) {
         read_place<&Sink::token, &SecretPlace::variable>("token_env", r, n, s);
       }},
      {"secret_file",
       {K::json},
       [](const Reader& r, const toml::node& n, Sink& s) {
         read_place<&Sink::secret, &SecretPlace::file>("secret_file", r, n, s);
       }},
      {"secret_env",
       {K::json},
       [](const Reader& r, const toml::node& n, Sink& s) {
         read_place<&Sink::secret, &SecretPlace::variable>("secret_env", r, n, s);
       }},
      {"ca_file", web,
       [](const Reader& r, const toml::node& n, Sink& s) {
         if (auto said = r.text("ca_file", n)) s.ca_file = r.path(*said);
       }},
      {"command",
       {K::command},
       [](const Reader& r, const toml::node& n, Sink& s) {
         if (n.as_array() == nullptr)
           return r.wrong_type("command", n, "an array, the program and its arguments (there is no shell)");
         if (auto said = r.texts("command", n)) s.command = *said;
         if (s.command.size() > command_words_max) r.wrong(n.source(), "`command` has more than 64 arguments");
         if (!s.command.empty()) s.command.front() = r.path(s.command.front());
       }},
      {"tty",
       {K::bell},
       [](const Reader& r, const toml::node& n, Sink& s) { read_text<&Sink::tty>("tty", r, n, s); }},
      {"timeout",
       {K::json, K::slack, K::discord, K::teams, K::ntfy, K::gotify, K::command},
       [](const Reader& r, const toml::node& n, Sink& s) {
         const auto ms = r.duration("timeout", n);
         if (!ms) return;
         s.timeout_ms = *ms;
         if (*ms < 100 || *ms > timeout_ms_max) r.wrong(n.source(), "`timeout` must be from 100ms to 1m");
       }},
  };
  return all;
}

bool allowed(const Key& key, SinkKind kind) {
  return key.of.empty() || std::find(key.of.begin(), key.of.end(), kind) != key.of.end();
}

// Checks required and conflicting keys.
void check(const Reader& reader, const toml::table& table, const Sink& sink) {
  const auto wrong = [&](const std::string& why) {
    reader.wrong(table.source(), "sink " + sink.name + ": " + why);
  };
  if (sink.is_web()) {
    const int ways = (sink.url.empty() ? 0 : 1) + (sink.url_at.file.empty() ? 0 : 1) +
                     (sink.url_at.variable.empty() ? 0 : 1);
    if (ways != 1) wrong("set exactly one of `url`, `url_file` and `url_env`");
    if (!sink.url.empty() && !sink.url.starts_with("https://") && !sink.url.starts_with("http://"))
      wrong("`url` must begin with https:// or http://");
    if (sink.url.find('@') != sink.url.npos &&
        sink.url.find('@') < std::min(sink.url.find('/', 8), sink.url.size()))
      wrong("`url` contains a user name or a password: move the URL to `url_file`, or use `token_file`");
  }
  if (!sink.token.file.empty() && !sink.token.variable.empty())
    wrong("set only one of `token_file` and `token_env`");
  if (!sink.secret.file.empty() && !sink.secret.variable.empty())
    wrong("set only one of `secret_file` and `secret_env`");
  if (sink.kind == K::gotify && !sink.token.given()) wrong("gotify needs `token_file` or `token_env`");
  if (sink.kind == K::command && sink.command.empty())
    wrong("`command` is missing: [\"program\", \"argument\"]");
}

}  // namespace

std::optional<Sink> read_sink(const Reader& reader, std::string_view name, const toml::table& table) {
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
    reader.wrong(table.source(), "a sink's name consists of letters, digits, - and _, at most 64");
    return std::nullopt;
  }
  const toml::node* const kind = table.get("kind");
  if (kind == nullptr) {
    reader.wrong(table.source(),
                 "sink " + sink.name +
                     " has no `kind`: desktop, json, slack, discord, teams, ntfy, gotify, command or bell");
    return std::nullopt;
  }
  const auto which = reader.choice("kind", *kind, {std::begin(kind_names), std::end(kind_names)});
  if (!which) return std::nullopt;
  sink.kind = static_cast<SinkKind>(*which);
  for (const auto& [key, node] : table) {
    if (key.str() == "kind") continue;
    const auto known = std::find_if(keys().begin(), keys().end(), [&](const Key& each) {
      return each.name == key.str() && allowed(each, sink.kind);
    });
    if (known != keys().end()) {
      known->read(reader, node, sink);
      continue;
    }
    std::vector<std::string_view> names{"kind"};
    for (const Key& each : keys()) {
      if (allowed(each, sink.kind)) names.push_back(each.name);
    }
    reader.unknown(key, names);
  }
  check(reader, table, sink);
  if (reader.problems.size() > problems) return std::nullopt;
  return sink;
}

}  // namespace earshot::notifier
