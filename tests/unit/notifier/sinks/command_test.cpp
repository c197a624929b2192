#include "notifier/sinks/sinks.hpp"

#include <fcntl.h>
#include <signal.h>

#include <chrono>

#include "unit/notifier/engine_harness.hpp"

using namespace earshot;
using namespace earshot::notifier;
using namespace earshot::notifier::test;

namespace {

Sink shell(const std::string& script, std::int64_t timeout_ms = 300'000) {
  Sink sink;
  sink.name = "x";
  sink.kind = SinkKind::command;
  sink.command = {"/bin/sh", "-c", script};
  sink.timeout_ms = timeout_ms;
  return sink;
}

Notice notice() { return sample_notice("$(touch /tmp/never); `x`", "b"); }

}  // namespace

TEST_CASE("a command receives the notice on stdin and in its environment, without a shell") {
  TemporaryDirectory scratch;
  const Delivery delivery = run_command(
      shell("cat > " + (scratch / "in") + "; printf %s \"$EARSHOT_TITLE\" > " + (scratch / "title")),
      notice());
  INFO(delivery.why);
  CHECK(delivery.done);
  CHECK(scratch.read("in") == notice_json(notice()) + "\n");
  CHECK(scratch.read("title") == notice().title);
}

TEST_CASE("the error of a failed command contains its stderr, a missing program is a permanent failure") {
  const Delivery failed = run_command(shell("echo the reason >&2; exit 3"), notice());
  CHECK_FALSE(failed.done);
  CHECK_FALSE(failed.permanent);
  CHECK(failed.why == "/bin/sh exited with 3: the reason");
  Sink none = shell("");
  none.command = {"/nonexistent/program"};
  CHECK(run_command(none, notice()).permanent);
}

TEST_CASE("a command that exceeds its timeout is killed with its children, even if it ignores SIGTERM") {
  TemporaryDirectory scratch;
  const auto begin = std::chrono::steady_clock::now();
  const Delivery delivery = run_command(
      shell("trap '' TERM; (sleep 600; touch " + (scratch / "late") + ") & sleep 600", 300), notice());
  CHECK_FALSE(delivery.done);
  CHECK(delivery.why.find("took longer than 300ms") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(300));  // half of what it would take
}

TEST_CASE("fault 136: a command that leaves a child with its stderr is done when it exits") {
  TemporaryDirectory scratch;
  const std::string leave = "sleep 600 & echo $! > " + (scratch / "child") + "; ";
  const Delivery delivery = run_command(shell(leave + "exit 0"), notice());
  CHECK(delivery.done);
  const pid_t child = std::stoi(scratch.read("child"));
  CHECK(::kill(child, 0) == 0);  // what it began goes on
  ::kill(child, SIGKILL);
  const Delivery failed = run_command(shell(leave + "echo the reason >&2; exit 3"), notice());
  CHECK(failed.why == "/bin/sh exited with 3: the reason");
  ::kill(std::stoi(scratch.read("child")), SIGKILL);
}

TEST_CASE("a command may ignore its stdin and write much to stderr") {
  Notice large = notice();
  large.event = "\"" + std::string(200'000, 'x') + "\"";
  CHECK(run_command(shell("exit 0"), large).done);
  CHECK(run_command(shell("yes | head -c 300000 >&2; exit 0"), large).done);
}

TEST_CASE("the bell needs a terminal") {
  TemporaryDirectory scratch;
  Sink sink;
  sink.kind = SinkKind::bell;
  sink.tty = scratch / "file";
  scratch.write("file", "");
  CHECK(write_bell(sink).permanent);
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  sink.tty = ::ptsname(terminal);
  CHECK(write_bell(sink).done);
  char received = 0;
  CHECK(::read(terminal, &received, 1) == 1);
  CHECK(received == '\a');
  ::close(terminal);
}
