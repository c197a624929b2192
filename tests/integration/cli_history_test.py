"""`earshot` and history: show, tail --since, and a tail that was disconnected."""
import json
import os
import re
import signal
import subprocess
import tempfile

from support.harness import DaemonCase, build, clean_environment, earshot, wait_for
from support.terminal import CONTROL_SEQUENCES, Terminal, assert_no_control_characters
from support.transcripts import Session, SessionWithSiblingAgents, SessionWithInlineAgents


class TailToFile(DaemonCase):
    """`earshot tail` with its output in a file."""

    def tail(self, *args):
        out = tempfile.NamedTemporaryFile(dir=self.home, delete=False)
        process = subprocess.Popen([os.path.join(build(), "earshot"), "tail", "--state", self.state, *args], stdout=out, stdin=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, env=clean_environment(self.home))
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        out.close()
        self.path = out.name
        return process

    def lines(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read().split("\n")[:-1]

    def events(self):
        return [line for line in self.lines() if "cursor" in json.loads(line)]

    def wait_events(self, count, process):
        wait_for(lambda: len(self.events()) >= count, f"{count} events, there are {len(self.events())}",
                 give_up=lambda: process.poll() is not None and f"tail exited with {process.returncode}")

    def test_a_disconnected_tail_prints_what_it_missed_and_nothing_twice(self):
        daemon = self.start()
        process = self.tail("--json")
        wait_for(lambda: any(json.loads(line)["type"] == "ready" for line in self.lines()), "the snapshot's end")
        known = Session(self.root)
        known.turn("before")
        self.wait_events(len(daemon.replay(known.path).popitem()[1]), process)
        daemon.stop()
        known.turn("while disconnected")
        created = Session(self.root, cwd="/home/ada/created")
        created.turn("created while disconnected")
        again = self.start()
        expected = again.replay(known.path, created.path)
        self.wait_events(sum(len(events) for events in expected.values()), process)
        known.turn("afterwards")
        expected = again.replay(known.path, created.path)
        self.wait_events(sum(len(events) for events in expected.values()), process)
        for stream, events in expected.items():
            self.assert_same_events(events, [line for line in self.events() if json.loads(line)["stream"] == stream], stream)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 0)

    def test_since_prints_events_after_that_time_and_continues_live(self):
        old, new = Session(self.root), Session(self.root, cwd="/home/ada/new")
        old.append(old.record("user", {"role": "user", "content": "long ago"}, timestamp="2020-01-01T00:00:00.000Z"))
        old.turn("of late")
        new.turn("of late, too")
        daemon = self.start()
        process = self.tail("--json", "--since", "1h")
        wait_for(lambda: any('"complete":true' in line for line in self.lines()), "the end of the history")
        printed = self.events()
        times = [json.loads(line)["time"] for line in printed]
        self.assertEqual(times, sorted(times))
        self.assertNotIn("long ago", "".join(printed))
        expected = {stream: [line for line in lines if "2020-01-01" not in line] for stream, lines in daemon.replay(old.path, new.path).items()}
        for stream, lines in expected.items():
            self.assert_same_events(lines, [line for line in printed if json.loads(line)["stream"] == stream], stream)
        new.prompt("and now")
        wait_for(lambda: any("and now" in line for line in self.lines()), "the live event")
        self.assertEqual(len({json.loads(line)["stream"] + json.loads(line)["cursor"] for line in self.events()}), len(self.events()))
        process.kill()

    def test_an_invalid_time_for_since_is_a_usage_error(self):
        done = earshot("tail", "--since", "yesterday", home=self.home)
        self.assertEqual(done.returncode, 2)
        self.assertIn("10m", done.stderr)


