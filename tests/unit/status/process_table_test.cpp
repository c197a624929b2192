#include "status/process_table.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>

#include "unit/status/child.hpp"
#include "unit/status/fake_proc.hpp"

using namespace earshot;
using namespace earshot::status;

#ifdef __linux__

TEST_CASE("a process is alive if its start time matches") {
  const FakeProc proc;
  proc.stat(77, stat_line("agent", "S", "104676"));
  const ProcessTable processes = proc.processes();
  CHECK(processes.start_of(77) == "104676");
  CHECK(processes.check(77, "104676", "") == Liveness::alive);
  CHECK(processes.check(77, "", "") == Liveness::alive);
  CHECK(processes.check(77, "104677", "") == Liveness::dead);  // the pid was reused
  CHECK(processes.check(78, "104676", "") == Liveness::dead);
  CHECK(processes.check(0, "", "") == Liveness::dead);
  CHECK(processes.check(-5, "", "") == Liveness::dead);
  CHECK(processes.check(std::int64_t{1} << 40, "", "") == Liveness::dead);
}

TEST_CASE("a process name may contain any characters") {
  const FakeProc proc;
  proc.stat(77, stat_line("a) R 1 (2 3) S 4", "S", "555"));
  CHECK(proc.processes().start_of(77) == "555");
}

TEST_CASE("a zombie, an incomplete line and an empty one count as dead") {
  const FakeProc proc;
  const ProcessTable processes = proc.processes();
  proc.stat(77, stat_line("agent", "Z", "5"));
  CHECK(processes.check(77, "5", "") == Liveness::dead);
  proc.stat(77, "77 (agent) S 1 2");
  CHECK(processes.check(77, "5", "") == Liveness::dead);
  proc.stat(77, "");
  CHECK(processes.check(77, "", "") == Liveness::dead);
}

TEST_CASE("the domain is machine and pid namespace, any other one is foreign even if the pid exists") {
  const FakeProc proc;
  proc.stat(77, stat_line("agent", "S", "5"));
  const ProcessTable processes = proc.processes();
  CHECK(processes.pid_domain() == "linux:abc123:pid:[4026531836]");
  CHECK(processes.check(77, "5", "linux:abc123:pid:[4026531836]") == Liveness::alive);
  CHECK(processes.check(77, "5", "linux:abc123:pid:[4026532000]") == Liveness::foreign);
  CHECK(processes.check(99, "5", "linux:other:pid:[4026531836]") == Liveness::foreign);
  CHECK(ProcessTable(proc.scratch / "proc", "/nowhere").pid_domain() == "linux::pid:[4026531836]");
}

TEST_CASE("this process is alive in its own domain") {
  const ProcessTable processes;
  const std::string start = processes.start_of(::getpid());
  REQUIRE_FALSE(start.empty());
  CHECK(processes.check(::getpid(), start, processes.pid_domain()) == Liveness::alive);
}

TEST_CASE("a killed child is dead before it is waited for, and after") {
  Child child;
  const ProcessTable processes;
  const std::string start = processes.start_of(child.pid());
  REQUIRE(processes.check(child.pid(), start, "") == Liveness::alive);
  ::kill(child.pid(), SIGKILL);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT) == 0);
  CHECK(processes.check(child.pid(), start, "") == Liveness::dead);
  const pid_t pid = child.pid();
  child.end();
  CHECK(processes.check(pid, start, "") == Liveness::dead);
}

TEST_CASE("a scan finds the running instances of agent programs") {
  const FakeProc proc;
  proc.process(70, {"claude", "--resume"}, "/home/x");
  proc.process(71, {"vim", "claude"}, "/home/x");
  proc.process(72, {"/usr/bin/node", "/usr/bin/claude"}, "/gone (deleted)");
  proc.process(73, {"claude"}, "");
  proc.process(74, {"claude"}, "/home/x", "Z");
  const ProcessScan scan = proc.processes().scan();
  CHECK(scan.shows_all);
  std::map<std::int64_t, std::string> found;
  for (const AgentProcess& process : scan.processes) {
    CHECK(process.program == &default_program());
    CHECK(process.start == "5");
    found[process.pid] = process.cwd;
  }
  CHECK(found == std::map<std::int64_t, std::string>{{70, "/home/x"}, {72, "/gone"}, {73, ""}});
}

