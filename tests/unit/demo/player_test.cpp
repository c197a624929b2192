#include "demo/player.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <stdexcept>

#include "unit/support/temporary_directory.hpp"

using earshot::demo::Player;
using earshot::test::TemporaryDirectory;

TEST_CASE("a player appends lines, replaces files and removes them") {
  const TemporaryDirectory root;
  Player player(R"(# a comment

file main sessions/a.jsonl
file state state.json
file old old.json

 20 append main {"n": 1}
 30 replace state {}
  0 replace old {}
  5 append main {"n": 2}
  0 replace state {"busy": true}
  7 remove old
)",
                root.path());
  CHECK(player.begin() == 20);
  CHECK(player.play() == 30);
  CHECK(root.read("sessions/a.jsonl") == "{\"n\": 1}\n");
  while (player.play()) continue;
  CHECK(root.read("sessions/a.jsonl") == "{\"n\": 1}\n{\"n\": 2}\n");
  CHECK(root.read("state.json") == R"({"busy": true})");
  CHECK_FALSE(std::filesystem::exists(root / "old.json"));
  CHECK(player.files() == std::set<std::string>{root / "sessions/a.jsonl", root / "state.json"});
  for (const std::string& file : player.files()) {
    struct stat about {};
    REQUIRE(::stat(file.c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0600);
  }
}

TEST_CASE("a placeholder with an argument has one value a session") {
  const TemporaryDirectory root;
  Player player("file main ${uuid a}\n0 append main ${uuid a} ${id 1} ${id 2} ${id 1} ${process id}\n",
                root.path());
  std::set<std::string> sessions, ids;
  for (int times = 0; times < 2; ++times) {
    player.begin();
    REQUIRE_FALSE(player.play());
    const std::string session = std::filesystem::path(*player.files().begin()).filename();
    const std::string text = root.read(session), first = text.substr(37, 16), second = text.substr(54, 16);
    const std::string pid = std::to_string(::getpid());
    CHECK(text == session + " " + first + " " + second + " " + first + " " + pid + "\n");
    sessions.insert(session);
    ids.insert({first, second});
  }
  CHECK(sessions.size() == 2);
  CHECK(ids.size() == 4);
}

TEST_CASE("malformed session files are refused") {
  const TemporaryDirectory root;
  for (const char* step : {"", "append main {}", "10 append other {}", "10 move main {}"}) {
    CAPTURE(step);
    CHECK_THROWS_AS(Player(std::string("file main a\n") + step, root.path()), std::invalid_argument);
  }
  Player player("file main a\n0 append main ${unknown}\n", root.path());
  player.begin();
  CHECK_THROWS_AS(player.play(), std::invalid_argument);
}
