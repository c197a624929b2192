"""The Unix socket, the event stream over HTTP, one-time codes and token rotation."""
import hashlib
import hmac
import json
import os
import socket
import stat
import time

import websockets

from support.browser_key import BrowserKey
from support.endpoints import EndpointCase, UnixClient, curl
from support.harness import wait_for
from support.transcripts import Session

code_s = 60  # a one-time code is valid


class UnixSocket(EndpointCase):
    def test_the_socket_is_private_and_needs_no_token(self):
        daemon = self.start()
        self.assertEqual(stat.S_IMODE(os.stat(daemon.socket).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(daemon.socket)).st_mode), 0o700)
        with open(os.path.join(self.state, "socket")) as file:
            self.assertEqual(file.read(), daemon.socket + "\n")
        client = self.unix_client(daemon)
        client.wait_frame(type="welcome")
        client.subscribe()
        session = Session(self.root)
        session.turn("by socket")
        self.assert_delivered(daemon, client, session.path)

    def test_hello_is_allowed_on_the_socket(self):
        client = self.unix_client(self.start())
        client.send(type="hello", client="test/1")
        client.subscribe()
        self.assertEqual(client.all(type="error"), [])

    def test_requests_with_an_origin_are_refused_on_the_socket(self):
        daemon = self.start()
        self.assertEqual(curl(daemon, "/v1/sessions", "-H", "Origin: http://localhost", unix=True)[0], 403)
        with self.assertRaises(websockets.InvalidStatusCode) as refused:
            UnixClient(daemon, Origin=f"http://127.0.0.1:{daemon.port}")
        self.assertEqual(refused.exception.status_code, 403)

    def test_a_clean_stop_removes_the_socket_and_the_address(self):
        daemon = self.configured("[limits]\nstop = \"10m\"\n")
        client = self.unix_client(daemon)
        client.subscribe()
        daemon.stop()
        self.assertEqual(client.close_code, 1001)
        for path in (daemon.socket, os.path.join(self.state, "socket"), os.path.join(self.state, "address")):
            self.assertFalse(os.path.exists(path), path)

    def test_the_socket_of_a_dead_daemon_is_taken_over(self):
        path = os.path.join(self.home, "own", "sock")
        first = self.start("--socket", path)
        first.process.kill()
        first.process.wait()
        self.assertTrue(os.path.exists(path))
        second = self.start("--socket", path)
        second.socket = path
        self.assertEqual(self.health(second)["pid"], second.process.pid)

    def test_a_second_daemon_on_a_state_directory_reports_it_and_exits_1(self):
        first = self.start()
        stderr = self.start_refused()
        self.assertIn(str(first.process.pid), stderr)
        self.assertIn(self.state, stderr)
        self.assertEqual(self.health(first)["pid"], first.process.pid)

    def test_a_requested_socket_that_is_in_use_is_an_error(self):
        first = self.start()
        stderr = self.start_refused("--socket", first.socket, state=os.path.join(self.home, "other"))
        self.assertIn(first.socket, stderr)
        self.assertEqual(self.health(first)["pid"], first.process.pid)

    def test_a_default_socket_that_is_in_use_falls_back_to_the_state_directory(self):
        runtime = os.path.join(self.home, "shared")
        os.mkdir(runtime, 0o700)
        first = self.start(runtime=runtime)
        other = os.path.join(self.home, "other")
        second = self.start(state=other, runtime=runtime)
        second.wait_log("another earshotd")
        second.socket = os.path.join(other, "sock")
        self.assertEqual(self.health(second)["pid"], second.process.pid)
        self.assertEqual(self.health(first)["pid"], first.process.pid)
        with open(os.path.join(other, "socket")) as file:
            self.assertEqual(file.read(), second.socket + "\n")

    def test_an_unusable_socket_path_is_an_error(self):
        self.assertIn("107", self.start_refused("--socket", os.path.join(self.home, "x" * 120)))
        precious = os.path.join(self.home, "precious")
        with open(precious, "w") as file:
            file.write("kept")
        self.assertIn("is not a socket", self.start_refused("--socket", precious))
        with open(precious) as file:
            self.assertEqual(file.read(), "kept")


