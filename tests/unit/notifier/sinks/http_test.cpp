#include "notifier/sinks/sinks.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <cstring>

#include "base/display_text.hpp"
#include "notifier/sinks/sinks.hpp"
#include "unit/notifier/engine_harness.hpp"

namespace http_test {

using namespace earshot;
using namespace earshot::notifier;
using namespace earshot::notifier::test;

namespace {

Notice notice() {
  Notice made = sample_notice("api & <!channel> needs you", "permission: *Bash*\n@everyone");
  made.urgency = Urgency::critical;
  made.time_ms = noon_ms;
  made.type = "status";
  made.host = "h";
  made.session = "s";
  made.project = "/home/ada/api";
  made.event = R"({"type":"status","state":"waiting"})";
  return made;
}

// The request to a sink `x` of this kind.
WebhookRequest request(const std::string& kind, const Credentials& credentials, const Notice& of = notice()) {
  const Rules rules = rules_of("[sink.x]\nkind = \"" + kind + "\"\nurl = \"" + credentials.url + "\"\n" +
                               (kind == "gotify" ? "token_env = \"T\"\n" : ""));
  auto made = make_request(*rules.sink("x"), credentials, of, noon_ms);
  REQUIRE(std::holds_alternative<WebhookRequest>(made));
  return std::get<WebhookRequest>(std::move(made));
}

std::string request_text(const WebhookRequest& request) {
  std::string text = request.url + "\n" + request.body;
  for (const auto& each : request.headers) text += "\n" + each;
  return text;
}

bool has(const std::vector<std::string>& headers, const std::string& header) {
  return std::find(headers.begin(), headers.end(), header) != headers.end();
}

bool is_private_text(const std::string& text) {
  sockaddr_in6 six{};
  sockaddr_in four{};
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    return is_private(reinterpret_cast<const sockaddr*>(&four));
  }
  REQUIRE(::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1);
  six.sin6_family = AF_INET6;
  return is_private(reinterpret_cast<const sockaddr*>(&six));
}

}  // namespace

TEST_CASE("json: the complete notice, signed with a timestamp") {
  const WebhookRequest made = request("json", {"https://a.test/hook", "t0ken", "s3cret"});
  CHECK(made.url == "https://a.test/hook");
  CHECK(
      made.body ==
      R"({"type":"notice","version":1,"id":"0123","rule":"waiting","title":"api & <!channel> needs you","body":"permission: *Bash*\n@everyone","urgency":"critical","time":"2026-03-30T12:00:00.000Z","about":"status","host":"h","session":"s","project":"/home/ada/api","event":{"type":"status","state":"waiting"}})");
  CHECK(has(made.headers, "Idempotency-Key: 0123"));
  CHECK(has(made.headers, "X-Earshot-Timestamp: 1774872000"));
  CHECK(has(made.headers, "X-Earshot-Signature: sha256=" + sign("s3cret", "1774872000." + made.body)));
  CHECK(has(made.secret_headers, "Authorization: Bearer t0ken"));
  CHECK(request_text(made).find("t0ken") == std::string::npos);
  CHECK(request_text(made).find("s3cret") == std::string::npos);
}

