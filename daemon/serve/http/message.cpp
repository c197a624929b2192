#include "serve/http/message.hpp"

#include <algorithm>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/url/parse_query.hpp>
#include <charconv>
#include <ctime>
#include <sstream>

#include "base/hex.hpp"
#include "base/text.hpp"
#include "serve/auth/secrets.hpp"

namespace earshot::serve {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::string_view default_policy =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr const char* retry_after_seconds = "1";
constexpr std::size_t etag_digits = 32;  // of a SHA-256

beast::string_view view(std::string_view text) { return {text.data(), text.size()}; }

bool same_word(std::string_view a, std::string_view b) { return beast::iequals(view(a), view(b)); }

/// `name:port`, where name is a loopback name, the listener's address, or (with TLS) a configured name.
/// Browsers omit port 443.
bool is_own_authority(std::string_view authority, TransportKind transport_kind, const OwnAddress& own) {
  constexpr std::uint16_t tls_port = 443;
  const std::string port = ":" + std::to_string(own.port);
  const bool tls = transport_kind == TransportKind::tls;
  if (authority.size() > port.size() && authority.ends_with(port)) {
    authority.remove_suffix(port.size());
  } else if (!tls || own.port != tls_port) {
    return false;
  }
  const bool v6 = own.address.find(':') != std::string::npos;
  const std::string literal = v6 ? "[" + own.address + "]" : own.address;
  if (same_word(authority, "localhost") || authority == "127.0.0.1" || authority == "[::1]" ||
      authority == literal)
    return true;
  return tls && std::any_of(own.names.begin(), own.names.end(),
                            [&](const std::string& name) { return same_word(authority, name); });
}

bool is_own_origin(std::string_view origin, TransportKind transport_kind, const OwnAddress& own) {
  const std::string_view scheme = transport_kind == TransportKind::tls ? "https://" : "http://";
  return origin.starts_with(scheme) && is_own_authority(origin.substr(scheme.size()), transport_kind, own);
}

bool is_text(std::string_view bytes) {
  while (!bytes.empty()) {
    std::size_t bad = 0;
    const std::size_t length = utf8_length(bytes, bad);
    if (length == 0 || bytes.front() == '\0') return false;
    bytes.remove_prefix(length);
  }
  return true;
}

/// Whether `If-None-Match` contains the tag, or is `*`.
bool matches_etag(std::string_view list, std::string_view etag) {
  if (etag.empty()) return false;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());  // our own tags contain none
    std::string_view one = trim(list.substr(0, comma));
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one == etag || one == "*") return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

// --- Requests ---

std::string_view Request::query() const {
  const std::size_t mark = target.find('?');
  return mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
}

std::optional<HttpResponse> refuse(const Request& request, TransportKind transport_kind,
                                   const OwnAddress& own) {
  if (transport_kind == TransportKind::unix_socket) {
    if (!request.origins.empty())
      return text_response(403, "requests on the Unix socket must not have an Origin");
    return {};
  }
  if (request.hosts.size() != 1 || !is_own_authority(request.hosts.front(), transport_kind, own)) {
    return text_response(403,
                         transport_kind == TransportKind::tls
                             ? "the Host is not one of this daemon's; its owner can add it to `names` in "
                               "earshot.toml"
                             : "the Host is not one of this daemon's");
  }
  if (request.origins.size() > 1 ||
      (request.origins.size() == 1 && !is_own_origin(request.origins.front(), transport_kind, own))) {
    return text_response(403, "the Origin is not this daemon's");
  }
  return {};
}

std::string_view bearer_token(const Request& request) {
  constexpr std::string_view bearer = "bearer ";
  if (request.authorizations.size() != 1) return {};
  const std::string_view given = request.authorizations.front();
  if (given.size() <= bearer.size() || !same_word(given.substr(0, bearer.size()), bearer)) return {};
  return given.substr(bearer.size());
}

std::string origin_of(const Request& request, TransportKind transport_kind) {
  if (!request.origins.empty()) return std::string(request.origins.front());
  if (request.hosts.size() != 1) return {};
  return (transport_kind == TransportKind::tls ? "https://" : "http://") + std::string(request.hosts.front());
}

AuthResult authenticate(const Request& request, TransportKind transport_kind, std::string_view token) {
  if (transport_kind == TransportKind::unix_socket) return AuthResult::owner;
  if (request.authorizations.empty()) return AuthResult::anonymous;
  const std::string_view given = bearer_token(request);
  return !given.empty() && same_secret(given, token) ? AuthResult::owner : AuthResult::wrong_token;
}

std::string_view plain_host(const Request& request) {
  if (request.hosts.size() != 1) return {};
  const std::string_view host = request.hosts.front();
  const bool plain = std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == ':' || c == '[' || c == ']';
  });
  return plain ? host : std::string_view();
}

// --- Queries ---

std::string_view Query::one(std::string_view key, std::string_view fallback) const {
  for (auto it = pairs.rbegin(); it != pairs.rend(); ++it) {
    if (it->first == key) return it->second;
  }
  return fallback;
}

std::vector<std::string> Query::all(std::string_view key) const {
  std::vector<std::string> values;
  for (const auto& [name, value] : pairs) {
    if (name == key) values.push_back(value);
  }
  return values;
}

