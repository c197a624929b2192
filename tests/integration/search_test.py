"""Full-text search and the history of sessions: HTTP, the command line, the index through crashes, and at a hub."""
import contextlib
import datetime
import http.client
import json
import os
import re
import signal
import sqlite3
import stat
import time
import urllib.parse

import jsonschema

from support.endpoints import HttpCase, curl
from support.harness import TOP, earshot, indexing_deadline_s, wait_for
from support.team import TeamCase
from support.terminal import CONTROL_SEQUENCES, Terminal
from support.transcripts import Session

from hub_users_test import TOKEN, user


def ask(daemon, path, *args, **query):
    """(status, the JSON or text) of a request to the daemon's index."""
    pairs = [(name, value) for name, values in query.items() for value in (values if isinstance(values, list) else [values])]
    status, _, body = curl(daemon, path + "?" + urllib.parse.urlencode(pairs), *args)
    if status != 200:
        return status, body.decode()
    with open(os.path.join(TOP, "protocol", "http", os.path.basename(path) + ".schema.json")) as schema:
        jsonschema.validate(json.loads(body), json.load(schema))
    return status, json.loads(body)


def search(daemon, q, *args, **query):
    status, answer = ask(daemon, "/v1/search", *args, q=q, **query)
    assert status == 200, answer
    return answer


def health(daemon):
    return json.loads(curl(daemon, "/v1/health")[2])["search"]


def wait_built(daemon, total=None):
    def built():
        now = health(daemon)
        return not now["building"] and now["indexed"] == now["total"] and (total is None or now["total"] == total) and now

    return wait_for(built, "the index", indexing_deadline_s, daemon.exit_reason)


def wait_found(daemon, q, count=1, **query):
    def found():
        status, answer = ask(daemon, "/v1/search", q=q, **query)  # 503 while the index is created
        assert status in (200, 503), answer
        return status == 200 and len(answer["results"]) == count and answer["results"]

    return wait_for(found, f"{count} results of {q}", indexing_deadline_s, daemon.exit_reason)


def metric_in(page, name):
    return float(re.search(rf"^{name} (\S+)$", page, re.MULTILINE)[1])


def metric(daemon, name):
    return metric_in(curl(daemon, "/metrics")[2].decode(), name)


def marked(result):
    """The snippet's matched texts."""
    text = result["snippet"]["text"]
    return [text[begin:begin + size] for begin, size in result["snippet"]["matches"]]


class SearchCase(HttpCase):
    def index_file(self, state=None):
        return os.path.join(state or self.state, "search.sqlite")

    def documents(self):
        """(stream, cursor offset, index, kind, text) of all documents."""
        db = sqlite3.connect(self.index_file())
        try:
            return sorted(db.execute("SELECT name, d.cursor_offset, d.cursor_index, kind, text FROM documents d JOIN streams s ON s.id = d.stream"))
        finally:
            db.close()


