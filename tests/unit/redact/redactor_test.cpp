// User rules, counters and bounds of work.
#include <algorithm>
#include <catch2/catch.hpp>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "canaries.hpp"
#include "unit/places.hpp"

namespace earshot::test {
namespace {

namespace fs = std::filesystem;
using redact::Redactor;
using Rules = std::vector<redact::UserRule>;

std::string clean_with(const Redactor& redactor, std::string_view text) {
  std::string scratch;
  return std::string(redactor.clean(text, scratch));
}

std::uint64_t count_of(const Redactor& redactor, std::string_view rule) {
  for (const auto& [name, count] : redactor.counts())
    if (name == rule) return count;
  FAIL("there is no rule " << rule);
  return 0;
}

TEST_CASE("user rules are used with the built-in ones, group 1 is replaced") {
  const Redactor redactor(
      {{"badge", "BADGE-[0-9]{4}"}, {"lamp", "lamp code (\\w+)"}, {"ship", "(?i)the ärmel (x)?y+"}});
  REQUIRE(redactor.error().empty());
  CHECK(clean_with(redactor, "BADGE-1234, BADGE-12") == "[redacted:badge], BADGE-12");
  CHECK(clean_with(redactor, "lamp code abc, lamp code def") ==
        "lamp code [redacted:lamp], lamp code [redacted:lamp]");
  CHECK(clean_with(redactor, "THE ÄRMEL yy!") == "[redacted:ship]!");  // a group that took no part
  CHECK(clean_with(redactor, "the ärmel xy") == "the ärmel [redacted:ship]y");
  CHECK(clean_with(redactor, "password=w9Lr7Tn5Xc BADGE-1234") ==
        "password=[redacted:secret] [redacted:badge]");
  CHECK(clean_with(redactor, "nothing here") == "nothing here");
  const auto names = redactor.names();
  CHECK(std::count(names.begin(), names.end(), "badge") == 1);
}

TEST_CASE("an invalid rule is reported by name and reason and not used") {
  const Redactor broken(Rules{redact::UserRule{"ok", "OK-[0-9]+"}, redact::UserRule{"torn", "a(b"},
                              redact::UserRule{"late", "LATE-[0-9]+"}});
  CHECK(broken.error().find("`torn`") != std::string::npos);
  CHECK(broken.error().find("missing )") != std::string::npos);
  CHECK(clean_with(broken, "OK-1 LATE-1") == "[redacted:ok] [redacted:late]");
  CHECK(Redactor(Rules{redact::UserRule{"Bad-Name", "x"}}).error().find("`Bad-Name` has a bad name") !=
        std::string::npos);
  CHECK(Redactor(Rules{redact::UserRule{"", "x"}}).error().find("bad name") != std::string::npos);
  CHECK(Redactor(Rules{redact::UserRule{"jwt", "x"}}).error().find("another rule") != std::string::npos);
  CHECK(Redactor(Rules{redact::UserRule{"twice", "x"}, redact::UserRule{"twice", "y"}})
            .error()
            .find("another rule") != std::string::npos);
  CHECK(Redactor(Rules{redact::UserRule{"empty", "x*"}}).error().find("empty text") != std::string::npos);
  CHECK(Redactor(Rules{redact::UserRule{"back", "(a)\\1"}}).error().find("`back`") != std::string::npos);
  CHECK(Redactor().error().empty());
}

TEST_CASE("a rule that may match nothing somewhere ends all the same") {
  const Redactor redactor(Rules{redact::UserRule{"edge", "\\b"}, redact::UserRule{"tail", "x?$"}});
  CHECK(clean_with(redactor, "a b").size() >= 3);
}

TEST_CASE("a cut shows no more than the whole, also when that takes more than one pass") {
  // The inner key hides the outer one until it is replaced; the outer one ends behind the cut.
  const std::string inner = std::string("-----BEGIN RSA PRIVATE") +
                            " KEY-----\nMIIEpAIBAAKCAQEA7Zk3Qw9Lr7Tn5Xc1Vb8\n" + "-----END RSA PRIVATE" +
                            " KEY-----";
  const std::string text = std::string("-----BEGIN the PRIVATE") + " KEY-----words " + inner +
                           "\nMIIEpAIBAAKCAQEA7Zk3Qw9Lr7Tn5Xc1Vb8Hj6Mf4Pd2SgYa0RoUeNi-----END it";
  const Redactor redactor;
  std::string scratch, other;
  const std::string whole(redactor.clean(text, scratch));
  REQUIRE(whole.find("words") == whole.npos);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    CAPTURE(cut);
    const std::string shown(redactor.clean(text, cut, other));
    REQUIRE(whole.starts_with(std::string_view(shown).substr(0, std::min(shown.size(), whole.size()))));
  }
}

TEST_CASE("replacements are counted by rule") {
  const Redactor redactor(Rules{redact::UserRule{"badge", "BADGE-[0-9]{4}"}});
  std::string scratch;
  redactor.clean("BADGE-1234 password=w9Lr7Tn5Xc token=w9Lr7Tn5Xc", scratch);
  redactor.replace_whole("lamp", SecretPlace::value, scratch);
  CHECK(count_of(redactor, "badge") == 1);
  CHECK(count_of(redactor, "secret") == 3);
  CHECK(count_of(redactor, "jwt") == 0);
  redactor.clean("password=w9Lr7Tn5Xc", 3, scratch);  // not shown, not counted
  CHECK(count_of(redactor, "secret") == 3);
}

TEST_CASE("bytes of any kind are taken as they come") {
  std::uint64_t seed = 11;
  std::string scratch;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 200; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      text += static_cast<char>(seed >> 40);
    }
    const std::size_t shown = round % 210;
    CHECK(text.starts_with(redactor().clean(text, shown, scratch)));
  }
  CHECK(clean("\xFF\xFEpassword=w9Lr7Tn5Xc\xC3") == "\xFF\xFEpassword=[redacted:secret]");
  CHECK(clean(std::string("a\0password=w9Lr7Tn5Xc", 21)) == std::string("a\0password=[redacted:secret]", 28));
  CHECK(clean("").empty());
}