bool Query::flag(std::string_view key, bool fallback) {
  if (!has(key)) return fallback;
  const std::string_view word = one(key);
  if (word == "true" || word == "1" || word.empty()) return true;
  if (word == "false" || word == "0") return false;
  if (error.empty()) error = "`" + std::string(key) + "` is true or false";
  return fallback;
}

std::size_t Query::number(std::string_view key, std::size_t fallback, std::size_t min, std::size_t max) {
  if (!has(key)) return fallback;
  const std::string_view word = one(key);
  std::size_t value = 0;
  const auto [end, ec] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (ec == std::errc() && end == word.data() + word.size() && value >= min && value <= max) return value;
  if (error.empty())
    error =
        "`" + std::string(key) + "` is a number from " + std::to_string(min) + " to " + std::to_string(max);
  return fallback;
}

bool Query::is_meta_view() {
  const std::string_view view = one("view", "full");
  if (error.empty() && view != "full" && view != "meta") error = "`view` is full or meta";
  return view == "meta";
}

void Query::only(std::span<const std::string_view> known) {
  for (const auto& [name, value] : pairs) {
    if (!error.empty() || std::find(known.begin(), known.end(), name) != known.end()) continue;
    error = "unknown key `" + name + "`; known keys:";
    for (const std::string_view one : known) error.append(" ").append(one);
  }
}

Query parse_query(std::string_view text) {
  Query query;
  const auto refuse = [&](std::string error) {
    query.error = std::move(error);
    return query;
  };
  if (text.empty()) return query;
  const std::string terminated(text);  // Boost.URL 1.81 reads up to a NUL
  const auto parsed = boost::urls::parse_query(view(terminated));
  if (!parsed) return refuse("the query must be percent-encoded UTF-8");
  const boost::urls::encoding_opts options(true);  // `+` is a space
  for (const auto& pair : *parsed) {
    if (pair.key.empty() && !pair.has_value) continue;
    if (query.pairs.size() == Query::pairs_max)
      return refuse("more than " + std::to_string(Query::pairs_max) + " keys");
    std::string key = pair.key.decode(options), value = pair.value.decode(options);
    if (!is_text(key) || !is_text(value)) return refuse("the query must be percent-encoded UTF-8");
    query.pairs.emplace_back(std::move(key), std::move(value));
  }
  return query;
}

// --- Responses ---

HttpResponse text_response(unsigned status, std::string_view text) {
  HttpResponse response;
  response.status = status;
  response.body.append(text).append("\n");
  return response;
}

HttpResponse json_response(std::string body) {
  HttpResponse response;
  response.content_type = "application/json";
  response.body = std::move(body);
  return response;
}

std::string etag_of(std::string_view body) { return '"' + sha256_hex(body).substr(0, etag_digits) + '"'; }

HttpResponse or_not_modified(HttpResponse response, std::string_view if_none_match) {
  if (!matches_etag(if_none_match, response.etag)) return response;
  response.status = 304;
  response.body.clear();
  return response;
}

namespace {

/// RFC 9110, 5.6.7. The daemon never leaves the locale `C`.
std::string http_date(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

}  // namespace

std::string encode(const HttpResponse& response, const Delivery& delivery) {
  using http::field;
  const bool stream = response.kind == HttpResponse::Kind::events;
  const bool has_body = response.status != 304 && response.status != 204;
  const bool is_page = !response.page_policy.empty();
  http::response<http::empty_body> head(static_cast<http::status>(response.status), 11);
  const auto set = [&](auto name, std::string_view value) { head.set(name, view(value)); };
  set(field::date, http_date(delivery.now));
  set(field::server, delivery.server);
  if (has_body) set(field::content_type, response.content_type);
  if (stream && !delivery.http_1_0) set(field::transfer_encoding, "chunked");
  if (!stream && has_body) set(field::content_length, std::to_string(response.body.size()));
  if (!response.etag.empty()) set(field::etag, response.etag);
  // A page may be cached if it is revalidated; session data must not be stored.
  set(field::cache_control, is_page ? "no-cache" : "no-store");
  set("Content-Security-Policy", is_page ? response.page_policy : default_policy);
  if (response.is_worker) {  // what the browser has cached may be of the other program, too
    set("Service-Worker-Allowed", "/");
    set("Clear-Site-Data", "\"cache\"");
  }
  set("X-Content-Type-Options", "nosniff");
  set(field::x_frame_options, "DENY");
  set("Referrer-Policy", "no-referrer");
  set("Cross-Origin-Opener-Policy", "same-origin");
  set("Cross-Origin-Resource-Policy", "same-origin");
  if (response.status == 401) set(field::www_authenticate, "Bearer");
  if (response.status == 503 || response.status == 429) set(field::retry_after, retry_after_seconds);
  if (!response.allow.empty()) set(field::allow, response.allow);
  const bool upgrade = !response.upgrade.empty();
  if (upgrade) set(field::upgrade, response.upgrade);
  std::string connection = delivery.keep_alive ? (delivery.http_1_0 ? "keep-alive" : "") : "close";
  if (upgrade) connection += connection.empty() ? "Upgrade" : ", Upgrade";
  if (!connection.empty()) set(field::connection, connection);
  std::ostringstream out;
  out << head.base();
  std::string bytes = std::move(out).str();
  if (!delivery.head && has_body && !stream) bytes += response.body;
  return bytes;
}

}  // namespace earshot::serve
