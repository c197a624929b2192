"""`earshot statusline`, the line for a status bar, and `earshot status`."""
import json
import os
import subprocess
import tempfile

from support.harness import CommandLines, DaemonCase, build, clean_environment, earshot, wait_for
from support.transcripts import Registry, Session


class Bar(CommandLines):
    """`earshot statusline --follow` as a status bar reads it: line by line."""

    def __init__(self, home, *args):
        self.errors = tempfile.TemporaryFile("w+")
        super().__init__([os.path.join(build(), "earshot"), "statusline", "--follow", *args], clean_environment(home), stderr=self.errors)

    def wait(self, condition):
        return wait_for(lambda: self.lines and condition(self.lines[-1]), f"another line than {self.lines[-3:]}",
                        give_up=lambda: self.process.poll() is not None and f"exited with {self.process.returncode}: {self.error_text()}")

    def error_text(self):
        self.errors.seek(0)
        return self.errors.read()

    def close(self):
        super().close()
        self.errors.close()


class StatusLine(DaemonCase):
    def bar(self, *args):
        bar = Bar(self.home, "--state", self.state, *args)
        self.addCleanup(bar.close)
        return bar

    def test_the_line_counts_waiting_and_working_sessions(self):
        daemon = self.start()
        self.assertEqual(self.statusline(), "\n")
        client = daemon.subscriber()
        asking, busy = Session(self.root, cwd="/home/ada/asking"), Session(self.root, cwd="/home/ada/busy")
        asking.prompt("delete it")
        asking.tool_call("Bash", {"command": "rm -rf build"})
        busy.prompt("work")
        Registry(self.root, asking.session, self.process()).set_status("waiting", "permission prompt")
        Registry(self.root, busy.session, self.process()).set_status("busy")
        client.wait(lambda: client.all(type="status", state="waiting") and client.all(type="turn.started", session=busy.session), "both statuses")
        self.assertEqual(self.statusline(), "⏸ 1 ● 1\n")
        self.assertEqual(self.statusline("--project", "busy"), "● 1\n")
        status = json.loads(self.statusline("--json"))
        self.assertEqual((status["text"], status["class"], status["alt"], status["waiting"], status["working"]), ("⏸ 1 ● 1", "waiting", "waiting", 1, 1))
        self.assertRegex(status["tooltip"], r"^⏸ asking permission: .*rm -rf build\n● busy: ")

    def statusline(self, *args):
        done = earshot("statusline", "--state", self.state, *args, home=self.home)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_follow_prints_each_change_once(self):
        self.start()
        bar = self.bar()
        bar.wait(lambda line: line == "")
        session = Session(self.root)
        registry = Registry(self.root, session.session, self.process())
        session.prompt("go on")
        registry.set_status("busy")
        bar.wait(lambda line: line == "● 1")
        registry.set_status("waiting", "input needed")
        bar.wait(lambda line: line == "⏸ 1")
        registry.set_status("idle")
        bar.wait(lambda line: line == "")
        self.assertTrue(all(one != other for one, other in zip(bar.lines, bar.lines[1:])), bar.lines)
        self.assertEqual(bar.stop(), 0)

    def test_without_a_daemon_it_prints_that_and_reconnects(self):
        bar = self.bar("--json", "--connect", "ws://127.0.0.1:9/v1/ws")
        away = json.loads(bar.wait(lambda line: "away" in line and line))
        self.assertEqual((away["text"], away["class"]), ("earshot?", "away"))
        self.assertIn("127.0.0.1:9", away["tooltip"])
        self.assertEqual(bar.stop(), 0)
        bar = self.bar()
        bar.wait(lambda line: line == "earshot?")
        daemon = self.start()
        bar.wait(lambda line: line == "")
        daemon.stop()
        bar.wait(lambda line: line == "earshot?")
        self.start()
        bar.wait(lambda line: line == "")

    def test_without_follow_and_without_a_daemon_it_exits_1(self):
        done = earshot("statusline", "--state", self.state, home=self.home)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("Is the daemon running?", done.stderr)

    def test_it_exits_when_its_output_is_closed(self):
        self.start()
        with subprocess.Popen([os.path.join(build(), "earshot"), "statusline", "--follow", "--state", self.state], stdout=subprocess.PIPE,
                              env=clean_environment(self.home)) as process:
            self.addCleanup(process.kill)
            self.assertEqual(process.stdout.readline(), b"\n")
            process.stdout.close()  # while there is nothing to write
            wait_for(lambda: process.poll() is not None, "it to exit")
            self.assertEqual(process.returncode, 0)


class Status(DaemonCase):
    def status(self, *args, code=0):
        done = earshot("status", "--state", self.state, *args, home=self.home)
        self.assertEqual(done.returncode, code, done)
        return done

    def test_it_shows_what_the_daemon_monitors(self):
        daemon, _ = self.daemon_with_a_turn()
        text = self.status().stdout
        self.assertRegex(text, rf"(?m)^daemon +earshotd .* all right, up .*, pid {daemon.process.pid}$")
        self.assertRegex(text, r"(?m)^sessions +1: 1 \w+$")
        self.assertIn(f"{self.root}: 1 transcript\n", text)
        status = json.loads(self.status("--json").stdout)
        self.assertEqual((status["ok"], status["sessions"]["total"], status["roots"][0]["transcripts"]), (True, 1, 1))

    def test_without_a_daemon_it_exits_3(self):
        self.assertIn("Is the daemon running?", self.status(code=3).stderr)
