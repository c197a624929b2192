"""The program `earshot`, as a person uses it: in a pipe and on a terminal."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

from harness import Case, build, clean_environment, earshot, wait_for
from sessions import Registry, Session

EVIL = "\x1b]0;owned\x07 \x1b[31mred\x1b[0m \x9b31m \u202eback\u2066 \x7f \r\x08 \u200f bell\x07 end"
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f]")
COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")


class Terminal:
    """A program on a pty of its own."""

    def __init__(self, args, home, columns=100, **environment):
        self.fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen([os.path.join(build(), "earshot"), *args], stdin=child, stdout=child, stderr=child,
                                        env={**clean_environment(home), **environment}, start_new_session=True)
        os.close(child)
        self.text = b""

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                piece = os.read(self.fd, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            self.text += piece
        return self.text.decode(errors="replace")

    def plain(self):
        return COLOUR.sub("", self.read()).replace("\r\n", "\n")

    def wait(self, pattern):
        try:
            return wait_for(lambda: re.search(pattern, self.plain()), f"{pattern!r} on the terminal",
                            give_up=lambda: self.process.poll() is not None and f"gone with {self.process.returncode}")
        except AssertionError as failed:
            raise AssertionError(f"{failed}; it shows:\n{self.plain()}") from None

    def wait_connected(self, root):
        """Until it shows what happens: another session speaks up again and again."""
        herald = Session(root, cwd="/home/ada/herald")

        def heard():
            herald.prompt("hear ye")
            return "hear ye" in self.plain()

        wait_for(heard, "the terminal's first line")

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        code = wait_for(lambda: self.process.poll() is not None and (self.process.returncode,), "the end")[0]
        self.read()
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.fd)


class Tail(Case):
    def terminal(self, *args, **more):
        terminal = Terminal(args, self.home, **more)
        self.addCleanup(terminal.close)
        return terminal

    def test_tail_on_a_terminal_shows_a_line_for_each_thing_that_happens(self):
        self.start()
        terminal = self.terminal("tail", "--state", self.state)
        terminal.wait_connected(self.root)
        session = Session(self.root)
        session.prompt("fix the flaky test")
        terminal.wait("fix the flaky test")
        registry = Registry(self.root, session.session, self.process())
        call = session.calls("Bash", {"command": "npm test", "description": "Run"})
        registry.says("waiting", "permission prompt")
        terminal.wait(r"(?i)needs you.*permission.*npm test")
        session.result(call, "ok")
        session.says("All green.", stop_reason="end_turn")
        terminal.wait(r"turn 1 completed")
        shown = terminal.plain()
        self.assertRegex(shown, r"api .*Bash +npm test")
        self.assertIn("All green.", shown)
        self.assertTrue(all(len(line) <= 100 for line in shown.split("\n")), shown)
        self.assertRegex(terminal.read(), "\x1b\\[")  # in colour
        self.assertEqual(terminal.stop(), 0)

    def test_no_color_is_respected(self):
        self.start()
        terminal = self.terminal("tail", "--state", self.state, NO_COLOR="1")
        Session(self.root).prompt("plainly")
        terminal.wait("plainly")
        self.assertNotRegex(terminal.read(), "\x1b\\[[0-9;]*m")
        self.assertEqual(terminal.stop(signal.SIGTERM), 0)

    def test_control_characters_never_reach_the_terminal(self):
        self.start()
        pretty = self.terminal("tail", "--state", self.state, "--pretty")
        pretty.wait_connected(self.root)
        session = Session(self.root, cwd="/home/ada/e\x1b[31mvil")
        session.prompt(f"prompt {EVIL}")
        call = session.calls("Bash", {"command": f"echo {EVIL}", "description": EVIL})
        session.result(call, f"output {EVIL}", error=True)
        session.result(session.calls(f"Tool{EVIL}", {"file_path": EVIL}))
        session.append(session.record("summary", summary=f"title {EVIL}", leafUuid=session.parent), {"type": "custom-title", "customTitle": f"title {EVIL}", "sessionId": session.session})
        session.says(f"answer {EVIL}", stop_reason="end_turn")
        pretty.wait("turn 1 completed")
        self.assert_clean(pretty.plain())
        table = self.terminal("ls", "--state", self.state)
        wait_for(lambda: table.process.poll() is not None, "the table")
        self.assertIn("vil", table.plain())
        self.assert_clean(table.plain())
        pretty.stop()

    def assert_clean(self, text):
        found = CONTROL.search(text.replace("\r", "").replace("\n", ""))
        self.assertIsNone(found, f"a control character is shown: {found and text[max(0, found.start() - 60):found.end() + 20]!r}")
        self.assertNotIn("\x1b", text)

    def test_tail_that_is_no_terminal_writes_exactly_the_frames(self):
        daemon = self.start()
        client = daemon.subscriber()
        path = os.path.join(self.home, "frames")
        with open(path, "wb") as out:
            tail = subprocess.Popen([os.path.join(build(), "earshot"), "tail", "--state", self.state], stdout=out, env=clean_environment(self.home))
        self.addCleanup(tail.wait)
        self.addCleanup(tail.kill)

        def lines():
            with open(path, encoding="utf-8") as file:
                return file.read().split("\n")[:-1]

        wait_for(lambda: any(json.loads(line)["type"] == "ready" for line in lines()), "the snapshot's end")
        session = Session(self.root)
        session.turn("piped")
        self.live(daemon, client, session.path)
        events = client.event_texts()[f"claude/-home-ada-api/{session.session}"]
        wait_for(lambda: sum('"cursor"' in line for line in lines()) >= len(events), "the turn")
        self.same(events, [line for line in lines() if "cursor" in json.loads(line)], "what tail wrote")

    def test_tail_comes_back_after_the_daemon_did(self):
        daemon = self.start()
        terminal = self.terminal("tail", "--state", self.state)
        session = Session(self.root)
        session.prompt("before")
        terminal.wait("before")
        port = daemon.port
        daemon.stop()
        self.start(listen=f"127.0.0.1:{port}")
        session.prompt("afterwards")
        terminal.wait("afterwards")
        terminal.stop()

    def test_without_a_daemon_it_says_so_and_exits_1(self):
        done = earshot("ls", "--state", self.state, "--connect", "ws://127.0.0.1:9/v1/ws", home=self.home)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("127.0.0.1:9", done.stderr)

    def test_a_usage_error_exits_2(self):
        self.assertEqual(earshot("dance", home=self.home).returncode, 2)


class Ls(Case):
    def test_ls_shows_each_session_with_the_waiting_one_first(self):
        daemon = self.start()
        client = daemon.subscriber()
        calm, asking = Session(self.root, cwd="/home/ada/calm"), Session(self.root, cwd="/home/ada/asking")
        calm.turn("nothing much")
        asking.prompt("delete it")
        asking.calls("Bash", {"command": "rm -rf build"})
        Registry(self.root, asking.session, self.process()).says("waiting", "permission prompt")
        client.wait(lambda: [f for f in client.all(type="status", state="waiting") if "rm -rf" in f.get("detail", "")], "the waiting session")
        client.wait_frame(type="turn.finished", session=calm.session)
        table = earshot("ls", "--state", self.state, home=self.home)
        self.assertEqual(table.returncode, 0, table)
        rows = [line for line in table.stdout.splitlines() if "asking" in line or "calm" in line]
        self.assertEqual(len(rows), 2, table.stdout)
        self.assertIn("asking", rows[0])
        self.assertRegex(rows[0], "permission.*rm -rf build")

    def test_ls_json_is_one_array_of_session_frames(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = Session(self.root)
        session.turn("hello")
        client.wait_frame(type="turn.finished")
        done = earshot("ls", "--json", "--state", self.state, home=self.home)
        frames = json.loads(done.stdout)
        self.assertEqual([(f["type"], f["session"], f["turn"]["number"]) for f in frames], [("session", session.session, 1)])

    def test_ls_without_sessions_says_what_to_do(self):
        self.start()
        done = earshot("ls", "--state", self.state, home=self.home)
        self.assertEqual(done.returncode, 0)
        self.assertIn("no sessions", (done.stdout + done.stderr).lower())


class Replay(Case):
    def test_replay_needs_no_daemon_and_reads_stdin_as_a_file(self):
        session = Session(self.root)
        session.turn("offline")
        one = earshot("replay", session.path, home=self.home)
        self.assertEqual(one.returncode, 0, one)
        types = [json.loads(line)["type"] for line in one.stdout.splitlines()]
        self.assertEqual(types[0], "session.started")
        self.assertEqual(types[-1], "turn.finished")
        with open(session.path) as file:
            piped = subprocess.run([os.path.join(build(), "earshot"), "replay", "-"], stdin=file, capture_output=True, text=True,
                                   env=clean_environment(self.home))
        self.assertEqual([json.loads(line)["type"] for line in piped.stdout.splitlines()], types)

    def test_the_meta_view_shows_no_text(self):
        session = Session(self.root)
        session.turn("a secret word")
        told = earshot("replay", "--view", "meta", session.path, home=self.home).stdout
        self.assertIn("turn.finished", told)
        self.assertNotIn("secret word", told)
