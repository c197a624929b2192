// Who may ask for what: Host, Origin, token, path and method. No socket.
#include "serve/http/request.hpp"

#include <catch2/catch.hpp>

#include "serve/http/router.hpp"

using namespace earshot::serve;

namespace {

const std::string token(64, 'a');

struct ServerFixture {
  ServerFixture() : context("dev7", LiveLog::bytes_max_default) {
    context.token = token;
    context.page_url = "http://127.0.0.1:7717/";
  }
  HttpResponse ask(std::string_view method, std::string_view target,
                   AuthResult auth_result = AuthResult::owner, std::string_view body = {},
                   std::string_view content_type = "application/json") {
    Request request{method, target, {"127.0.0.1:7717"}, {}, {}, false, content_type, {}, body};
    return route(request, {TransportKind::tcp, auth_result, now}, context);
  }
  ServerContext context;
  std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
};

unsigned judged(std::vector<std::string_view> hosts, std::vector<std::string_view> origins,
                TransportKind transport_kind, const OwnAddress& own) {
  const auto refused = refuse({"GET", "/", std::move(hosts), std::move(origins), {}}, transport_kind, own);
  return refused ? refused->status : 200;
}

/// What stands behind `"name":"` in a JSON text.
std::string text_after(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":\"";
  const std::size_t at = json.find(key);
  return at == std::string::npos
             ? ""
             : json.substr(at + key.size(), json.find('"', at + key.size()) - at - key.size());
}

}  // namespace

TEST_CASE("over TCP the Host is a loopback name with our port, and the Origin is ours or absent") {
  const OwnAddress own{"127.0.0.1", 7717};
  struct Row {
    std::vector<std::string_view> hosts, origins;
    unsigned status;
  };
  const Row rows[] = {
      {{"127.0.0.1:7717"}, {}, 200},
      {{"localhost:7717"}, {}, 200},
      {{"LocalHost:7717"}, {}, 200},
      {{"[::1]:7717"}, {}, 200},
      {{}, {}, 403},
      {{"127.0.0.1"}, {}, 403},
      {{"127.0.0.1:80"}, {}, 403},
      {{"evil.example:7717"}, {}, 403},
      {{"localhost.evil.example:7717"}, {}, 403},
      {{"evil-localhost:7717"}, {}, 403},
      {{"0.0.0.0:7717"}, {}, 403},
      {{":7717"}, {}, 403},
      {{"localhost:7717", "localhost:7717"}, {}, 403},
      {{"localhost:7717"}, {"http://localhost:7717"}, 200},
      {{"localhost:7717"}, {"http://127.0.0.1:7717"}, 200},
      {{"localhost:7717"}, {"https://localhost:7717"}, 403},
      {{"localhost:7717"}, {"http://localhost:3000"}, 403},
      {{"localhost:7717"}, {"http://evil.example"}, 403},
      {{"localhost:7717"}, {"http://localhost:7717.evil.example"}, 403},
      {{"localhost:7717"}, {"http://evil-localhost:7717"}, 403},
      {{"localhost:7717"}, {"http://evil.localhost:7717"}, 403},
      {{"localhost:7717"}, {"http://evil.example/localhost:7717"}, 403},
      {{"localhost:7717"}, {"http://evil-127.0.0.1:7717"}, 403},
      {{"localhost:7717"}, {"null"}, 403},
      {{"localhost:7717"}, {""}, 403},
      {{"localhost:7717"}, {"http://localhost:7717", "http://evil.example"}, 403},
  };
  for (const Row& row : rows) {
    CAPTURE(row.hosts, row.origins);
    REQUIRE(judged(row.hosts, row.origins, TransportKind::tcp, own) == row.status);
  }
  REQUIRE(judged({"127.0.0.5:1"}, {}, TransportKind::tcp, {"127.0.0.5", 1}) == 200);
  REQUIRE(judged({"dev7.example:7717"}, {}, TransportKind::tcp, {"127.0.0.1", 7717, {"dev7.example"}}) ==
          403);
}

TEST_CASE("over TLS the names of the configuration are ours, too") {
  const OwnAddress own{"0.0.0.0", 7717, {"dev7.example"}};
  REQUIRE(judged({"dev7.example:7717"}, {}, TransportKind::tls, own) == 200);
  REQUIRE(judged({"Dev7.Example:7717"}, {"https://dev7.example:7717"}, TransportKind::tls, own) == 200);
  REQUIRE(judged({"dev7.example:7717"}, {"http://dev7.example:7717"}, TransportKind::tls, own) == 403);
  REQUIRE(judged({"dev7.example"}, {}, TransportKind::tls, own) == 403);
  REQUIRE(judged({"evil.dev7.example:7717"}, {}, TransportKind::tls, own) == 403);
  REQUIRE(judged({"localhost:7717"}, {"https://localhost:7717"}, TransportKind::tls, own) == 200);
  const OwnAddress usual_port{"0.0.0.0", 443, {"dev7.example"}};
  REQUIRE(judged({"dev7.example"}, {"https://dev7.example"}, TransportKind::tls, usual_port) == 200);
  REQUIRE(judged({"evil.example"}, {}, TransportKind::tls, usual_port) == 403);
}

TEST_CASE("on the Unix socket any Host is right, and no Origin is") {
  const OwnAddress own{"127.0.0.1", 7717};
  REQUIRE(judged({"localhost"}, {}, TransportKind::unix_socket, own) == 200);
  REQUIRE(judged({"anything.example:1"}, {}, TransportKind::unix_socket, own) == 200);
  REQUIRE(judged({}, {}, TransportKind::unix_socket, own) == 200);
  REQUIRE(judged({"localhost"}, {"http://localhost"}, TransportKind::unix_socket, own) == 403);
}

