"""`earshot browsers`: the list, revoking, and names that a browser or a daemon made up."""
import json
import os
import socket
import unicodedata

from support.browser_key import BrowserKey
from support.fake_server import FakeServer
from support.harness import DaemonCase, earshot, wait_for
from support.terminal import Terminal

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\r\n\tx"


class Browsers(DaemonCase):
    def browsers(self, *args, code=0):
        done = earshot("browsers", *args, "--state", self.state, home=self.home)
        self.assertEqual(done.returncode, code, done)
        return done

    def signed_in(self, daemon, **given):
        browser = BrowserKey(daemon.port)
        status, answer = browser.register(earshot("open", "--print", "--state", self.state, home=self.home).stdout.strip().split("code=")[1], **given)
        self.assertEqual(status, 200, answer)
        return browser

    def fake_daemon(self, path, browsers):
        """Lists these on a Unix socket."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        self.addCleanup(FakeServer(listener, json.dumps({"browsers": browsers}).encode()).close)

    def assert_harmless(self, text):
        self.assertEqual([c for c in text if c != "\n" and (ord(c) < 32 or unicodedata.category(c) in ("Cc", "Cf"))], [])

    def test_they_are_listed_as_a_table_and_as_json(self):
        daemon = self.start()
        self.assertIn("earshot open", self.browsers().stdout)
        self.assertEqual(json.loads(self.browsers("--json").stdout), [])
        first, second = self.signed_in(daemon), self.signed_in(daemon, name="Firefox on Windows", temporary=True)
        lines = self.browsers().stdout.splitlines()
        self.assertEqual(lines[0].split(), ["ID", "BROWSER", "VIEW", "AGE", "USED", "KEPT", "ADDRESS"])
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[1], rf"^{first.id}  Chrome on Linux +full +\d+[sm] +\d+[sm] +http://127\.0\.0\.1:{daemon.port}$")
        self.assertRegex(lines[2], rf"^{second.id}  Firefox on Windows .*this tab only")
        listed = json.loads(self.browsers("--json").stdout)
        self.assertEqual([set(each) for each in listed], [{"browser", "name", "view", "origin", "created", "last_used"}, {"browser", "name", "view", "origin", "created", "last_used", "temporary"}])
        self.assertRegex(listed[0]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertNotIn(first.public, self.browsers("--json").stdout)

    def test_revoking_one_disconnects_it_and_leaves_the_others(self):
        daemon = self.start()
        first, second, third = (self.signed_in(daemon) for _ in range(3))
        clients = [daemon.client(bearer=False, Origin=browser.origin) for browser in (first, second)]
        for client, browser in zip(clients, (first, second)):
            client.send(type="hello", sign_in=browser.answer("hello"))
            client.subscribe()
        unique = next(first.id[:n] for n in range(1, 17) if not any(other.id.startswith(first.id[:n]) for other in (second, third)))
        self.assertEqual(self.browsers("revoke", unique).stdout, "1 browser was signed out\n")
        self.assertEqual(clients[0].wait_closed(), 4501)
        self.assertIsNone(clients[1].close_code)
        self.assertEqual(first.authorised("GET", "/v1/sessions")[0], 401)
        self.assertEqual(second.authorised("GET", "/v1/sessions")[0], 200)
        self.assertEqual(self.browsers("revoke", second.id).stdout, "1 browser was signed out\n")
        self.assertEqual(clients[1].wait_closed(), 4501)
        self.assertEqual(self.browsers("revoke", "--all").stdout, "1 browser was signed out\n")
        self.assertEqual(self.browsers("revoke", "--all").stdout, "0 browsers were signed out\n")

    def test_mistakes_are_explained(self):
        daemon = self.start()
        self.signed_in(daemon)
        self.assertIn("no browser has the id x\\x1b: see earshot browsers", self.browsers("revoke", "x\x1b", code=1).stderr.replace("␛", "\\x1b"))
        for words in (("revoke",), ("revoke", "--all", "ab"), ("--all",), ("revoke", "ab", "--json"), ("remove", "ab"), ("revoke", "a", "b")):
            self.browsers(*words, code=2)
        self.assertEqual(len(json.loads(self.browsers("--json").stdout)), 1)
        daemon.stop()
        self.browsers(code=1)

    def test_hostile_names_are_text(self):
        daemon = self.start()
        browser = self.signed_in(daemon, name=HOSTILE)
        self.assertEqual(json.loads(self.browsers("--json").stdout)[0]["name"], HOSTILE)
        terminal = Terminal(["browsers", "--json", "--state", self.state], self.home)
        self.addCleanup(terminal.close)
        wait_for(lambda: terminal.process.poll() is not None, "the end")
        shown = terminal.read()
        self.assertIn("gnp.exe", shown)
        for hostile in ("\x1b]", "\x1b[2J", "\x07", "\u202e"):
            self.assertNotIn(hostile, shown)
        table = self.browsers().stdout
        self.assertEqual(len(table.splitlines()), 2)
        self.assert_harmless(table)
        self.assertIn("gnp.exe", table)
        too_long = BrowserKey(daemon.port)
        self.assertEqual(too_long.register("0" * 64, name="x" * 65)[0], 400)
        self.browsers("revoke", browser.id)

    def test_a_daemon_that_makes_up_everything_is_harmless(self):
        path = os.path.join(self.home, "fake")
        made_up = [{"browser": HOSTILE, "name": "x" * 5000, "user": HOSTILE, "view": HOSTILE, "origin": HOSTILE, "created": HOSTILE, "last_used": "9999-12-31T23:59:59Z"}, {}, {"browser": 7}]
        self.fake_daemon(path, made_up)
        done = earshot("browsers", "--socket", path, home=self.home)
        self.assertEqual(done.returncode, 0, done)
        self.assert_harmless(done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 4)
        self.assertLess(max(map(len, done.stdout.splitlines())), 500)
        self.assertEqual(earshot("browsers", "revoke", "", "--socket", path, home=self.home).returncode, 2)
        self.assertEqual(earshot("browsers", "revoke", "x", "--socket", path, home=self.home).returncode, 1)

    def test_their_ids_are_completed_and_only_what_can_be_typed(self):
        daemon = self.start()
        browser = self.signed_in(daemon, name="Firefox")
        words = lambda: earshot("complete", "browsers", "--state", self.state, "revoke", "", home=self.home).stdout  # noqa: E731
        wait_for(lambda: words() == f"{browser.id}\tFirefox\n", "its id")  # none from a daemon that is too busy
        path = os.path.join(self.home, "fake")
        named = [{"browser": "a1$(touch x)", "name": HOSTILE}, {"browser": "--all", "name": "x"}, {"browser": HOSTILE, "name": "x"}, {"browser": "a\tb", "name": "x"},
                 {"browser": "", "name": "x"}, {"browser": 7}, {}]
        self.fake_daemon(path, named)
        lines = earshot("complete", "browsers", "revoke", "--socket", path, "", home=self.home).stdout.split("\n")
        self.assertEqual([line.split("\t")[0] for line in lines], ["a1$(touch x)", ""])  # which the shell's script quotes
        self.assert_harmless(lines[0].replace("\t", " "))
