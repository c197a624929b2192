#include "serve/http/sign_in_routes.hpp"

#include <simdjson.h>

#include <utility>

#include "base/hex.hpp"
#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"
#include "serve/auth/p256.hpp"

namespace earshot::serve {
namespace {

namespace dom = simdjson::dom;

bool is_json(std::string_view content_type) {
  return content_type.substr(0, content_type.find_first_of("; ")) == "application/json";
}

bool is_utf8(std::string_view text) {
  std::size_t bad = 0;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text, bad);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// {"code", "message"}, as in `error` frames: the page explains the code in its own words.
HttpResponse error_response(unsigned status, std::string_view code, std::string_view message) {
  std::string body;
  JsonWriter(body).begin_object().member("code", code).member("message", message).end_object();
  HttpResponse answer = json_response(body + "\n");
  answer.status = status;
  return answer;
}

/// The only origin at which a browser can sign in; empty: any of the daemon's names, which TLS verifies.
/// `localhost` may be another listener's: ::1 is tried first.
std::string required_origin(const RequestContext& request_context) {
  if (request_context.caller.transport_kind != TransportKind::tcp) return {};
  return "http://" + request_context.endpoint;
}

bool read_text(const dom::object& json, std::string_view key, std::string& to) {
  std::string_view text;
  if (json[key].get(text) != simdjson::SUCCESS) return false;
  to = text;
  return true;
}

std::optional<Registration> read_registration(std::string_view body) {
  dom::parser parser;
  dom::object json;
  Registration read;
  if (parser.parse(body.data(), body.size(), true).get(json) != simdjson::SUCCESS) return std::nullopt;
  const bool is_complete = read_text(json, "nonce", read.nonce) && read_text(json, "key", read.key) &&
                           read_text(json, "name", read.name) && read_text(json, "proof", read.proof) &&
                           read_text(json, "signature", read.signature);
  dom::element temporary;
  const bool has_temporary = json["temporary"].get(temporary) == simdjson::SUCCESS;
  if (has_temporary && temporary.get(read.is_temporary) != simdjson::SUCCESS) return std::nullopt;
  return is_complete ? std::optional(std::move(read)) : std::nullopt;
}

/// Absent: it is well-formed.
std::optional<HttpResponse> refuse_registration(const Registration& asked,
                                                const RequestContext& request_context,
                                                const ServerContext& context) {
  const std::string& origin = request_context.caller.origin;
  if (origin.empty())
    return error_response(400, "bad_request", "the request has no Origin: it is not a browser's");
  const std::string required = required_origin(request_context);
  if (!required.empty() && origin != required)
    return error_response(400, "wrong_origin", "a browser can sign in at " + required + "/ only");
  if (!context.access.challenges.is_valid(asked.nonce, request_context.now))
    return error_response(401, "bad_challenge", "the challenge is not this daemon's, or has expired");
  if (asked.name.size() > Browser::name_bytes_max || !is_utf8(asked.name))
    return error_response(400, "bad_request",
                          "`name` is UTF-8 of at most " + std::to_string(Browser::name_bytes_max) + " bytes");
  if (!is_p256_key(asked.key))
    return error_response(400, "bad_request", "`key` is a point of P-256 in 130 lower-case hex digits");
  return std::nullopt;
}

HttpResponse refuse_code(OneTimeCodes::Result result) {
  switch (result) {
    case OneTimeCodes::Result::used:
      return error_response(401, "code_used", "the code was already used: run `earshot open` again");
    case OneTimeCodes::Result::expired:
      return error_response(401, "code_expired", "the code is older than a minute: run `earshot open` again");
    case OneTimeCodes::Result::taken:
    case OneTimeCodes::Result::unknown:
      break;
  }
  return error_response(401, "code_unknown", "the code is not this daemon's: run `earshot open` again");
}

void store(HttpResponse& answer, std::string not_stored) {
  answer.kind = HttpResponse::Kind::stored;
  answer.not_stored = std::move(not_stored);
}

void sign_out(ServerContext& context, const std::vector<std::string>& ids) {
  if (!context.browser_removed) return;
  for (const std::string& id : ids) context.browser_removed(id);
}

/// Whether the caller may see and revoke this browser.
bool is_theirs(const Caller& caller, const Browser& browser) {
  if (!caller.browser.empty()) return browser.id == caller.browser;
  return caller.user == nullptr || browser.user == caller.user->name;
}

}  // namespace

HttpResponse create_code(const Request&, const RequestContext& request_context, ServerContext& context) {
  const User* const user = request_context.caller.user;
  const std::string code = context.codes.make(request_context.now, user ? std::string_view(user->name) : "");
  const std::string& page = context.welcome_url.empty() ? context.page_url : context.welcome_url;
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("code", code).member("expires_in", OneTimeCodes::good_for.count());
  json.member("url", page.empty() ? std::string() : page + "#code=" + code).end_object();
  HttpResponse answer = json_response(body + "\n");
  answer.issued = "a one-time code";
  return answer;
}

HttpResponse create_challenge(const Request& request, const RequestContext& request_context,
                              ServerContext& context) {
  constexpr std::string_view known[] = {"browser", "nonce"};
  constexpr std::size_t asked_digits = 32;
  Query query = parse_query(request.query());
  query.only(known);
  const std::string_view asked = query.one("nonce");
  if (query.error.empty() && !query.pairs.empty() && (asked.size() != asked_digits || !is_hex(asked)))
    query.error = "`nonce` is 32 lower-case hex digits";
  if (!query.error.empty()) return error_response(400, "bad_request", query.error);
  AccessPolicy& access = context.access;
  const std::string nonce = access.challenges.make(request_context.now);
  const Browser* const browser = access.browsers.find(query.one("browser"));
  std::string body, proof;
  if (browser != nullptr)
    proof = hmac_sha256(browser->secret,
                        challenge_message(access.browsers.daemon_id(), browser->origin, asked, nonce));
  JsonWriter json(body);
  json.begin_object().member("daemon_id", access.browsers.daemon_id()).member("nonce", nonce);
  json.member("expires_in", Challenges::good_for.count()).member_if_any("proof", proof);
  json.member_if_any("origin", required_origin(request_context)).end_object();
  return json_response(body + "\n");
}

/// Not the type of a form: a browser sends it to another site only after a preflight request.
HttpResponse register_browser(const Request& request, const RequestContext& request_context,
                              ServerContext& context) {
  if (!is_json(request.content_type)) return text_response(415, "send Content-Type: application/json");
  const auto asked = request.body.empty() ? std::nullopt : read_registration(request.body);
  if (!asked)
    return error_response(400, "bad_request", "the body has `nonce`, `key`, `name`, `proof` and `signature`");
  if (auto refused = refuse_registration(*asked, request_context, context)) return std::move(*refused);
  AccessPolicy& access = context.access;
  const std::string& origin = request_context.caller.origin;
  const std::string message = registration_message(access.browsers.daemon_id(), origin, *asked);
  const OneTimeCodes::Taken code = context.codes.take(message, asked->proof, request_context.now);
  if (code.result != OneTimeCodes::Result::taken) {
    context.counters.refuse(Refusal::code);
    return refuse_code(code.result);
  }
  if (!p256_verifies(asked->key, message, asked->signature)) {
    context.counters.refuse(Refusal::code);
    return error_response(401, "bad_signature", "the signature is not the key's");
  }
  if (!access.browsers.has_room(code.user))
    return error_response(503, "limit", "too many browsers are signed in: see `earshot browsers`");
  Browser browser;
  browser.name = asked->name;
  browser.key = asked->key;
  browser.user = code.user;
  browser.credential = access.credential_of(code.user);
  browser.origin = origin;
  browser.created_ms = browser.used_ms = wall_now_ms();
  browser.is_temporary = asked->is_temporary;
  const Browsers::Added added = access.browsers.add(std::move(browser));
  if (!added.replaced.empty()) sign_out(context, {added.replaced});
  const std::string& id = added.browser->id;
  added.browser->secret =
      hmac_sha256(code.code, secret_message(access.browsers.daemon_id(), origin, id, asked->nonce));
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("browser", id);
  json.member("proof", hmac_sha256(code.code, registered_message(access.browsers.daemon_id(), origin, id,
                                                                 asked->nonce)));
  json.end_object();
  HttpResponse answer = json_response(body + "\n");
  answer.issued = "the sign-in of browser " + id + " as " + (code.user.empty() ? "the owner" : code.user);
  store(answer, "the browser is signed in until the daemon stops, as it could not be stored");
  return answer;
}

HttpResponse list_browsers(const Request&, const RequestContext& request_context, ServerContext& context) {
  const Caller& caller = request_context.caller;
  const AccessPolicy& access = context.access;
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("browsers").begin_array();
  for (const Browser& browser : access.browsers.all()) {
    if (!is_theirs(caller, browser)) continue;
    const bool is_tls = browser.origin.starts_with("https:");
    const View view = access.view_of(browser.user, is_tls ? TransportKind::tls : TransportKind::tcp);
    json.begin_object().member("browser", browser.id).member("name", browser.name);
    json.member_if_any("user", browser.user).member("view", view == View::meta ? "meta" : "full");
    json.member("origin", browser.origin).member("created", format_time_if_valid(browser.created_ms));
    json.member("last_used", format_time_if_valid(browser.used_ms));
    if (browser.is_temporary) json.member("temporary", true);
    json.end_object();
  }
  json.end_array().end_object();
  return json_response(body + "\n");
}

HttpResponse revoke_browsers(const Request& request, const RequestContext& request_context,
                             ServerContext& context) {
  dom::parser parser;
  dom::object json;
  std::string id;
  bool all = false;
  const bool is_object =
      !request.body.empty() &&
      parser.parse(request.body.data(), request.body.size(), true).get(json) == simdjson::SUCCESS;
  if (!is_object || (!read_text(json, "browser", id) && (json["all"].get(all) != simdjson::SUCCESS || !all)))
    return text_response(400, R"(the body is {"browser":"…"} or {"all":true})");
  const Caller caller = request_context.caller;
  const auto ids = context.access.browsers.remove_if(
      [&](const Browser& browser) { return is_theirs(caller, browser) && (all || browser.id == id); });
  if (ids.empty() && !all) return text_response(404, "there is no such browser");
  std::string body;
  JsonWriter(body).begin_object().member("revoked", ids.size()).end_object();
  HttpResponse answer = json_response(body + "\n");
  answer.issued =
      "the revocation of " + (all ? std::to_string(ids.size()) + " browsers" : "browser " + ids.front());
  store(answer, "revoked until the daemon stops, as this could not be stored");
  sign_out(context, ids);
  return answer;
}

void sign_out_owner(ServerContext& context) {
  context.codes.revoke({});
  sign_out(context,
           context.access.browsers.remove_if([](const Browser& browser) { return browser.user.empty(); }));
  if (context.callbacks.store_browsers) context.callbacks.store_browsers([](const std::string&) {});
}

}  // namespace earshot::serve
