#include <signal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "unit/cli/fixture.hpp"

namespace commands_test {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::cli::test;

namespace {

const char* const welcome = R"({"type":"welcome","protocol":1,"host":"dev7","view":"full"})";
const char* const session =
    R"({"type":"session","host":"dev7","session":"2eaa1c04","project":"/home/u/api","title":"Fix it","status":{"state":"idle"}})";
const char* const ready = R"({"type":"ready","id":"cli"})";
const char* const event_frame =
    R"({"type":"turn.started","host":"dev7","session":"2eaa1c04","turn":3,"prompt":"go","origin":"human"})";

// Receives the subscription, sends these frames, then waits until the client closes.
std::function<void(Peer&)> sending(std::vector<std::string> frames, std::string* subscription = nullptr) {
  return [=](Peer& peer) {
    peer.upgrade();
    peer.send(welcome);
    const std::string asked = peer.receive(1).payload;
    if (subscription != nullptr) *subscription = asked;
    for (const std::string& frame : frames) peer.send(frame);
    peer.finish();
  };
}

// The same, but then the process receives SIGTERM.
std::function<void(Peer&)> sending_then_signal(std::vector<std::string> frames) {
  return [=](Peer& peer) {
    peer.subscription();
    for (const std::string& frame : frames) peer.send(frame);
    peer.ping();
    peer.receive(10);  // all previous frames were read
    ::kill(::getpid(), SIGTERM);
    peer.finish();
  };
}

ConnectOptions at(const FakeDaemon& daemon, const TemporaryDirectory& state) {
  return {.connect = daemon.url(), .token_file = state.put("token", "t0ken"), .state = state.path()};
}

}  // namespace

TEST_CASE("ls prints a table and exits") {
  const TemporaryDirectory state;
  std::string subscription;
  FakeDaemon daemon({sending({session, ready}, &subscription)});
  const Printed printed = run(list_command, {.filters = {.project = {"api"}}, .daemon = at(daemon, state)});
  CHECK(daemon.join().empty());
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.err.empty());
  CHECK(printed.out.starts_with("STATUS"));
  CHECK(printed.out.find("2eaa1c04") != std::string::npos);
  CHECK(subscription.find(R"("filter":{"project":["*/api"]})") != std::string::npos);
}

TEST_CASE("ls --json prints one array of frames") {
  const TemporaryDirectory state;
  FakeDaemon daemon({sending({session, session, ready}), sending({ready})});
  const ListOptions options{.daemon = at(daemon, state), .json = true};
  CHECK(run(list_command, options).out == "[" + std::string(session) + ",\n " + session + "]\n");
  CHECK(run(list_command, options).out == "[]\n");
}

TEST_CASE("ls without sessions explains what to do") {
  const TemporaryDirectory state;
  FakeDaemon daemon({sending({ready}), sending({ready}), sending({ready})});
  const Printed none = run(list_command, {.daemon = at(daemon, state)});
  CHECK(none.out.starts_with("no sessions yet\n"));
  CHECK(none.out.find("earshot ls --all") != none.out.npos);
  const Printed all = run(list_command, {.daemon = at(daemon, state), .all = true});
  CHECK(all.out.starts_with("no sessions yet\n"));
  CHECK(all.out.find("--all") == all.out.npos);
  CHECK(none.exit_code == exit_ok);
  const Printed filtered = run(list_command, {.filters = {.host = {"x"}}, .daemon = at(daemon, state)});
  CHECK(filtered.out == "no session matches the filters\n");
}

TEST_CASE("errors of the daemon are printed") {
  const TemporaryDirectory state;
  const char* const error =
      R"({"type":"error","id":"cli","code":"bad_filter","message":"too many\u001b patterns","retry":false})";
  FakeDaemon daemon({sending({error}), sending({error})});
  const Printed list = run(list_command, {.daemon = at(daemon, state)});
  CHECK(list.exit_code == exit_failed);
  CHECK(list.err == "earshot: the daemon reported an error: too many\\x1b patterns (bad_filter)\n");
  const Printed tail = printed_by([&] { return tail_command({.daemon = at(daemon, state)}); });
  CHECK(tail.exit_code == exit_failed);
  CHECK(tail.err == list.err);
}

