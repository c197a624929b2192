"""The other ways in: the Unix socket, the live stream over HTTP, one-time codes, a new token, TLS."""
import asyncio
import json
import os
import re
import socket
import ssl
import stat
import subprocess
import threading

import websockets

from harness import Client, build, deadline_s, loop, sanitized, wait_for
from http_test import HttpCase, curl
from sessions import Session


class UnixClient(Client):
    async def _open(self, url, headers):
        headers.pop("Authorization", None)
        return await websockets.unix_connect(self.daemon.socket, "ws://localhost/v1/ws", extra_headers=headers, subprotocols=["earshot.v1"],
                                             compression=None, max_size=None, max_queue=None, ping_interval=None, open_timeout=deadline_s * 4)


class TlsClient(Client):
    async def _open(self, url, headers):
        return await websockets.connect(url, ssl=self.daemon.trust, extra_headers=headers, subprotocols=["earshot.v1"], compression=None,
                                        max_size=None, max_queue=None, ping_interval=None, close_timeout=2, open_timeout=deadline_s * 4)


class Lines:
    """curl at /v1/events: its lines, parsed, as they come."""

    def __init__(self, daemon, query="", unix=True, more=()):
        where = ["--unix-socket", daemon.socket] if unix else ["-H", f"Authorization: Bearer {daemon.token}"]
        base = "http://localhost" if unix else f"http://127.0.0.1:{daemon.port}"
        self.frames = []
        self.process = subprocess.Popen(["curl", "-sSN", *where, *more, f"{base}/v1/events{query}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.frames.append(json.loads(line))

    def wait(self, **fields):
        return wait_for(lambda: next((f for f in list(self.frames) if all(f.get(k) == v for k, v in fields.items())), None), f"a line with {fields}",
                        give_up=lambda: self.process.poll() is not None and f"curl is gone with {self.process.poll()}")

    def wait_end(self):
        code = self.process.wait(deadline_s * 4)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def kill(self):
        self.process.kill()
        self.wait_end()


class DoorCase(HttpCase):
    def unix(self, daemon):
        client = UnixClient(daemon)
        daemon.clients.append(client)
        return client

    def lines(self, daemon, *args, **more):
        lines = Lines(daemon, *args, **more)
        self.addCleanup(lines.kill)
        return lines

    def health(self, daemon):
        return json.loads(curl(daemon, "/v1/health", unix=True)[2])

    def refused(self, *args, code=1, **more):
        daemon = self.start(*args, ready=False, **more)
        self.assertEqual(daemon.wait_exit(), code, daemon.stderr())
        self.assertEqual(daemon.out, [])
        return daemon.stderr().decode()


class UnixSocket(DoorCase):
    def test_the_socket_is_the_owner_s_alone_and_asks_for_no_token(self):
        daemon = self.start()
        self.assertEqual(stat.S_IMODE(os.stat(daemon.socket).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(daemon.socket)).st_mode), 0o700)
        with open(os.path.join(self.state, "socket")) as file:
            self.assertEqual(file.read(), daemon.socket + "\n")
        client = self.unix(daemon)
        client.wait_frame(type="welcome")
        client.subscribe()
        session = Session(self.root)
        session.turn("by socket")
        self.live(daemon, client, session.path)

    def test_hello_is_no_harm_on_the_socket(self):
        client = self.unix(self.start())
        client.send(type="hello", client="test/1")
        client.subscribe()
        self.assertEqual(client.all(type="error"), [])

    def test_no_page_gets_at_the_socket(self):
        daemon = self.start()
        self.assertEqual(curl(daemon, "/v1/sessions", "-H", "Origin: http://localhost", unix=True)[0], 403)
        with self.assertRaises(websockets.InvalidStatusCode) as refused:
            UnixClient(daemon, Origin=f"http://127.0.0.1:{daemon.port}")
        self.assertEqual(refused.exception.status_code, 403)

    def test_a_clean_stop_leaves_neither_socket_nor_address(self):
        daemon = self.start()
        client = self.unix(daemon)
        client.subscribe()
        daemon.stop()
        self.assertEqual(client.close_code, 1001)
        for path in (daemon.socket, os.path.join(self.state, "socket"), os.path.join(self.state, "address")):
            self.assertFalse(os.path.exists(path), path)

    def test_a_dead_daemon_s_socket_is_taken_over(self):
        path = os.path.join(self.home, "own", "sock")
        first = self.start("--socket", path)
        first.process.kill()
        first.process.wait()
        self.assertTrue(os.path.exists(path))
        second = self.start("--socket", path)
        second.socket = path
        self.assertEqual(self.health(second)["pid"], second.process.pid)

    def test_a_second_daemon_with_the_state_directory_says_so_and_exits_1(self):
        first = self.start()
        said = self.refused()
        self.assertIn(str(first.process.pid), said)
        self.assertIn(self.state, said)
        self.assertEqual(self.health(first)["pid"], first.process.pid)

    def test_a_socket_that_was_asked_for_and_is_taken_is_an_error(self):
        first = self.start()
        said = self.refused("--socket", first.socket, state=os.path.join(self.home, "other"))
        self.assertIn(first.socket, said)
        self.assertEqual(self.health(first)["pid"], first.process.pid)

    def test_when_the_usual_socket_is_taken_the_state_directory_s_is_used(self):
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

    def test_a_path_that_no_socket_can_have_is_an_error(self):
        self.assertIn("107", self.refused("--socket", os.path.join(self.home, "x" * 120)))
        precious = os.path.join(self.home, "precious")
        with open(precious, "w") as file:
            file.write("kept")
        self.assertIn("no socket", self.refused("--socket", precious))
        with open(precious) as file:
            self.assertEqual(file.read(), "kept")


class LiveStream(DoorCase):
    def test_the_stream_says_what_a_websocket_says(self):
        daemon = self.start()
        client = daemon.subscriber()
        by_socket, by_tcp = self.lines(daemon), self.lines(daemon, unix=False)
        for lines in (by_socket, by_tcp):
            self.assertEqual(lines.wait(type="ready")["id"], "events")
        session = Session(self.root)
        for n in range(20):
            session.turn(f"turn {n}")
        events = [json.loads(text) for text in sum(self.live(daemon, client, session.path).values(), [])]
        for lines in (by_socket, by_tcp):
            lines.wait(cursor=events[-1]["cursor"])
            self.assertEqual([f for f in lines.frames if "cursor" in f], events)

    def test_a_long_line_and_many_lines_come_whole(self):
        daemon = self.start()
        lines = self.lines(daemon)
        lines.wait(type="ready")
        session = Session(self.root)
        session.prompt("write")
        big = {f"file{n}": "x" * 4000 for n in range(12)}
        for n in range(200):
            session.calls("Write", big)
        session.says("the end")
        lines.wait(type="message.added", text="the end")
        calls = [f for f in lines.frames if f["type"] == "tool.invoked"]
        self.assertEqual(len(calls), 200)
        self.assertEqual(calls[0]["input"], big)

    def test_the_query_is_the_filter(self):
        daemon = self.start()
        session, other = Session(self.root, cwd="/home/ada/api"), Session(self.root, cwd="/home/ada/web")
        session.prompt("before")
        daemon.subscriber().wait_frame(type="session", session=session.session)
        lines = self.lines(daemon, "?type=turn.*&project=*/api&snapshot=false")
        lines.wait(type="ready")
        self.assertEqual([f["type"] for f in lines.frames], ["ready"])
        other.turn("not this")
        session.turn("this")
        lines.wait(type="turn.finished", session=session.session, turn=2)
        self.assertEqual({f["type"] for f in lines.frames} - {"ready", "status", "session"}, {"turn.started", "turn.finished"})
        self.assertEqual({f["session"] for f in lines.frames if f["type"].startswith("turn.")}, {session.session})
        states = self.lines(daemon, "?deliver=state&all=true")
        states.wait(type="ready")
        self.assertEqual({f["type"] for f in states.frames}, {"session", "ready"})
        for wrong in ("?typ=x", "?deliver=often", "?type=" + "x" * 300, "?all=maybe"):
            self.assertEqual(curl(daemon, "/v1/events" + wrong, unix=True)[0], 400, wrong)

    def test_the_stop_ends_the_stream_cleanly_with_all_that_was_owed(self):
        daemon = self.start()
        lines, old = self.lines(daemon), self.lines(daemon, more=("--http1.0",))
        for each in (lines, old):
            each.wait(type="ready")
        Session(self.root).prompt("last words")
        lines.wait(type="turn.started")
        daemon.stop()
        for each in (lines, old):
            self.assertEqual(each.wait_end(), 0)  # curl saw the last chunk
            self.assertTrue(any(f["type"] == "turn.started" for f in each.frames))

    def test_whoever_goes_is_noticed_though_nothing_happens(self):
        daemon = self.start()
        lines = self.lines(daemon)
        lines.wait(type="ready")
        self.assertEqual(self.health(daemon)["connections"], 2)
        lines.kill()
        wait_for(lambda: self.health(daemon)["connections"] == 1, "its end")

    def test_whoever_does_not_read_is_dropped_and_disturbs_nobody(self):
        daemon = self.configured("[limits]\nstall_ms = 300\ntick_ms = 20\nsend_buffer_bytes = 4096\nlog_bytes = 1048576\n")
        client = daemon.subscriber()
        deaf = socket.socket()
        self.addCleanup(deaf.close)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", daemon.port))
        deaf.sendall(f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nAuthorization: Bearer {daemon.token}\r\n\r\n".encode())
        wait_for(lambda: self.health(daemon)["connections"] == 3, "the one that does not read")
        session = Session(self.root)
        for n in range(300):
            session.calls("Write", {"content": "x" * 3000})
        wait_for(lambda: self.health(daemon)["connections"] == 2, "its end")
        self.live(daemon, client, session.path)
        self.assertIn(b'earshot_endings_total{reason="stalled"} 1', curl(daemon, "/metrics", unix=True)[2])


class Tokens(DoorCase):
    def post(self, daemon, path, body=None, unix=False, token=False, *more):
        given = ["-H", "Content-Type: application/json", "-d", json.dumps(body)] if body is not None else ["-X", "POST"]
        status, _, text = curl(daemon, path, *given, *more, unix=unix, token=token)
        return status, json.loads(text) if status == 200 else text

    def test_a_code_is_good_once(self):
        daemon = self.start()
        self.assertEqual(self.post(daemon, "/v1/codes")[0], 401)
        for owner in ({"unix": True}, {"token": True}):
            status, made = self.post(daemon, "/v1/codes", **owner)
            self.assertEqual((status, made["expires_in"]), (200, 60))
            self.assertRegex(made["code"], "^[0-9a-f]{64}$")
            self.assertEqual(made["url"], f"http://127.0.0.1:{daemon.port}/#code={made['code']}")
            self.assertEqual(self.post(daemon, "/v1/token", {"code": made["code"]}), (200, {"token": daemon.token}))
            self.assertEqual(self.post(daemon, "/v1/token", {"code": made["code"]})[0], 401)
        self.assertEqual(self.post(daemon, "/v1/token", {"code": "0" * 64})[0], 401)

    def test_no_other_site_trades_a_code(self):
        daemon = self.start()
        code = self.post(daemon, "/v1/codes", unix=True)[1]["code"]
        self.assertEqual(self.post(daemon, "/v1/token", {"code": code}, False, False, "-H", "Origin: http://evil.example")[0], 403)
        self.assertEqual(curl(daemon, "/v1/token", "-d", json.dumps({"code": code}), token=False)[0], 415)  # what a form can send
        own = ("-H", f"Origin: http://127.0.0.1:{daemon.port}")
        self.assertEqual(self.post(daemon, "/v1/token", {"code": code}, False, False, *own)[0], 200)

    def test_codes_and_tokens_are_in_no_log(self):
        daemon = self.start("--log-level", "trace")
        code = self.post(daemon, "/v1/codes", unix=True)[1]["code"]
        self.post(daemon, "/v1/token", {"code": code})
        fresh = self.post(daemon, "/v1/token/rotate", unix=True)[1]["token"]
        daemon.stop()
        said = daemon.stderr().decode()
        for secret in (code, fresh, daemon.token):
            self.assertNotIn(secret, said)

    def test_a_new_token_closes_whoever_came_with_the_old_one(self):
        daemon = self.start()
        bearer, hello, owner = daemon.subscriber(), daemon.client(bearer=False), self.unix(daemon)
        hello.send(type="hello", token=daemon.token)
        hello.subscribe()
        owner.subscribe()
        lines = self.lines(daemon, unix=False)
        lines.wait(type="ready")
        stranger = daemon.client(bearer=False)
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
        stranger.send(type="hello", token=fresh)
        stranger.subscribe()
        Session(self.root).prompt("go on")
        for client in (stranger, owner):
            client.wait_frame(type="turn.started")


class Tls(DoorCase):
    def certificate(self, name="localhost"):
        paths = os.path.join(self.home, "cert.pem"), os.path.join(self.home, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},DNS:dev7.example,IP:127.0.0.1", "-keyout", paths[1], "-out", paths[0]],
                       check=True, capture_output=True)
        os.chmod(paths[1], 0o600)
        return paths

    def encrypted(self, more='remote_view = "full"\n', **given):
        cert, _ = self.certificate()
        daemon = self.configured(f'tls_cert = "cert.pem"\ntls_key = "key.pem"\n{more}', **given)
        daemon.trust = ssl.create_default_context(cafile=cert)
        return daemon

    def tls(self, daemon, **given):
        client = TlsClient(daemon, **given)
        daemon.clients.append(client)
        return client

    def https(self, daemon, target, *args, **more):
        return curl(daemon, target, "--cacert", os.path.join(self.home, "cert.pem"), *args, scheme="https", **more)

    def test_websocket_and_http_are_served_encrypted(self):
        daemon = self.encrypted()
        self.assertRegex(daemon.url, r"^wss://127\.0\.0\.1:\d+/v1/ws$")
        with open(os.path.join(self.state, "address")) as file:
            self.assertEqual(file.read().strip(), daemon.url)
        self.assertEqual(self.https(daemon, "/healthz", token=False)[2], b"ok\n")
        self.assertEqual(self.https(daemon, "/v1/sessions", token=False)[0], 401)
        self.assertEqual(self.https(daemon, "/v1/sessions")[0], 200)
        self.assertIn(f"wss://127.0.0.1:{daemon.port}", self.https(daemon, "/")[1]["content-security-policy"])
        code = json.loads(curl(daemon, "/v1/codes", "-X", "POST", unix=True)[2])
        self.assertTrue(code["url"].startswith(f"https://127.0.0.1:{daemon.port}/#code="))
        client = self.tls(daemon)
        self.assertEqual(client.wait_frame(type="welcome")["view"], "full")
        client.subscribe()
        session = Session(self.root)
        session.turn("secret")
        self.live(daemon, client, session.path)

    def test_much_is_sent_whole_while_pings_are_answered(self):
        daemon = self.encrypted()
        client = self.tls(daemon)
        client.subscribe()
        session = Session(self.root)
        session.prompt("go")

        async def ping():
            await asyncio.wait_for(await client.socket.ping(), 60)

        for _ in range(30):
            for _ in range(40):
                session.calls("Write", {"content": "x" * 3000, "more": ["y" * 3000] * 5})
            loop.run(ping())
        self.live(daemon, client, session.path)

    def test_many_requests_and_the_live_stream_work_encrypted(self):
        daemon = self.encrypted()
        done = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{num_connects}\n", "--cacert", os.path.join(self.home, "cert.pem"),
                               *[f"https://127.0.0.1:{daemon.port}/healthz"] * 3, *("-o", "/dev/null") * 2], capture_output=True, text=True)
        self.assertEqual(done.stdout.split("\n")[:3], ["200 1", "200 0", "200 0"], done.stderr)
        stream = subprocess.Popen(["curl", "-sSN", "--cacert", os.path.join(self.home, "cert.pem"), "-H", f"Authorization: Bearer {daemon.token}",
                                   f"https://127.0.0.1:{daemon.port}/v1/events"], stdout=subprocess.PIPE)
        self.addCleanup(stream.stdout.close)
        self.addCleanup(stream.kill)
        self.assertEqual(json.loads(stream.stdout.readline())["type"], "ready")
        Session(self.root).prompt("hello")
        self.assertEqual(json.loads(stream.stdout.readline())["type"], "session.started")
        daemon.stop()
        self.assertIn(b'"turn.started"', stream.stdout.read())
        self.assertEqual(stream.wait(deadline_s), 0)

    def test_names_of_the_configuration_are_ours_and_no_other_ones(self):
        daemon = self.encrypted('remote_view = "full"\nnames = ["dev7.example"]\n')
        self.assertEqual(daemon.url, f"wss://dev7.example:{daemon.port}/v1/ws")
        for host, status in (("dev7.example", 200), ("evil.example", 403), ("127.0.0.1", 200)):
            got = self.https(daemon, "/healthz", "-H", f"Host: {host}:{daemon.port}")[0]
            self.assertEqual(got, status, host)
        origin = ("-H", f"Host: dev7.example:{daemon.port}", "-H")
        self.assertEqual(self.https(daemon, "/healthz", *origin, f"Origin: https://dev7.example:{daemon.port}")[0], 200)
        self.assertEqual(self.https(daemon, "/healthz", *origin, f"Origin: http://dev7.example:{daemon.port}")[0], 403)

    def test_old_tls_and_no_tls_are_refused(self):
        daemon = self.encrypted("[limits]\nhandshake_ms = 300\ntick_ms = 20\n")
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", daemon.port)) as raw, self.assertRaises((ssl.SSLError, ConnectionResetError)):
            old.wrap_socket(raw)
        for said in (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"\x16\x03\x01", b""):
            with socket.create_connection(("127.0.0.1", daemon.port), timeout=deadline_s * 4) as raw:
                raw.sendall(said)
                answer = b""
                try:
                    while piece := raw.recv(4096):
                        answer += piece
                except ConnectionResetError:
                    pass
                self.assertNotIn(b"HTTP/1.1", answer)
        wait_for(lambda: self.health(daemon)["connections"] == 1, "their end")

    def test_what_leaves_the_machine_is_the_meta_view_unless_the_owner_says_otherwise(self):
        daemon = self.encrypted("")
        Session(self.root).prompt("the words of the prompt")
        daemon.wait_ready()
        wait_for(lambda: self.health(daemon)["sessions"] == 1, "the session")
        self.assertNotIn(b"the words of the prompt", self.https(daemon, "/v1/sessions")[2])
        client = self.tls(daemon)
        self.assertEqual(client.wait_frame(type="welcome")["view"], "meta")
        client.subscribe(id="a", wait=False)
        client.wait(lambda: client.find(type="ready") or client.find(type="error"), "an answer")
        self.assertNotIn("the words of the prompt", "".join(client.raw))

    def test_an_idle_subscriber_costs_little(self):
        daemon = self.encrypted()

        def resident():
            return int(re.search(rb"^process_resident_memory_bytes (\d+)$", curl(daemon, "/metrics", unix=True)[2], re.MULTILINE)[1])

        for _ in range(5):
            self.tls(daemon).subscribe()
        before, count = resident(), 60
        for _ in range(count):
            self.tls(daemon).subscribe()
        each = (resident() - before) / count
        if not sanitized(build()):
            self.assertLess(each, 96 * 1024)

    def test_a_listener_for_others_says_what_it_needs(self):
        said = self.refused(listen="0.0.0.0:0", code=2)
        for word in ("allow_remote = true", "tls_cert", "tls_key"):
            self.assertIn(word, said)

    def test_a_certificate_that_cannot_be_used_is_an_error(self):
        cert, key = self.certificate()
        path = os.path.join(self.home, "earshot.toml")

        def configured(cert, key):
            with open(path, "w") as file:
                file.write(f'tls_cert = "{cert}"\ntls_key = "{key}"\n')
            return self.refused("--config", path)

        os.chmod(key, 0o644)
        self.assertIn("chmod 600 " + key, configured(cert, key))
        os.chmod(key, 0o600)
        self.assertIn("nothing.pem", configured("nothing.pem", key))
        self.assertIn("key.pem", configured(cert, "nothing/key.pem"))
        self.assertIn("cert.pem", configured(path, key).replace(path, "cert.pem"))
        other = os.path.join(self.home, "other")
        os.mkdir(other)
        self.home, home = other, self.home
        foreign = self.certificate()[1]
        self.home = home
        self.assertIn(foreign, configured(cert, foreign))
