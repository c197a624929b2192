// Each rule finds its secrets wherever they stand, and nothing else.
#include <catch2/catch.hpp>
#include <set>

#include "canaries.hpp"

namespace earshot::test {
namespace {

TEST_CASE("each canary is replaced, and nothing but the canary") {
  for (const Canary& canary : canaries()) {
    INFO(canary.rule << ": " << canary.text());
    CHECK(clean(canary.text()) == canary.before + "[redacted:" + canary.rule + "]" + canary.after);
  }
}

TEST_CASE("fault 94: secrets in forms that span lines") {
  CHECK(clean("machine api.example\n  login keeper\n  password oil-and-wick\n") ==
        "machine api.example\n  login keeper\n  password [redacted:secret]\n");
  CHECK(clean("curl -sS \\\n  -u \"keeper:oil and wick\" \\\n  https://a.example") ==
        "curl -sS \\\n  -u \"keeper:[redacted:curl_password]\" \\\n  https://a.example");
  CHECK(clean("<add key=\"ClearTextPassword\" value=\"oil wick, lamp\" />") ==
        "<add key=\"ClearTextPassword\" value=\"[redacted:secret]\" />");
}

TEST_CASE("every rule has a canary") {
  std::set<std::string, std::less<>> known;
  for (const Canary& canary : canaries()) known.insert(canary.rule);
  for (const std::string_view name : redactor().names()) {
    INFO(name);
    CHECK(known.contains(name));
  }
}

TEST_CASE("text that resembles a secret is unchanged") {
  for (const std::string& text : near_misses()) {
    CHECK(clean(text) == text);
    CHECK(clean("x " + text + "\ny") == "x " + text + "\ny");
  }
}

TEST_CASE("a canary is found at the start, in the middle and at the end, whatever stands around it") {
  for (const Canary& canary : canaries()) {
    for (const std::string& before :
         {std::string(), std::string("a "), std::string("x\n"), std::string("("), std::string("é "),
          std::string("literal\\n"), std::string("\x1b[31m"), prose(5000)}) {
      for (const std::string& after :
           {std::string(), std::string("\n"), std::string(" z"), "\n" + prose(300)}) {
        if (canary.secret.find("BEGIN") != std::string::npos &&
            canary.secret.find("END") == std::string::npos && !after.empty())
          continue;  // a key without an END line extends to the end
        const std::string shown = clean(before + canary.text() + after);
        INFO(canary.rule << ": " << canary.text() << " after `" << before.substr(0, 20) << "`");
        CHECK(shown == before + canary.before + "[redacted:" + canary.rule + "]" + canary.after + after);
      }
    }
  }
}

TEST_CASE("a private key without an end is taken to the end") {
  for (const Canary& canary : canaries()) {
    if (canary.secret.find("BEGIN") == std::string::npos) continue;
    const std::string cut = canary.secret.substr(0, canary.secret.find("-----END"));
    CHECK(clean("a " + cut + "\n… [12 lines]\nMIIE99") == "a [redacted:private_key]");
  }
}

TEST_CASE("two secrets in one text are both replaced, of two at one place the special rule names it") {
  for (const Canary& a : canaries()) {
    if (a.rule == "private_key") continue;
    for (const Canary& b : canaries()) {
      const std::string shown = clean(a.text() + " and\n" + b.text());
      INFO(a.text() << " and " << b.text());
      CHECK_FALSE(leaks(shown, a));
      CHECK_FALSE(leaks(shown, b));
    }
  }
  for (const Canary& canary : canaries())
    if (canary.rule == "github_token")
      CHECK(clean("password=" + canary.secret + "!x") == "password=[redacted:github_token]");
}

TEST_CASE("clean text is given back as it is, and stays clean") {
  std::string scratch;
  for (const std::string& text : near_misses()) CHECK(redactor().clean(text, scratch).data() == text.data());
  for (const Canary& canary : canaries()) {
    const std::string once = clean("a " + canary.text() + " b");
    INFO(once);
    CHECK(clean(once) == once);
  }
}

TEST_CASE("redaction is idempotent for any mixture") {
  std::vector<std::string> pieces = near_misses();
  for (const Canary& canary : canaries()) {
    pieces.push_back(canary.text());
    pieces.push_back(canary.secret);
    pieces.push_back(canary.before);
    pieces.push_back("[redacted:" + canary.rule + "]");
  }
  for (const char* glue : {"=", ": ", "\"", "'", "\\", " ", "\n", "-", "_", "a", "7", "://", "@", ":"})
    pieces.push_back(glue);
  std::uint64_t seed = 7;
  const auto next = [&] { return (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33; };
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (auto left = 2 + next() % 6; left > 0; --left) text += pieces[next() % pieces.size()];
    const std::string once = clean(text);
    if (clean(once) == once) continue;
    INFO(text);
    CHECK(clean(once) == once);
    break;
  }
}

TEST_CASE("random tokens behind their prefix are all found") {
  constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::uint64_t seed = 3;
  const auto next = [&] { return (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33; };
  int missed = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string token;
    for (int i = 0; i < 32; ++i) token += alphabet[next() % alphabet.size()];
    for (const char* prefix : {"sk-", "sk-ant-api03-", "glpat-", "xai-abcdefgh", "api_key=", "password: \"",
                               "Authorization: Bearer "})
      missed += clean(prefix + token).find(token) != std::string::npos;
  }
  CHECK(missed <= 5000 * 7 / 200);  // a few resemble words
}

}  // namespace
}  // namespace earshot::test
