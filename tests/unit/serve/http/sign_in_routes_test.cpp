// Signing browsers in and out, without a socket.
#include <catch2/catch.hpp>

#include "base/json_writer.hpp"
#include "serve/http/router.hpp"
#include "unit/serve/auth/test_browser.hpp"

namespace sign_in_routes_test {

using namespace earshot;
using namespace earshot::serve;

namespace {

const std::string origin = "http://127.0.0.1:7717";

/// The string value of `name` in a JSON text.
std::string text_after(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":\"";
  const std::size_t at = json.find(key);
  return at == std::string::npos
             ? ""
             : json.substr(at + key.size(), json.find('"', at + key.size()) - at - key.size());
}

struct SignInFixture {
  SignInFixture() : context("dev7", LiveLog::bytes_max_default) {
    context.access.token = std::string(64, 'a');
    context.access.users.push_back({"ada", sha256_hex("token of ada"), {}, View::meta});
    context.page_url = origin + "/";
    context.browser_removed = [this](const std::string& id) { removed.push_back(id); };
    context.callbacks.store_token = [](const std::string&) { return std::string(); };
  }
  HttpResponse ask(std::string_view method, std::string_view target, Caller caller,
                   std::string_view body = {}, std::string_view content_type = "application/json") {
    Request request{method, target, {"127.0.0.1:7717"}, {}, {}, false, content_type, {}, body};
    return route(request, {std::move(caller), now, endpoint}, context);
  }
  Caller anonymous(std::string from = origin) const {
    Caller caller{kind, AuthResult::anonymous};
    caller.origin = std::move(from);
    return caller;
  }
  Caller owner() const { return {TransportKind::unix_socket, AuthResult::owner}; }
  Caller ada() const { return {kind, AuthResult::user, View::meta, &context.access.users.front()}; }
  std::string code(const Caller& caller) { return text_after(ask("POST", "/v1/codes", caller).body, "code"); }
  std::string code() { return code(owner()); }
  std::string nonce() { return text_after(ask("GET", "/v1/challenge", anonymous()).body, "nonce"); }
  const std::string& daemon_id() const { return context.access.browsers.daemon_id(); }

  Registration registration(const std::string& code, const std::string& at = origin) {
    Registration made{nonce(), browser.public_key(), "Chrome on Linux", {}, {}};
    return proven(made, code, at);
  }
  Registration proven(Registration made, const std::string& code, const std::string& at = origin) const {
    const std::string message = registration_message(daemon_id(), at, made);
    made.proof = hmac_sha256(code, message);
    made.signature = browser.sign(message);
    return made;
  }
  HttpResponse send(const Registration& made, std::string from = origin,
                    std::string_view type = "application/json") {
    std::string body;
    JsonWriter json(body);
    json.begin_object().member("nonce", made.nonce).member("key", made.key).member("name", made.name);
    json.member("proof", made.proof).member("signature", made.signature);
    json.member("temporary", made.is_temporary).end_object();
    return ask("POST", "/v1/browsers/register", anonymous(std::move(from)), body, type);
  }
  /// The id of a browser that has signed in.
  std::string sign_in(const Caller& as) {
    const HttpResponse answer = send(registration(code(as)));
    REQUIRE(answer.status == 200);
    return text_after(answer.body, "browser");
  }
  SignIn answer(const std::string& id, const std::string& purpose = "hello", const std::string& at = origin) {
    return browser.answer(id, nonce(), purpose, daemon_id(), at);
  }
  Caller identify(const SignIn& given, const std::string& purpose = "hello", const std::string& at = origin) {
    return context.access.identify(given, purpose, at, kind, now);
  }
  bool is_signed_in(const std::string& id) { return identify(answer(id)).is_authenticated(); }