TEST_CASE("the owner has the right token, or comes by the Unix socket") {
  const auto auth_result = [](std::vector<std::string_view> authorizations,
                              TransportKind transport_kind = TransportKind::tcp) {
    return authenticate({"GET", "/", {}, {}, std::move(authorizations)}, transport_kind, "right");
  };
  REQUIRE(auth_result({}) == AuthResult::anonymous);
  REQUIRE(auth_result({"Bearer right"}) == AuthResult::owner);
  REQUIRE(auth_result({"bearer right"}) == AuthResult::owner);
  for (const std::string_view wrong :
       {"Bearer wrong", "Basic right", "", "Bearer", "Bearer ", "Bearer righ", "Bearer right ", "right"}) {
    CAPTURE(wrong);
    REQUIRE(auth_result({wrong}) == AuthResult::wrong_token);
  }
  REQUIRE(auth_result({"Bearer right", "Bearer right"}) == AuthResult::wrong_token);
  REQUIRE(auth_result({"Bearer right"}, TransportKind::tls) == AuthResult::owner);
  REQUIRE(auth_result({}, TransportKind::tls) == AuthResult::anonymous);
  REQUIRE(auth_result({}, TransportKind::unix_socket) == AuthResult::owner);
}

TEST_CASE("each path has its methods and its door") {
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
      {"GET", "/v1/token", 405, 405},
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

TEST_CASE("an upgrade is granted to the owner, and to whoever may still prove to be the owner") {
  ServerFixture fixture;
  const auto upgrade = [&](std::string_view target, AuthResult auth_result) {
    return route({"GET", target, {}, {}, {}, true}, {TransportKind::tcp, auth_result, fixture.now},
                 fixture.context);
  };
  const HttpResponse owner = upgrade("/v1/ws", AuthResult::owner);
  REQUIRE(owner.kind == HttpResponse::Kind::websocket);
  REQUIRE(owner.authenticated);
  REQUIRE_FALSE(owner.meta);
  const HttpResponse stranger = upgrade("/v1/ws?view=meta", AuthResult::anonymous);
  REQUIRE(stranger.kind == HttpResponse::Kind::websocket);
  REQUIRE_FALSE(stranger.authenticated);
  REQUIRE(stranger.meta);
  REQUIRE(upgrade("/v1/ws", AuthResult::wrong_token).status == 401);
  REQUIRE(upgrade("/v1/ws?view=some", AuthResult::owner).status == 400);
  REQUIRE(upgrade("/v1/ws?token=" + token, AuthResult::anonymous).status == 400);
}

TEST_CASE("a one-time code is traded for the token once") {
  ServerFixture fixture;
  const std::string made = fixture.ask("POST", "/v1/codes").body;
  const std::string code = text_after(made, "code");
  REQUIRE(code.size() == 64);
  REQUIRE(made.find("\"expires_in\":60,") != std::string::npos);
  REQUIRE(text_after(made, "url") == "http://127.0.0.1:7717/#code=" + code);

  const std::string body = "{\"code\":\"" + code + "\"}";
  const auto trade = [&](std::string_view text, std::string_view type = "application/json") {
    return fixture.ask("POST", "/v1/token", AuthResult::anonymous, text, type);
  };
  REQUIRE(trade(body, "text/plain").status == 415);
  REQUIRE(trade(body, "").status == 415);
  REQUIRE(trade("", "application/json").status == 400);
  REQUIRE(trade("[]").status == 400);
  REQUIRE(trade("{\"code\":7}").status == 400);
  REQUIRE(trade("{\"code\":\"\"}").status == 401);
  const HttpResponse good = trade(body, "application/json; charset=utf-8");
  REQUIRE(good.status == 200);
  REQUIRE(text_after(good.body, "token") == token);
  REQUIRE(trade(body).status == 401);

  const std::string late = text_after(fixture.ask("POST", "/v1/codes").body, "code");
  fixture.now += OneTimeCodes::good_for;
  REQUIRE(trade("{\"code\":\"" + late + "\"}").status == 401);
}

TEST_CASE("a new token is kept first, and told to the connections then") {
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
  REQUIRE(fixture.context.token == kept);
  REQUIRE(text_after(answer.body, "token") == kept);
  REQUIRE(told == 1);

  fixture.context.callbacks.store_token = [](const std::string&) { return std::string("the disk is full"); };
  const HttpResponse failed = fixture.ask("POST", "/v1/token/rotate");
  REQUIRE(failed.status == 500);
  REQUIRE(failed.body.find("the disk is full") != std::string::npos);
  REQUIRE(fixture.context.token == kept);
  REQUIRE(told == 1);
}

TEST_CASE("the live stream's query is the subscription that it stands for") {
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

TEST_CASE("the page may talk to nobody but the daemon that it came from") {
  ServerFixture fixture;
  const auto policy = [&](std::vector<std::string_view> hosts, TransportKind transport_kind) {
    return route({"GET", "/", std::move(hosts), {}, {}}, {transport_kind, AuthResult::anonymous, fixture.now},
                 fixture.context)
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
      route(again, {TransportKind::tcp, AuthResult::anonymous, fixture.now}, fixture.context);
  REQUIRE(known.status == 304);
  REQUIRE(known.body.empty());
  REQUIRE(known.etag == page.etag);
}
