#include "common/endpoint.hpp"

#include <stdlib.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "common/subscription.hpp"

using namespace earshot::common;
namespace fs = std::filesystem;

namespace {

class State {
 public:
  State() { REQUIRE(mkdtemp(path_) != nullptr); }
  ~State() { fs::remove_all(path_); }
  std::string path() const { return path_; }
  void put(const std::string& name, const std::string& text, int mode = 0600) {
    const std::string file = path() + "/" + name;
    std::ofstream(file) << text;
    chmod(file.c_str(), static_cast<mode_t>(mode));
  }
  /// The door by TCP: the last one.
  DaemonAddress find(DaemonWish wish = {}) const {
    wish.state = path();
    const auto found = find_daemon(wish);
    REQUIRE(std::holds_alternative<Doors>(found));
    return std::get<Doors>(found).back();
  }

 private:
  char path_[40] = "/tmp/earshot-cli-state-XXXXXX";
};

std::string why_not(std::string_view url) {
  const auto endpoint = parse_endpoint(url);
  const auto* why = std::get_if<std::string>(&endpoint);
  return why == nullptr ? std::string() : *why;
}

Endpoint endpoint(std::string_view url) {
  const auto found = parse_endpoint(url);
  REQUIRE(std::holds_alternative<Endpoint>(found));
  return std::get<Endpoint>(found);
}

}  // namespace

TEST_CASE("an address has a host, and may have a port and a path") {
  CHECK(endpoint("ws://127.0.0.1:8000/v1/ws").url() == "ws://127.0.0.1:8000/v1/ws");
  CHECK(endpoint("ws://localhost").url() == "ws://localhost:7717/v1/ws");
  CHECK(endpoint("ws://localhost:0080/").url() == "ws://localhost:80/v1/ws");
  CHECK(endpoint("ws://[::1]:9/x").host == "::1");
  CHECK(endpoint("ws://[::1]:9/x").url() == "ws://[::1]:9/x");
}

TEST_CASE("what is no address is refused, with the reason") {
  for (const char* url :
       {"", "localhost", "http://x", "wss://x", "ws://", "ws://:80", "ws://h:", "ws://h:0", "ws://h:65536",
        "ws://h:8a", "ws://[::1", "ws://[::1]x", "ws://h\r\nX:1/", "ws://h/a b"}) {
    CAPTURE(url);
    CHECK_FALSE(why_not(url).empty());
  }
}

TEST_CASE("the address file names the daemon, and without it the default does") {
  State state;
  CHECK(state.find().endpoint.url() == "ws://127.0.0.1:7717/v1/ws");
  CHECK(state.find().address_from.starts_with("the default"));
  state.put("address", "ws://127.0.0.1:40001/v1/ws\n");
  CHECK(state.find().endpoint.port == "40001");
  CHECK(state.find({.connect = "ws://127.0.0.1:5/v1/ws"}).endpoint.port == "5");
}

TEST_CASE("the token is read without its line end, and its absence is told") {
  State state;
  CHECK(state.find().token.empty());
  CHECK(state.find().token_trouble == "No such file or directory");
  state.put("token", "abc123\n");
  CHECK(state.find().token == "abc123");
  CHECK(state.find().token_trouble.empty());
  CHECK(state.find().warning.empty());
  state.put("other", "zzz");
  CHECK(state.find({.token_file = state.path() + "/other"}).token == "zzz");
}

TEST_CASE("a token that could break out of its header is none") {
  State state;
  state.put("token", "abc\r\nX-Evil: 1\n");
  CHECK(state.find().token.empty());
  CHECK(state.find().token_trouble == "holds no token");
}

TEST_CASE("a token that others may read is used with a warning") {
  State state;
  state.put("token", "abc", 0644);
  CHECK(state.find().token == "abc");
  CHECK(state.find().warning.find("chmod 600") != std::string::npos);
}

TEST_CASE("a directory in the token's place is told, not waited for") {
  State state;
  fs::create_directory(state.path() + "/token");
  CHECK_FALSE(state.find().token_trouble.empty());
}

