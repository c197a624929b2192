#include "serve/auth/secrets.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <vector>

#include "unit/serve/support.hpp"

namespace secrets_test {

using namespace earshot;
using namespace earshot::serve;
using namespace std::chrono_literals;

namespace {

const OneTimeCodes::Time start{1h};

unsigned mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

std::string error_of(const std::string& directory) {
  const auto secrets = load_secrets(directory);
  const auto* error = std::get_if<AuthError>(&secrets);
  return error ? error->text : "";
}

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("secrets are created once with mode 0600 and read back unchanged") {
  test::TemporaryDirectory home;
  const std::string state = home / "deep/down/earshot";
  const auto first = std::get<Secrets>(load_secrets(state));
  REQUIRE(first.token.size() == 64);
  REQUIRE(first.token.find_first_not_of("0123456789abcdef") == std::string::npos);
  REQUIRE(mode_of(state) == 0700);
  REQUIRE(mode_of(state + "/token") == 0600);
  REQUIRE(mode_of(state + "/key") == 0600);
  REQUIRE(test::read_text(state + "/token") == first.token + "\n");

  const auto again = std::get<Secrets>(load_secrets(state));
  REQUIRE(again.token == first.token);
  REQUIRE(again.hash_key == first.hash_key);

  const auto other = std::get<Secrets>(load_secrets(home / "other"));
  REQUIRE(other.token != first.token);
  REQUIRE(other.hash_key != first.hash_key);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(state)) ++files;
  REQUIRE(files == 2);  // nothing temporary is left
}

TEST_CASE("a hand-written key is read as hex digits") {
  test::TemporaryDirectory home;
  REQUIRE(error_of(home.path()) == "");
  home.write("key", "00000000000000ff\n");
  REQUIRE(std::get<Secrets>(load_secrets(home.path())).hash_key == 255);
}

TEST_CASE("a secret that others can read is refused with the command that corrects it") {
  test::TemporaryDirectory home;
  REQUIRE(error_of(home.path()) == "");
  for (const unsigned mode : {0640u, 0604u, 0660u}) {
    CAPTURE(mode);
    REQUIRE(::chmod((home / "token").c_str(), mode) == 0);
    REQUIRE(says(error_of(home.path()), "chmod 600 " + (home / "token")));
  }
  REQUIRE(::chmod((home / "token").c_str(), 0600) == 0);
  REQUIRE(error_of(home.path()) == "");
  REQUIRE(::chmod(home.path().c_str(), 0777) == 0);
  REQUIRE(says(error_of(home.path()), "chmod 700 " + home.path()));
}

TEST_CASE("a secret file with other content is refused and not overwritten") {
  test::TemporaryDirectory home;
  REQUIRE(error_of(home.path()) == "");
  for (const std::string& content :
       {std::string("short\n"), std::string(64, 'Z'), std::string(66, 'a'), std::string(5000, '\0')}) {
    CAPTURE(content.size());
    home.write("token", content);
    REQUIRE(says(error_of(home.path()), "64 hex digits"));
    REQUIRE(home.read("token") == content);
  }
  std::filesystem::remove(home / "token");
  std::filesystem::create_symlink(home / "key", home / "token");
  REQUIRE(says(error_of(home.path()), "token"));
  std::filesystem::remove(home / "token");
  std::filesystem::create_directory(home / "token");
  REQUIRE(says(error_of(home.path()), "not a regular file"));
}

TEST_CASE("fault 62: a secret truncated by a crash is renamed and replaced, with a warning") {
  test::TemporaryDirectory home;
  const auto first = std::get<Secrets>(load_secrets(home.path()));
  const std::string whole = home.read("token");
  for (const std::string& content : {std::string(), std::string(65, '\0'), whole.substr(0, 20),
                                     whole.substr(0, 20) + std::string(45, '\0')}) {
    CAPTURE(content.size());
    home.write("token", content);
    const auto secrets = std::get<Secrets>(load_secrets(home.path()));
    REQUIRE(secrets.set_aside.size() == 1);
    REQUIRE(says(secrets.set_aside.front(), home / "token.torn"));
    REQUIRE(home.read("token.torn") == content);
    REQUIRE(secrets.token.size() == 64);
    REQUIRE(secrets.token != first.token);
    REQUIRE(mode_of(home / "token") == 0600);
    REQUIRE(secrets.hash_key == first.hash_key);
    REQUIRE(std::get<Secrets>(load_secrets(home.path())).set_aside.empty());
  }
}

TEST_CASE("secrets are equal only if every byte is") {
  REQUIRE(same_secret("abc", "abc"));
  REQUIRE_FALSE(same_secret("abd", "abc"));
  REQUIRE_FALSE(same_secret("ab", "abc"));
  REQUIRE_FALSE(same_secret("abcd", "abc"));
  REQUIRE_FALSE(same_secret("", "abc"));
}

TEST_CASE("fault 95: the metrics token is created in its own file") {
  test::TemporaryDirectory home;
  const auto first = std::get<Secrets>(load_secrets(home.path(), home / "metrics"));
  REQUIRE(first.metrics_token.size() == 64);
  REQUIRE(first.metrics_token != first.token);
  REQUIRE(mode_of(home / "metrics") == 0600);
  REQUIRE(std::get<Secrets>(load_secrets(home.path(), home / "metrics")).metrics_token ==
          first.metrics_token);
  REQUIRE(::chmod((home / "metrics").c_str(), 0644) == 0);
  const auto refused = load_secrets(home.path(), home / "metrics");
  REQUIRE(says(std::get<AuthError>(refused).text, "metrics_token_file: "));
}

TEST_CASE("an HMAC is the one that WebCrypto makes") {
  std::string code;
  for (int i = 0; i < 32; ++i) code += "ab";
  REQUIRE(hmac_sha256(code, "the message") ==
          "a9a63f715921f010d4b01ddf6d0c847469948e4c8b04597f97601ba61497f7f1");
}

namespace {

using Result = OneTimeCodes::Result;

Result take(OneTimeCodes& codes, const std::string& code, OneTimeCodes::Time now) {
  const auto taken = codes.take("the message", hmac_sha256(code, "the message"), now);
  if (taken.result == Result::taken) REQUIRE(taken.code == code);
  return taken.result;
}

}  // namespace

TEST_CASE("a one-time code is valid once") {
  OneTimeCodes codes;
  const std::string code = codes.make(start);
  REQUIRE(code.size() == 64);
  REQUIRE(code.find_first_not_of("0123456789abcdef") == std::string::npos);
  REQUIRE(codes.make(start) != code);
  REQUIRE(take(codes, code.substr(1), start) == Result::unknown);
  REQUIRE(take(codes, "", start) == Result::unknown);
  REQUIRE(codes.take("the message", "", start).result == Result::unknown);
  REQUIRE(codes.take("the message", code, start).result ==
          Result::unknown);  // the code itself proves nothing
  REQUIRE(codes.take("another message", hmac_sha256(code, "the message"), start).result == Result::unknown);
  REQUIRE(take(codes, code, start) == Result::taken);
  REQUIRE(take(codes, code, start) == Result::used);
  REQUIRE(codes.outstanding(start) == 1);
}

TEST_CASE("a one-time code is valid for a minute") {
  OneTimeCodes codes;
  const std::string first = codes.make(start), second = codes.make(start);
  REQUIRE(take(codes, first, start + 59s) == Result::taken);
  REQUIRE(take(codes, second, start + 60s) == Result::expired);
  REQUIRE(codes.outstanding(start + 60s) == 0);
  codes.make(start + 11min);
  REQUIRE(take(codes, second, start + 11min) == Result::unknown);  // forgotten
}

TEST_CASE("above the limit the oldest one-time code of the same identity is revoked") {
  OneTimeCodes codes;
  const std::string of_ada = codes.make(start, "ada");
  std::vector<std::string> made;
  for (std::size_t i = 0; i <= OneTimeCodes::outstanding_max; ++i) made.push_back(codes.make(start));
  REQUIRE(codes.outstanding(start) == OneTimeCodes::outstanding_max + 1);
  REQUIRE(take(codes, made.front(), start) == Result::unknown);
  for (std::size_t i = 1; i < made.size(); ++i) REQUIRE(take(codes, made[i], start) == Result::taken);
  REQUIRE(codes.take("m", hmac_sha256(of_ada, "m"), start).user == "ada");
}

TEST_CASE("the codes of one identity are revoked together") {
  OneTimeCodes codes;
  const std::string of_owner = codes.make(start), of_ada = codes.make(start, "ada");
  codes.revoke({});
  REQUIRE(take(codes, of_owner, start) == Result::unknown);
  REQUIRE(take(codes, of_ada, start) == Result::taken);
}

}  // namespace secrets_test
