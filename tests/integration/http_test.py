"""HTTP over TCP: paths, authentication, limits and timeouts."""
import json
import os
import re
import socket
import subprocess
import time
import unittest

import websockets

from support.endpoints import HttpCase, curl, promtool
from support.harness import loop, wait_for
from support.transcripts import Registry, Session


class Requests(HttpCase):
    def test_each_path_requires_its_authentication(self):
        daemon = self.start()
        for path in ("/", "/app.js", "/style.css", "/icon.svg", "/icon.svg?count=12", "/healthz"):
            self.assertEqual(curl(daemon, path, token=False)[0], 200, path)
        for path in ("/metrics", "/v1/health", "/v1/sessions", "/v1/events"):
            status, headers, _ = curl(daemon, path, token=False)
            self.assertEqual((status, headers["www-authenticate"]), (401, "bearer"), path)
        for path in ("/metrics", "/v1/health", "/v1/sessions"):
            self.assertEqual(curl(daemon, path)[0], 200, path)
            self.assertEqual(curl(daemon, path, unix=True)[0], 200, path)
        self.assertEqual(curl(daemon, "/v1/sessions", "-H", "Authorization: Bearer " + "0" * 64, token=False)[0], 401)
        self.assertEqual(curl(daemon, "/nothing")[0], 404)

    def test_other_methods_get_405_with_allow(self):
        daemon = self.start()
        for path, allow in (("/", "get, head"), ("/v1/sessions", "get, head"), ("/v1/events", "get")):
            status, headers, _ = curl(daemon, path, "-X", "DELETE")
            self.assertEqual((status, headers["allow"]), (405, allow), path)
        status, headers, _ = curl(daemon, "/v1/codes")
        self.assertEqual((status, headers["allow"]), (405, "post"))

    def test_every_response_has_security_headers(self):
        daemon = self.start()
        for path in ("/", "/healthz", "/metrics", "/v1/sessions", "/nothing"):
            _, headers, _ = curl(daemon, path)
            self.assertEqual(headers["x-content-type-options"], "nosniff", path)
            self.assertEqual(headers["referrer-policy"], "no-referrer", path)
            self.assertIn("default-src 'none'", headers["content-security-policy"], path)
            self.assertIn("date", headers)

    def test_head_is_get_without_the_body(self):
        daemon = self.start()
        for path in ("/", "/app.js", "/healthz", "/v1/sessions"):
            _, whole, body = curl(daemon, path)
            status, headers, nothing = curl(daemon, path, "--head")
            self.assertEqual((status, nothing), (200, b""), path)
            self.assertEqual(headers["content-length"], str(len(body)), path)
            self.assertEqual(headers.get("etag"), whole.get("etag"), path)

    def test_a_matching_etag_gets_304(self):
        daemon = self.start()
        session = self.held_open(Session(self.root))
        session.prompt("one")
        self.wait_session(daemon, session)
        for path in ("/", "/app.js", "/icon.svg", "/v1/sessions"):
            etag = curl(daemon, path)[1]["etag"]
            status, headers, body = curl(daemon, path, "-H", f'If-None-Match: "x", W/{etag}')
            self.assertEqual((status, body, headers["etag"]), (304, b"", etag), path)
            self.assertEqual(curl(daemon, path, "-H", 'If-None-Match: "x"')[0], 200, path)
        session.prompt("two")
        wait_for(lambda: curl(daemon, "/v1/sessions", "-H", f"If-None-Match: {etag}")[0] == 200, "a changed list")

    def test_a_connection_is_kept_alive(self):
        daemon = self.start()
        raw = self.raw(daemon)
        for path, status in (("/healthz", 200), ("/nothing", 404), ("/v1/sessions", 401), ("/healthz", 200)):
            raw.send(f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{daemon.port}")
            answer = raw.response()
            self.assertEqual(answer[0], status)
            self.assertNotIn("connection", answer[1])
        raw.send("HEAD / HTTP/1.1", f"Host: 127.0.0.1:{daemon.port}", "Connection: close")
        self.assertTrue(raw.closed())

    def test_pipelined_requests_are_answered_in_order(self):
        daemon = self.start()
        raw = self.raw(daemon)
        host = f"Host: 127.0.0.1:{daemon.port}"
        one = f"GET /healthz HTTP/1.1\r\n{host}\r\n\r\nGET /nothing HTTP/1.1\r\n{host}\r\n\r\nGET /healthz HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n"
        raw.socket.sendall(one.encode())
        data = b""
        while piece := raw.read():
            data += piece
        self.assertEqual(re.findall(rb"HTTP/1\.1 (\d+)", data), [b"200", b"404", b"200"])

    def test_http_1_0_is_served(self):
        daemon = self.start()
        raw = self.raw(daemon)
        raw.send("GET /healthz HTTP/1.0", f"Host: 127.0.0.1:{daemon.port}")
        status, headers, body = raw.response()
        self.assertEqual((status, headers["connection"], body), (200, "close", b"ok\n"))
        self.assertTrue(raw.closed())
        raw = self.raw(daemon)
        raw.send("GET /healthz HTTP/1.0", f"Host: 127.0.0.1:{daemon.port}", "Connection: keep-alive")
        self.assertEqual(raw.response()[1]["connection"], "keep-alive")
        raw.send("GET /healthz HTTP/1.0", f"Host: 127.0.0.1:{daemon.port}")
        self.assertEqual(raw.response()[0], 200)


class Limits(HttpCase):
    def test_oversized_and_malformed_requests_get_their_status(self):
        daemon = self.start()
        host = f"Host: 127.0.0.1:{daemon.port}"
        post = ("POST /v1/browsers/register HTTP/1.1", host, "Content-Type: application/json")
        cases = ((("GET /healthz HTTP/1.1", host, "X: " + "x" * 9000), b"", 431),
                 (("GET /healthz?" + "x" * 5000 + " HTTP/1.1", host), b"", 414),
                 (("GET /healthz?" + "x" * 20000 + " HTTP/1.1", host), b"", 414),
                 ((*post, "Content-Length: 5000"), b"", 413),
                 ((*post, "Content-Length: 99999999999"), b"", 413),
                 ((*post, "Transfer-Encoding: chunked"), b"2000\r\n" + b"x" * 8192, 413),
                 ((*post, "Content-Length: x"), b"", 400),
                 ((*post, "Content-Length: 3", "Content-Length: 4"), b"", 400),
                 (("GET /healthz HTTP/3.7", host), b"", 400),
                 (("GET", host), b"", 400),
                 (("\x00\x01\x02",), b"", 400))
        for lines, body, status in cases:
            with self.subTest(line=lines[0][:30], status=status):
                raw = self.raw(daemon)
                raw.send(*lines, body=body)
                answer = raw.response()
                self.assertEqual((answer[0], answer[1]["connection"]), (status, "close"))
                self.assertTrue(raw.closed())
        self.assertEqual(curl(daemon, "/healthz")[0], 200)

    def test_the_body_of_a_get_is_discarded(self):
        daemon = self.start()
        self.assertEqual(curl(daemon, "/healthz", "-X", "GET", "-d", "x" * 1000)[0], 200)
        self.assertEqual(curl(daemon, "/v1/seen", "-H", "Content-Type: application/json", "-H", "Expect: 100-continue", "-d", '{"session":"x"}')[0], 404)

    def test_a_connection_closes_after_its_last_allowed_request(self):
        daemon = self.configured("[limits]\nrequests = 2\n")
        raw = self.raw(daemon)
        host = f"Host: 127.0.0.1:{daemon.port}"
        raw.send("GET /healthz HTTP/1.1", host)
        self.assertNotIn("connection", raw.response()[1])
        raw.send("GET /healthz HTTP/1.1", host)
        self.assertEqual(raw.response()[1]["connection"], "close")
        self.assertTrue(raw.closed())

    def test_too_many_requests_get_429(self):
        daemon = self.configured("[limits]\nmessages_per_second = 1\nmessages_burst = 3\n")
        raw = self.raw(daemon)
        begin = time.monotonic()
        raw.socket.sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n\r\n".encode() * 40)  # at once: one more is allowed each second
        accepted = 0
        while (answer := raw.response())[0] == 200:
            accepted += 1
        self.assertEqual((answer[0], answer[1]["retry-after"]), (429, "1"))
        self.assertGreaterEqual(accepted, 3)
        self.assertLessEqual(accepted, 3 + int(time.monotonic() - begin))

    def test_connections_above_the_limit_get_503(self):
        daemon = self.configured("[limits]\nconnections = 1\n")
        daemon.subscriber()
        status, headers, _ = curl(daemon, "/healthz")
        self.assertEqual((status, headers["retry-after"]), (503, "1"))

    def test_too_many_messages_close_with_4429(self):
        daemon = self.configured("[limits]\nmessages_per_second = 1\nmessages_burst = 5\n")
        client = daemon.client()

        async def flood():
            for n in range(100):  # at once: one more is allowed each second
                await client.socket.send(json.dumps({"type": "unsubscribe", "id": str(n)}))

        try:
            loop.run(flood())
        except websockets.exceptions.ConnectionClosed:
            pass  # closed before every message was sent
        self.assertEqual(client.wait_closed(), 4429)

    def test_pattern_limits_are_configurable(self):
        daemon = self.configured("[limits]\npatterns = 1\npattern_bytes = 5\n")
        client = daemon.subscriber(id="fits", filter={"type": ["turn*"]})
        for filter in ({"type": ["a", "b"]}, {"session": ["123456"]}):
            client.subscribe(id=str(filter), filter=filter, wait=False)
            self.assertEqual(client.wait_frame(type="error", id=str(filter))["code"], "bad_filter")
        self.assertEqual(curl(daemon, "/v1/events?type=a&type=b")[0], 400)


class Timeouts(HttpCase):
    quick = "[limits]\nhandshake = \"1s\"\nkeep_alive = \"1s\"\nanswer = \"1s\"\nclose = \"100ms\"\ntick = \"20ms\"\n"

    def test_an_incomplete_request_gets_408(self):
        daemon = self.configured(self.quick)
        host = f"Host: 127.0.0.1:{daemon.port}"
        for part in (("GET / HT",), ("GET / HTTP/1.1", host, "X: y"),
                     ("POST /v1/browsers/register HTTP/1.1", host, "Content-Type: application/json", "Content-Length: 10", "", "12")):
            raw, answer = self.answered(daemon, *part, end=b"")
            self.assertEqual(answer[0], 408, part)
            self.assertTrue(raw.closed())

    def answered(self, daemon, *lines, **more):
        """(a new connection, the response to these lines); another one if it was closed as silent before they were sent."""
        def attempt():
            raw = self.raw(daemon)
            try:
                raw.send(*lines, **more)
            except OSError:
                return None
            response = raw.response()
            return response and (raw, response)

        return wait_for(attempt, "a response")

    def test_a_silent_connection_is_closed_without_a_response(self):
        daemon = self.configured(self.quick)
        raw = self.raw(daemon)
        self.assertEqual(raw.read(), b"")
        kept, answer = self.answered(daemon, "GET /healthz HTTP/1.1", f"Host: 127.0.0.1:{daemon.port}")
        self.assertEqual(answer[0], 200)
        self.assertEqual(kept.read(), b"")

    def test_a_request_sent_byte_by_byte_still_times_out(self):
        daemon = self.configured(self.quick)
        raw = self.raw(daemon)
        text = iter(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nX: ".encode() + b"x" * 100000)

        def ended():
            try:
                raw.socket.send(bytes([next(text)]))
                raw.socket.setblocking(False)
                return raw.socket.recv(4096)
            except BlockingIOError:
                return None
            except OSError:
                return b"reset"

        response = wait_for(ended, "the timeout")
        self.assertTrue(response == b"reset" or response.startswith(b"HTTP/1.1 408"), response)

    def test_a_response_that_is_not_read_is_dropped(self):
        # Only the response to the client that does not read is longer than the buffers of the kernel.
        daemon = self.configured('[limits]\nanswer = "2s"\nclose = "100ms"\ntick = "20ms"\nsend_buffer_bytes = 4096\n')
        for n in range(300):
            Session(self.root).prompt("x" * 500)
        health = lambda: json.loads(curl(daemon, "/v1/health", unix=True)[2])
        daemon.subscriber(filter={"type": ["none"]}).wait(lambda: health()["sessions"] == 300, "300 sessions")
        raw = socket.socket()
        self.addCleanup(raw.close)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", daemon.port))
        raw.sendall(f"GET /v1/sessions?limit=1000 HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nAuthorization: Bearer {daemon.token}\r\n\r\n".encode())
        self.assertTrue(raw.recv(1, socket.MSG_PEEK))  # the response begins; nothing is read
        wait_for(lambda: health()["connections"] == 2, "it to be dropped")


class Sessions(HttpCase):
    def names(self, daemon, query="", **more):
        status, _, body = curl(daemon, "/v1/sessions" + query, **more)
        self.assertEqual(status, 200, body)
        page = json.loads(body)
        return [session["session"] for session in page["sessions"]], page.get("next")

    def test_sessions_are_listed_page_by_page(self):
        daemon = self.start()
        made = sorted(Session(self.root, cwd="/home/ada/" + ("api" if n % 2 else "web")).prompt("x")["sessionId"] for n in range(7))
        wait_for(lambda: len(self.names(daemon)[0]) == 7, "seven sessions")
        self.assertEqual(self.names(daemon), (made, None))
        got, after = [], ""
        while after is not None:
            page, after = self.names(daemon, f"?limit=3&after={after}", unix=True)
            got.append(page)
        self.assertEqual(got, [made[:3], made[3:6], made[6:]])
        self.assertEqual(self.names(daemon, "?limit=7"), (made, None))
        api = self.names(daemon, "?project=*/api")[0]
        self.assertEqual(len(api), 3)
        self.assertEqual(self.names(daemon, f"?session={made[0]}&session={made[6]}")[0], [made[0], made[6]])

    def test_invalid_queries_get_400(self):
        daemon = self.start()
        for query in ("limit=0", "limit=1001", "limit=x", "lmit=1", "all=maybe", "project=%FF", "view=half"):
            self.assertEqual(curl(daemon, "/v1/sessions?" + query)[0], 400, query)

    def test_unread_sessions_are_read_for_all_true(self):
        paths = []
        for n in range(5):
            session = Session(self.root)
            session.prompt("long ago")
            paths.append(session.path)
        for path in paths[:4]:
            os.utime(path, (1000000000, 1000000000))
        daemon = self.configured('[limits]\ntick = "10s"\n', "--recent", "0s")  # none is read at startup; read ones are kept for a tick
        self.assertEqual(self.names(daemon)[0], [])
        made = sorted(os.path.basename(path)[:-len(".jsonl")] for path in paths)
        first, after = self.names(daemon, "?all=true&limit=2")
        self.assertEqual((first, after), (made[:2], made[1]))

        def loaded():
            """The transcripts in memory after one page."""
            self.names(daemon, "?all=true&limit=2")
            health = json.loads(curl(daemon, "/v1/health")[2])
            self.assertEqual(health["roots"][0]["transcripts"], 5)
            self.assertLessEqual(health["roots"][0]["live"], 2)
            return health["roots"][0]["live"]

        wait_for(lambda: loaded() == 2, "a page in memory")  # they may have been released before
        self.assertEqual(self.names(daemon, f"?all=true&limit=2&after={after}"), (made[2:4], made[3]))
        self.assertEqual(self.names(daemon, "?all=true"), (made, None))

    def test_121_a_question_of_a_session_that_is_read_for_an_answer_is_no_wait(self):
        session = Session(self.root)
        session.prompt("long ago")
        session.tool_call("AskUserQuestion", {"questions": [{"question": "Which colour?", "header": "Colour", "options": []}]})
        os.utime(session.path, (1_600_000_000, 1_600_000_000))
        daemon = self.configured('[limits]\ntick = "10s"\n', "--recent", "1h")  # what is read is kept for a tick
        watcher = daemon.subscriber()

        def counted():
            text = curl(daemon, "/metrics")[2].decode()
            return re.findall(r"^(earshot_(?:sessions|sessions_unseen|longest_wait_seconds|waits_total)\b.*)$", text, re.MULTILINE)

        def state():
            page = json.loads(curl(daemon, f"/v1/sessions?all=true&session={session.session}")[2])
            return page["sessions"][0].get("status", {}).get("state")

        before, seen = counted(), []
        wait_for(lambda: seen.append(state()) or seen[-1] not in (None, "unknown"), "the session's state")
        self.assertEqual(set(seen) - {None, "unknown"}, {"ended"})
        self.assertEqual(counted(), before)
        self.assertEqual(watcher.find(type="status", state="waiting"), None)

    def test_124_a_file_with_metadata_only_is_no_session_before_its_first_prompt(self):
        empty, titled, run = (Session(self.root) for _ in range(3))
        for session in (titled, run):
            session.append({"type": "custom-title", "customTitle": "the lighthouse", "sessionId": session.session})
        open(empty.path, "w").close()
        daemon = self.start()
        watcher = daemon.subscriber()
        known = lambda: json.loads(curl(daemon, "/v1/health")[2])["roots"][0]["transcripts"]
        wait_for(lambda: known() == 3, "the transcripts")
        Registry(self.root, run.session, self.process()).set_status("idle")
        self.assertEqual(watcher.wait_frame(type="session", session=run.session)["title"], "the lighthouse")
        self.assertEqual(watcher.wait_frame(type="status", session=run.session)["state"], "idle")
        self.assertEqual(self.names(daemon, "?all=true"), ([run.session], None))
        self.assertEqual(re.findall(r"^earshot_sessions.*", curl(daemon, "/metrics")[2].decode(), re.MULTILINE),
                         ['earshot_sessions{state="idle"} 1', "earshot_sessions_unseen 0"])
        for session in (empty, titled):
            self.assertEqual([frame["type"] for frame in watcher.frames if frame.get("session") == session.session
                              and frame["type"] in ("session", "status")], [])
        titled.prompt("hello")
        self.assertEqual(watcher.wait_frame(type="session", session=titled.session)["title"], "the lighthouse")
        empty.prompt("hello")
        watcher.wait_frame(type="turn.started", session=empty.session)
        wait_for(lambda: set(self.names(daemon)[0]) == {empty.session, titled.session, run.session}, "the sessions")

    def test_91_all_true_leaves_no_transcript_in_memory(self):
        sessions = [Session(self.root) for _ in range(5)]
        for session in sessions:
            session.turn("long ago")
            os.utime(session.path, (1000000000, 1000000000))
        daemon = self.start("--recent", "1h")
        watcher = daemon.subscriber()
        live = lambda: json.loads(curl(daemon, "/v1/health")[2])["roots"][0]["live"]
        made = sorted(os.path.basename(session.path)[:-len(".jsonl")] for session in sessions)
        for _ in range(2):
            self.assertEqual(self.names(daemon, "?all=true"), (made, None))
            wait_for(lambda: live() == 0, "the transcripts to be released")
        self.assertEqual(watcher.find(type="stream.removed"), None)
        sessions[0].prompt("again")  # it is followed from where it was
        self.assertEqual(watcher.wait_frame(type="turn.started")["prompt"], "again")
        self.assertEqual(len(watcher.all(type="turn.started")), 1)


class Health(HttpCase):
    def test_health_reports_identity_roots_watches_and_limits(self):
        daemon = self.configured(f'root = ["mine={self.root}", "gone={self.home}/gone"]\n[limits]\nconnections = 77\n', roots=())
        session = Session(self.root)
        session.prompt("x")
        self.wait_session(daemon, session)
        health = json.loads(curl(daemon, "/v1/health", unix=True)[2])
        self.assertEqual((health["host"], health["pid"], health["protocol"]), ("testhost", daemon.process.pid, 1))
        self.assertEqual((health["address"], health["socket"], health["state"]), (daemon.url, daemon.socket, self.state))
        self.assertEqual(health["roots"], [{"name": "mine", "path": self.root, "program": "claude-code", "present": True, "transcripts": 1, "live": 1},
                                           {"name": "gone", "path": self.home + "/gone", "program": "claude-code", "present": False, "transcripts": 0, "live": 0}])
        self.assertEqual((health["watch"]["mode"], health["limits"]["connections"], health["sessions"]), ("both", 77, 1))
        self.assertGreater(health["watch"]["inotify_watches"], 0)
        self.assertEqual(set(health), {"version", "instance", "host", "pid", "uptime_s", "protocol", "state", "address", "socket", "roots", "watch", "search",
                                       "problems", "redaction", "connections", "sessions", "limits"})


class Metrics(HttpCase):
    def test_the_metrics_pass_promtool(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = Session(self.root)
        session.turn("count me")
        client.wait_frame(type="turn.finished")
        line = {"session_id": session.session, "context_window": {"context_window_size": 200_000}, "rate_limits": {"five_hour": {"used_percentage": 25}}}
        self.assertEqual(curl(daemon, "/v1/statusline", "--data-binary", json.dumps(line), unix=True)[0], 204)
        registry = Registry(self.root, session.session, self.process())
        for state in ("waiting", "busy"):
            registry.set_status(state, "permission prompt")
            client.wait_frame(type="status", source="registry", state="waiting" if state == "waiting" else "working")
        metrics = curl(daemon, "/metrics")[2]
        for name in ("events_total", "tokens_total", "waits_total", "wait_seconds_total", "sessions_unseen", "session_context_ratio", "limit_used_ratio"):
            self.assertRegex(metrics.decode(), f"(?m)^earshot_{name}[{{ ]", name)
        done = subprocess.run([promtool(), "check", "metrics"], input=metrics, capture_output=True)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, b""))

    def test_events_refusals_and_responses_are_counted(self):
        daemon = self.start()
        client = daemon.subscriber()

        def value(name):
            _, headers, body = curl(daemon, "/metrics", unix=True)
            self.assertEqual(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
            return float(re.search(rf"^{re.escape(name)} (\S+)$", body.decode(), re.MULTILINE)[1])

        self.assertEqual(value('earshot_connections{kind="websocket",via="tcp"}'), 1)
        wait_for(lambda: value('earshot_connections{kind="http",via="unix"}') == 1, "only this request")
        self.assertEqual(value('earshot_subscribers{deliver="events"}'), 1)
        before = value("earshot_tail_events_total")
        Session(self.root).turn("count me")
        client.wait_frame(type="turn.finished")
        self.assertEqual(value("earshot_tail_events_total") - before, client.count())
        curl(daemon, "/metrics", "-H", "Authorization: Bearer wrong", token=False)
        self.assertEqual(value('earshot_events_total{type="turn.finished"}'), 1)
        self.assertEqual(value("earshot_sessions_unseen"), 1)
        self.assertEqual(value('earshot_refusals_total{reason="token"}'), 1)
        self.assertEqual(value('earshot_http_answers_total{code="401"}'), 1)
        self.assertEqual(value("earshot_messages_total"), 1)