class Requests(SearchCase):
    def test_what_is_said_is_found_while_it_is_written_and_after_a_restart(self):
        daemon = self.start()
        session = Session(self.root)
        session.turn("repair the flaky scheduler", "The scheduler waits for its lock now.")
        prompt, = wait_found(daemon, "flaky", kind="prompt")
        self.assertEqual((prompt["session"], prompt["kind"], prompt["project"], prompt["program"]), (session.session, "prompt", "/home/ada/api", "claude-code"))
        self.assertEqual(marked(prompt), ["flaky"])
        cursors = {frame["cursor"] for lines in daemon.replay(session.path).values() for frame in map(json.loads, lines)}
        self.assertIn(prompt["cursor"], cursors)
        session.turn("again", "The SCHEDULER is fair.")
        wait_found(daemon, "sched", 4)
        self.assertEqual([r["kind"] for r in search(daemon, '"scheduler is fair"')["results"]], ["answer"])
        self.assertEqual(search(daemon, "scheduler -fair -flaky")["results"][0]["kind"], "answer")
        before = self.documents()
        daemon.stop()
        daemon = self.start()
        wait_built(daemon)
        self.assertEqual(self.documents(), before)
        self.assertEqual(stat.S_IMODE(os.stat(self.index_file()).st_mode), 0o600)

    def test_pages_and_filters(self):
        for n in range(12):
            Session(self.root, cwd="/home/ada/" + ("api" if n % 3 else "web")).turn(f"common number{n}")
        daemon = self.start()
        wait_built(daemon, 12)
        seen, after = [], None
        while True:
            page = search(daemon, "common", limit=5, kind="prompt", **({"after": after} if after else {}))
            seen += page["results"]
            if not (after := page.get("next")):
                break
        self.assertEqual(len({r["session"] for r in seen}), 12)
        self.assertEqual(len(seen), 12)
        self.assertEqual(len(search(daemon, "common", project="*/web", kind=["prompt", "title"])["results"]), 4)
        self.assertEqual(search(daemon, "common", until="2001-01-01T00:00:00Z")["results"], [])
        self.assertEqual(search(daemon, "common", program="codex")["results"], [])
        history, after = [], None
        while True:
            status, page = ask(daemon, "/v1/history", limit=5, **({"after": after} if after else {}))
            self.assertEqual(status, 200, page)
            history += page["sessions"]
            if not (after := page.get("next")):
                break
            first = page if "projects" in page else first
        self.assertEqual(len({s["session"] for s in history}), 12)
        self.assertEqual({p["project"]: p["sessions"] for p in first["projects"]}, {"/home/ada/api": 8, "/home/ada/web": 4})
        self.assertEqual((history[0]["prompts"], history[0]["tools"], history[0]["usage"]["output"]), (1, 1, 24))
        self.assertTrue(history[0]["title"].startswith("common number"), history[0])
        day = time.strftime("%Y-%m-%d", time.localtime(datetime.datetime.fromisoformat(history[0]["last_time"].replace("Z", "+00:00")).timestamp()))
        self.assertEqual(len(ask(daemon, "/v1/history", day=day)[1]["sessions"]), 12)
        self.assertEqual(ask(daemon, "/v1/history", day="2001-01-01")[1]["sessions"], [])

    def test_bad_requests_are_refused_with_a_reason(self):
        daemon = self.start()
        wait_built(daemon)
        for query, why in (({"q": ""}, "no words"), ({"q": "a" * 600}, "longer than"), ({"q": "-a"}, "only excludes"), ({"q": "a b " * 20}, "more than 16"),
                           ({"q": "a", "kind": "x"}, "`kind`"), ({"q": "a", "limit": 0}, "limit"), ({"q": "a", "since": "x"}, "`since`"),
                           ({"q": "a", "after": "x"}, "`after`"), ({"q": "a", "nothing": 1}, "nothing")):
            status, text = ask(daemon, "/v1/search", **query)
            self.assertEqual(status, 400, query)
            self.assertIn(why, text)
        self.assertEqual(ask(daemon, "/v1/history", day="24.11.2026")[0], 400)
        for odd in ('"', "a OR", "a NEAR/2 b", "{a b}:c", "^a", "a*b(", "\x00a", "'; DROP TABLE documents; --", "🙂", "((((", '"""', "\u202ea\u2066b", "\ufeff", "服务器("):
            self.assertIn(ask(daemon, "/v1/search", q=odd)[0], (200, 400), odd)
        for size in (100_000, 1 << 20):
            client = http.client.HTTPConnection("127.0.0.1", daemon.port)
            self.addCleanup(client.close)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the connection may end before all is sent
                client.request("GET", "/v1/search?q=" + "a" * size, headers={"Authorization": f"Bearer {daemon.token}"})
                self.assertIn(client.getresponse().status, (400, 414, 431), size)
        self.assertEqual(search(daemon, "a")["results"], [])
        for path in ("/v1/search?q=a", "/v1/history"):
            self.assertEqual(curl(daemon, path, token=False)[0], 401)
            self.assertEqual(curl(daemon, path, "-H", "Host: evil.example")[0], 403)
            self.assertEqual(curl(daemon, path, "-H", "Origin: https://evil.example")[0], 403)
            self.assertEqual(curl(daemon, path, "-X", "POST")[0], 405)

    def test_the_meta_view_cannot_search_and_its_history_has_no_titles(self):
        Session(self.root).turn("a private question")
        daemon = self.start()
        wait_built(daemon, 1)
        status, text = ask(daemon, "/v1/search", q="private", view="meta")
        self.assertEqual((status, "meta view" in text), (403, True))
        status, answer = ask(daemon, "/v1/history", view="meta")
        self.assertEqual(status, 200)
        self.assertEqual(len(answer["sessions"]), 1)
        self.assertNotIn("private", json.dumps(answer))

    def test_search_can_be_off_and_then_there_is_no_file(self):
        Session(self.root).turn("hello")
        daemon = self.start()
        wait_built(daemon, 1)
        daemon.stop()
        self.assertTrue(os.path.exists(self.index_file()))
        daemon = self.configured("search = false\n")
        self.assertEqual(health(daemon), {"on": False})
        self.assertFalse([name for name in os.listdir(self.state) if name.startswith("search.")])
        status, text = ask(daemon, "/v1/search", q="hello")
        self.assertEqual(status, 404)
        self.assertIn("search is off", text)
        self.assertNotIn(b"earshot_search", curl(daemon, "/metrics")[2])

    def test_metrics_have_the_state_of_the_index(self):
        Session(self.root).turn("hello")
        daemon = self.start()
        wait_built(daemon, 1)
        search(daemon, "hello")
        page = curl(daemon, "/metrics")[2].decode()
        value = lambda name: metric_in(page, name)
        self.assertEqual((value("earshot_search_indexed_streams"), value("earshot_search_pending_streams"), value("earshot_search_building")), (1, 0, 0))
        self.assertGreater(value("earshot_search_documents"), 3)
        self.assertGreater(value("earshot_search_file_bytes"), 4096)
        self.assertEqual(value("earshot_search_queries_total"), 1)

    def test_of_a_transcript_that_grows_only_the_new_bytes_are_read(self):
        sessions = [Session(self.root) for _ in range(3)]
        for n in range(400):
            for session in sessions:
                session.turn(f"question {n}", "lorem ipsum dolor " * 40)
        sizes = [os.path.getsize(session.path) for session in sessions]
        daemon = self.start()
        wait_built(daemon, 3)
        read = metric(daemon, "earshot_search_read_bytes_total")
        self.assertEqual(read, sum(sizes))
        for n in range(6):
            session = sessions[n % 2]
            session.turn(f"appended number{n}", "ready")
            wait_found(daemon, f"number{n}", kind="prompt")
            wait_built(daemon, 3)
        grown = sum(os.path.getsize(session.path) for session in sessions) - sum(sizes)
        self.assertEqual(metric(daemon, "earshot_search_read_bytes_total") - read, 0)

    def test_a_cost_that_is_not_recorded_is_estimated(self):
        session = Session(self.root)
        session.turn("hello", "world")
        daemon = self.start()
        wait_built(daemon, 1)
        frame = daemon.subscriber().all(type="session")[-1]
        listed, = ask(daemon, "/v1/history")[1]["sessions"]
        self.assertEqual(listed["cost_source"], "estimated")
        self.assertAlmostEqual(listed["cost_usd"], frame["usage"]["cost_usd"])
        self.assertEqual(listed["cost_source"], frame["usage"]["cost_source"])

    def test_a_word_inside_chinese_text_is_found(self):
        Session(self.root).turn("修复服务器的错误", "已修复。")
        daemon = self.start()
        wait_built(daemon, 1)
        self.assertEqual([marked(result) for result in search(daemon, "服务器", kind="prompt")["results"]], [["服务器"]])
        self.assertEqual(search(daemon, "务服")["results"], [])

    def test_a_secret_is_neither_in_the_index_nor_in_a_result(self):
        secret = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
        session = Session(self.root)
        session.turn(f"use {secret} for it", f"I used {secret}.")
        session.result(session.tool_call("Bash", {"command": f"curl -H 'Authorization: Bearer {secret}'", "password": "hunter2hunter2"}))
        session.reply("Over.", stop_reason="end_turn")
        daemon = self.configured("redact = false\n")  # the index is redacted nevertheless
        wait_built(daemon, 1)
        self.assertIn("[redacted:", json.dumps(search(daemon, "use")))
        self.assertEqual(search(daemon, secret)["results"], [])
        daemon.stop()
        for name in os.listdir(self.state):
            with open(os.path.join(self.state, name), "rb") as file:
                data = file.read()
            self.assertNotIn(secret[8:30].encode(), data, name)
            self.assertNotIn(b"hunter2hunter2", data, name)