TEST_CASE("a scan is incomplete where processes may be hidden") {
  const FakeProc proc;
  const std::string mount = "proc " + proc.scratch / "proc" + " proc rw,relatime";
  struct Row {
    std::string mounts;
    bool shows_all;
  };
  for (const Row& row : {Row{mount + " 0 0\n", true}, Row{mount + ",hidepid=0 0 0\n", true},
                         Row{mount + ",hidepid=2 0 0\n", false},
                         Row{mount + ",hidepid=invisible 0 0\n", false}, Row{"", false}}) {
    CAPTURE(row.mounts);
    proc.scratch.write("proc/self/mounts", row.mounts);
    CHECK(proc.processes().scan().shows_all == row.shows_all);
  }
  proc.scratch.write("proc/self/mounts", mount + " 0 0\n");
  proc.set_namespace("pid:[4026532000]");
  CHECK_FALSE(proc.processes().scan().shows_all);
}

TEST_CASE("locks are read, not taken") {
  const FileLocks locks(
      "1: FLOCK  ADVISORY  WRITE 6104 fe:00:10952939 0 EOF\n"
      "1: -> FLOCK  ADVISORY  WRITE 6105 fe:00:10952939 0 EOF\n"
      "2: POSIX  ADVISORY  READ 6106 fe:00:77 0 EOF\n"
      "3: FLOCK  ADVISORY  READ 6107 08:11:78 0 EOF\n"
      "4: FLOCK  ADVISORY  WRITE 0 08:11:79 0 EOF\n"
      "5: FLOCK  ADVISORY  WRITE 6108 08-11-80 0 EOF\n"
      "6: FLOCK");
  REQUIRE(locks.all().size() == 2);
  CHECK(locks.all()[0].pid == 6104);
  CHECK(locks.all()[0].device == makedev(0xfe, 0));
  CHECK(locks.all()[0].inode == 10952939);
  CHECK(locks.all()[1].pid == 6107);
  CHECK(locks.all()[1].device == makedev(8, 0x11));
}

TEST_CASE("the holder of a lock is the process that locked that file") {
  const test::TemporaryDirectory scratch;
  scratch.write("a.lock", "");
  scratch.write("b.lock", "");
  const ProcessTable table;
  const Fd held(::open((scratch / "a.lock").c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(held.get(), LOCK_EX) == 0);
  CHECK(table.holders(scratch / "a.lock", table.locks()) == std::vector<std::int64_t>{::getpid()});
  CHECK(table.holders(scratch / "b.lock", table.locks()).empty());
  CHECK(table.holders(scratch / "none.lock", table.locks()).empty());
  REQUIRE(::flock(held.get(), LOCK_UN) == 0);
  CHECK(table.holders(scratch / "a.lock", table.locks()).empty());
}

TEST_CASE("an exit watch calls back at once") {
  boost::asio::io_context io;
  Child child;
  int deaths = 0;
  auto watch = ExitWatch::open(io, child.pid(), [&] { ++deaths; });
  if (!watch) {
    WARN("skipped: this kernel has no pidfd_open");
    return;
  }
  io.poll();
  CHECK(deaths == 0);
  ::kill(child.pid(), SIGKILL);
  io.restart();
  io.run_for(std::chrono::seconds(120));  // returns after the only handler
  CHECK(deaths == 1);
}

TEST_CASE("a destroyed exit watch does not call back") {
  boost::asio::io_context io;
  Child child;
  int deaths = 0;
  auto watch = ExitWatch::open(io, child.pid(), [&] { ++deaths; });
  watch.reset();
  child.end();
  io.run_for(std::chrono::seconds(20));
  CHECK(deaths == 0);
  CHECK_FALSE(ExitWatch::open(io, 0x7FFFFFFF, [] {}));
}

#endif
