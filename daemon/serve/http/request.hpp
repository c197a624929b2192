// A request's head, and the checks of Host, Origin and token. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/response.hpp"

namespace earshot::serve {

/// The kind of listener that accepted a connection.
enum class TransportKind { tcp, unix_socket, tls };

/// Views of the current request.
struct Request {
  std::string_view method, target;
  std::vector<std::string_view> hosts, origins, authorizations;  // all values
  bool upgrade = false;                                          // asks for a WebSocket
  std::string_view content_type = {}, if_none_match = {}, body = {};

  std::string_view path() const { return target.substr(0, target.find('?')); }
  std::string_view query() const;  // behind the question mark
};

/// The addresses of this daemon. Another Host may be a DNS rebinding attack, another Origin a foreign page.
struct OwnAddress {
  std::string address;  // of the listener
  std::uint16_t port = 0;
  std::vector<std::string> names = {};  // configured, for TLS only
};

/// A foreign Host or Origin: 403. On the Unix socket any Host is accepted, and no Origin.
std::optional<HttpResponse> refuse(const Request& request, TransportKind transport_kind,
                                   const OwnAddress& own);

/// The result of checking the token; on the Unix socket the client is the owner.
enum class AuthResult { anonymous, wrong_token, owner, user };  // user: of a hub, with a token of its own
AuthResult authenticate(const Request& request, TransportKind transport_kind, std::string_view token);
/// The token of the Authorization header; empty: none.
std::string_view bearer_token(const Request& request);

/// The Host, if it is safe in a response header; otherwise empty.
std::string_view plain_host(const Request& request);

}  // namespace earshot::serve
