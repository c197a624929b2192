#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>

#include "unit/cli/fixture.hpp"

namespace completions_test {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::cli::test;

namespace {

std::string words(std::vector<std::string> typed) {
  CLI::App app("", "earshot");
  add_commands(app);
  return complete_words(app, std::move(typed));
}

}  // namespace

TEST_CASE("commands, options and their values are completed") {
  CHECK(words({""}).starts_with("ls\tlist sessions"));
  CHECK(words({}).starts_with("ls\t"));
  CHECK(words({"ls", "-"}).find("--colour\t") != std::string::npos);
  CHECK(words({"ls", "--colour", ""}) == "auto\nalways\nnever\n");
  CHECK(words({"ls", "--colour", "=", "a"}) == "auto\nalways\nnever\n");
  CHECK(words({"ls", "--colour=a"}) == "--colour=auto\n--colour=always\n--colour=never\n");
  CHECK(words({"ls", "--state", ""}) == "\tdirectory\n");
  CHECK(words({"replay", ""}) == "\tfile\n");
  CHECK(words({"statusline", "--from", ""}) == "claude-code\n");
  CHECK(words({"tail", "--since", ""}).empty());
  CHECK(words({"browsers", ""}) == "revoke\n");
  CHECK(words({"browsers", "--state", "browsers", ""}) == "revoke\n");
  CHECK(words({"browsers", "revoke", "1f6c", ""}).empty());
  CHECK(words({"dance", "-"}).find("--version\t") != std::string::npos);
}

TEST_CASE("fault 156: the word last is offered where it is understood: as an argument") {
  const State state;  // without a daemon
  CHECK(words({"show", "--state", state.path(), ""}).starts_with("last\t"));
  CHECK(words({"focus", "--state", state.path(), ""}).starts_with("last\t"));
  CHECK(words({"ls", "--state", state.path(), "--session", ""}).empty());
  CHECK(words({"ls", "--state", state.path(), "--session=l"}).empty());
}

TEST_CASE("fault 86: ids that cannot be typed are not offered") {
  const State state;
  const auto session = [](const std::string& id) {
    return R"({"type":"session","host":"h","project":"/home/u/api","title":"a\nb\u001b","session":")" + id +
           "\"}";
  };
  FakeDaemon daemon({[&](Peer& peer) {
                      peer.subscription();
                      for (const char* id : {R"(a\nb)", R"(a\tb)", R"(a\u001b[31m)", R"(a\u202eb)",
                                             "--rotate", "-v", "", "2eaa$(touch x)"})
                        peer.send(session(id));
                      peer.send(R"({"type":"ready","id":"cli"})");
                      peer.finish();
                    }},
                    state.socket());
  const std::string offered = words({"show", "--state", state.path(), ""});
  CHECK(daemon.join().empty());
  CHECK(offered.starts_with("last\tthe session with the latest activity\n2eaa$(touch x)\tapi: a"));
  CHECK(std::count(offered.begin(), offered.end(), '\n') == 2);
  CHECK(offered.find('\x1b') == offered.npos);
}

TEST_CASE("filters are completed to what the live sessions have, each once, and to the types of events") {
  const State state;
  const auto session = [](const std::string& id, const std::string& project, const std::string& host) {
    return R"({"type":"session","host":")" + host + R"(","program":"codex","project":")" + project +
           R"(","session":")" + id + "\"}";
  };
  const auto serve = [&](Peer& peer) {
    peer.subscription();
    peer.send(session("1", "/home/u/web", "dev7"));
    peer.send(session("2", "/home/u/api", "dev8"));
    peer.send(session("3", "/srv/api", R"(de\u001bv)"));
    peer.send(R"({"type":"ready","id":"cli"})");
    peer.finish();
  };
  FakeDaemon daemon({serve, serve, serve}, state.socket());
  CHECK(words({"ls", "--state", state.path(), "--project", ""}) == "api\nweb\n");
  CHECK(words({"ls", "--state", state.path(), "--program=c"}) == "--program=codex\n");
  CHECK(words({"ls", "--state", state.path(), "--host", ""}) == "dev7\ndev8\n");
  CHECK(daemon.join().empty());
  const std::string types = words({"tail", "--type", ""});
  CHECK(types.starts_with("agent.finished\nagent.started\napi.failed\n"));
  CHECK(types.find("\nturn.started\n") != types.npos);
  CHECK(types.find("stream.") == types.npos);
  CHECK(std::count(types.begin(), types.end(), '\n') == 19);
}

TEST_CASE("without a daemon a session still completes to last") {
  const State state;
  CHECK(words({"show", "--socket", state.path("none"), ""}) ==
        "last\tthe session with the latest activity\n");
}

TEST_CASE("without a daemon no browser is offered") {
  const State state;
  CHECK(words({"browsers", "revoke", "--socket", state.path("none"), ""}).empty());
}

}  // namespace completions_test
