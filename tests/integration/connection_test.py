"""Connecting: authentication, host and origin checks, protocol errors, shutdown."""
import asyncio
import contextlib
import json
import os
import re
import socket
import stat

import websockets

from support.endpoints import curl
from support.harness import DaemonCase, Client, deadline_s, http, loop, wait_for
from support.transcripts import Session

UPGRADE = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")


class Authentication(DaemonCase):
    def test_a_valid_bearer_token_receives_welcome_first(self):
        daemon = self.start()
        client = daemon.client()
        client.wait_frame(type="welcome")
        self.assertEqual(client.frames[0]["type"], "welcome")
        self.assertEqual((client.frames[0]["protocol"], client.frames[0]["host"], client.frames[0]["view"]), (1, "testhost", "full"))
        self.assertEqual(client.socket.subprotocol, "earshot.v1")

    def test_a_wrong_bearer_token_is_refused_before_the_upgrade(self):
        daemon = self.start()
        for token in ("0" * 64, daemon.token[:-1], daemon.token + "0", daemon.token.upper() + " ", "x"):
            with self.subTest(token=token), self.assertRaises(websockets.InvalidStatusCode) as refused:
                Client(daemon, token=token)
            self.assertEqual(refused.exception.status_code, 401)

    def test_hello_with_the_token_receives_welcome(self):
        daemon = self.start()
        client = daemon.client(bearer=False)
        client.send(type="hello", token=daemon.token, client="test/1.0")
        client.wait_frame(type="welcome")
        Session(self.root).prompt("hi")
        client.subscribe()
        client.wait(lambda: client.find(type="turn.started") or client.find(type="session"), "the session")

    def test_hello_with_a_wrong_token_is_closed_with_4501(self):
        daemon = self.start()
        client = daemon.client(bearer=False)
        client.send(type="hello", token="0" * 64, client="test/1.0")
        self.assertEqual(client.wait_closed(), 4501)
        self.assertEqual(client.frames, [])

    def test_a_message_before_hello_closes_with_4501(self):
        daemon = self.start()
        client = daemon.client(bearer=False)
        client.send(type="subscribe", id="a")
        self.assertEqual(client.wait_closed(), 4501)
        self.assertEqual(client.frames, [])

    def test_the_token_is_private_and_survives_a_restart(self):
        daemon = self.start()
        path = os.path.join(self.state, "token")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.state).st_mode), 0o700)
        self.assertRegex(daemon.token, r"^[0-9a-f]{64}$")
        daemon.stop()
        self.assertEqual(self.start().token, daemon.token)

    def test_a_token_readable_by_others_is_refused(self):
        self.start().stop()
        os.chmod(os.path.join(self.state, "token"), 0o644)
        daemon = self.start(ready=False)
        self.assertNotEqual(daemon.wait_exit(), 0)
        self.assertIn("chmod 600", daemon.stderr().decode())

    def test_the_token_is_never_logged(self):
        daemon = self.start("--log-level", "debug")
        daemon.subscriber()
        daemon.stop()
        self.assertNotIn(daemon.token, daemon.stderr().decode() + "".join(daemon.out))


