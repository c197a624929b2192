#include "config/users.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace earshot::config {
namespace {

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
  const bool is_hash = hash->size() == 64 && hash->find_first_not_of("0123456789abcdef") == hash->npos;
  if (!is_hash) value.fail("`" + std::string(value.key) + "` must be " + expected);
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
      const std::string view = value.text("\"meta\" or \"full\"");
      if (view != "meta" && view != "full") value.fail_type("\"meta\" or \"full\"");
      user.view = view == "full" ? View::full : View::meta;
    } else {
      section.fail_unknown(name, {"token_sha256", "hosts", "projects", "view"});
    }
  }
  if (user.token_sha256.empty())
    section.fail("user `" + user_name + "` needs `token_sha256`, the SHA-256 of a token");
  return user;
}

}  // namespace

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

}  // namespace earshot::config
