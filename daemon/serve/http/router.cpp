#include "serve/http/router.hpp"

#include <simdjson.h>

#include "serve/auth/secrets.hpp"
#include "serve/http/assets.hpp"
#include "serve/http/event_query.hpp"
#include "serve/http/health.hpp"
#include "serve/http/metrics.hpp"
#include "serve/http/query.hpp"
#include "serve/http/sessions_page.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t token_bytes = 32;

std::string field(std::string_view name, std::string_view value) {
  std::string out = "\"" + std::string(name) + "\":";
  append_string(out, value);
  return out;
}

// --- What is at the paths ---

HttpResponse page(const Request& request, const RequestContext& asker, ServerContext&) {
  const PageAsset& asset = page_asset(request.path());
  HttpResponse answer;
  answer.content_type = asset.content_type;
  answer.body = asset.body;
  static const std::string etags[] = {etag_of(page_asset("/").body), etag_of(page_asset("/app.js").body),
                                      etag_of(page_asset("/style.css").body)};
  answer.etag = etags[&asset - &page_asset("/")];
  answer.page_policy = page_policy(plain_host(request), asker.via == TransportKind::tls);
  return unless_known(std::move(answer), request.if_none_match);
}

HttpResponse healthz(const Request&, const RequestContext&, ServerContext&) { return plain(200, "ok"); }

HttpResponse metrics(const Request&, const RequestContext& asker, ServerContext& shared) {
  Metrics figures;
  figures.codes_outstanding = shared.codes.outstanding(asker.now);
  if (shared.figures) shared.figures(figures);
  HttpResponse answer;
  answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
  answer.body = metrics_text(figures);
  return answer;
}

HttpResponse health(const Request&, const RequestContext&, ServerContext& shared) {
  Health health;
  if (shared.health) shared.health(health);
  return json(health_json(health));
}

HttpResponse codes(const Request&, const RequestContext& asker, ServerContext& shared) {
  const std::string code = shared.codes.make(asker.now);
  HttpResponse answer =
      json("{" + field("code", code) + ",\"expires_in\":" + std::to_string(OneTimeCodes::good_for.count()) +
           "," + field("url", shared.page_url + "#code=" + code) + "}\n");
  answer.hands_out = "a one-time code";
  return answer;
}

HttpResponse with_token(const std::string& token, std::string_view hands_out) {
  HttpResponse answer = json("{" + field("token", token) + "}\n");
  answer.hands_out = hands_out;
  return answer;
}

bool is_json(std::string_view content_type) {
  return content_type.substr(0, content_type.find_first_of("; ")) == "application/json";
}

/// Not that of a form: no other site can have a browser send it without asking us first.
HttpResponse token(const Request& request, const RequestContext& asker, ServerContext& shared) {
  if (!is_json(request.content_type)) return plain(415, "send Content-Type: application/json");
  simdjson::dom::parser parser;
  std::string_view code;
  if (parser.parse(request.body.data(), request.body.size(), true)["code"].get(code) != simdjson::SUCCESS)
    return plain(400, R"(the body is {"code":"…"})");
  if (!shared.codes.take(code, asker.now)) {
    shared.counts.refuse(Refusal::code);
    return plain(401, "this code was used, is too old or wrong: run `earshot open` again");
  }
  return with_token(shared.token, "the owner's token");
}

HttpResponse rotate(const Request&, const RequestContext&, ServerContext& shared) {
  std::string fresh = random_hex(token_bytes);
  if (!shared.outside.keep_token) return plain(501, "this daemon keeps no token");
  if (const std::string error = shared.outside.keep_token(fresh); !error.empty())
    return plain(500, "the token stays as it was: " + error);
  shared.token = std::move(fresh);
  if (shared.token_changed) shared.token_changed();
  return with_token(shared.token, "a new token of the owner's");
}

HttpResponse events(const Request& request, const RequestContext&, ServerContext&) {
  return events_answer(request.query());
}