  ServerContext context;
  test::TestBrowser browser;
  std::vector<std::string> removed;
  TransportKind kind = TransportKind::tcp;
  std::string endpoint = "127.0.0.1:7717";
  Clock::time_point now{std::chrono::hours(1)};
};

}  // namespace

TEST_CASE("a one-time code signs a browser in, which then answers challenges") {
  SignInFixture fixture;
  const HttpResponse made = fixture.ask("POST", "/v1/codes", fixture.owner());
  const std::string code = text_after(made.body, "code");
  REQUIRE(code.size() == 64);
  REQUIRE(made.body.find("\"expires_in\":60,") != std::string::npos);
  REQUIRE(text_after(made.body, "url") == origin + "/#code=" + code);
  const HttpResponse challenge = fixture.ask("GET", "/v1/challenge", fixture.anonymous());
  REQUIRE(text_after(challenge.body, "daemon_id") == fixture.daemon_id());
  REQUIRE(text_after(challenge.body, "origin") == origin);

  const Registration registration = fixture.registration(code);
  const HttpResponse answer = fixture.send(registration);
  REQUIRE(answer.status == 200);
  REQUIRE(answer.kind == HttpResponse::Kind::stored);
  const std::string id = text_after(answer.body, "browser");
  REQUIRE(text_after(answer.body, "proof") ==
          hmac_sha256(code, registered_message(fixture.daemon_id(), origin, id, registration.nonce)));
  REQUIRE(answer.body.find(code) == std::string::npos);
  REQUIRE(answer.body.find(fixture.context.access.token) == std::string::npos);

  const Caller caller = fixture.identify(fixture.answer(id));
  REQUIRE(caller.auth_result == AuthResult::owner);
  REQUIRE(caller.browser == id);
  REQUIRE(caller.view == View::full);
  REQUIRE_FALSE(caller.is_by_owner_token());
  REQUIRE(fixture.send(fixture.registration(code)).body.find("code_used") != std::string::npos);
}

TEST_CASE("a challenge proves to a registered browser that the daemon is the one that made its code") {
  SignInFixture fixture;
  const std::string code = fixture.code();
  const Registration registration = fixture.registration(code);
  const std::string id = text_after(fixture.send(registration).body, "browser");
  const std::string secret =
      hmac_sha256(code, secret_message(fixture.daemon_id(), origin, id, registration.nonce));
  const std::string asked = "00112233445566778899aabbccddeeff";
  const auto ask = [&](const std::string& query) {
    return fixture.ask("GET", "/v1/challenge" + query, fixture.anonymous());
  };
  const HttpResponse known = ask("?browser=" + id + "&nonce=" + asked);
  REQUIRE(text_after(known.body, "proof") ==
          hmac_sha256(secret, challenge_message(fixture.daemon_id(), origin, asked,
                                                text_after(known.body, "nonce"))));
  REQUIRE(known.body.find(secret) == std::string::npos);
  REQUIRE(ask("?browser=0123456789abcdef&nonce=" + asked).body.find("proof") == std::string::npos);
  REQUIRE(ask("").body.find("proof") == std::string::npos);
  for (const std::string& wrong :
       {"?browser=" + id, "?browser=" + id + "&nonce=", "?nonce=" + asked + "0",
        std::string("?nonce=00112233445566778899AABBCCDDEEFF"), "?x=1&nonce=" + asked})
    REQUIRE(ask(wrong).status == 400);
  REQUIRE(fixture.ask("GET", "/v1/browsers", fixture.owner()).body.find(secret) == std::string::npos);
}

TEST_CASE("a code that is unknown, used or expired is refused in words") {
  SignInFixture fixture;
  const auto error = [&](const Registration& made) {
    const HttpResponse answer = fixture.send(made);
    REQUIRE(answer.status == 401);
    return text_after(answer.body, "code");
  };
  const std::string code = fixture.code();
  REQUIRE(error(fixture.registration(std::string(64, '0'))) == "code_unknown");
  Registration with_code = fixture.registration(code);
  with_code.proof = code;  // the code itself is no proof
  REQUIRE(error(with_code) == "code_unknown");
  Registration other_key = fixture.registration(code);
  other_key.key = test::TestBrowser().public_key();  // whoever relays a proof cannot replace the key
  REQUIRE(error(other_key) == "code_unknown");
  Registration other_name = fixture.registration(code);
  other_name.name = "Firefox";
  REQUIRE(error(other_name) == "code_unknown");
  REQUIRE(error(fixture.registration(code, "http://127.0.0.1:1")) ==
          "code_unknown");  // signed for another origin
  fixture.now += OneTimeCodes::good_for;
  REQUIRE(error(fixture.registration(code)) == "code_expired");
  REQUIRE(fixture.context.access.browsers.all().empty());
  REQUIRE(fixture.context.counters.refusals[static_cast<std::size_t>(Refusal::code)] == 6);
}

TEST_CASE("a registration must be signed with its key, for a valid challenge") {
  SignInFixture fixture;
  const std::string code = fixture.code();
  Registration late = fixture.registration(code);
  fixture.now += std::chrono::seconds(30);
  const Registration early = fixture.registration(code);
  fixture.now += std::chrono::seconds(30);
  REQUIRE(text_after(fixture.send(late).body, "code") == "bad_challenge");
  REQUIRE(text_after(fixture.send(early).body, "code") == "code_expired");
  const std::string fresh = fixture.code();
  Registration unsigned_one = fixture.registration(fresh);
  unsigned_one.signature = std::string(128, '0');
  REQUIRE(text_after(fixture.send(unsigned_one).body, "code") == "bad_signature");
  REQUIRE(text_after(fixture.send(fixture.registration(fresh)).body, "code") ==
          "code_used");  // not guessed at twice
  REQUIRE(fixture.context.access.browsers.all().empty());
}

TEST_CASE("a malformed registration is refused") {
  SignInFixture fixture;
  const std::string code = fixture.code();
  const auto proven = [&](const std::string& name, const std::string& key) {
    Registration made = fixture.registration(code);
    made.name = name;
    made.key = key;
    return fixture.send(fixture.proven(made, code)).status;
  };
  const std::string key = fixture.browser.public_key();
  REQUIRE(proven(std::string(65, 'x'), key) == 400);
  REQUIRE(proven("x", key.substr(2)) == 400);
  REQUIRE(proven("x", std::string(130, '0')) == 400);
  REQUIRE(fixture.send(fixture.registration(code), origin, "text/plain").status == 415);
  REQUIRE(fixture.send(fixture.registration(code), "").status == 400);
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{"), std::string(R"({"nonce":7})"),
        std::string(R"({"nonce":"","key":"","name":"","proof":""})"),
        std::string(R"({"nonce":"","key":"","name":"","proof":"","signature":"","temporary":1})"),
        std::string("{\"nonce\":\"\xff\"}"), std::string(4096, '[')})
    REQUIRE(fixture.ask("POST", "/v1/browsers/register", fixture.anonymous(), text).status == 400);
  REQUIRE(proven(std::string(64, 'x'), key) == 200);
}

