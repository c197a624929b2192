// Who asks: judged before anything else is done with a request. Plain text: no socket.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/response.hpp"

namespace earshot::serve {

/// How a connection came to us.
enum class TransportKind { tcp, unix_socket, tls };

/// Views of the head that is being answered.
struct Request {
  std::string_view method, target;
  std::vector<std::string_view> hosts, origins, authorizations;  // as often as they stand there
  bool upgrade = false;                                          // asks for a WebSocket
  std::string_view content_type = {}, if_none_match = {}, body = {};

  std::string_view path() const { return target.substr(0, target.find('?')); }
  std::string_view query() const;  // behind the question mark
};

/// The addresses that a browser may have used to reach us. Anything else is another site that had its name
/// resolve to this machine (DNS rebinding), or a page that has no business here.
struct OwnAddress {
  std::string address;  // that we listen on: 127.0.0.1, ::1
  std::uint16_t port = 0;
  std::vector<std::string> names = {};  // further ones, of the configuration; for TLS only
};

/// A Host or an Origin that is not ours: 403. On the Unix socket any Host is ours, and no Origin is.
std::optional<HttpResponse> refuse(const Request& request, TransportKind transport_kind,
                                   const OwnAddress& own);

/// Whether the owner asks: by the token, or because the Unix socket is the owner's.
enum class AuthResult { anonymous, wrong_token, owner, user };  // user: by a token that lets see a part
AuthResult authenticate(const Request& request, TransportKind transport_kind, std::string_view token);
/// The token that was shown as a bearer's; empty: none, or not so.
std::string_view bearer_token(const Request& request);

/// Authority of the request, when it can stand in a header of the answer; otherwise empty.
std::string_view plain_host(const Request& request);

}  // namespace earshot::serve