HttpResponse websocket(const Request& request, const RequestContext& asker, ServerContext&) {
  constexpr std::string_view known[] = {"view"};
  Query query = parse_query(request.query());
  query.only(known);
  const std::string_view view = query.one("view", "full");
  if (query.error.empty() && view != "full" && view != "meta") query.error = "`view` is full or meta";
  if (!query.error.empty()) return plain(400, query.error);
  if (!request.upgrade) {
    HttpResponse answer = plain(426, "this is a WebSocket: ask for an upgrade");
    answer.upgrade = "websocket";
    return answer;
  }
  HttpResponse answer;
  answer.kind = HttpResponse::Kind::websocket;
  answer.authenticated = asker.standing == AuthResult::owner || asker.standing == AuthResult::user;
  answer.meta = view == "meta";
  return answer;
}

// --- Where they are ---

enum class Methods { get, get_head, post };
enum class Open {
  to_all,
  to_owner,
  to_users,    // and to the owner
  to_unknown,  // who has no token may prove later that he is the owner; a wrong one is refused
};

struct Route {
  std::string_view path;
  Methods methods;
  Open open;
  HttpResponse (*answer)(const Request&, const RequestContext&, ServerContext&);
};
constexpr Route routes[] = {
    {"/", Methods::get_head, Open::to_all, page},
    {"/app.js", Methods::get_head, Open::to_all, page},
    {"/style.css", Methods::get_head, Open::to_all, page},
    {"/healthz", Methods::get_head, Open::to_all, healthz},
    {"/metrics", Methods::get_head, Open::to_owner, metrics},
    {"/v1/health", Methods::get_head, Open::to_owner, health},
    {"/v1/sessions", Methods::get_head, Open::to_users, sessions_answer},
    {"/v1/events", Methods::get, Open::to_users, events},
    {"/v1/ws", Methods::get, Open::to_unknown, websocket},
    {"/v1/codes", Methods::post, Open::to_owner, codes},
    {"/v1/token", Methods::post, Open::to_all, token},
    {"/v1/token/rotate", Methods::post, Open::to_owner, rotate},
};

struct Allowed {
  Methods methods;
  std::string_view list;  // of the header `Allow`
};
constexpr Allowed allowed[] = {
    {Methods::get, "GET"}, {Methods::get_head, "GET, HEAD"}, {Methods::post, "POST"}};

bool is_in(std::string_view method, std::string_view list) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(", "), list.size());
    if (list.substr(0, comma) == method) return true;
    list.remove_prefix(std::min(comma + 2, list.size()));
  }
  return false;
}

}  // namespace

std::string_view name_of_path(std::string_view path) {
  for (const Route& route : routes)
    if (route.path == path) return route.path;
  return "another path";
}

HttpResponse route(const Request& request, const RequestContext& asker, ServerContext& shared) {
  for (const Route& route : routes) {
    if (route.path != request.path()) continue;
    const std::string_view list = allowed[static_cast<std::size_t>(route.methods)].list;
    if (!is_in(request.method, list)) {
      HttpResponse answer = plain(405, "here one asks with: " + std::string(list));
      answer.allow = list;
      return answer;
    }
    const bool wrong = asker.standing == AuthResult::wrong_token && route.open != Open::to_all;
    if (asker.standing == AuthResult::user && route.open == Open::to_owner) {
      shared.counts.refuse(Refusal::token);
      return plain(403, "this is the owner's alone");
    }
    const bool closed = route.open == Open::to_owner || route.open == Open::to_users;
    if (wrong || (asker.standing == AuthResult::stranger && closed)) {
      shared.counts.refuse(Refusal::token);
      return plain(401, wrong
                            ? "the token is wrong: it is in the file `token` of the daemon's state directory"
                            : "send `Authorization: Bearer TOKEN`: it is in the file `token` of the daemon's "
                              "state directory");
    }
    return route.answer(request, asker, shared);
  }
  return plain(404, "nothing is here; try /");
}

}  // namespace earshot::serve
