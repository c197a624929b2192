#include "serve/auth/sign_in.hpp"

#include <catch2/catch.hpp>

#include "serve/auth/secrets.hpp"

namespace sign_in_test {

using namespace earshot::serve;
using namespace std::chrono_literals;

namespace {

const Challenges::Time start{1h};

}  // namespace

TEST_CASE("a challenge is valid for a minute, at the process that made it") {
  const Challenges challenges, others;
  const std::string nonce = challenges.make(start);
  REQUIRE(nonce.size() == Challenges::nonce_digits);
  REQUIRE(challenges.make(start) != nonce);
  REQUIRE(challenges.is_valid(nonce, start));
  REQUIRE(challenges.is_valid(nonce, start + 59s));
  REQUIRE_FALSE(challenges.is_valid(nonce, start + 60s));
  REQUIRE_FALSE(others.is_valid(nonce, start));
  REQUIRE(Challenges::until(nonce) == start + 60s);
}

TEST_CASE("an altered challenge is not valid") {
  const Challenges challenges;
  const std::string nonce = challenges.make(start);
  for (std::size_t i = 0; i < nonce.size(); ++i) {
    std::string altered = nonce;
    altered[i] = altered[i] == '0' ? '1' : '0';
    REQUIRE_FALSE(challenges.is_valid(altered, start));
  }
  for (const std::string& wrong :
       {std::string(), nonce.substr(1), nonce + "0", std::string(112, '0'), std::string(112, 'f'),
        std::string(112, '\0'), std::string(112, 'G'), std::string(1 << 16, 'a')})
    REQUIRE_FALSE(challenges.is_valid(wrong, start));
}

TEST_CASE("what is signed names purpose, daemon, origin, browser and nonce, one a line") {
  REQUIRE(sign_in_message("GET /v1/sessions", "d1", "http://127.0.0.1:7717", {"b1", "n1", "unused"}) ==
          "earshot sign-in 1\nGET /v1/sessions\nd1\nhttp://127.0.0.1:7717\nb1\nn1");
  Registration registration{"n1", "k1", "Chrome\non Linux", "unused", "unused"};
  REQUIRE(registration_message("d1", "o1", registration) ==
          "earshot registration 1\nd1\no1\nn1\nk1\nkept\nChrome\non Linux");
  registration.is_temporary = true;
  REQUIRE(registration_message("d1", "o1", registration) ==
          "earshot registration 1\nd1\no1\nn1\nk1\ntemporary\nChrome\non Linux");
  REQUIRE(registered_message("d1", "o1", "b1", "n1") == "earshot registered 1\nd1\no1\nb1\nn1");
  REQUIRE(secret_message("d1", "o1", "b1", "n1") == "earshot secret 1\nd1\no1\nb1\nn1");
  REQUIRE(challenge_message("d1", "o1", "a1", "n1") == "earshot challenge 1\nd1\no1\na1\nn1");
}

TEST_CASE("the Authorization header of a browser has three parts") {
  const auto parsed = parse_authorization("Earshot b1.n1.s1");
  REQUIRE(parsed);
  REQUIRE(parsed->browser == "b1");
  REQUIRE(parsed->nonce == "n1");
  REQUIRE(parsed->signature == "s1");
  REQUIRE(parse_authorization("EARSHOT b1.n1.s1")->browser == "b1");
  REQUIRE(parse_authorization("Earshot b1.n1.s1.x")->signature == "s1.x");  // is no signature
  REQUIRE(parse_authorization("Earshot ...")->browser.empty());
  REQUIRE(parse_authorization("Earshot b1")->nonce.empty());
  for (const char* other :
       {"", "Earshot", "Earshot ", "Bearer b1.n1.s1", "Earshotb1.n1.s1", " Earshot b1.n1.s1"})
    REQUIRE_FALSE(parse_authorization(other));
}

}  // namespace sign_in_test
