#include "serve/auth/browsers.hpp"

#include <simdjson.h>

#include <algorithm>

#include "base/hex.hpp"
#include "base/json_writer.hpp"
#include "serve/auth/p256.hpp"

namespace earshot::serve {
namespace {

constexpr std::int64_t seen_time_max = json_integer_max;
constexpr std::size_t secret_digits = 64;
constexpr std::size_t user_bytes_max = 1024, origin_bytes_max = 1024;

bool read_time(const simdjson::dom::element& json, std::string_view key, std::int64_t& to) {
  return json[key].get(to) == simdjson::SUCCESS && to >= 0 && to <= seen_time_max;
}

bool read_text(const simdjson::dom::element& json, std::string_view key, std::string& to,
               std::size_t bytes_max) {
  std::string_view text;
  if (json[key].get(text) != simdjson::SUCCESS || text.size() > bytes_max) return false;
  to = text;
  return true;
}

std::optional<Browser> read_browser(const simdjson::dom::element& json) {
  Browser browser;
  const bool is_complete = read_text(json, "id", browser.id, Browser::id_digits) &&
                           read_text(json, "name", browser.name, Browser::name_bytes_max) &&
                           read_text(json, "key", browser.key, p256_key_digits) &&
                           read_text(json, "user", browser.user, user_bytes_max) &&
                           read_text(json, "credential", browser.credential, user_bytes_max) &&
                           read_text(json, "origin", browser.origin, origin_bytes_max) &&
                           read_text(json, "secret", browser.secret, secret_digits) &&
                           read_time(json, "created_ms", browser.created_ms) &&
                           read_time(json, "used_ms", browser.used_ms);
  const bool is_valid = is_complete && browser.id.size() == Browser::id_digits && is_hex(browser.id) &&
                        browser.secret.size() == secret_digits && is_hex(browser.secret) &&
                        is_p256_key(browser.key);
  return is_valid ? std::optional(std::move(browser)) : std::nullopt;
}

}  // namespace

bool Browser::use(std::string_view nonce, Challenges::Time now) {
  std::erase_if(used_, [&](const Used& each) { return each.until <= now; });
  if (used_.size() == used_nonces_max) return false;
  if (std::any_of(used_.begin(), used_.end(), [&](const Used& each) { return each.nonce == nonce; }))
    return false;
  used_.push_back({std::string(nonce), Challenges::until(nonce)});
  return true;
}

Browsers::Browsers() : daemon_id_(random_hex(daemon_id_digits / 2)) {}

std::optional<Browsers> Browsers::parse(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  simdjson::dom::array list;
  std::int64_t version = 0;
  Browsers browsers;
  if (parser.parse(text.data(), text.size()).get(json) || !json.is_object()) return std::nullopt;
  if (json["browsers_version"].get(version) || version != 1 || json["browsers"].get(list) ||
      !read_text(json, "daemon_id", browsers.daemon_id_, daemon_id_digits) ||
      browsers.daemon_id_.size() != daemon_id_digits || !is_hex(browsers.daemon_id_))
    return std::nullopt;
  for (const simdjson::dom::element each : list) {
    auto browser = read_browser(each);
    if (!browser || browsers.find(browser->id) != nullptr || browsers.browsers_.size() == browsers_max)
      return std::nullopt;
    browsers.browsers_.push_back(std::move(*browser));
  }
  return browsers;
}

std::string Browsers::text() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object()
      .member("browsers_version", 1)
      .member("daemon_id", daemon_id_)
      .key("browsers")
      .begin_array();
  for (const Browser& browser : browsers_) {
    if (browser.is_temporary) continue;
    json.begin_object().member("id", browser.id).member("name", browser.name).member("key", browser.key);
    json.member("user", browser.user)
        .member("credential", browser.credential)
        .member("origin", browser.origin)
        .member("secret", browser.secret);
    json.member("created_ms", browser.created_ms).member("used_ms", browser.used_ms).end_object();
  }
  json.end_array().end_object();
  return out + "\n";
}

Browser* Browsers::find(std::string_view id) {
  const auto found =
      std::find_if(browsers_.begin(), browsers_.end(), [&](const Browser& each) { return each.id == id; });
  return found == browsers_.end() ? nullptr : &*found;
}

bool Browsers::has_room(std::string_view user) const {
  const auto count = static_cast<std::size_t>(std::count_if(
      browsers_.begin(), browsers_.end(), [&](const Browser& each) { return each.user == user; }));
  return browsers_.size() < browsers_max || count >= per_identity_max;
}

Browsers::Added Browsers::add(Browser browser) {
  const auto known = std::find_if(browsers_.begin(), browsers_.end(), [&](const Browser& each) {
    return each.key == browser.key && each.origin == browser.origin;
  });
  if (known != browsers_.end() && known->user == browser.user && known->credential == browser.credential) {
    known->name = std::move(browser.name);
    known->used_ms = browser.used_ms;
    known->is_temporary = browser.is_temporary;
    return {&*known, {}};  // with the nonces that it has used
  }
  if (known != browsers_.end()) {  // under a new id: connections of the former identity end
    std::string replaced = std::move(known->id);
    browsers_.erase(known);
    Added added = add(std::move(browser));
    added.replaced = std::move(replaced);
    return added;
  }
  std::string replaced;
  auto longest_unused = browsers_.end();
  std::size_t count = 0;
  for (auto it = browsers_.begin(); it != browsers_.end(); ++it) {
    if (it->user != browser.user) continue;
    ++count;
    if (longest_unused == browsers_.end() || it->used_ms < longest_unused->used_ms) longest_unused = it;
  }
  if (count >= per_identity_max) {
    replaced = std::move(longest_unused->id);
    browsers_.erase(longest_unused);
  }
  browser.id = random_hex(Browser::id_digits / 2);
  browsers_.push_back(std::move(browser));
  return {&browsers_.back(), std::move(replaced)};
}

std::vector<std::string> Browsers::remove_if(const std::function<bool(const Browser&)>& is_removed) {
  std::vector<std::string> ids;
  for (const Browser& browser : browsers_)
    if (is_removed(browser)) ids.push_back(browser.id);
  browsers_.remove_if(
      [&](const Browser& browser) { return std::find(ids.begin(), ids.end(), browser.id) != ids.end(); });
  return ids;
}

}  // namespace earshot::serve
