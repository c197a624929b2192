#include "serve/http/router.hpp"

#include <simdjson.h>

#include <algorithm>
#include <vector>

#include "agents/agent.hpp"
#include "base/hex.hpp"
#include "base/json_writer.hpp"
#include "serve/auth/secrets.hpp"
#include "serve/http/event_stream.hpp"
#include "serve/http/search.hpp"
#include "serve/http/session_list.hpp"
#include "serve/http/session_metrics.hpp"
#include "serve/http/sign_in_routes.hpp"
#include "serve/slices.hpp"
#include "serve/stream/frames.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t browser_token_bytes = 32;

// --- Handlers ---

HttpResponse page(const Request& request, const RequestContext& request_context, ServerContext&) {
  static const std::vector<std::string> etags = [] {
    std::vector<std::string> all;
    for (const PageAsset& asset : page_assets()) all.push_back(etag_of(asset.body));
    return all;
  }();
  const std::span<const PageAsset> assets = page_assets();
  const auto asset = std::find_if(assets.begin(), assets.end(),
                                  [&](const PageAsset& one) { return one.path == request.path(); });
  if (asset == assets.end()) return text_response(404, "this page has no such part");
  HttpResponse answer;
  answer.content_type = asset->content_type;
  answer.body = asset->body;
  answer.etag = etags[static_cast<std::size_t>(asset - assets.begin())];
  answer.page_policy =
      page_policy(plain_host(request), request_context.caller.transport_kind == TransportKind::tls);
  return or_not_modified(std::move(answer), request.if_none_match);
}

/// The page's icon, with a number of at most two digits.
HttpResponse icon(const Request& request, const RequestContext&, ServerContext&) {
  constexpr std::string_view known[] = {"count"};
  Query query = parse_query(request.query());
  query.only(known);
  const std::string_view count = query.one("count");
  const bool is_count = count.size() <= 2 && count.find_first_not_of("0123456789") == count.npos;
  if (query.error.empty() && (!is_count || query.pairs.size() > 1))
    query.error = "`count` is a number below 100";
  if (!query.error.empty()) return text_response(400, query.error);
  HttpResponse answer;
  answer.content_type = "image/svg+xml";
  answer.body = page_icon(count == "0" || count == "00" ? std::string_view() : count);
  answer.etag = etag_of(answer.body);
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

/// A page with figures of all sessions, which `fill` makes of them.
HttpResponse with_figures(ServerContext& context, std::function<HttpResponse(const SessionFigures&)> fill) {
  HttpResponse sliced;
  sliced.kind = HttpResponse::Kind::sliced;
  sliced.make = [&context, fill = std::move(fill), figures = SessionFigures(context.sessions),
                 last = std::string()](Slice& slice, HttpResponse& made) mutable {
    const auto add = [&](Session& session) { figures.add(session, is_live(session, context.recent)); };
    if (!context.sessions.visit_slice(slice, last, add)) return false;
    made = fill(figures);
    return true;
  };
  return sliced;
}

HttpResponse metrics(const Request&, const RequestContext&, ServerContext& context) {
  return with_figures(context, [&context](const SessionFigures& sessions) {
    MetricsPage page;
    if (context.fill_metrics) context.fill_metrics(page, sessions);
    HttpResponse answer;
    answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    answer.body = std::move(page.text);
    return answer;
  });
}

HttpResponse health(const Request&, const RequestContext&, ServerContext& context) {
  return with_figures(context, [&context](const SessionFigures& sessions) {
    Health health;
    if (context.fill_health) context.fill_health(health, sessions);
    return json_response(health_json(health));
  });
}

HttpResponse rotate(const Request&, const RequestContext&, ServerContext& context) {
  std::string fresh = random_hex(browser_token_bytes);
  if (!context.callbacks.store_token) return text_response(501, "this daemon does not store a token");
  if (const std::string error = context.callbacks.store_token(fresh); !error.empty())
    return text_response(500, "the token was not changed: " + error);
  context.access.token = std::move(fresh);
  sign_out_owner(context);
  if (context.token_changed) context.token_changed();
  std::string body;
  JsonWriter(body).begin_object().member("token", context.access.token).end_object();
  HttpResponse answer = json_response(body + "\n");
  answer.issued = "a new owner token";
  return answer;
}

constexpr std::string_view status_line_path = "/v1/statusline";

HttpResponse no_content() {
  HttpResponse answer;
  answer.status = 204;
  return answer;
}

/// The JSON of a program's status line: numbers that its transcripts do not contain.
HttpResponse status_line(const Request& request, const RequestContext&, ServerContext& context) {
  std::optional<StatusLine> line;
  for (const AgentProgram* program : agent_programs())
    if (const StatusLines* lines = program->status_lines(); lines && !line)
      line = lines->parse_status_line(request.body);
  if (!line) return text_response(400, "the body is not a JSON object");
  if (line->session.empty()) return text_response(400, "the status line names no session");
  if (context.on_status_line) context.on_status_line(*line);
  return no_content();
}

HttpResponse seen(const Request& request, const RequestContext&, ServerContext& context) {
  simdjson::dom::parser parser;
  std::string_view session;
  if (request.body.empty() ||
      parser.parse(request.body.data(), request.body.size(), true)["session"].get(session) !=
          simdjson::SUCCESS ||
      session.empty())
    return text_response(400, R"(the body is {"session":"…"})");
  if (!context.mark_seen || !context.mark_seen(std::string(session)))
    return text_response(404, "there is no such session");
  return no_content();
}

HttpResponse process(const Request& request, const RequestContext&, ServerContext& context) {
  constexpr std::string_view known[] = {"session"};
  Query query = parse_query(request.query());
  query.only(known);
  const std::string name(query.one("session"));
  if (query.error.empty() && name.empty()) query.error = "`session` is missing";
  if (!query.error.empty()) return text_response(400, query.error);
  const auto found =
      context.callbacks.process_of ? context.callbacks.process_of(name) : std::optional<SessionProcess>();
  if (!found) return text_response(404, "no process of this session is known");
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("session", name).member_if_any("program", found->program);
  json.member("pid", found->pid).member("source", found->source).end_object();
  return json_response(body + "\n");
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
  to_socket,           // the owner on the Unix socket
  to_metrics,          // the token of the metrics, and the owner
  to_users,            // and the owner
  to_unauthenticated,  // a token may follow later; a wrong one is refused
};

struct Route {
  std::string_view path, methods;
  Open open;
  HttpResponse (*answer)(const Request&, const RequestContext&, ServerContext&);
  bool to_browsers = true;  // also to a browser that signed in; false: what it could stay signed in with
};
constexpr Route routes[] = {
    {"/", get_head, Open::to_all, page},
    {"/app.js", get_head, Open::to_all, page},
    {"/session.js", get_head, Open::to_all, page},  // parts of the dashboard that it loads later
    {"/highlight.js", get_head, Open::to_all, page},
    {"/style.css", get_head, Open::to_all, page},
    {"/icon.svg", get_head, Open::to_all, icon},
    {"/healthz", get_head, Open::to_all, healthz},
    {"/v1/proof", get, Open::to_all, proof},
    {"/metrics", get_head, Open::to_metrics, metrics},
    {"/v1/health", get_head, Open::to_owner, health},
    {"/v1/sessions", get_head, Open::to_users, sessions},
    {"/v1/search", get_head, Open::to_users, search},
    {"/v1/history", get_head, Open::to_users, history},
    {"/v1/events", get, Open::to_users, events},
    {"/v1/ws", get, Open::to_unauthenticated, websocket},
    {"/v1/codes", post, Open::to_users, create_code, false},
    {"/v1/challenge", get, Open::to_all, create_challenge},
    {"/v1/browsers", get_head, Open::to_users, list_browsers, false},
    {"/v1/browsers/register", post, Open::to_all, register_browser},
    {"/v1/browsers/revoke", post, Open::to_users, revoke_browsers},
    {"/v1/token/rotate", post, Open::to_owner, rotate, false},
    {"/v1/seen", post, Open::to_owner, seen},
    {status_line_path, post, Open::to_socket, status_line},
    {"/v1/process", get, Open::to_socket, process},
};

bool is_allowed(std::string_view method, std::string_view methods) {
  return method == methods || (methods == get_head && (method == "GET" || method == "HEAD"));
}

}  // namespace