TEST_CASE("without TLS a browser signs in at the address of the listener only") {
  SignInFixture fixture;
  const std::string code = fixture.code(), local = "http://localhost:7717";
  const HttpResponse refused = fixture.send(fixture.registration(code, local), local);
  REQUIRE(refused.status == 400);
  REQUIRE(text_after(refused.body, "code") == "wrong_origin");
  REQUIRE(text_after(refused.body, "message").find(origin) != std::string::npos);
  fixture.kind = TransportKind::tls;
  fixture.endpoint = "192.0.2.1:7717";
  const std::string secure = "https://hub.example:7717";
  const HttpResponse accepted = fixture.send(fixture.registration(code, secure), secure);
  REQUIRE(accepted.status == 200);
  const std::string id = text_after(accepted.body, "browser");
  REQUIRE(fixture.identify(fixture.answer(id, "hello", secure), "hello", secure).view == View::meta);
  REQUIRE_FALSE(fixture.identify(fixture.answer(id)).is_authenticated());
}

TEST_CASE("an answer is valid once, for its purpose, origin, daemon, browser and key") {
  SignInFixture fixture;
  const std::string id = fixture.sign_in(fixture.owner());
  const SignIn once = fixture.answer(id);
  REQUIRE(fixture.identify(once).is_authenticated());
  REQUIRE_FALSE(fixture.identify(once).is_authenticated());
  REQUIRE_FALSE(fixture.identify(fixture.answer(id), "GET /v1/sessions").is_authenticated());
  REQUIRE_FALSE(fixture.identify(fixture.answer(id, "GET /v1/sessions")).is_authenticated());
  const std::string other = "http://127.0.0.1:7718";
  REQUIRE_FALSE(fixture.identify(fixture.answer(id, "hello", other)).is_authenticated());
  REQUIRE_FALSE(fixture.identify(fixture.answer(id, "hello", other), "hello", other).is_authenticated());
  REQUIRE_FALSE(fixture.identify(fixture.answer(id), "hello", "").is_authenticated());
  REQUIRE_FALSE(fixture.identify(fixture.answer("0123456789abcdef")).is_authenticated());
  REQUIRE_FALSE(fixture.identify(fixture.answer("")).is_authenticated());
  const SignIn of_other_key =
      test::TestBrowser().answer(id, fixture.nonce(), "hello", fixture.daemon_id(), origin);
  REQUIRE_FALSE(fixture.identify(of_other_key).is_authenticated());
  const SignIn of_other_daemon =
      fixture.browser.answer(id, fixture.nonce(), "hello", std::string(32, '0'), origin);
  REQUIRE_FALSE(fixture.identify(of_other_daemon).is_authenticated());
  const SignIn of_other_nonce =
      fixture.browser.answer(id, Challenges().make(fixture.now), "hello", fixture.daemon_id(), origin);
  REQUIRE_FALSE(fixture.identify(of_other_nonce).is_authenticated());
  const SignIn late = fixture.answer(id);
  fixture.now += Challenges::good_for;
  REQUIRE_FALSE(fixture.identify(late).is_authenticated());
  REQUIRE(fixture.is_signed_in(id));
}

