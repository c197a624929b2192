#include "serve/http/router.hpp"

#include <simdjson.h>

#include "base/hex.hpp"
#include "base/json_writer.hpp"
#include "serve/auth/secrets.hpp"
#include "serve/http/event_stream.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t token_bytes = 32;

// --- Handlers ---

HttpResponse page(const Request& request, const RequestContext& request_context, ServerContext&) {
  const PageAsset& asset = page_asset(request.path());
  HttpResponse answer;
  answer.content_type = asset.content_type;
  answer.body = asset.body;
  static const std::string etags[] = {etag_of(page_asset("/").body), etag_of(page_asset("/app.js").body),
                                      etag_of(page_asset("/style.css").body)};
  answer.etag = etags[&asset - &page_asset("/")];
  answer.page_policy =
      page_policy(plain_host(request), request_context.caller.transport_kind == TransportKind::tls);
  return or_not_modified(std::move(answer), request.if_none_match);
}

HttpResponse healthz(const Request&, const RequestContext&, ServerContext&) {
  return text_response(200, "ok");
}

/// Lets a client verify this daemon before it sends the token. A page cannot verify, so none may ask.
HttpResponse proof(const Request& request, const RequestContext& request_context, ServerContext& context) {
  constexpr std::string_view known[] = {"nonce"};
  constexpr std::size_t nonce_digits = 32;
  if (!request.origins.empty()) return text_response(403, "browsers may not use this path");
  if (request_context.endpoint.empty()) return text_response(404, "the Unix socket needs no proof");
  Query query = parse_query(request.query());
  query.only(known);
  const std::string_view nonce = query.one("nonce");
  const bool is_nonce = query.pairs.size() == 1 && nonce.size() == nonce_digits && is_hex(nonce);
  if (query.error.empty() && !is_nonce) query.error = "`nonce` is 32 lower-case hex digits";
  if (!query.error.empty()) return text_response(400, query.error);
  return text_response(200, token_proof(context.access.token, nonce, request_context.endpoint));
}

HttpResponse metrics(const Request&, const RequestContext&, ServerContext& context) {
  MetricsPage page;
  if (context.fill_metrics) context.fill_metrics(page);
  HttpResponse answer;
  answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
  answer.body = std::move(page.text);
  return answer;
}

HttpResponse health(const Request&, const RequestContext&, ServerContext& context) {
  Health health;
  if (context.fill_health) context.fill_health(health);
  return json_response(health_json(health));
}

HttpResponse codes(const Request&, const RequestContext& request_context, ServerContext& context) {
  const std::string code = context.codes.make(request_context.now);
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("code", code).member("expires_in", OneTimeCodes::good_for.count());
  json.member("url", context.page_url + "#code=" + code).end_object();
  HttpResponse answer = json_response(body + "\n");
  answer.issued_secret = "a one-time code";
  return answer;
}

HttpResponse with_token(const std::string& token, std::string_view issued_secret) {
  std::string body;
  JsonWriter(body).begin_object().member("token", token).end_object();
  HttpResponse answer = json_response(body + "\n");
  answer.issued_secret = issued_secret;
  return answer;
}

bool is_json(std::string_view content_type) {
  return content_type.substr(0, content_type.find_first_of("; ")) == "application/json";
}

/// Not the type of a form: a browser sends it to another site only after a preflight request.
HttpResponse token(const Request& request, const RequestContext& request_context, ServerContext& context) {
  if (!is_json(request.content_type)) return text_response(415, "send Content-Type: application/json");
  simdjson::dom::parser parser;
  std::string_view code;
  if (parser.parse(request.body.data(), request.body.size(), true)["code"].get(code) != simdjson::SUCCESS)
    return text_response(400, R"(the body is {"code":"…"})");
  if (!context.codes.take(code, request_context.now)) {
    context.counters.refuse(Refusal::code);
    return text_response(401, "the code is wrong, used or expired: run `earshot open` again");
  }
  return with_token(context.access.page_tokens.make(request_context.caller.origin), "a page token");
}