TEST_CASE("the mark key is sixteen hex digits") {
  State state;
  CHECK(std::holds_alternative<std::string>(read_mark_key(state.path())));
  state.put("key", "00000000deadbeef\n");
  CHECK(std::get<std::uint64_t>(read_mark_key(state.path())) == 0xdeadbeef);
  for (const char* text : {"", "deadbeef", "00000000deadbeeg", "00000000deadbeef0"}) {
    state.put("key", text);
    CHECK(std::holds_alternative<std::string>(read_mark_key(state.path())));
  }
}

TEST_CASE("a plain word in a filter is a name") {
  CHECK(project_pattern("api") == "*/api");
  CHECK(project_pattern("/home/u/api") == "/home/u/api");
  CHECK(project_pattern("a*") == "a*");
  CHECK(session_pattern("2eaa") == "2eaa*");
  const std::string whole = "2eaa1c04-0000-4000-8000-000000000000";
  CHECK(session_pattern(whole) == whole + "*");  // at a hub its host is said after it
  CHECK(session_pattern("2eaa@dev7") == "2eaa*@dev7");
  CHECK(session_pattern(whole + "@dev7") == whole + "@dev7");
  CHECK(session_pattern("2e?a@*") == "2e?a@*");
  CHECK(type_pattern("turn") == "turn.*");
  CHECK(type_pattern("turn.started") == "turn.started");
}

TEST_CASE("a subscription says only what was asked for") {
  CHECK(subscribe_message({}, {}) ==
        R"({"type":"subscribe","id":"cli","filter":{},"deliver":"events","snapshot":true})");
  CHECK(
      subscribe_message({.project = {"api", "/x/\"y"}, .type = {"turn"}}, {.snapshot = false, .all = true}) ==
      R"({"type":"subscribe","id":"cli","filter":{"project":["*/api","/x/\"y"],"type":["turn.*"]},"deliver":"events","snapshot":false,"all":true})");
}

TEST_CASE("the socket that STATE names is tried first, then the port") {
  State state;
  state.put("socket", "/run/user/1000/earshot/sock\n");
  state.put("address", "ws://127.0.0.1:40001/v1/ws\n");
  const Doors doors = std::get<Doors>(find_daemon({.state = state.path()}));
  REQUIRE(doors.size() == 2);
  CHECK(doors[0].endpoint.url() == "unix:/run/user/1000/earshot/sock");
  CHECK(doors[0].token.empty());
  CHECK(doors[1].endpoint.port == "40001");
}

TEST_CASE("what is asked for is all that is tried") {
  State state;
  state.put("socket", "/run/user/1000/earshot/sock\n");
  CHECK(std::get<Doors>(find_daemon({.connect = "ws://127.0.0.1:5", .state = state.path()})).size() == 1);
  const Doors doors = std::get<Doors>(find_daemon({.socket = "/x/sock", .state = state.path()}));
  REQUIRE(doors.size() == 1);
  CHECK(doors[0].endpoint.url() == "unix:/x/sock");
  CHECK(std::holds_alternative<std::string>(find_daemon({.connect = "ws://h", .socket = "/x"})));
  CHECK(std::holds_alternative<std::string>(find_daemon({.socket = std::string(108, 'x')})));
}

TEST_CASE("the default socket is another daemon's when a state directory is given") {
  State runtime, state;
  fs::create_directory(runtime.path() + "/earshot");
  runtime.put("earshot/sock", "");
  setenv("XDG_RUNTIME_DIR", runtime.path().c_str(), 1);
  setenv("XDG_STATE_HOME", state.path().c_str(), 1);
  CHECK(std::get<Doors>(find_daemon({})).front().endpoint.socket == runtime.path() + "/earshot/sock");
  CHECK_FALSE(std::get<Doors>(find_daemon({.state = state.path()})).front().endpoint.is_unix());
  unsetenv("XDG_RUNTIME_DIR");
  unsetenv("XDG_STATE_HOME");
}

TEST_CASE("a daemon that is reached by TLS only is reached by its socket") {
  State state;
  state.put("address", "wss://dev7.example:7717/v1/ws\n");
  CHECK(std::get<std::string>(find_daemon({.state = state.path()})).find("ssh -L") != std::string::npos);
  state.put("socket", "/x/sock\n");
  CHECK(std::get<Doors>(find_daemon({.state = state.path()})).size() == 1);
}