class Crashes(SearchCase):
    def fill(self, sessions, turns):
        for n in range(sessions):
            session = Session(self.root)
            for turn in range(turns):
                session.turn(f"question {n} {turn}", f"answer {n} {turn} " + "lorem ipsum dolor " * 20)

    def test_an_index_that_is_killed_while_it_is_built_is_completed_without_duplicates(self):
        self.fill(60, 30)
        expected = None
        daemon = self.start()
        wait_built(daemon, 60)
        expected = self.documents()
        daemon.stop()
        self.assertGreater(len(expected), 60 * 30 * 3)
        for part in (0.02, 0.3, 0.7):
            for name in os.listdir(self.state):
                if name.startswith("search."):
                    os.remove(os.path.join(self.state, name))
            daemon = self.start()
            wait_for(lambda: (now := health(daemon))["documents"] >= part * len(expected) or not now["building"], "a part of the index")
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
            daemon = self.start()
            wait_built(daemon, 60)
            self.assertEqual(self.documents(), expected)
            daemon.stop()

    def test_a_file_that_is_removed_or_garbage_while_the_daemon_runs_is_built_again(self):
        self.fill(3, 2)
        daemon = self.start()
        wait_built(daemon, 3)
        expected = self.documents()
        for name in os.listdir(self.state):
            if name.startswith("search."):
                os.remove(os.path.join(self.state, name))
        wait_for(lambda: ask(daemon, "/v1/search", q="question")[0] == 200 and len(self.documents()) == len(expected), "a new index")
        wait_built(daemon, 3)
        self.assertEqual(self.documents(), expected)
        daemon.stop()
        with open(self.index_file(), "r+b") as file:
            file.seek(4096)
            file.write(os.urandom(3 * 4096))
        daemon = self.start()
        wait_for(lambda: ask(daemon, "/v1/search", q="question")[0] == 200 and not health(daemon)["building"], "a new index")
        wait_for(lambda: self.documents_or_none() == expected, "all documents")

    def documents_or_none(self):
        try:
            return self.documents()
        except sqlite3.Error:
            return None

    def test_transcripts_that_are_rewritten_or_removed(self):
        one, two = Session(self.root), Session(self.root)
        one.turn("first version"), two.turn("other session")
        daemon = self.start()
        wait_built(daemon, 2)
        text = open(one.path).read().replace("first version", "second versi_")
        with open(one.path, "w") as file:
            file.write(text)
        wait_found(daemon, '"second versi"', kind="prompt")
        wait_for(lambda: not search(daemon, '"first version"')["results"], "the old text is gone")
        os.remove(two.path)
        wait_for(lambda: not search(daemon, "other")["results"], "the removed session is gone")
        self.assertEqual([s["session"] for s in ask(daemon, "/v1/history")[1]["sessions"]], [one.session])