class Limits(DaemonCase):
    def test_90_idle_anonymous_connections_do_not_lock_out_the_owner(self):
        connections = 100
        daemon = self.configured(f"[limits]\nconnections = {connections}\nhandshake = \"10m\"\n")
        request = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n\r\n".encode()
        with contextlib.ExitStack() as stack:
            for _ in range(connections):
                idle = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port)))
                idle.sendall(request)
                self.assertTrue(idle.recv(4096).startswith(b"HTTP/1.1 200 "))
            # By TCP the one that has been idle longest gives way; the Unix socket has connections of its own.
            held = [daemon.client() for _ in range(connections)]
            for client in held:
                client.wait_frame(type="welcome")
            self.assertEqual(curl(daemon, "/v1/health", token=True)[0], 503)
            self.assertEqual(curl(daemon, "/v1/health", unix=True)[0], 200)

    def test_147_silent_upgraded_connections_do_not_lock_out_the_owner(self):
        unauthenticated = 200
        daemon = self.configured('[limits]\nhandshake = "10m"\nhello = "10m"\n')
        held = daemon.client()
        held.wait_frame(type="welcome")
        upgrade = "\r\n".join(["GET /v1/ws HTTP/1.1", f"Host: 127.0.0.1:{daemon.port}", *UPGRADE, "", ""]).encode()
        with contextlib.ExitStack() as stack:
            first, *_ = [self.silent(daemon, stack, begin) for begin in (upgrade, b"", b"GET / HTTP") for _ in range(unauthenticated // 2)]
            self.assertEqual([curl(daemon, "/v1/health", token=True)[0] for _ in range(5)], [200] * 5)
            self.assertEqual(first.recv(1), b"")  # the one that was silent longest gave way
            self.assertLessEqual(json.loads(curl(daemon, "/v1/health", token=True)[2])["connections"], unauthenticated + 2)
        held.subscribe()  # what has proved itself is never displaced
        held.wait_frame(type="ready")

    def silent(self, daemon, stack, begin):
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port), timeout=deadline_s))
        connection.sendall(begin)
        if begin.endswith(b"\r\n\r\n"):
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += connection.recv(4096)
            self.assertTrue(head.startswith(b"HTTP/1.1 101 "), head)
        return connection

    def test_147_pings_and_fragments_are_limited_as_messages_are(self):
        daemon = self.configured('[limits]\nhello = "10m"\n')
        upgrade = "\r\n".join(["GET /v1/ws HTTP/1.1", f"Host: 127.0.0.1:{daemon.port}", *UPGRADE, "", ""]).encode()
        empty = bytes(4)  # a mask

        def closed():
            metrics = curl(daemon, "/metrics", unix=True)[2].decode()
            return int(re.search(r'earshot_endings_total{reason="too_often"} (\d+)', metrics)[1])

        for number, (first, further) in enumerate(((b"", b"\x89\x80"), (b"\x01\x80" + empty, b"\x00\x80")), 1):
            with self.subTest(further=further), contextlib.ExitStack() as stack:
                connection = self.silent(daemon, stack, upgrade)
                connection.setblocking(False)
                unsent = first

                def flood():
                    nonlocal unsent
                    unsent = unsent or (further + empty) * 10_000
                    with contextlib.suppress(BlockingIOError, ConnectionError):
                        unsent = unsent[connection.send(unsent):]
                    return closed() == number

                wait_for(flood, "the flood to be closed")


class Requests(DaemonCase):
    def ask(self, daemon, path, *headers):
        return http(daemon.port, f"GET {path} HTTP/1.1", *headers)[0]

    def upgrade(self, daemon, *headers):
        return self.ask(daemon, "/v1/ws", *UPGRADE, f"Authorization: Bearer {daemon.token}", *headers)

    def test_a_foreign_host_or_none_is_refused(self):
        daemon = self.start()
        port = daemon.port
        hosts = [(), ("Host: evil.example",), (f"Host: evil.example:{port}",), (f"Host: 127.0.0.1:{port + 1}",), ("Host: ",),
                 (f"Host: 127.0.0.1.evil.example:{port}",), (f"Host: localhost.evil.example:{port}",), (f"Host: 10.0.0.1:{port}",),
                 (f"Host: 127.0.0.1:{port}@evil.example",), (f"Host: xlocalhost:{port}",)]
        for host in hosts:
            with self.subTest(host=host):
                self.assertIn(self.upgrade(daemon, *host), (400, 403) if host in ((), ("Host: ",)) else (403,))
                self.assertIn(self.ask(daemon, "/healthz", *host), (400, 403) if host in ((), ("Host: ",)) else (403,))

    def test_a_loopback_host_is_accepted(self):
        daemon = self.start()
        for host in ("127.0.0.1", "localhost"):
            with self.subTest(host=host):
                self.assertEqual(self.upgrade(daemon, f"Host: {host}:{daemon.port}"), 101)
                self.assertEqual(self.ask(daemon, "/healthz", f"Host: {host}:{daemon.port}"), 200)

    def test_a_foreign_origin_is_refused(self):
        daemon = self.start()
        port = daemon.port
        for origin in ("http://evil.example", "https://evil.example", "null", f"http://evil.example:{port}", f"http://127.0.0.1:{port + 1}",
                       f"http://127.0.0.1:{port}.evil.example", f"http://evil.example/http://127.0.0.1:{port}", "file://",
                       f"http://localhost.evil.example:{port}", f"http://evil-localhost:{port}", f"https://127.0.0.1:{port}",
                       f"http://127.0.0.1:{port}/", "http://127.0.0.1", f"http://user@127.0.0.1:{port}", f"ws://127.0.0.1:{port}", ""):
            with self.subTest(origin=origin):
                self.assertEqual(self.upgrade(daemon, f"Host: 127.0.0.1:{port}", f"Origin: {origin}"), 403)

    def test_the_daemon_s_own_origin_is_accepted(self):
        daemon = self.start()
        for name in ("127.0.0.1", "localhost"):
            self.assertEqual(self.upgrade(daemon, f"Host: {name}:{daemon.port}", f"Origin: http://{name}:{daemon.port}"), 101)

    def test_an_unknown_path_is_not_found(self):
        daemon = self.start()
        self.assertEqual(self.ask(daemon, "/nothing/here", f"Host: 127.0.0.1:{daemon.port}"), 404)
        self.assertEqual(http(daemon.port, "DELETE / HTTP/1.1", f"Host: 127.0.0.1:{daemon.port}")[0], 405)

    def test_a_listener_that_is_not_loopback_is_refused(self):
        daemon = self.start(listen="0.0.0.0:0", ready=False)
        self.assertNotEqual(daemon.wait_exit(), 0)
        self.assertIn("0.0.0.0", daemon.stderr().decode())


