"""`earshot` over the daemon's Unix socket: no token, and the owner's commands."""
import json
import os
import re
import socket

from support.fake_server import FakeServer
from support.harness import CommandLines, DaemonCase, build, clean_environment, earshot, wait_for
from support.terminal import Terminal
from support.transcripts import Session


def other_program():
    """One on a free port, which answers each request with 64 hex digits; and its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    return FakeServer(listener, b"a" * 64), f"ws://127.0.0.1:{listener.getsockname()[1]}/v1/ws"


class Socket(DaemonCase):
    def earshot(self, *args, code=0):
        done = earshot(*args, "--state", self.state, home=self.home)
        self.assertEqual(done.returncode, code, done)
        return done

    def socket(self):
        with open(os.path.join(self.state, "socket")) as file:
            return file.read().strip()

    def test_over_the_socket_no_token_is_needed(self):
        Session(self.root).turn("hello")
        self.start()
        os.remove(os.path.join(self.state, "token"))
        os.remove(os.path.join(self.state, "address"))
        self.assertIn("api", self.earshot("ls").stdout)
        self.assertIn("hello", self.earshot("show", "last").stdout)

    def test_doctor_reports_no_problem_for_a_running_daemon(self):
        session = Session(self.root)
        session.turn("hello")
        daemon = self.start()
        done = self.earshot("doctor", "--json")
        report = json.loads(done.stdout)
        self.assertEqual(report["problems"], 0, report)
        texts = {f["what"]: f["text"] for f in report["findings"]}
        self.assertIn(f"pid {daemon.process.pid}", texts["daemon"])
        self.assertIn(f"unix:{self.socket()}", texts["address"])
        self.assertIn(f"{self.root}: 1 transcript", texts["root"])
        self.assertIn("known formats", texts["redaction"])

    def test_doctor_reports_unreadable_files(self):
        if os.geteuid() == 0:
            self.skipTest("root can read every file")
        session = Session(self.root)
        session.turn("hello")
        os.chmod(session.path, 0)
        self.start()
        self.assertIn("cannot be read", self.earshot("doctor").stdout)

    def test_open_prints_an_address_that_works_once(self):
        daemon = self.start()
        url = self.earshot("open", "--print").stdout.strip()
        self.assertRegex(url, rf"^http://127\.0\.0\.1:{daemon.port}/#code=[0-9a-f]{{64}}$")
        self.assertNotEqual(url, self.earshot("open", "--print").stdout.strip())

    def test_open_starts_the_desktop_s_browser(self):
        self.start()
        programs, seen = os.path.join(self.home, "bin"), os.path.join(self.home, "opened")
        os.mkdir(programs)
        with open(os.path.join(programs, "xdg-open"), "w") as file:
            file.write(f'#!/bin/sh\nprintf %s "$*" > {seen}.part\nmv {seen}.part {seen}\n')
        os.chmod(os.path.join(programs, "xdg-open"), 0o700)
        environment = {name: value for name, value in clean_environment(self.home).items() if "DISPLAY" not in name}
        environment["PATH"] = programs + ":" + environment["PATH"]

        def open_with(**more):
            done = earshot("open", "--state", self.state, env={**environment, **more})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout.strip()

        open_with()
        self.assertFalse(os.path.exists(seen))
        url = open_with(DISPLAY=":0")
        wait_for(lambda: os.path.exists(seen), "the browser")
        with open(seen) as file:
            self.assertEqual(file.read(), url)

    def test_87_over_tcp_the_daemon_proves_that_it_has_the_token(self):
        daemon = self.start()
        os.remove(os.path.join(self.state, "socket"))
        for command in ("ls", "status", "token --rotate"):
            self.earshot(*command.split())
        for host in ("127.0.0.1", "localhost"):
            self.assertIn("ready", self.first_frames(f"ws://{host}:{daemon.port}/v1/ws"))
        token = self.earshot("token").stdout.strip()
        daemon.stop()
        listener, url = other_program()
        with listener:
            for command in ("ls", "status", "open", "tail"):
                done = earshot(command, "--state", self.state, "--connect", url, home=self.home)
                self.assertEqual(done.returncode, 1, done)
                self.assertIn("the token was not sent", done.stderr)
            wait_for(lambda: len(listener.received) == 4, "the connections to end")
            for data in listener.received:
                self.assertRegex(data, rb"^GET /v1/proof\?nonce=[0-9a-f]{32} HTTP/1.1\r\n")
                self.assertNotIn(token.encode(), data)

    def first_frames(self, url):
        """The types of the frames that a subscriber at this address receives first."""
        tail = CommandLines([os.path.join(build(), "earshot"), "tail", "--json", "--state", self.state, "--connect", url], clean_environment(self.home))
        self.addCleanup(tail.close)
        wait_for(lambda: any('"ready"' in line for line in tail.lines), "the snapshot")
        tail.stop()
        return [json.loads(line)["type"] for line in tail.lines]

    def test_rotating_the_token_disconnects_clients_that_used_the_old_one(self):
        daemon = self.start()
        client = daemon.subscriber()
        old = self.earshot("token").stdout.strip()
        self.assertEqual(old, daemon.token)
        new = self.earshot("token", "--rotate").stdout.strip()
        self.assertNotEqual(old, new)
        self.assertRegex(new, r"^[0-9a-f]{64}$")
        self.assertEqual(client.wait_closed(), 4501)
        self.assertEqual(self.earshot("token").stdout.strip(), new)

    def test_without_a_daemon_rotating_deletes_the_token(self):
        daemon = self.start()
        old = daemon.token
        daemon.stop()
        self.assertIn("next start", self.earshot("token", "--rotate").stderr)
        again = self.start()
        self.assertNotEqual(again.token, old)

    def test_tail_over_the_socket_reconnects(self):
        daemon = self.start()
        terminal = Terminal(["tail", "--state", self.state], self.home)
        self.addCleanup(terminal.close)
        terminal.wait_connected(self.root)
        session = Session(self.root)
        session.prompt("before")
        terminal.wait("before")
        daemon.stop()
        session.prompt("meanwhile")
        self.start()
        terminal.wait("meanwhile")
        self.assertEqual(len(re.findall("before", terminal.plain())), 1)
        wait_for(lambda: terminal.stop() == 0, "tail to exit")