TEST_CASE("the signature is HMAC-SHA256 (test case 2 of RFC 4231)") {
  CHECK(sign("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("slack: untrusted text cannot mention users") {
  CHECK(request("slack", {"https://a.test/", "", ""}).body ==
        R"({"text":"*api &amp; &lt;!channel&gt; needs you*\npermission: *Bash*\n@everyone"})");
}

TEST_CASE("discord: no mentions, no markdown, at most 2,000 characters") {
  const std::string body = request("discord", {"https://a.test/", "", ""}).body;
  CHECK(body.find(R"("allowed_mentions":{"parse":[]})") != std::string::npos);
  CHECK(body.find(R"(\\*Bash\\*)") != std::string::npos);
  Notice large = notice();
  for (int i = 0; i < 1500; ++i) large.body += "é";
  CHECK(request("discord", {"https://a.test/", "", ""}, large).body.size() < 2000);
}

TEST_CASE("teams: an adaptive card") {
  common::FrameParser parser;
  const auto fields = parser.parse(request("teams", {"https://a.test/", "", ""}).body);
  REQUIRE(fields);
  CHECK(fields->text("type") == "message");
  const auto cards = fields->objects("attachments");
  REQUIRE(cards.size() == 1);
  CHECK(cards[0].text("contentType") == "application/vnd.microsoft.card.adaptive");
  CHECK(cards[0].object("content").objects("body").size() == 2);
}

TEST_CASE("ntfy: the topic moves from the URL to the body, the token is a secret header") {
  const WebhookRequest made = request("ntfy", {"https://ntfy.test/mine", "tk", ""});
  CHECK(made.url == "https://ntfy.test/");
  CHECK(
      made.body ==
      R"({"topic":"mine","title":"api & <!channel> needs you","message":"permission: *Bash*\n@everyone","priority":5})");
  CHECK(has(made.secret_headers, "Authorization: Bearer tk"));
  const Rules rules = rules_of("[sink.x]\nkind = \"ntfy\"\nurl = \"https://ntfy.test/\"\n");
  CHECK(std::holds_alternative<SecretError>(
      make_request(*rules.sink("x"), {"https://ntfy.test/", "", ""}, notice(), 0)));
}

TEST_CASE("every service that can show a link receives it") {
  Notice linked = notice();
  linked.link = "http://127.0.0.1:7717/?session=s&host=h";
  const auto body = [&](const std::string& kind) {
    return request(kind, {kind == "ntfy" ? "https://a.test/topic" : "https://a.test/", "k", ""}, linked).body;
  };
  const auto has_part = [&](const std::string& kind, const std::string& part) {
    INFO(kind << ": " << body(kind));
    CHECK(body(kind).find(part) != std::string::npos);
    CHECK(request(kind, {"https://a.test/topic", "k", ""}).body.find("7717") == std::string::npos);
  };
  has_part("json", R"("link":"http://127.0.0.1:7717/?session=s&host=h")");
  has_part("slack", R"(\n<http://127.0.0.1:7717/?session=s&amp;host=h|Open the session>)");
  has_part("discord", R"(\n[Open the session](<http://127.0.0.1:7717/?session=s&host=h>))");
  has_part("teams",
           R"("actions":[{"type":"Action.OpenUrl","title":"Open the session","url":"http://127.0.0.1:7717/)");
  has_part("ntfy", R"("click":"http://127.0.0.1:7717/?session=s&host=h"})");
  has_part(
      "gotify",
      R"("extras":{"client::notification":{"click":{"url":"http://127.0.0.1:7717/?session=s&host=h"}}}})");
  for (int i = 0; i < 1500; ++i) linked.body += "é";
  CHECK(body("discord").size() < 2000);
  has_part("discord", R"(&host=h>))");
}

TEST_CASE("gotify: key header and priorities") {
  const WebhookRequest made = request("gotify", {"https://g.test", "key", ""});
  CHECK(made.url == "https://g.test/message");
  CHECK(made.body.find(R"("priority":8)") != std::string::npos);
  CHECK(has(made.secret_headers, "X-Gotify-Key: key"));
}

TEST_CASE("secrets come from a file that only its owner can read, or from the environment") {
  TemporaryDirectory scratch;
  const std::string file = scratch / "token";
  scratch.write("token", "  t0ken\n");
  ::chmod(file.c_str(), 0644);
  const auto open = read_secret({file, {}});
  REQUIRE(std::holds_alternative<SecretError>(open));
  CHECK(std::get<SecretError>(open).why == "others can read or change " + file + ": chmod 600 " + file);
  ::chmod(file.c_str(), 0600);
  CHECK(std::get<std::string>(read_secret({file, {}})) == "t0ken");
  scratch.write("token", "two\nlines");
  CHECK(std::holds_alternative<SecretError>(read_secret({file, {}})));
  CHECK(std::holds_alternative<SecretError>(read_secret({scratch / "none", {}})));
  ::setenv("EARSHOT_TEST_TOKEN", "env", 1);
  CHECK(std::get<std::string>(read_secret({{}, "EARSHOT_TEST_TOKEN"})) == "env");
  ::unsetenv("EARSHOT_TEST_TOKEN");
  CHECK(std::holds_alternative<SecretError>(read_secret({{}, "EARSHOT_TEST_TOKEN"})));
  CHECK(std::get<std::string>(read_secret({})).empty());
}

TEST_CASE("URLs are redacted for display") {
  CHECK(redact_url("https://hooks.slack.test/services/T0/B0/xyz") == "https://hooks.slack.test/…");
  CHECK(redact_url("https://a:b@c.test?x=1") == "https://c.test/…");
  CHECK(redact_url("https://c.test") == "https://c.test");
  CHECK(redact_url("nonsense") == "…");
}

TEST_CASE("addresses of this machine and of private networks are recognised") {
  for (const char* text : {"127.0.0.1",
                           "127.255.0.1",
                           "0.0.0.0",
                           "10.1.2.3",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.168.1.1",
                           "169.254.169.254",
                           "100.64.0.1",
                           "198.18.0.1",
                           "224.0.0.1",
                           "255.255.255.255",
                           "::1",
                           "::",
                           "fe80::1",
                           "fc00::1",
                           "fd12::1",
                           "ff02::1",
                           "::ffff:127.0.0.1",
                           "::ffff:10.0.0.1",
                           "64:ff9b::7f00:1",
                           "2002:7f00:1::",
                           "2001:db8::1"}) {
    INFO(text);
    CHECK(is_private_text(text));
  }
  for (const char* text : {"8.8.8.8", "172.32.0.1", "100.128.0.1", "1.1.1.1", "223.255.255.255",
                           "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"}) {
    INFO(text);
    CHECK_FALSE(is_private_text(text));
  }
  sockaddr_storage local{};
  local.ss_family = AF_UNIX;
  CHECK(is_private(reinterpret_cast<const sockaddr*>(&local)));
}

TEST_CASE("the result of a delivery depends on the HTTP status") {
  CHECK(delivery_result(204, 0, "").done);
  for (const long status : {408L, 425L, 429L, 500L, 503L}) {
    CHECK_FALSE(delivery_result(status, 7000, "").permanent);
    CHECK(delivery_result(status, 7000, "").retry_after_ms == 7000);
  }
  for (const long status : {400L, 401L, 403L, 404L, 410L, 302L})
    CHECK(delivery_result(status, 0, "").permanent);
  CHECK(delivery_result(500, 0, "oh\x1b[31m\nno").why == "HTTP 500: oh\\x1b[31m no");
}

TEST_CASE("on macOS texts are arguments of a constant script") {
  const auto command = osascript_command(notice());
  CHECK(command.front() == "osascript");
  const auto end = std::find(command.begin(), command.end(), "--");
  REQUIRE(end != command.end());
  for (auto each = command.begin(); each != end; ++each) CHECK(each->find("api") == std::string::npos);
  CHECK(*(end + 1) == notice().title);
  CHECK(*(end + 2) == notice().body);
}

TEST_CASE("markup in untrusted text is escaped") { CHECK(escape_markup("<b>&") == "&lt;b&gt;&amp;"); }

}  // namespace http_test