HttpResponse rotate(const Request&, const RequestContext&, ServerContext& context) {
  std::string fresh = random_hex(token_bytes);
  if (!context.callbacks.store_token) return text_response(501, "this daemon does not store a token");
  if (const std::string error = context.callbacks.store_token(fresh); !error.empty())
    return text_response(500, "the token was not changed: " + error);
  context.access.token = std::move(fresh);
  context.access.page_tokens.revoke_all();
  if (context.token_changed) context.token_changed();
  return with_token(context.access.token, "a new owner token");
}

HttpResponse events(const Request& request, const RequestContext&, ServerContext&) {
  return events_response(request.query());
}

HttpResponse websocket(const Request& request, const RequestContext&, ServerContext&) {
  constexpr std::string_view known[] = {"view"};
  Query query = parse_query(request.query());
  query.only(known);
  const bool meta = query.is_meta_view();
  if (!query.error.empty()) return text_response(400, query.error);
  if (!request.upgrade) {
    HttpResponse answer = text_response(426, "this path is a WebSocket: request an upgrade");
    answer.upgrade = "websocket";
    return answer;
  }
  HttpResponse answer;
  answer.kind = HttpResponse::Kind::websocket;
  answer.meta = meta;
  return answer;
}

// --- Routes ---

constexpr std::string_view get = "GET", get_head = "GET, HEAD", post = "POST";  // of the header `Allow`
enum class Open {
  to_all,
  to_owner,
  to_metrics,          // the token of the metrics, and the owner
  to_users,            // and the owner
  to_unauthenticated,  // a token may follow later; a wrong one is refused
};

struct Route {
  std::string_view path, methods;
  Open open;
  HttpResponse (*answer)(const Request&, const RequestContext&, ServerContext&);
};
constexpr Route routes[] = {
    {"/", get_head, Open::to_all, page},
    {"/app.js", get_head, Open::to_all, page},
    {"/style.css", get_head, Open::to_all, page},
    {"/healthz", get_head, Open::to_all, healthz},
    {"/v1/proof", get, Open::to_all, proof},
    {"/metrics", get_head, Open::to_metrics, metrics},
    {"/v1/health", get_head, Open::to_owner, health},
    {"/v1/sessions", get_head, Open::to_users, sessions_response},
    {"/v1/events", get, Open::to_users, events},
    {"/v1/ws", get, Open::to_unauthenticated, websocket},
    {"/v1/codes", post, Open::to_owner, codes},
    {"/v1/token", post, Open::to_all, token},
    {"/v1/token/rotate", post, Open::to_owner, rotate},
};

bool is_allowed(std::string_view method, std::string_view methods) {
  return method == methods || (methods == get_head && (method == "GET" || method == "HEAD"));
}

}  // namespace

std::string_view route_name(std::string_view path) {
  for (const Route& route : routes)
    if (route.path == path) return route.path;
  return "another path";
}

HttpResponse route(const Request& request, const RequestContext& request_context, ServerContext& context) {
  for (const Route& route : routes) {
    if (route.path != request.path()) continue;
    if (!is_allowed(request.method, route.methods)) {
      HttpResponse answer = text_response(405, "method not allowed; use: " + std::string(route.methods));
      answer.allow = route.methods;
      return answer;
    }
    const AuthResult result = request_context.caller.auth_result;
    const bool wrong = result == AuthResult::wrong_token && route.open != Open::to_all;
    const bool is_owners = route.open == Open::to_owner || route.open == Open::to_metrics;
    if ((result == AuthResult::user && is_owners) ||
        (result == AuthResult::metrics && route.open != Open::to_metrics && route.open != Open::to_all)) {
      context.counters.refuse(Refusal::token);
      return text_response(403, result == AuthResult::user ? "only the owner may use this path"
                                                           : "this token may use /metrics only");
    }
    const bool closed = is_owners || route.open == Open::to_users;
    if (wrong || (result == AuthResult::anonymous && closed)) {
      context.counters.refuse(Refusal::token);
      return text_response(
          401, wrong ? "wrong token: it is in the file `token` of the daemon's state directory"
                     : "send `Authorization: Bearer TOKEN`: it is in the file `token` of the daemon's "
                       "state directory");
    }
    return route.answer(request, request_context, context);
  }
  return text_response(404, "no such path; see /");
}

}  // namespace earshot::serve
