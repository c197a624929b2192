#include "serve/auth/browsers.hpp"

#include <catch2/catch.hpp>

#include "unit/serve/auth/test_browser.hpp"

namespace browsers_test {

using namespace earshot;
using namespace earshot::serve;
using namespace std::chrono_literals;

namespace {

const Challenges::Time start{1h};

Browser browser_of(const std::string& user, std::int64_t used_ms = 0, const std::string& key = {}) {
  static const std::string public_key = test::TestBrowser().public_key();
  static int made = 0;
  Browser browser;
  browser.name = "Chrome on Linux";
  browser.key = key.empty() ? public_key : key;
  browser.user = user;
  browser.credential = "c1";
  browser.origin = "http://127.0.0.1:" + std::to_string(++made);
  browser.secret = std::string(64, 'a');
  browser.created_ms = 1;
  browser.used_ms = used_ms;
  return browser;
}

}  // namespace

TEST_CASE("browsers are read as they were written, without the temporary ones") {
  Browsers browsers;
  Browser hostile = browser_of("ada", 5);
  hostile.name = "\x1b[2J\u202e\"\\\n";
  const std::string id = browsers.add(hostile).browser->id;
  Browser temporary = browser_of("");
  temporary.is_temporary = true;
  const std::string other = browsers.add(temporary).browser->id;
  REQUIRE(browsers.find(other) != nullptr);

  auto read = Browsers::parse(browsers.text());
  REQUIRE(read);
  REQUIRE(read->daemon_id() == browsers.daemon_id());
  REQUIRE(read->daemon_id().size() == Browsers::daemon_id_digits);
  REQUIRE(read->all().size() == 1);
  const Browser* const found = read->find(id);
  REQUIRE(found != nullptr);
  REQUIRE(found->name == hostile.name);
  REQUIRE(found->key == hostile.key);
  REQUIRE(found->user == "ada");
  REQUIRE(found->credential == "c1");
  REQUIRE(found->origin == hostile.origin);
  REQUIRE(found->secret == hostile.secret);
  REQUIRE(found->created_ms == 1);
  REQUIRE(found->used_ms == 5);
  REQUIRE_FALSE(found->is_temporary);
  REQUIRE(read->text() == browsers.text());
  REQUIRE(Browsers().daemon_id() != Browsers().daemon_id());
}

TEST_CASE("a damaged file of browsers is not read") {
  Browsers browsers;
  browsers.add(browser_of(""));
  const std::string text = browsers.text();
  for (std::size_t size = 0; size + 2 < text.size(); ++size)
    REQUIRE_FALSE(Browsers::parse(text.substr(0, size)));
  const auto with = [&](const std::string& part, const std::string& instead) {
    std::string changed = text;
    const std::size_t at = changed.find(part);
    REQUIRE(at != std::string::npos);
    return Browsers::parse(changed.replace(at, part.size(), instead)).has_value();
  };
  REQUIRE_FALSE(with("\"browsers_version\":1", "\"browsers_version\":2"));
  REQUIRE_FALSE(with("\"secret\":\"a", "\"secret\":\""));
  REQUIRE_FALSE(with("\"secret\":\"a", "\"secret\":\"x"));
  REQUIRE_FALSE(with("\"key\":\"04", "\"key\":\"05"));
  REQUIRE_FALSE(with("\"id\":\"", "\"id\":\"0"));
  REQUIRE_FALSE(with("\"created_ms\":1", "\"created_ms\":-1"));
  REQUIRE_FALSE(with("\"created_ms\":1", "\"created_ms\":9223372036854775807"));
  REQUIRE_FALSE(with("Chrome on Linux", std::string(65, 'x')));
  const std::string object = text.substr(text.find("{\"id\""), text.rfind("]") - text.find("{\"id\""));
  REQUIRE_FALSE(with(object, object + "," + object));  // the same id twice
  REQUIRE(with("Chrome on Linux", std::string(64, 'x')));
}

TEST_CASE("above the limit the longest unused browser of the same identity is replaced") {
  Browsers browsers;
  const std::string of_ada = browsers.add(browser_of("ada", 0)).browser->id;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < Browsers::per_identity_max; ++i)
    ids.push_back(browsers.add(browser_of("", i == 7 ? 1 : 100)).browser->id);
  const auto added = browsers.add(browser_of("", 100));
  REQUIRE(added.replaced == ids[7]);
  REQUIRE(browsers.find(ids[7]) == nullptr);
  REQUIRE(browsers.find(of_ada) != nullptr);
  REQUIRE(browsers.all().size() == Browsers::per_identity_max + 1);
}

TEST_CASE("above the limit of all users a new browser is refused, unless it replaces one") {
  Browsers browsers;
  for (std::size_t user = 0; browsers.has_room(std::to_string(user)); ++user)
    for (std::size_t i = 0; i < Browsers::per_identity_max; ++i)
      browsers.add(browser_of(std::to_string(user)));
  REQUIRE(browsers.all().size() == Browsers::browsers_max);
  REQUIRE_FALSE(browsers.has_room("new"));
  REQUIRE(browsers.has_room("0"));
  browsers.add(browser_of("0"));
  REQUIRE(browsers.all().size() == Browsers::browsers_max);
}

TEST_CASE("a key that is registered again at its origin replaces its former registration") {
  Browsers browsers;
  const Browser browser = browser_of("ada");
  const std::string first = browsers.add(browser).browser->id;
  Browser again = browser;
  const Challenges challenges;
  const std::string nonce = challenges.make(start);
  REQUIRE(browsers.find(first)->use(nonce, start));
  again.name = "Chrome 2";
  const auto same = browsers.add(again);
  REQUIRE(same.replaced.empty());
  REQUIRE(same.browser->id == first);
  REQUIRE(same.browser->name == "Chrome 2");
  REQUIRE_FALSE(same.browser->use(nonce, start));
  REQUIRE(browsers.all().size() == 1);
  again.user = "bob";
  const auto added = browsers.add(again);
  REQUIRE(added.replaced == first);
  REQUIRE(added.browser->user == "bob");
  REQUIRE(browsers.all().size() == 1);
  again.origin = "https://hub.example";
  REQUIRE(browsers.add(again).replaced.empty());
}

TEST_CASE("a browser answers a challenge once, and only so many in a minute") {
  const Challenges challenges;
  Browser browser = browser_of("");
  const std::string nonce = challenges.make(start);
  REQUIRE(browser.use(nonce, start));
  REQUIRE_FALSE(browser.use(nonce, start));
  REQUIRE_FALSE(browser.use(nonce, start + 59s));
  for (std::size_t i = 1; i < Browser::used_nonces_max; ++i)
    REQUIRE(browser.use(challenges.make(start), start));
  REQUIRE_FALSE(browser.use(challenges.make(start), start));
  REQUIRE(browser.use(challenges.make(start + 60s), start + 60s));
}

TEST_CASE("removed browsers are no longer found") {
  Browsers browsers;
  const std::string first = browsers.add(browser_of("ada")).browser->id,
                    second = browsers.add(browser_of("bob")).browser->id;
  REQUIRE(browsers.remove_if([](const Browser& each) { return each.user == "ada"; }) ==
          std::vector<std::string>{first});
  REQUIRE(browsers.find(first) == nullptr);
  REQUIRE(browsers.find(second) != nullptr);
  REQUIRE(browsers.find("") == nullptr);
}

}  // namespace browsers_test
