// Paths and who may use them. No socket.
#include "serve/http/router.hpp"

#include <catch2/catch.hpp>

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
    return route(request, {{TransportKind::tcp, auth_result}, now}, context);
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

TEST_CASE("a one-time code is exchanged for a token once") {
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
