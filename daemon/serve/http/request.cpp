#include "serve/http/request.hpp"

#include <algorithm>
#include <cctype>

#include "serve/auth/secrets.hpp"

namespace earshot::serve {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// `name:port`, where name is a loopback name, the address that we listen on, or (with TLS) one of the
/// configuration. A browser leaves the port out where it is TLS's own.
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

}  // namespace

std::string_view Request::query() const {
  const std::size_t mark = target.find('?');
  return mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
}

std::optional<HttpResponse> refuse(const Request& request, TransportKind transport_kind,
                                   const OwnAddress& own) {
  if (transport_kind == TransportKind::unix_socket) {
    if (!request.origins.empty())
      return text_response(403, "no page has business on this socket: send no Origin");
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

}  // namespace earshot::serve