std::size_t body_bytes_max(std::string_view path, TransportKind transport_kind, const Limits& limits) {
  const bool is_status_line = path == status_line_path && transport_kind == TransportKind::unix_socket;
  return is_status_line ? request_body_bytes_max : limits.body_bytes_max;
}

std::string_view route_name(std::string_view path) {
  for (const Route& route : routes)
    if (route.path == path) return route.path;
  return "another path";
}

std::optional<HttpResponse> replace_worker(const Request& request) {
  if (!request.wants_worker) return {};
  HttpResponse answer;
  answer.content_type = "text/javascript";
  answer.is_worker = true;
  // A navigation to a URL with a fragment would not load the page.
  answer.body = R"(addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(leave()));
async function leave() {
  const pages = await clients.matchAll({ type: "window" });
  await registration.unregister();
  for (const page of pages) page.navigate(page.url.split("#")[0]).catch(() => {});
}
)";
  return answer;
}

HttpResponse route(const Request& request, const RequestContext& request_context, ServerContext& context) {
  for (const Route& route : routes) {
    if (route.path != request.path()) continue;
    if (!is_allowed(request.method, route.methods)) {
      HttpResponse answer = text_response(405, "method not allowed; use: " + std::string(route.methods));
      answer.allow = route.methods;
      return answer;
    }
    if (route.open == Open::to_socket &&
        request_context.caller.transport_kind != TransportKind::unix_socket) {
      context.counters.refuse(Refusal::token);
      return text_response(403, "this path is served on the Unix socket only");
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
          401,
          wrong ? "wrong token: it is in the file `token` of the daemon's state directory; or this browser "
                  "is not signed in"
                : "send `Authorization: Bearer TOKEN`: it is in the file `token` of the daemon's "
                  "state directory");
    }
    if (!route.to_browsers && !request_context.caller.browser.empty()) {
      context.counters.refuse(Refusal::token);
      return text_response(403, "browsers may not use this path");
    }
    return route.answer(request, request_context, context);
  }
  return text_response(404, "no such path; see /");
}

}  // namespace earshot::serve