class EventStreamOverHttp(EndpointCase):
    def test_the_stream_delivers_the_same_events_as_a_websocket(self):
        daemon = self.start()
        client = daemon.subscriber()
        by_socket, by_tcp = self.event_stream(daemon), self.event_stream(daemon, unix=False)
        for lines in (by_socket, by_tcp):
            self.assertEqual(lines.wait(type="ready")["id"], "events")
        session = Session(self.root)
        for n in range(20):
            session.turn(f"turn {n}")
        events = [json.loads(text) for text in sum(self.assert_delivered(daemon, client, session.path).values(), [])]
        for lines in (by_socket, by_tcp):
            lines.wait(cursor=events[-1]["cursor"])
            self.assertEqual([f for f in lines.frames if "cursor" in f], events)

    def test_a_long_line_and_many_lines_arrive_complete(self):
        daemon = self.start()
        lines = self.event_stream(daemon)
        lines.wait(type="ready")
        session = Session(self.root)
        session.prompt("write")
        big = {f"file{n}": "x" * 4000 for n in range(12)}
        for n in range(200):
            session.tool_call("Write", big)
        session.reply("the end")
        lines.wait(type="message.added", text="the end")
        calls = [f for f in lines.frames if f["type"] == "tool.invoked"]
        self.assertEqual(len(calls), 200)
        self.assertEqual(calls[0]["input"], big)

    def test_the_query_is_the_filter(self):
        daemon = self.start()
        session, other = Session(self.root, cwd="/home/ada/api"), Session(self.root, cwd="/home/ada/web")
        session.prompt("before")
        self.wait_session(daemon, session)
        lines = self.event_stream(daemon, "?type=turn.*&project=*/api&snapshot=false")
        lines.wait(type="ready")
        self.assertEqual(lines.frames[0]["type"], "ready")  # no snapshot
        other.turn("not this")
        session.turn("this")
        lines.wait(type="turn.finished", session=session.session, turn=2)
        self.assertEqual({f["type"] for f in lines.frames} - {"ready", "status", "session", "heartbeat", "bookmark"}, {"turn.started", "turn.finished"})
        self.assertEqual({f["session"] for f in lines.frames if f["type"].startswith("turn.")}, {session.session})
        states = self.event_stream(daemon, "?deliver=state&all=true")
        ready = states.wait(type="ready")
        self.assertEqual({f["type"] for f in states.frames[: states.frames.index(ready) + 1]}, {"session", "ready"})
        for wrong in ("?typ=x", "?deliver=often", "?type=" + "x" * 300, "?all=maybe"):
            self.assertEqual(curl(daemon, "/v1/events" + wrong, unix=True)[0], 400, wrong)

    def test_at_shutdown_the_stream_ends_cleanly_with_every_pending_event(self):
        daemon = self.start()
        lines, old = self.event_stream(daemon), self.event_stream(daemon, more=("--http1.0",))
        for each in (lines, old):
            each.wait(type="ready")
        Session(self.root).prompt("last prompt")
        lines.wait(type="turn.started")
        daemon.stop()
        for each in (lines, old):
            self.assertEqual(each.wait_end(), 0)  # curl received the last chunk
            self.assertTrue(any(f["type"] == "turn.started" for f in each.frames))

    def test_a_disconnect_is_noticed_without_traffic(self):
        daemon = self.start()
        lines = self.event_stream(daemon)
        lines.wait(type="ready")
        self.assertEqual(self.health(daemon)["connections"], 2)
        lines.kill()
        wait_for(lambda: self.health(daemon)["connections"] == 1, "the connection to close")

    def test_a_client_that_does_not_read_is_dropped_without_affecting_others(self):
        daemon = self.configured("[limits]\nstall = \"1s\"\ntick = \"20ms\"\nsend_buffer_bytes = 4096\n")
        client = daemon.subscriber()
        stalled = socket.socket()
        self.addCleanup(stalled.close)
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.connect(("127.0.0.1", daemon.port))
        stalled.sendall(f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nAuthorization: Bearer {daemon.token}\r\n\r\n".encode())
        wait_for(lambda: self.health(daemon)["connections"] == 3, "the client that does not read")
        session = Session(self.root)
        for n in range(16):  # more than the kernel's buffers for that client, and less than those for the other one, however slow it is
            session.tool_call("Write", {"content": "x" * 3000})
        wait_for(lambda: self.health(daemon)["connections"] == 2, "the connection to close")
        self.assert_delivered(daemon, client, session.path)
        self.assertIn(b'earshot_endings_total{reason="stalled"} 1', curl(daemon, "/metrics", unix=True)[2])


class Tokens(EndpointCase):
    def post(self, daemon, path, body=None, unix=False, token=False, *more):
        given = ["-H", "Content-Type: application/json", "-d", json.dumps(body)] if body is not None else ["-X", "POST"]
        status, _, text = curl(daemon, path, *given, *more, unix=unix, token=token)
        return status, json.loads(text) if status == 200 else text

    def test_a_code_works_once(self):
        daemon = self.start()
        self.assertEqual(self.post(daemon, "/v1/codes")[0], 401)
        for owner in ({"unix": True}, {"token": True}):
            status, made = self.post(daemon, "/v1/codes", **owner)
            self.assertEqual((status, made["expires_in"]), (200, 60))
            self.assertRegex(made["code"], "^[0-9a-f]{64}$")
            self.assertEqual(made["url"], f"http://127.0.0.1:{daemon.port}/#code={made['code']}")
            browser = BrowserKey(daemon.port)
            status, given = browser.register(made["code"])
            self.assertEqual(status, 200)
            self.assertEqual(set(given), {"browser", "proof"})
            again = BrowserKey(daemon.port).register(made["code"])
            self.assertEqual((again[0], again[1]["code"]), (401, "code_used"))
        self.assertEqual(BrowserKey(daemon.port).register("0" * 64)[1]["code"], "code_unknown")
        self.assertEqual(self.post(daemon, "/v1/token", {"code": made["code"]})[0], 404)

    def test_a_registration_is_refused_for_another_origin(self):
        daemon = self.start()

        def used(code):
            browser = BrowserKey(daemon.port)
            registration = browser.registration(code)
            self.assertEqual(browser.send_registration(registration, "http://evil.example")[0], 403)
            self.assertEqual(browser.send_registration(registration, f"http://localhost:{daemon.port}")[1]["code"], "wrong_origin")
            self.assertEqual(curl(daemon, "/v1/browsers/register", "-d", json.dumps(registration), token=False)[0], 415)  # the content type of an HTML form
            return browser.send_registration(registration)

        self.assertEqual(self.with_code(daemon, used)[0], 200)

    def test_a_browser_uses_http_and_events_until_it_is_revoked(self):
        daemon = self.start()
        session = Session(self.root)
        browser = BrowserKey(daemon.port)
        self.assertEqual(self.with_code(daemon, browser.register)[0], 200)
        header = browser.authorization("GET", "/v1/sessions?all=true")
        self.assertEqual(curl(daemon, "/v1/sessions?all=1", "-H", "Authorization: " + header, token=False)[0], 401)  # signed for another target
        self.assertEqual(curl(daemon, "/v1/sessions?all=true", "-H", "Authorization: " + header, token=False)[0], 200)
        self.assertEqual(curl(daemon, "/v1/sessions?all=true", "-H", "Authorization: " + header, token=False)[0], 401)  # again
        self.assertEqual(browser.authorised("POST", "/v1/codes")[0], 403)
        self.assertEqual(browser.authorised("POST", "/v1/token/rotate")[0], 403)
        lines = self.event_stream(daemon, unix=False, authorization=browser.authorization("GET", "/v1/events"))
        lines.wait(type="ready")
        session.prompt("go on")
        lines.wait(type="turn.started")
        self.assertEqual(browser.authorised("POST", "/v1/browsers/revoke", {"browser": browser.id}), (200, {"revoked": 1}))
        self.assertNotEqual(lines.wait_end(), 0)
        self.assertEqual(browser.authorised("GET", "/v1/sessions")[0], 401)

    def crash(self, daemon):
        daemon.process.kill()
        daemon.process.wait()

    def test_browsers_are_kept_in_a_private_file_over_restarts(self):
        daemon = self.start()
        kept, temporary = BrowserKey(daemon.port), BrowserKey(daemon.port)
        self.assertEqual(self.with_code(daemon, kept.register)[0], 200)
        self.assertEqual(self.with_code(daemon, lambda code: temporary.register(code, temporary=True))[0], 200)
        path = os.path.join(self.state, "browsers.json")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(path) as file:
            stored = json.load(file)
        self.assertEqual([each["id"] for each in stored["browsers"]], [kept.id])
        self.assertNotIn(daemon.token, json.dumps(stored))
        self.assertIn("proof", kept.challenge()[1])
        self.crash(daemon)  # it was stored before the browser was told
        daemon = self.start_again(daemon)
        self.assertIn("proof", kept.challenge()[1])
        self.assertEqual(kept.authorised("GET", "/v1/sessions")[0], 200)
        self.assertEqual(temporary.authorised("GET", "/v1/sessions")[0], 401)
        self.assertEqual(self.post(daemon, "/v1/browsers/revoke", {"browser": kept.id}, unix=True)[0], 200)
        self.crash(daemon)
        daemon = self.start_again(daemon)
        self.assertEqual(kept.authorised("GET", "/v1/sessions")[0], 401)
        with open(path) as file:
            self.assertEqual(json.load(file), {**stored, "browsers": []})

    def test_a_damaged_or_public_file_of_browsers_is_set_aside(self):
        daemon = self.start()
        path = os.path.join(self.state, "browsers.json")
        for damage in (lambda: open(path, "w").write('{"browsers'), lambda: os.chmod(path, 0o666)):
            browser = BrowserKey(daemon.port)
            self.assertEqual(self.with_code(daemon, browser.register)[0], 200)
            daemon.stop()
            damage()
            daemon = self.start_again(daemon)
            self.assertEqual(browser.authorised("GET", "/v1/sessions")[0], 401)
            self.assertIn(b"browsers must sign in again", daemon.stderr())
            self.assertTrue(os.path.exists(path + ".torn"))
            wait_for(lambda: os.path.exists(path), what="a new file of browsers")
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)

    def test_a_deleted_token_signs_the_browsers_out(self):
        daemon = self.start()
        browser = BrowserKey(daemon.port)
        self.assertEqual(self.with_code(daemon, browser.register)[0], 200)
        daemon.stop()
        os.unlink(os.path.join(self.state, "token"))
        self.start_again(daemon)
        self.assertEqual(browser.authorised("GET", "/v1/sessions")[0], 401)

    def with_code(self, daemon, use):
        """The result of use() with a one-time code; with another one if it took longer than a code is valid."""
        while True:
            begin = time.monotonic()
            result = use(self.post(daemon, "/v1/codes", unix=True)[1]["code"])
            if result[0] != 401 or time.monotonic() - begin < code_s:
                return result

    def test_87_the_daemon_proves_that_it_has_the_token(self):
        daemon = self.start()
        nonce = os.urandom(16).hex()

        def expected(address):
            return hmac.new(daemon.token.encode(), f"{nonce}{address}:{daemon.port}".encode(), hashlib.sha256).hexdigest() + "\n"

        status, headers, body = curl(daemon, f"/v1/proof?nonce={nonce}", token=False)
        self.assertEqual((status, body.decode()), (200, expected("127.0.0.1")))
        self.assertTrue(headers["content-type"].startswith("text/plain"))
        self.assertEqual(curl(daemon, f"/v1/proof?nonce={nonce[1:]}", token=False)[0], 400)
        self.assertEqual(curl(daemon, f"/v1/proof?nonce={nonce}", "-H", "Host: evil.example", token=False)[0], 403)
        own = ("-H", f"Origin: http://127.0.0.1:{daemon.port}")
        self.assertEqual(curl(daemon, f"/v1/proof?nonce={nonce}", *own, token=False)[0], 403)
        self.assertEqual(curl(daemon, f"/v1/proof?nonce={nonce}", unix=True)[0], 404)

    def test_codes_and_tokens_are_never_logged(self):
        daemon = self.start("--log-level", "trace")
        code = self.post(daemon, "/v1/codes", unix=True)[1]["code"]
        browser = BrowserKey(daemon.port)
        registration = browser.registration(code)
        browser.send_registration(registration)
        used = browser.authorization("GET", "/v1/sessions")
        self.assertEqual(browser.request("GET", "/v1/sessions", Authorization=used)[0], 200)
        fresh = self.post(daemon, "/v1/token/rotate", unix=True)[1]["token"]
        daemon.stop()
        stderr = daemon.stderr().decode()
        for secret in (code, fresh, daemon.token, registration["proof"], used.split(".")[2]):
            self.assertNotIn(secret, stderr)

    def test_rotating_the_token_closes_connections_that_used_the_old_one(self):
        daemon = self.start()
        bearer, hello, owner = daemon.subscriber(), daemon.client(bearer=False), self.unix_client(daemon)
        hello.send(type="hello", token=daemon.token)
        hello.subscribe()
        owner.subscribe()
        lines = self.event_stream(daemon, unix=False)
        lines.wait(type="ready")
        anonymous = daemon.client(bearer=False)
        status, answer = self.post(daemon, "/v1/token/rotate", token=True)
        fresh = answer["token"]
        self.assertEqual(status, 200)
        self.assertNotEqual(fresh, daemon.token)
        for client in (bearer, hello):
            self.assertEqual(client.wait_closed(), 4501)
        self.assertNotEqual(lines.wait_end(), 0)
        path = os.path.join(self.state, "token")
        with open(path) as file:
            self.assertEqual(file.read(), fresh + "\n")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(curl(daemon, "/v1/health")[0], 401)
        daemon.token = fresh
        self.assertEqual(curl(daemon, "/v1/health")[0], 200)
        anonymous.send(type="hello", token=fresh)
        anonymous.subscribe()
        Session(self.root).prompt("go on")
        for client in (anonymous, owner):
            client.wait_frame(type="turn.started")
