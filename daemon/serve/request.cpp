#include "serve/request.hpp"

#include <algorithm>
#include <cctype>

#include "serve/auth.hpp"

namespace earshot::serve {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// `name:port`, where name is a loopback name or the address that we listen on.
bool is_own_authority(std::string_view authority, const Own& own) {
  const std::string port = ":" + std::to_string(own.port);
  if (authority.size() <= port.size() || !authority.ends_with(port)) return false;
  authority.remove_suffix(port.size());
  const bool v6 = own.address.find(':') != std::string::npos;
  const std::string literal = v6 ? "[" + own.address + "]" : own.address;
  return same_word(authority, "localhost") || authority == "127.0.0.1" || authority == "[::1]" ||
         authority == literal;
}

bool is_own_origin(std::string_view origin, const Own& own) {
  constexpr std::string_view scheme = "http://";
  return origin.starts_with(scheme) && is_own_authority(origin.substr(scheme.size()), own);
}

Answer response(unsigned status, std::string body) {
  Answer answer;
  answer.status = status;
  answer.body = std::move(body);
  return answer;
}

constexpr std::string_view page = R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>earshot</title>
<h1>earshot</h1>
<p>This daemon listens to coding agents at work on this machine and tells what happens, as it happens.</p>
<h2>From a terminal</h2>
<pre>earshot ls     # the sessions, and what each is doing now
earshot tail   # what happens, live</pre>
<h2>From a program</h2>
<p>Open a WebSocket at <code>/v1/ws</code> with the subprotocol <code>earshot.v1</code> and the header
<code>Authorization: Bearer &lt;token&gt;</code>; the token is in the file <code>token</code> of the daemon's state
directory. Without the header, the first message is:</p>
<pre>{"type":"hello","token":"&lt;token&gt;"}</pre>
<p>Then ask for what you want to hear:</p>
<pre>{"type":"subscribe","id":"a","filter":{"type":["turn.*"]}}</pre>
<p>The protocol is described in <code>protocol/README.md</code> of the source.</p>
</html>
)";

Answer front_page(const Request&, std::string_view) {
  Answer answer = response(200, std::string(page));
  answer.content_type = "text/html; charset=utf-8";
  return answer;
}

Answer health(const Request&, std::string_view) { return response(200, "ok\n"); }

/// A wrong token is refused here; none at all may still come as the first message.
Answer websocket(const Request& request, std::string_view token) {
  if (!request.upgrade) {
    Answer answer = response(426, "this is a WebSocket: ask for an upgrade\n");
    answer.upgrade = "websocket";
    return answer;
  }
  Answer answer;
  answer.kind = Answer::Kind::websocket;
  if (request.authorizations.empty()) return answer;
  constexpr std::string_view bearer = "bearer ";
  std::string_view given = request.authorizations.front();
  const bool is_bearer = given.size() > bearer.size() && same_word(given.substr(0, bearer.size()), bearer);
  if (is_bearer) given.remove_prefix(bearer.size());
  if (request.authorizations.size() != 1 || !is_bearer || !same_secret(given, token)) {
    return response(401, "the token is wrong: it is in the file `token` of the daemon's state directory\n");
  }
  answer.authenticated = true;
  return answer;
}

struct Route {
  std::string_view path;
  Answer (*answer)(const Request&, std::string_view token);
};
constexpr Route routes[] = {{"/", front_page}, {"/healthz", health}, {"/v1/ws", websocket}};

}  // namespace

Answer judge(const Request& request, const Own& own, std::string_view token) {
  if (request.hosts.size() != 1 || !is_own_authority(request.hosts.front(), own)) {
    return response(403, "the Host is not one of this daemon's\n");
  }
  if (request.origins.size() > 1 ||
      (request.origins.size() == 1 && !is_own_origin(request.origins.front(), own))) {
    return response(403, "the Origin is not this daemon's\n");
  }
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  for (const Route& route : routes) {
    if (route.path != path) continue;
    if (request.method == "GET") return route.answer(request, token);
    Answer answer = response(405, "only GET is answered here\n");
    answer.allow = "GET";
    return answer;
  }
  return response(404, "nothing is here; try /\n");
}

}  // namespace earshot::serve
