// Paths and who may use them. No socket.
#include "serve/http/router.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "serve/http/session_metrics.hpp"
#include "serve/slices.hpp"

namespace router_test {

using namespace earshot::serve;

namespace {

const std::string token(64, 'a');

struct ServerFixture {
  ServerFixture() : context("dev7", LiveLog::bytes_max_default) {
    context.access.token = token;
    context.page_url = "http://127.0.0.1:7717/";
  }
  HttpResponse ask(std::string_view method, std::string_view target,
                   AuthResult auth_result = AuthResult::owner, std::string_view body = {},
                   std::string_view content_type = "application/json") {
    Request request{method, target, {"127.0.0.1:7717"}, {}, {}, false, content_type, {}, body};
    HttpResponse response = route(request, {{TransportKind::tcp, auth_result}, now}, context);
    if (response.kind != HttpResponse::Kind::sliced) return response;
    HttpResponse made;
    for (bool is_complete = false; !is_complete;) {
      Slice slice;
      is_complete = response.make(slice, made);
    }
    return made;
  }
  HttpResponse ask_socket(std::string_view method, std::string_view target, std::string_view body = {}) {
    Request request{method, target, {"localhost"}, {}, {}, false, {}, {}, body};
    return route(request, {{TransportKind::unix_socket, AuthResult::owner}, now}, context);
  }
  HttpResponse prove(std::string_view target, std::string endpoint = "127.0.0.1:7717",
                     std::vector<std::string_view> origins = {}) {
    return route({"GET", target, {"127.0.0.1:7717"}, std::move(origins), {}},
                 {{TransportKind::tcp, AuthResult::anonymous}, now, std::move(endpoint)}, context);
  }
  ServerContext context;
  std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
};

/// The string value of `name` in a JSON text.
std::string text_after(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":\"";
  const std::size_t at = json.find(key);
  return at == std::string::npos
             ? ""
             : json.substr(at + key.size(), json.find('"', at + key.size()) - at - key.size());
}

}  // namespace

TEST_CASE("each path has its methods and its required permission") {
  ServerFixture fixture;
  struct Row {
    std::string_view method, target;
    unsigned stranger, owner;
  };
  const Row rows[] = {
      {"GET", "/", 200, 200},
      {"HEAD", "/", 200, 200},
      {"GET", "/?x=1", 200, 200},
      {"GET", "/app.js", 200, 200},
      {"GET", "/style.css", 200, 200},
      {"GET", "/icon.svg", 200, 200},
      {"GET", "/icon.svg?count=7", 200, 200},
      {"GET", "/icon.svg?count=100", 400, 400},
      {"GET", "/icon.svg?count=<script>", 400, 400},
      {"GET", "/icon.svg?count=1&count=2", 400, 400},
      {"GET", "/icon.svg?size=7", 400, 400},
      {"GET", "/healthz", 200, 200},
      {"GET", "/metrics", 401, 200},
      {"HEAD", "/metrics", 401, 200},
      {"GET", "/v1/health", 401, 200},
      {"GET", "/v1/sessions", 401, 200},
      {"HEAD", "/v1/sessions", 401, 200},
      {"GET", "/v1/ws", 426, 426},
      {"HEAD", "/v1/ws", 405, 405},
      {"HEAD", "/v1/events", 405, 405},
      {"POST", "/v1/codes", 401, 200},
      {"GET", "/v1/codes", 405, 405},
      {"POST", "/v1/token/rotate", 401, 501},
      {"POST", "/v1/seen", 401, 400},
      {"GET", "/v1/seen", 405, 405},
      {"POST", "/v1/statusline", 403, 403},
      {"GET", "/v1/statusline", 405, 405},
      {"GET", "/v1/process?session=s", 403, 403},
      {"POST", "/v1/process", 405, 405},
      {"POST", "/v1/token", 404, 404},
      {"GET", "/v1/challenge", 200, 200},
      {"POST", "/v1/challenge", 405, 405},
      {"GET", "/v1/browsers", 401, 200},
      {"HEAD", "/v1/browsers", 401, 200},
      {"POST", "/v1/browsers", 405, 405},
      {"POST", "/v1/browsers/register", 400, 400},
      {"POST", "/v1/browsers/revoke", 401, 400},
      {"POST", "/", 405, 405},
      {"OPTIONS", "/v1/sessions", 405, 405},
      {"get", "/", 405, 405},
      {"GET", "/nothing", 404, 404},
      {"GET", "/v1/ws/", 404, 404},
      {"GET", "/v1", 404, 404},
  };
  for (const Row& row : rows) {
    CAPTURE(row.method, row.target);
    REQUIRE(fixture.ask(row.method, row.target, AuthResult::anonymous).status == row.stranger);
    REQUIRE(fixture.ask(row.method, row.target, AuthResult::owner).status == row.owner);
  }
  REQUIRE(fixture.ask("POST", "/").allow == "GET, HEAD");
  REQUIRE(fixture.ask("GET", "/v1/codes").allow == "POST");
  REQUIRE(fixture.ask("HEAD", "/v1/events").allow == "GET");
  for (const std::string_view path : {"/metrics", "/v1/ws", "/v1/sessions"})
    REQUIRE(fixture.ask("GET", path, AuthResult::wrong_token).status == 401);
  REQUIRE(fixture.ask("GET", "/healthz", AuthResult::wrong_token).status == 200);
  REQUIRE(fixture.ask("GET", "/v1/events").kind == HttpResponse::Kind::events);
}

TEST_CASE("fault 141: each session that exists throughout is counted once, in several turns of the loop") {
  ServerFixture fixture;
  earshot::status::Status status;
  status.source = "registry";
  const auto add = [&](const std::string& name) -> Session& {
    Session& session = fixture.context.sessions.find_or_create(name);
    session.status = status;
    return session;
  };
  constexpr std::size_t many = 5000;
  for (std::size_t n = 0; n < many; ++n) add("s" + std::to_string(n));
  std::size_t counted = 0;
  fixture.context.fill_health = [&](Health&, const SessionFigures& sessions) { counted = sessions.shown(); };
  const HttpResponse health = route({"GET", "/v1/health", {"localhost"}, {}, {}},
                                    {{TransportKind::tcp, AuthResult::owner}, fixture.now}, fixture.context);
  std::size_t turns = 0;
  for (HttpResponse made; made.body.empty(); ++turns) {
    add("a" + std::to_string(turns));  // before those that were visited, but for the first one
    Slice slice;
    health.make(slice, made);
  }
  REQUIRE(turns >= many / Slice::steps_max);
  REQUIRE(counted == many + 1);
}

TEST_CASE("fault 141: the pages of a list that grows while it is made have each earlier session once") {
  ServerFixture fixture;
  earshot::status::Status status;
  status.source = "registry";
  status.state = "working";
  const auto add = [&](const std::string& name) {
    fixture.context.sessions.find_or_create(name).status = status;
  };
  constexpr std::size_t many = 2500;
  for (std::size_t n = 0; n < many; ++n) add("s" + std::to_string(n + 10'000));
  std::multiset<std::string> found;
  std::string next;
  std::size_t turns = 0;
  do {
    const std::string target = "/v1/sessions?limit=1000&after=" + next;
    const HttpResponse list = route({"GET", target, {"localhost"}, {}, {}},
                                    {{TransportKind::tcp, AuthResult::owner}, fixture.now}, fixture.context);
    HttpResponse made;
    for (bool is_complete = false; !is_complete; ++turns) {
      add("a" + std::to_string(turns));
      Slice slice;
      is_complete = list.make(slice, made);
    }
    const std::string key = R"("session":"s)";
    for (auto at = made.body.find(key); at != std::string::npos; at = made.body.find(key, at + 1))
      found.insert(made.body.substr(at + key.size(), 5));
    next = text_after(made.body, "next");
  } while (!next.empty());
  REQUIRE(found.size() == many);
  REQUIRE(std::set<std::string>(found.begin(), found.end()).size() == many);
}

TEST_CASE("a status line is accepted on the Unix socket only") {
  ServerFixture fixture;
  std::vector<std::string> sessions;
  fixture.context.on_status_line = [&](const earshot::StatusLine& line) { sessions.push_back(line.session); };
  const auto post = [&](std::string_view body) { return fixture.ask_socket("POST", "/v1/statusline", body); };
  REQUIRE(post(R"({"session_id":"s1"})").status == 204);
  REQUIRE(sessions == std::vector<std::string>{"s1"});
  for (const char* text : {"", "[]", "{", "7", R"({"session_id":"s1"}x)"}) {
    CAPTURE(text);
    REQUIRE(post(text).status == 400);
    REQUIRE(post(text).body == "the body is not a JSON object\n");
  }
  for (const char* text : {"{}", R"({"session_id":""})", R"({"session_id":7})"})
    REQUIRE(post(text).body == "the status line names no session\n");
  REQUIRE(fixture.ask("POST", "/v1/statusline", AuthResult::owner, R"({"session_id":"s1"})").status == 403);
  REQUIRE(sessions.size() == 1);

  const Limits limits;
  REQUIRE(body_bytes_max("/v1/statusline", TransportKind::unix_socket, limits) == 64 << 10);
  REQUIRE(body_bytes_max("/v1/statusline", TransportKind::tcp, limits) == limits.body_bytes_max);
  REQUIRE(body_bytes_max("/v1/seen", TransportKind::unix_socket, limits) == limits.body_bytes_max);
}

TEST_CASE("a session is marked as seen by the owner") {
  ServerFixture fixture;
  std::vector<std::string> sessions;
  fixture.context.mark_seen = [&](const std::string& session) {
    sessions.push_back(session);
    return session == "s1";
  };
  const auto post = [&](std::string_view body, AuthResult who = AuthResult::owner) {
    return fixture.ask("POST", "/v1/seen", who, body).status;
  };
  REQUIRE(post(R"({"session":"s1"})") == 204);
  REQUIRE(post(R"({"session":"s2"})") == 404);
  REQUIRE(fixture.ask_socket("POST", "/v1/seen", R"({"session":"s1"})").status == 204);
  REQUIRE(sessions == std::vector<std::string>{"s1", "s2", "s1"});
  for (const char* text : {"", "{}", "[]", R"({"session":""})", R"({"session":1})"}) {
    CAPTURE(text);
    REQUIRE(post(text) == 400);
  }
  REQUIRE(post(R"({"session":"s1"})", AuthResult::user) == 403);
  REQUIRE(post(R"({"session":"s1"})", AuthResult::metrics) == 403);
  REQUIRE(sessions.size() == 3);
}

TEST_CASE("the process of a session is named on the Unix socket") {
  ServerFixture fixture;
  fixture.context.callbacks.process_of = [](const std::string& session) -> std::optional<SessionProcess> {
    if (session != "s 1") return std::nullopt;
    return SessionProcess{"claude-code", 123, "registry"};
  };
  const HttpResponse found = fixture.ask_socket("GET", "/v1/process?session=s%201");
  REQUIRE(found.status == 200);
  REQUIRE(found.body == R"({"session":"s 1","program":"claude-code","pid":123,"source":"registry"})"
                        "\n");
  REQUIRE(fixture.ask_socket("GET", "/v1/process?session=s2").status == 404);
  REQUIRE(fixture.ask_socket("GET", "/v1/process").status == 400);
  REQUIRE(fixture.ask_socket("GET", "/v1/process?session=s&pid=1").status == 400);
}

TEST_CASE("an upgrade is accepted without a token, but not with a wrong one") {
  ServerFixture fixture;
  const auto upgrade = [&](std::string_view target, AuthResult auth_result) {
    return route({"GET", target, {}, {}, {}, true}, {{TransportKind::tcp, auth_result}, fixture.now},
                 fixture.context);
  };
  const HttpResponse owner = upgrade("/v1/ws", AuthResult::owner);
  REQUIRE(owner.kind == HttpResponse::Kind::websocket);
  REQUIRE_FALSE(owner.meta);
  const HttpResponse stranger = upgrade("/v1/ws?view=meta", AuthResult::anonymous);
  REQUIRE(stranger.kind == HttpResponse::Kind::websocket);
  REQUIRE(stranger.meta);
  REQUIRE(upgrade("/v1/ws", AuthResult::wrong_token).status == 401);
  REQUIRE(upgrade("/v1/ws?view=some", AuthResult::owner).status == 400);
  REQUIRE(upgrade("/v1/ws?token=" + token, AuthResult::anonymous).status == 400);
}

TEST_CASE("fault 87: the daemon proves that it has the token, for one nonce and its own endpoint") {
  ServerFixture fixture;
  const std::string path = "/v1/proof?nonce=", nonce = "00112233445566778899aabbccddeeff";
  const HttpResponse proof = fixture.prove(path + nonce);
  REQUIRE(proof.status == 200);
  REQUIRE(proof.content_type.starts_with("text/plain"));
  REQUIRE(proof.body == "315f3b5ee41a036965f47389341b9ef708f7b1d8298c2ef49de5945375229ba9\n");
  REQUIRE(fixture.prove(path + nonce, "[::1]:7717").body ==
          "9665f430d290406b9ca06edba2ae00e1d20627a5209bd7a1418eca5223054cb2\n");
  for (const std::string& wrong :
       {std::string("/v1/proof"), path, path + nonce.substr(1), path + nonce + "0", path + nonce + "&x=1",
        path + nonce + "&nonce=" + nonce, path + "00112233445566778899AABBCCDDEEFF"}) {
    CAPTURE(wrong);
    REQUIRE(fixture.prove(wrong).status == 400);
  }
  REQUIRE(fixture.prove(path + nonce, "127.0.0.1:7717", {"http://127.0.0.1:7717"}).status == 403);
  REQUIRE(fixture.prove(path + nonce, "").status == 404);
}

TEST_CASE("fault 144: a service worker is replaced by one that removes itself, at any path") {
  Request request{"GET", "/w.js?x", {"127.0.0.1:7717"}, {}, {}};
  REQUIRE_FALSE(replace_worker(request));
  request.wants_worker = true;
  const auto answer = replace_worker(request);
  REQUIRE(answer);
  REQUIRE((answer->status == 200 && answer->content_type == "text/javascript"));
  for (const std::string_view step : {"skipWaiting()", "registration.unregister()", "navigate("})
    REQUIRE(answer->body.find(step) != std::string::npos);
  const std::string bytes = encode(*answer, {});
  for (const std::string_view header :
       {"Cache-Control: no-store", "Service-Worker-Allowed: /", "X-Content-Type-Options: nosniff",
        "Clear-Site-Data: \"cache\"", "Content-Security-Policy: default-src 'none'"})
    REQUIRE(bytes.find(header) != std::string::npos);
}

TEST_CASE("fault 95: the metrics token reads /metrics and nothing else") {
  ServerFixture fixture;
  const std::string metrics_token(64, 'b');
  fixture.context.access.metrics_token = metrics_token;
  const std::string authorization = "Bearer " + metrics_token;
  const auto ask = [&](std::string_view method, std::string_view target) {
    const Request request{method, target, {"127.0.0.1:7717"}, {}, {authorization}, true, "application/json"};
    const Caller caller = fixture.context.access.identify(request, TransportKind::tcp);
    REQUIRE(caller.auth_result == AuthResult::metrics);
    REQUIRE_FALSE(caller.is_authenticated());
    return route(request, {caller, fixture.now}, fixture.context).status;
  };
  REQUIRE(ask("GET", "/metrics") == 200);
  REQUIRE(ask("GET", "/healthz") == 200);
  for (const std::string_view path : {"/v1/health", "/v1/sessions", "/v1/events", "/v1/ws"})
    REQUIRE(ask("GET", path) == 403);
  for (const std::string_view path : {"/v1/codes", "/v1/token/rotate"}) REQUIRE(ask("POST", path) == 403);
  REQUIRE(fixture.context.access.identify(metrics_token, "", TransportKind::tcp).auth_result ==
          AuthResult::wrong_token);  // in a hello
}

TEST_CASE("a rotated token is stored before connections are notified") {
  ServerFixture fixture;
  std::string kept;
  int told = 0;
  fixture.context.callbacks.store_token = [&](const std::string& fresh) {
    kept = fresh;
    return std::string();
  };
  fixture.context.token_changed = [&] { ++told; };
  const HttpResponse answer = fixture.ask("POST", "/v1/token/rotate");
  REQUIRE(answer.status == 200);
  REQUIRE(kept.size() == 64);
  REQUIRE(kept != token);
  REQUIRE(fixture.context.access.token == kept);
  REQUIRE(text_after(answer.body, "token") == kept);
  REQUIRE(told == 1);

  fixture.context.callbacks.store_token = [](const std::string&) { return std::string("the disk is full"); };
  const HttpResponse failed = fixture.ask("POST", "/v1/token/rotate");
  REQUIRE(failed.status == 500);
  REQUIRE(failed.body.find("the disk is full") != std::string::npos);
  REQUIRE(fixture.context.access.token == kept);
  REQUIRE(told == 1);
}

TEST_CASE("the query of an event stream is the equivalent subscription") {
  ServerFixture fixture;
  const auto stream = [&](std::string_view target) { return fixture.ask("GET", target); };
  REQUIRE(stream("/v1/events").subscription ==
          R"({"type":"subscribe","id":"events","filter":{},"snapshot":true,"all":false})");
  REQUIRE(
      stream(
          "/v1/events?type=turn.*&type=tool.*&project=%2Fhome%2Fu&deliver=state&snapshot=false&all&after=a:1"
          "&after=b:2&on_lag=catch_up&view=meta")
          .subscription ==
      R"({"type":"subscribe","id":"events","filter":{"project":["/home/u"],"type":["turn.*","tool.*"]},)"
      R"("deliver":"state","on_lag":"catch_up","after":["a:1","b:2"],"snapshot":false,"all":true})");
  REQUIRE(stream("/v1/events?project=%22%5C").subscription.find(R"(["\"\\"])") != std::string::npos);
  REQUIRE(stream("/v1/events?view=meta").meta);
  for (const std::string_view wrong : {"typ=x", "all=maybe", "view=half", "type=%zz", "token=secret"}) {
    CAPTURE(wrong);
    REQUIRE(stream("/v1/events?" + std::string(wrong)).status == 400);
  }
}

TEST_CASE("the page may connect only to the daemon that served it") {
  ServerFixture fixture;
  const auto policy = [&](std::vector<std::string_view> hosts, TransportKind transport_kind) {
    return route({"GET", "/", std::move(hosts), {}, {}},
                 {{transport_kind, AuthResult::anonymous}, fixture.now}, fixture.context)
        .page_policy;
  };
  REQUIRE(policy({"localhost:7717"}, TransportKind::tcp).find("connect-src 'self' ws://localhost:7717;") !=
          std::string::npos);
  REQUIRE(policy({"dev7.example:1"}, TransportKind::tls).find("connect-src 'self' wss://dev7.example:1;") !=
          std::string::npos);
  REQUIRE(policy({"x; script-src *"}, TransportKind::unix_socket).find("connect-src 'self';") !=
          std::string::npos);
  REQUIRE(policy({"a", "b"}, TransportKind::unix_socket).find("connect-src 'self';") != std::string::npos);
  const HttpResponse page = fixture.ask("GET", "/app.js");
  REQUIRE(page.content_type == "text/javascript; charset=utf-8");
  REQUIRE(page.etag != fixture.ask("GET", "/").etag);
  Request again{"GET", "/app.js", {"localhost:7717"}, {}, {}};
  again.if_none_match = page.etag;
  const HttpResponse known =
      route(again, {{TransportKind::tcp, AuthResult::anonymous}, fixture.now}, fixture.context);
  REQUIRE(known.status == 304);
  REQUIRE(known.body.empty());
  REQUIRE(known.etag == page.etag);
}

TEST_CASE("the page's icon shows a number") {
  ServerFixture fixture;
  const HttpResponse plain = fixture.ask("GET", "/icon.svg"), none = fixture.ask("GET", "/icon.svg?count=0"),
                     many = fixture.ask("GET", "/icon.svg?count=12");
  REQUIRE(plain.content_type == "image/svg+xml");
  REQUIRE(plain.body.find("<text") == std::string::npos);
  REQUIRE(none.body == plain.body);
  REQUIRE(many.body.find(">12</text>") != std::string::npos);
  REQUIRE(many.etag != plain.etag);
  REQUIRE(plain.page_policy.empty());
  REQUIRE(fixture.ask("GET", "/").page_policy.find("img-src 'self';") != std::string::npos);
}

}  // namespace router_test
