#include "config/options_users.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "config/options_file.hpp"
#include "config/options_toml.hpp"

namespace earshot {
namespace {

std::vector<std::string> read_patterns(const std::string& file, std::string_view key,
                                       const toml::node& node) {
  constexpr std::string_view wanted = "an array of patterns, such as [\"dev*\"]";
  const toml::array* array = node.as_array();
  if (!array) wrong_type(file, key, node, wanted);
  if (array->empty())
    throw Failure(place(file, node.source()) + "`" + std::string(key) +
                  "` is empty: say which ones he is shown; to show him all, leave the key out; to show him "
                  "nothing, leave the user out");
  std::vector<std::string> patterns;
  for (const toml::node& item : *array) {
    const auto pattern = item.value_exact<std::string>();
    if (!pattern || pattern->empty() || pattern->size() > serve::Filter::pattern_bytes_max)
      wrong_type(file, key, item, wanted);
    patterns.push_back(*pattern);
  }
  return patterns;
}

/// What stands there is not repeated: it may be the token itself.
std::string read_hash(const std::string& file, std::string_view key, const toml::node& node) {
  const std::string how =
      "the SHA-256 of a token, 64 hex digits in lower case, as "
      "`printf %s \"$TOKEN\" | sha256sum` prints it";
  const auto hash = node.value_exact<std::string>();
  if (!hash) wrong_type(file, key, node, how);
  const std::string here = place(file, node.source()) + "`" + std::string(key) + "` is ";
  const bool is_hash = hash->size() == 64 && hash->find_first_not_of("0123456789abcdef") == hash->npos;
  if (!is_hash) throw Failure(here + how + "; what stands here is no such thing");
  for (const std::string_view nothing : {"", "\n"})
    if (*hash == serve::sha256_hex(nothing))
      throw Failure(here +
                    "the SHA-256 of nothing: $TOKEN was not set. Make a token first: "
                    "TOKEN=$(openssl rand -hex 32)");
  return *hash;
}

serve::User read_user(const std::string& file, const std::string& user_name, const toml::node& node) {
  const toml::table* table = node.as_table();
  if (!table) wrong_type(file, user_name, node, "a table, [hub.users." + user_name + "]");
  // The audit's lines call people so: nobody is taken for somebody else.
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '@';
  };
  if (user_name.empty() || user_name.size() > 64 || user_name == "nobody" ||
      !std::all_of(user_name.begin(), user_name.end(), is_plain))
    throw Failure(place(file, node.source()) + "`" + user_name +
                  "` cannot be a user's name: take letters, digits, `.`, `-`, `_` and `@`, and not `nobody`");
  serve::User user;
  user.name = user_name;
  for (const auto& [name, item] : *table) {
    if (name.str() == "token_sha256") {
      user.token_sha256 = read_hash(file, name.str(), item);
    } else if (name.str() == "hosts") {
      user.allowed.host = read_patterns(file, name.str(), item);
    } else if (name.str() == "projects") {
      user.allowed.project = read_patterns(file, name.str(), item);
    } else if (name.str() == "view") {
      const auto view = item.value_exact<std::string>();
      if (view != "meta" && view != "full") wrong_type(file, name.str(), item, "\"meta\" or \"full\"");
      user.view = view == "full" ? View::full : View::meta;
    } else {
      unknown(file, name, {"token_sha256", "hosts", "projects", "view"});
    }
  }
  if (user.token_sha256.empty())
    throw Failure(place(file, node.source()) + "user `" + user_name +
                  "` needs `token_sha256`, the SHA-256 of a token");
  return user;
}

}  // namespace

std::vector<serve::User> read_users(const std::string& file, const toml::node& node) {
  std::vector<serve::User> users;
  const toml::table* table = node.as_table();
  if (!table) wrong_type(file, "users", node, "a table of users, [hub.users.NAME]");
  for (const auto& [name, item] : *table) {
    serve::User user = read_user(file, std::string(name.str()), item);
    for (const serve::User& other : users)
      if (other.token_sha256 == user.token_sha256)
        throw Failure(place(file, item.source()) + "users `" + other.name + "` and `" + user.name +
                      "` have the same token: each needs one of his own");
    users.push_back(std::move(user));
  }
  return users;
}

}  // namespace earshot