class Messages(DaemonCase):
    def test_an_invalid_message_is_answered_and_the_connection_stays_open(self):
        daemon = self.start()
        client = daemon.client()
        for text in ("not json", "[]", '{"type":"dance"}', "{}", '{"type":7}', '{"type":"subscribe"}'):
            before = len(client.all(type="error"))
            loop.run(client.socket.send(text))
            client.wait(lambda: len(client.all(type="error")) > before, f"an error for {text}")
        client.subscribe()

    def test_a_bad_filter_is_answered_with_its_id(self):
        daemon = self.start()
        client = daemon.client()
        for n, bad in enumerate(({"project": "x"}, {"project": [1]}, {"type": ["x" * 300]}, {"session": ["*"] * 100}, {"colour": ["red"]})):
            client.subscribe(id=f"f{n}", filter=bad, wait=False)
            self.assertEqual(client.wait_frame(type="error", id=f"f{n}")["code"], "bad_filter", bad)

    def test_more_subscriptions_than_allowed_are_refused(self):
        daemon = self.start()
        client = daemon.client()
        most = client.wait_frame(type="welcome")["limits"]["subscriptions"]
        for n in range(most):
            client.subscribe(id=f"s{n}")
        client.subscribe(id="one more", wait=False)
        client.wait_frame(type="error", id="one more")

    def test_text_that_is_not_utf8_closes_with_1007(self):
        daemon = self.start()
        client = daemon.client()
        loop.run(client.socket.write_frame(True, 0x1, b"\xff\xfe{}"))
        self.assertEqual(client.wait_closed(), 1007)

    def test_a_message_above_the_limit_closes_with_1009(self):
        daemon = self.start()
        client = daemon.client()
        client.wait_frame(type="welcome")
        try:
            loop.run(client.socket.send("x" * (2 << 20)))
        except websockets.exceptions.ConnectionClosed:
            pass  # closed before the message was sent completely
        self.assertEqual(client.wait_closed(), 1009)

    def test_pings_are_answered_while_events_flow(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = Session(self.root)
        session.prompt("go")

        async def ping():
            await asyncio.wait_for(await client.socket.ping(), deadline_s * 4)

        for _ in range(50):
            session.append(*(session.record("assistant", {"role": "assistant", "id": f"m{n}", "model": "m", "content": [{"type": "text", "text": "x"}]})
                             for n in range(50)))
            loop.run(ping())
        self.assert_delivered(daemon, client, session.path)


class Stopping(DaemonCase):
    def test_shutdown_delivers_pending_events_closes_with_1001_and_exits_0(self):
        daemon = self.configured("[limits]\nstop = \"10m\"\n")
        clients = [daemon.subscriber() for _ in range(20)]
        session = Session(self.root)
        session.prompt("one")
        clients[0].wait_frame(type="turn.started")
        daemon.stop()
        for client in clients:
            self.assertEqual(client.close_code, 1001)
            self.assertTrue(client.find(type="turn.started"))
        self.assertFalse(os.path.exists(os.path.join(self.state, "address")))

    def test_a_second_daemon_on_a_port_reports_it_and_exits_1(self):
        first = self.start()
        second = self.start(state=os.path.join(self.home, "other"), listen=f"127.0.0.1:{first.port}", ready=False)
        self.assertEqual(second.wait_exit(), 1)
        self.assertIn(str(first.port), second.stderr().decode())
        self.assertEqual(second.out, [])
        first.subscriber()  # still served

    def test_the_ready_line_is_printed_and_the_address_is_written(self):
        daemon = self.start()
        with open(os.path.join(self.state, "address")) as file:
            self.assertEqual(file.read().strip(), daemon.url)
        daemon.stop()
        self.assertEqual(len(daemon.out), 1)
        self.assertRegex(daemon.out[0], r"^earshotd: listening on ws://127\.0\.0\.1:\d+/v1/ws\n$")

    def test_a_client_that_disappears_does_not_affect_others(self):
        daemon = self.start()
        stays = daemon.subscriber()
        for _ in range(10):
            gone = daemon.subscriber()
            gone.socket.transport.abort()
        session = Session(self.root)
        session.turn("still here")
        self.assert_delivered(daemon, stays, session.path)