class Show(DaemonCase):
    def session(self, era=Session):
        session = era(self.root)
        session.turn("count the beds", answer="There are three.")
        session.prompt("plant them")
        failed = session.tool_call("Bash", {"command": "dig", "description": "Dig"})
        session.result(failed, "the ground is frozen", error=True)
        call, agent, gardener = session.agent("Ask a gardener")
        gardener.turn("When?", answer="Not before March.")
        session.agent_result(call, agent, "In March.")
        session.reply("In March.", stop_reason="end_turn")
        return session

    def show(self, *args, code=0):
        done = earshot("show", *args, "--state", self.state, home=self.home)
        self.assertEqual(done.returncode, code, done)
        return done

    def test_show_prints_a_session_turn_by_turn(self):
        session = self.session(lambda root: self.held_open(Session(root)))
        self.start()
        shown = self.show(session.session[:6]).stdout
        self.assertRegex(shown, r"(?s)api\n.*turn 1 .*completed.*› count the beds.*⚙ Bash  echo count the beds  ✓.*“ There are three\.\n"
                                r".*turn 2 .*› plant them\n  ⚙ Bash  dig  ✗.*\n    ✗ the ground is frozen\n"
                                r"  ↳ .*Ask a gardener  ✓ .*\n  │ ⚙ Bash  echo When\?  ✓.*\n  │ “ Not before March\.\n  “ In March\.\n$")
        idle = re.compile(r" · idle [\w.]+")  # goes on
        self.assertEqual(idle.sub("", shown), idle.sub("", self.show("last").stdout))
        self.assertRegex(shown, idle)
        self.assertNotIn("count the beds", self.show("last", "--turn", "2").stdout)
        self.assertIn("has no turn 9", self.show("last", "--turn", "9", code=1).stderr)

    def test_subagents_of_every_era_are_indented(self):
        sessions = [self.session(era) for era in (Session, SessionWithSiblingAgents, SessionWithInlineAgents)]
        self.start()
        for session in sessions:
            shown = self.show(session.session).stdout
            self.assertRegex(shown, r"(?s)↳ .*\n  │ .*“ Not before March\.\n.*  “ In March\.\n", type(session).__name__)

    def test_a_session_that_ended_long_ago_is_shown_too(self):
        session = self.session()
        for folder, _, names in os.walk(self.root):
            for name in names:
                os.utime(os.path.join(folder, name), (1e9, 1e9))
        daemon = self.start("--recent", "1h")
        client = daemon.client()
        self.assertEqual(client.subscribe(), [])
        self.assertIn("count the beds", self.show(session.session).stdout)
        self.assertIn("count the beds", self.show("last").stdout)

    def test_show_json_prints_the_events_of_replay(self):
        session = self.session()
        daemon = self.start()
        expected = daemon.replay(os.path.join(self.root, "projects"))
        printed = self.show("last", "--json").stdout.split("\n")[:-1]
        for stream, lines in expected.items():
            self.assert_same_events(lines, [line for line in printed if json.loads(line)["stream"] == stream], stream)
        self.assertEqual(len(printed), sum(map(len, expected.values())))
        self.assertTrue(session.session in printed[0])

    def test_an_ambiguous_id_lists_the_matches(self):
        one, two = Session(self.root), Session(self.root)
        one.turn("one")
        two.turn("two")
        self.start()
        done = self.show("*", code=2)
        self.assertIn(one.session, done.stderr)
        self.assertIn(two.session, done.stderr)
        self.assertIn("ls --all", self.show("nobody", code=1).stderr)

    def test_without_a_daemon_show_suggests_replay(self):
        done = earshot("show", "last", "--state", self.state, "--connect", "ws://127.0.0.1:9/v1/ws", home=self.home)
        self.assertEqual(done.returncode, 1)
        self.assertIn("earshot replay FILE --pretty", done.stderr)

    def test_on_a_terminal_the_output_is_paged_and_escaped(self):
        session = Session(self.root, cwd="/home/ada/e\x1b[31mvil")
        session.prompt(f"prompt {CONTROL_SEQUENCES}")
        session.result(session.tool_call("Bash", {"command": f"echo {CONTROL_SEQUENCES}", "description": CONTROL_SEQUENCES}), f"output {CONTROL_SEQUENCES}\n{CONTROL_SEQUENCES}", error=True)
        session.reply(f"answer {CONTROL_SEQUENCES}", stop_reason="end_turn")
        self.start()
        pager = os.path.join(self.home, "pager")
        with open(pager, "w") as file:
            file.write("#!/bin/sh\necho paged by us; cat; echo the end\n")
        os.chmod(pager, 0o700)
        for args in ((), ("-v",)):
            terminal = Terminal(["show", "last", "--state", self.state, *args], self.home, PAGER=pager)
            self.addCleanup(terminal.close)
            terminal.wait("paged by us")
            wait_for(lambda: terminal.process.poll() is not None, "the end")
            text = terminal.plain()
            self.assertRegex(text, r"(?s)paged by us.*turn 1.*answer.*the end")
            assert_no_control_characters(self, text)
            self.assertTrue(all(len(line) <= 100 for line in text.split("\n") if "\\x" not in line), text)
        plain = Terminal(["show", "last", "--state", self.state, "--no-pager"], self.home, PAGER=pager)
        self.addCleanup(plain.close)
        wait_for(lambda: plain.process.poll() is not None, "the end")
        self.assertNotIn("paged by us", plain.plain())
        self.assertRegex(plain.plain(), r"turn 1")

    def test_session_ids_are_completed(self):
        session = self.session()
        self.start()

        def completions():
            done = earshot("complete", "show", "--state", self.state, "", home=self.home)
            self.assertEqual(done.returncode, 0)
            return done.stdout

        wait_for(lambda: re.search(rf"(?m)^{session.session}\tapi", completions()), "its id")  # none from a daemon that is too busy


class Doctor(DaemonCase):
    def test_without_a_daemon_doctor_names_the_command_to_start_it(self):
        os.makedirs(os.path.join(self.home, ".claude", "projects"))
        done = earshot("doctor", "--json", "--state", self.state, "--connect", "ws://127.0.0.1:9/v1/ws", home=self.home)
        self.assertEqual(done.returncode, 1, done)
        report = json.loads(done.stdout)
        daemon = next(f for f in report["findings"] if f["what"] == "daemon")
        self.assertEqual((daemon["level"], daemon["advice"]), ("problem", "earshotd"))
        self.assertEqual(report["problems"], 1, report)
        self.assertIn("inotify", {f["what"] for f in report["findings"]})

    def test_doctor_reports_a_readable_token_with_its_fix(self):
        os.makedirs(self.state, mode=0o700)
        token = os.path.join(self.state, "token")
        with open(token, "w") as file:
            file.write("a" * 64)
        os.chmod(token, 0o644)
        done = earshot("doctor", "--state", self.state, "--connect", "ws://127.0.0.1:9/v1/ws", home=self.home)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"chmod 600 {token}", done.stdout)