double seconds(const std::string& text, int rounds) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const std::clock_t start = std::clock();
    clean(text);
    best = std::min(best, double(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

TEST_CASE("sixteen times the text is about sixteen times the work, however hostile") {
  std::vector<std::string> pieces = {"a",
                                     "\"",
                                     "\\",
                                     "=",
                                     "password=",
                                     "password=\"",
                                     "password='x password=\"",
                                     "password=\\\"",
                                     "password: ",
                                     "token ",
                                     "token:",
                                     "--token ",
                                     "eyJ",
                                     "-eyJ",
                                     "\\neyJ",
                                     ".eyJ",
                                     "eyJaaaaaaaa.",
                                     "eyJaaaaaaaa.eyJaaaaaaaa.",
                                     "-----BEGIN RSA PRIVATE"
                                     " KEY-----",
                                     "-----BEGIN RSA PRIVATE"
                                     " KEY-----\nMIIEpAIBAAKCAQEA7Zk3Qw9Lr7Tn5Xc1Vb8Hj6Mf4P\n",
                                     "-----END ",
                                     "-----",
                                     "://a:",
                                     "://a:b@",
                                     "glpat-",
                                     "-glpat-",
                                     "xoxb-",
                                     "/xoxb-",
                                     "github_pat_",
                                     "sk-ant-",
                                     "/sk-ant-",
                                     "sk-proj-",
                                     "bearer ",
                                     "Authorization: Bearer ",
                                     "sig=aaaa",
                                     "&sig=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                     "SG.aaaaaaaaaaaaaaaa.",
                                     "MTA",
                                     "AKIA",
                                     "AKIAAAAAAAAAAAAAAAAA",
                                     "api_key: [",
                                     "secret_access_key=",
                                     "hooks.slack.com/a/",
                                     "accountkey=",
                                     "12345678:AA",
                                     "whsec_",
                                     "hvs.",
                                     "/hvs.a",
                                     "\x1b[1mpassword=",
                                     "%3DeyJ",
                                     "Cookie: ",
                                     "Cookie: a=b; ",
                                     "cookie=a;",
                                     "curl ",
                                     "curl -u a",
                                     "mysql -p",
                                     "zip -P ",
                                     "password: |\n  a",
                                     "password: |\n",
                                     "\"passwords\":[",
                                     "\"passwords\":[\"a\",",
                                     "variable \"password\" { default ",
                                     "<password>",
                                     "<password>a</",
                                     "name: PASSWORD\nvalue",
                                     "name: PASSWORD\n \n",
                                     "password_",
                                     "_key=",
                                     "Key = \"",
                                     ":5432:",
                                     "a:5432:b:c:",
                                     "Private-Lines: 1\n",
                                     "Private-Lines: 1\nAAAA",
                                     "Private-MAC: ",
                                     "AAAA\nPrivate-MAC: ",
                                     "$6$",
                                     "$1$aaaaaaaa$",
                                     "tskey-aaaa-",
                                     "://aaaa",
                                     "live_aaaa",
                                     "re_",
                                     "[redacted:secret]"};
  for (const Canary& canary : canaries()) {
    pieces.push_back(canary.text());
    pieces.push_back(canary.before + canary.secret.substr(0, canary.secret.size() - 1));
  }
  const auto times = [](const std::string& piece, std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += piece;
    return text;
  };
  const auto is_steep = [&](const std::string& piece, int rounds) {
    const double small = seconds(times(piece, 1 << 13), rounds),
                 large = seconds(times(piece, 1 << 17), rounds);
    return large > 64 * std::max(small, 0.0005);  // a square would be 256 times
  };
  for (const std::string& piece : pieces) {
    INFO(piece);
    CHECK_FALSE((is_steep(piece, 1) && is_steep(piece, 5)));  // the machine may have had other things to do
  }
}

TEST_CASE("recorded sessions and golden fixtures have no false positives") {
  std::size_t files = 0;
  for (const fs::path& top : {sources() / "tests" / "golden", corpus()}) {
    if (!fs::exists(top)) {
      WARN(top << " is not there: skipped");
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(top)) {
      if (!entry.is_regular_file() || entry.path().extension() != ".jsonl") continue;
      ++files;
      std::ifstream in(entry.path(), std::ios::binary);
      for (std::string line; std::getline(in, line);) {
        std::string scratch;
        const std::string_view shown = redactor().clean(line, scratch);
        if (shown.data() == line.data()) continue;
        // The tokens of RFC 6749's examples.
        INFO(entry.path().filename());
        for (std::size_t at = shown.find("[redacted:"); at != std::string_view::npos;
             at = shown.find("[redacted:", at + 1)) {
          const std::string_view before =
              shown.substr(at - std::min<std::size_t>(at, 30), std::min<std::size_t>(at, 30));
          CHECK(shown.substr(at).starts_with("[redacted:secret]"));
          CHECK((before.find("access_token") != std::string_view::npos ||
                 before.find("refresh_token") != std::string_view::npos));
        }
      }
    }
  }
  CHECK(files > 50);
}

}  // namespace
}  // namespace earshot::test