TEST_CASE("a browser has the present rights of the user whose code it used") {
  SignInFixture fixture;
  const std::string id = fixture.sign_in(fixture.ada());
  std::vector<User>& users = fixture.context.access.users;
  const Caller caller = fixture.identify(fixture.answer(id));
  REQUIRE(caller.auth_result == AuthResult::user);
  REQUIRE(caller.user == &users.front());
  REQUIRE(caller.view == View::meta);
  REQUIRE(caller.name() == "ada in browser " + id);
  users.front().view = View::full;
  REQUIRE(fixture.identify(fixture.answer(id)).view == View::full);
  users.front().token_sha256 = sha256_hex("another token");
  REQUIRE_FALSE(fixture.is_signed_in(id));
  users.front().token_sha256 = sha256_hex("token of ada");
  REQUIRE(fixture.is_signed_in(id));
  users.clear();
  REQUIRE_FALSE(fixture.is_signed_in(id));
}

TEST_CASE("browsers are listed and revoked by their own identity, and all by the owner") {
  SignInFixture fixture;
  const std::string of_owner = fixture.sign_in(fixture.owner());
  fixture.browser = test::TestBrowser();
  const std::string of_ada = fixture.sign_in(fixture.ada());
  const std::string all = fixture.ask("GET", "/v1/browsers", fixture.owner()).body;
  REQUIRE(all.find(of_owner) != std::string::npos);
  REQUIRE(all.find(of_ada) != std::string::npos);
  REQUIRE(all.find(fixture.browser.public_key()) == std::string::npos);
  const std::string hers = fixture.ask("GET", "/v1/browsers", fixture.ada()).body;
  REQUIRE(hers.find(of_owner) == std::string::npos);
  REQUIRE(hers.find(R"("user":"ada","view":"meta")") != std::string::npos);
  REQUIRE(fixture.ask("GET", "/v1/browsers", fixture.anonymous()).status == 401);

  const auto revoke = [&](const Caller& caller, const std::string& body) {
    return fixture.ask("POST", "/v1/browsers/revoke", caller, body);
  };
  REQUIRE(revoke(fixture.anonymous(), R"({"all":true})").status == 401);
  REQUIRE(revoke(fixture.ada(), "{\"browser\":\"" + of_owner + "\"}").status == 404);
  for (const char* text : {"", "{}", "[]", R"({"all":false})", R"({"browser":7})"})
    REQUIRE(revoke(fixture.owner(), text).status == 400);
  REQUIRE(fixture.removed.empty());
  const HttpResponse one = revoke(fixture.ada(), R"({"all":true})");
  REQUIRE(one.body == "{\"revoked\":1}\n");
  REQUIRE(one.kind == HttpResponse::Kind::stored);
  REQUIRE(fixture.removed == std::vector<std::string>{of_ada});
  REQUIRE_FALSE(fixture.is_signed_in(of_ada));
  REQUIRE(revoke(fixture.owner(), "{\"browser\":\"" + of_owner + "\"}").status == 200);
  REQUIRE(revoke(fixture.owner(), "{\"browser\":\"" + of_owner + "\"}").status == 404);
  REQUIRE(revoke(fixture.owner(), R"({"all":true})").body == "{\"revoked\":0}\n");
}

TEST_CASE("a browser may sign itself out, but not use what it could stay signed in with") {
  SignInFixture fixture;
  const std::string other = fixture.sign_in(fixture.owner());
  fixture.browser = test::TestBrowser();
  const std::string id = fixture.sign_in(fixture.owner());
  const Caller caller = fixture.identify(fixture.answer(id));
  for (const std::string_view path : {"/v1/codes", "/v1/token/rotate"})
    REQUIRE(fixture.ask("POST", path, caller).status == 403);
  REQUIRE(fixture.ask("GET", "/v1/browsers", caller).status == 403);
  REQUIRE(fixture.ask("GET", "/v1/health", caller).status == 200);
  REQUIRE(fixture.ask("POST", "/v1/browsers/revoke", caller, "{\"browser\":\"" + other + "\"}").status ==
          404);
  REQUIRE(fixture.ask("POST", "/v1/browsers/revoke", caller, "{\"browser\":\"" + id + "\"}").status == 200);
  REQUIRE(fixture.removed == std::vector<std::string>{id});
}

TEST_CASE("a new token signs the owner's browsers out and revokes the codes") {
  SignInFixture fixture;
  const std::string of_owner = fixture.sign_in(fixture.owner());
  fixture.browser = test::TestBrowser();
  const std::string of_ada = fixture.sign_in(fixture.ada());
  const std::string code = fixture.code();
  const std::string text = fixture.context.access.browsers.text();
  REQUIRE(fixture.ask("POST", "/v1/token/rotate", fixture.owner()).status == 200);
  REQUIRE(fixture.removed == std::vector<std::string>{of_owner});
  REQUIRE(fixture.is_signed_in(of_ada));
  REQUIRE(text_after(fixture.send(fixture.registration(code)).body, "code") == "code_unknown");
  fixture.context.access.browsers = *Browsers::parse(text);  // as if that had not been stored
  REQUIRE_FALSE(fixture.is_signed_in(of_owner));
}

}  // namespace sign_in_routes_test