TEST_CASE("without a daemon ls fails and names the command that starts it") {
  const TemporaryDirectory state;
  FakeDaemon daemon({});
  daemon.join();
  const Printed printed = run(list_command, {.daemon = at(daemon, state)});
  CHECK(printed.exit_code == exit_failed);
  CHECK(printed.out.empty());
  CHECK(printed.err.find("cannot reach the daemon at " + daemon.url()) != std::string::npos);
  CHECK(printed.err.find("Start it:  earshotd") != std::string::npos);
}

TEST_CASE("without a daemon tail waits and reports it once") {
  const TemporaryDirectory state;
  FakeDaemon daemon({});
  daemon.join();
  const Printed printed = printed_by([&] {
    std::thread stopper([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // several attempts
      ::kill(::getpid(), SIGTERM);
    });
    const int exit_code = tail_command({.daemon = at(daemon, state)});
    stopper.join();
    return exit_code;
  });
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.out.empty());
  const std::size_t first = printed.err.find("Waiting for the daemon");
  CHECK(first != std::string::npos);
  CHECK(first == printed.err.rfind("Waiting for the daemon"));
}

TEST_CASE("fault 87: a server that does not prove that it is the daemon ends ls and tail with an error") {
  const State state;
  std::string sent;
  const auto impostor = [&](Peer& peer) {
    sent += peer.head();
    peer.answer_proof("200 OK", std::string(64, 'a'));
    sent += peer.rest();
  };
  FakeDaemon daemon({impostor, impostor, impostor});
  const ConnectOptions options = at(daemon, state);
  for (const Printed& printed :
       {run(list_command, {.daemon = options}), printed_by([&] { return tail_command({.daemon = options}); }),
        run(open_command, {.daemon = options, .print = true})}) {
    CHECK(printed.exit_code == exit_failed);
    CHECK(printed.out.empty());
    CHECK(printed.err.starts_with("earshot: the token was not sent to the server at ws://127.0.0.1:"));
  }
  CHECK(daemon.join().empty());
  CHECK(sent.find("t0ken") == sent.npos);
}

TEST_CASE("a malformed address is a usage error") {
  CHECK(printed_by([&] { return tail_command({.daemon = {.connect = "nonsense"}}); }).exit_code ==
        exit_usage);
  CHECK(run(list_command, {.daemon = {.connect = "nonsense"}}).exit_code == exit_usage);
}

TEST_CASE("tail --json prints exactly the frames, one per line, until a signal") {
  const TemporaryDirectory state;
  FakeDaemon daemon({sending_then_signal({welcome, session, ready, event_frame})});
  const Printed printed =
      printed_by([&] { return tail_command({.daemon = at(daemon, state), .json = true}); });
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.err.empty());
  CHECK(printed.out == std::string(welcome) + "\n" + session + "\n" + ready + "\n" + event_frame + "\n");
}

TEST_CASE("a frame of several lines is printed as one") {
  const TemporaryDirectory state;
  FakeDaemon daemon({sending_then_signal({"{\"type\":\n\"x\"}"})});
  CHECK(printed_by([&] { return tail_command({.daemon = at(daemon, state), .json = true}); }).out ==
        "{\"type\": \"x\"}\n");
}

TEST_CASE("fault 159: tail prints the sessions, then events, as lines without a terminal, too") {
  const TemporaryDirectory state;
  FakeDaemon daemon({sending_then_signal({welcome, session, ready, event_frame})});
  const Printed printed =
      printed_by([&] { return tail_command({.daemon = at(daemon, state), .colour = ColourMode::never}); });
  CHECK(printed.out.find("api") != std::string::npos);
  CHECK(printed.out.find("idle") < printed.out.find("turn 3"));
  CHECK(std::count(printed.out.begin(), printed.out.end(), '\n') == 2);
}

