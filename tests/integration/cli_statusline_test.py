"""`earshot statusline`, the line for a status bar, and `earshot status`."""
import json
import os
import re
import signal
import subprocess
import tempfile
import time

from support.harness import CommandLines, DaemonCase, build, clean_environment, deadline_s, earshot, wait_for
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
        client.wait(lambda: any("rm -rf build" in f.get("detail", "") for f in client.all(type="status", state="waiting")), "the wait and its call")
        client.wait_frame(type="status", session=busy.session, state="working", source="registry")
        client.wait_frame(type="turn.started", session=busy.session)
        self.assertEqual(self.statusline(), "⏸ 1 ● 1\n")
        self.assertEqual(self.statusline("--project", "busy"), "● 1\n")
        status = json.loads(self.statusline("--json"))
        self.assertEqual((status["text"], status["class"], status["alt"], status["waiting"], status["working"]), ("⏸ 1 ● 1", "waiting", "waiting", 1, 1))
        self.assertRegex(status["tooltip"], r"^⏸ asking permission[ ▰▱\d%]*: .*rm -rf build\n● busy")

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
        registry.set_status("busy")
        session.prompt("go on")
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


OWN = r"Opus 4\.1 ▰▰▰▱▱ 62% · \$1\.25 · 5h 23% 7d 41%"  # of ProgramLine.status()


class ProgramLine(DaemonCase):
    """`earshot statusline --from claude-code`, as Claude Code runs it."""

    def assert_line(self, text, pattern):
        """The command prints such a line. On a busy machine it may run out of time before it has everything: then it is run again."""
        def line():
            done = earshot("statusline", "--from", "claude-code", "--state", self.state, home=self.home, stdin=None, input=text)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return re.fullmatch(pattern, done.stdout)

        wait_for(line, f"a line like {pattern!r}")

    @staticmethod
    def status(session, **more):
        return json.dumps({
            "session_id": session, "cwd": "/home/ada/own", "model": {"id": "claude-opus-4-1", "display_name": "Opus 4.1"},
            "workspace": {"current_dir": "/home/ada/own", "project_dir": "/home/ada/own"}, "version": "2.1.330", "cost": {"total_cost_usd": 1.25},
            "context_window": {"context_window_size": 200000, "used_percentage": 62,
                               "current_usage": {"input_tokens": 4, "cache_creation_input_tokens": 996, "cache_read_input_tokens": 123000}},
            "rate_limits": {"five_hour": {"used_percentage": 23.5, "resets_at": int(time.time()) + 3600}, "seven_day": {"used_percentage": 41}}, **more})

    def waiting(self, cwd):
        session = Session(self.root, cwd=cwd)
        session.prompt("delete it")
        session.tool_call("Bash", {"command": "rm -rf build"})
        Registry(self.root, session.session, self.process()).set_status("waiting", "permission prompt")
        self.client.wait(lambda: self.client.all(type="status", session=session.session, state="waiting"), "the wait")
        return session.session

    def test_it_shows_the_session_and_who_else_waits(self):
        daemon = self.start()
        self.client = daemon.subscriber()
        own = self.waiting("/home/ada/own")
        self.waiting("/home/ada/web")
        self.assert_line(self.status(own), OWN + r" · ⏸ web permission \d+[smh]\n")

    def test_a_daemon_that_does_not_answer_is_not_waited_for(self):
        daemon = self.start()
        os.kill(daemon.process.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, daemon.process.pid, signal.SIGCONT)
        self.assert_line(self.status("own"), OWN + "\n")

    def test_without_a_daemon_and_without_input_it_prints_what_it_knows(self):
        self.assert_line(self.status("own"), OWN + "\n")
        for text in ("", "no JSON", "[]", self.status("own")[:-1], self.status("own", x="y" * 10_000_000)):
            self.assert_line(text, "\n")

    def test_a_program_that_keeps_stdin_open_is_not_waited_for(self):
        command = [os.path.join(build(), "earshot"), "statusline", "--from", "claude-code", "--state", self.state]

        def line(text):
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=clean_environment(self.home)) as process:
                process.stdin.write(text)
                process.stdin.flush()
                shown = process.stdout.read()
                self.assertEqual((process.stderr.read(), process.wait()), ("", 0))
                return shown

        wait_for(lambda: re.fullmatch(OWN + "\n", line(self.status("own"))), "the session's line")
        wait_for(lambda: line('{"session_id":') == "\n", "an empty line")

    def test_a_closed_output_is_no_error(self):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([os.path.join(build(), "earshot"), "statusline", "--from", "claude-code", "--state", self.state], input=self.status("own"),
                              text=True, stdout=write, stderr=subprocess.PIPE, env=clean_environment(self.home), timeout=deadline_s * 4)
        os.close(write)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_hint_changes_nothing_and_is_a_setting_that_works(self):
        before = sorted(os.listdir(self.home))
        done = earshot("statusline", "--install-hint", home=self.home)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(self.home)), before)
        self.assertIn("~/.claude/settings.json", done.stdout)
        setting = json.loads("{" + done.stdout[done.stdout.index('"statusLine":'):] + "}")["statusLine"]
        self.assertEqual(setting["type"], "command")
        run = lambda: subprocess.run(["/bin/sh", "-c", setting["command"]], input=self.status("own"), capture_output=True, text=True,
                                     env=clean_environment(self.home), timeout=deadline_s * 4)
        wait_for(lambda: re.fullmatch(OWN + "\n", run().stdout), "the session's line")

    def test_other_options_are_refused(self):
        for words in (["--from", "codex"], ["--from", "claude-code", "--follow"], ["--install-hint", "--json"]):
            self.assertEqual(earshot("statusline", *words, home=self.home).returncode, 2, words)


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