class CommandLine(SearchCase):
    def run_search(self, *args):
        return earshot("search", "--state", self.state, *args, home=self.home)

    def test_results_and_exit_codes_are_those_of_grep(self):
        session = Session(self.root)
        session.turn("mend the broken <parser>")
        daemon = self.start()
        wait_built(daemon, 1)
        done = self.run_search("broken", "pars")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn(session.session[:8], done.stdout)
        self.assertIn("mend the broken <parser>", done.stdout)
        self.assertIn("earshot show SESSION", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        self.assertEqual(self.run_search("nowhere").returncode, 1)
        self.assertEqual(self.run_search("broken", "--project", "web").returncode, 1)
        self.assertEqual(self.run_search("broken", "--project", "api", "--since", "1d", "--kind", "prompt").returncode, 0)
        done = self.run_search("-x")
        self.assertEqual(done.returncode, 2, done)
        for args in (["--", "-x"], [], ["a", "--kind", "nothing"], ["a", "--limit", "0"]):
            self.assertEqual(self.run_search(*args).returncode, 2, args)
        results = json.loads(self.run_search("broken", "--json", "--limit", "1").stdout)
        self.assertEqual([r["session"] for r in results], [session.session])
        self.assertEqual(json.loads(self.run_search("nowhere", "--json").stdout), [])
        daemon.stop()
        self.assertEqual(self.run_search("broken").returncode, 2)

    def test_it_says_that_search_is_off(self):
        self.configured("search = false\n")
        done = self.run_search("word")
        self.assertEqual(done.returncode, 2)
        self.assertIn("search is off: remove `search = false`", done.stderr)

    def test_hostile_text_does_not_reach_the_terminal_and_the_match_is_emphasised(self):
        session = Session(self.root, cwd="/home/ada/e\x1b[31mvil")
        session.turn(f"needle {CONTROL_SEQUENCES} \u202e <b>needle</b> " + "x" * 5000)
        daemon = self.start()
        wait_built(daemon, 1)
        terminal = Terminal(("search", "needle", "--state", self.state), self.home)
        self.addCleanup(terminal.close)
        terminal.wait("show SESSION")
        shown = terminal.plain()
        self.assertIn("<b>needle</b>", shown)
        self.assertTrue(all(len(line) <= 100 for line in shown.split("\n")), shown)
        self.assertNotIn("\u202e", shown)
        self.assertRegex(terminal.read(), "\x1b\\[[0-9;]*mneedle")


class Hub(TeamCase):
    def test_a_hub_finds_what_its_hosts_said_and_users_only_what_they_may_see(self):
        nats = self.broker()
        hub = self.hub(nats, more=user("ada", hosts=["ada"], view="full") + user("eve", token="e" * 48, hosts=["*"], view="meta"))
        ada, bob = self.host("ada", nats), self.host("bob", nats)
        self.session(ada).turn("shared words of ada"), self.session(bob, "/srv/vault").turn("shared words of bob")
        self.assert_hub_complete(hub)
        found = wait_found(hub, "shared", 2, kind="prompt")
        self.assertEqual({r["host"] for r in found}, {"ada", "bob"})
        self.assertTrue(all(r["session"].endswith("@" + r["host"]) for r in found), found)
        self.assertEqual({r["host"] for r in search(hub, "shared", host="bob")["results"]}, {"bob"})
        as_ada = ("-H", f"Authorization: Bearer {TOKEN}")

        def restricted(path, *auth, **query):
            status, _, body = curl(hub, path + "?" + urllib.parse.urlencode(query), *auth, token=False)
            return status, body.decode()

        status, body = restricted("/v1/search", *as_ada, q="shared", kind="prompt")
        self.assertEqual(status, 200, body)
        self.assertIn("words of ada", json.loads(body)["results"][0]["snippet"]["text"])
        self.assertNotIn("bob", body)
        self.assertNotIn("vault", body)
        status, body = restricted("/v1/history", *as_ada)
        self.assertEqual((status, len(json.loads(body)["sessions"])), (200, 1))
        self.assertNotIn("bob", body)
        as_eve = ("-H", "Authorization: Bearer " + "e" * 48)
        self.assertEqual(restricted("/v1/search", *as_eve, q="shared")[0], 403)
        status, body = restricted("/v1/history", *as_eve)
        self.assertEqual((status, len(json.loads(body)["sessions"])), (200, 2))
        self.assertNotIn("shared", body)