TEST_CASE("tail --no-snapshot uses the names of sessions without printing them") {
  const TemporaryDirectory state;
  FakeDaemon daemon({sending_then_signal({welcome, session, ready, event_frame})});
  const Printed printed = printed_by([&] {
    return tail_command({.daemon = at(daemon, state), .colour = ColourMode::never, .snapshot = false});
  });
  CHECK(std::count(printed.out.begin(), printed.out.end(), '\n') == 1);
  CHECK(printed.out.find(" api ") != std::string::npos);
}

TEST_CASE("tail reconnects and prints missed events, and none twice") {
  const TemporaryDirectory state;
  const std::string cursor = "1.1.00000000000000aa", next = "2.1.00000000000000bb";
  const auto event_at = [](const std::string& at) {
    return R"({"type":"turn.started","host":"dev7","stream":"claude/-home-u-api/2eaa1c04","session":"2eaa1c04","cursor":")" +
           at + R"(","time":"2026-11-24T14:00:00Z","turn":1})";
  };
  const std::string seen =
      R"({"type":"session","host":"dev7","session":"2eaa1c04","cursors":["claude/-home-u-api/2eaa1c04:)" +
      next + R"("],"status":{"state":"idle"}})";
  std::string subscribe;
  FakeDaemon daemon({
      [&](Peer& peer) {
        peer.subscription();
        peer.send(welcome);
        peer.send(ready);
        peer.send(event_at(cursor));
        peer.close(1001, "stopping");
        peer.receive(8);
      },
      [&](Peer& peer) {
        subscribe = peer.subscription();
        peer.send(seen);
        peer.send(ready);
        peer.send(event_at(next));
        peer.send(R"({"type":"bookmark","id":"cli","cursors":[],"complete":true})");
        peer.ping();
        peer.receive(10);
        ::kill(::getpid(), SIGTERM);
        peer.finish();
      },
  });
  const Printed printed =
      printed_by([&] { return tail_command({.daemon = at(daemon, state), .json = true}); });
  CHECK(daemon.join().empty());
  CHECK(printed.exit_code == exit_ok);
  INFO(printed.out << printed.err);
  CHECK(printed.out.starts_with(std::string(welcome) + "\n" + ready + "\n" + event_at(cursor) + "\n"));
  CHECK(printed.out.find(event_at(next)) != std::string::npos);
  CHECK(printed.out.find(event_at(cursor)) == printed.out.rfind(event_at(cursor)));
  CHECK(subscribe.find(R"("after":["claude/-home-u-api/2eaa1c04:)" + cursor + R"("])") != std::string::npos);
  CHECK(subscribe.find(R"("snapshot":true)") != std::string::npos);
  CHECK(printed.err.find("reconnecting") != std::string::npos);
  CHECK(printed.err.find("earshot: connected") != std::string::npos);
}

TEST_CASE("tail does not reconnect after a close code that forbids it") {
  const TemporaryDirectory state;
  FakeDaemon daemon({[](Peer& peer) {
    peer.subscription();
    peer.close(4501, "no");
    peer.receive(8);
  }});
  const Printed printed = printed_by([&] { return tail_command({.daemon = at(daemon, state)}); });
  CHECK(printed.exit_code == exit_failed);
  CHECK(printed.err.find("4501") != std::string::npos);
}

TEST_CASE("tail ends without an error if its output is closed") {
  const TemporaryDirectory state;
  FakeDaemon daemon({[](Peer& peer) {
    peer.subscription();
    peer.send(welcome);
    peer.ping();
    peer.receive(10);
    peer.send(event_frame);  // the write of the first frame failed: the client has noticed
    peer.receive(8);
  }});
  const TailOptions options{.daemon = at(daemon, state), .json = true};
  CHECK(exit_code_with_closed_output([&] { return tail_command(options); }) == exit_ok);
}

}  // namespace commands_test
