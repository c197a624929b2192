"""Hostile clients: refused with the documented status, in bounded memory, without affecting other clients."""
import asyncio
import json
import os
import socket

from support.endpoints import EndpointCase, curl
from support.harness import deadline_s, http, loop, sanitized, build, wait_for
from support.transcripts import Session

ORIGINS = ["http://evil.example", "https://evil.example", "null", "file://", "http://localhost", "http://localhost:1", "http://127.0.0.1",
           "https://127.0.0.1:{port}", "http://127.0.0.1:{port}.evil.example", "http://evil.example:{port}", "http://127.0.0.1:{port}@evil.example",
           "http://localhost.evil.example:{port}", "http://xlocalhost:{port}", "http://[::1]", "http://127.0.0.2:{port}", "http://0.0.0.0:{port}",
           "chrome-extension://abcdef", "http://localhost:{port}/", "HTTP://LOCALHOST:{port}#", "ws://127.0.0.1:{port}"]
HOSTS = ["evil.example", "evil.example:{port}", "localhost", "127.0.0.1", "localhost:1", "127.0.0.2:{port}", "localhost.evil.example:{port}",
         "127.0.0.1:{port}.evil.example", "xlocalhost:{port}", ""]


class Hostile(EndpointCase):
    def resident(self, daemon):
        with open(f"/proc/{daemon.process.pid}/status") as status:
            return int(next(line.split()[1] for line in status if line.startswith("VmRSS"))) << 10

    def upgrade_status(self, daemon, host, *more):
        return http(daemon.port, "GET /v1/ws HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", *more)[0]

    def test_foreign_origins_and_hosts_are_refused_even_with_the_token(self):
        daemon = self.start()
        own, bearer = f"127.0.0.1:{daemon.port}", f"Authorization: Bearer {daemon.token}"
        for origin in ORIGINS:
            self.assertEqual(self.upgrade_status(daemon, own, bearer, "Origin: " + origin.format(port=daemon.port)), 403, origin)
        for host in HOSTS:
            self.assertIn(self.upgrade_status(daemon, host.format(port=daemon.port), bearer), (400, 403), host)
        for wrong in ("", "x", daemon.token[:-1], daemon.token + "0", daemon.token.upper() + "x", "0" * 64):
            self.assertEqual(self.upgrade_status(daemon, own, f"Authorization: Bearer {wrong}"), 401, wrong)
        self.assertEqual(self.upgrade_status(daemon, own, bearer), 101)

    def test_ten_thousand_connections_do_not_affect_existing_clients(self):
        daemon = self.configured("[limits]\nconnections = 200\n")
        one = Session(self.root)
        client = daemon.subscriber()
        one.turn("before")
        client.wait_frame(type="turn.finished", turn=1)
        before = self.resident(daemon)
        open_now = []
        for n in range(10_000):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", daemon.port))
            open_now.append(connection)
            if len(open_now) >= 400:
                for old in open_now:
                    old.close()
                open_now.clear()
            if n % 2500 == 0:
                one.turn(f"while {n}")
        for connection in open_now:
            connection.close()
        one.turn("after")
        client.wait_frame(type="turn.finished", turn=6)
        wait_for(lambda: json.loads(curl(daemon, "/v1/health", unix=True)[2])["connections"] <= 2, "the connections to close")
        if not sanitized(build()):
            self.assertLess(self.resident(daemon) - before, 64 << 20)

    def test_pathological_filters_cost_no_more_than_their_length(self):
        daemon = self.start()
        one = Session(self.root, "/" + "a" * 200)
        client = daemon.client()
        client.subscribe(filter={"project": ["*a" * 128] * 64, "session": ["*" * 256], "type": ["?*?*?*?*" * 20] * 6})
        other = daemon.subscriber()
        one.turn("hello")
        other.wait_frame(type="turn.finished", turn=1)
        client.send(type="subscribe", id="long", filter={"project": ["x" * 257]})
        self.assertEqual(client.wait_frame(type="error", id="long")["code"], "bad_filter")
        client.send(type="subscribe", id="many", filter={"project": ["x"] * 65})
        self.assertEqual(client.wait_frame(type="error", id="many")["code"], "bad_filter")
        client.send(type="subscribe", id="costly", filter={"project": ["?*" * 128] * 5})
        self.assertEqual(client.wait_frame(type="error", id="costly")["code"], "bad_filter")

    def test_a_hundred_thousand_events_arrive_complete_during_a_ping_flood(self):
        one = Session(self.root)
        turns = 14_300 if not sanitized(build()) else 1_430
        one.turn("first")
        os.rename(one.path, one.path + ".part")  # so that it is read at once
        with open(one.path + ".part", "ab") as file:
            for n in range(turns):
                prompt = one.record("user", {"role": "user", "content": f"turn {n}"})
                call = {"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": f"echo {n}"}}
                usage = {"input_tokens": 1, "output_tokens": n, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
                call_record = one.record("assistant", {"id": f"m{n}", "role": "assistant", "model": "opus", "content": [call], "stop_reason": "tool_use", "usage": usage})
                result = one.record("user", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{n}", "content": str(n)}]})
                answer = one.record("assistant", {"id": f"n{n}", "role": "assistant", "model": "opus", "content": [{"type": "text", "text": f"done {n}"}],
                                                "stop_reason": "end_turn", "usage": usage})
                for record in (prompt, call_record, result, answer):
                    file.write(json.dumps(record).encode() + b"\n")
        os.rename(one.path + ".part", one.path)
        daemon = self.configured("[limits]\nmessages_per_second = 100000\nmessages_burst = 100000\n")  # pings count as messages
        client = daemon.client()
        stream = "claude/" + os.path.relpath(one.path, os.path.join(self.root, "projects"))[:-len(".jsonl")]
        client.socket.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)  # the history is longer
        client.subscribe(after=[stream + ":"], snapshot=False, wait=False)

        async def flood():
            """Pings until the history is complete; returns how many were answered. On the loop's thread, so that a ping follows each pong."""
            answered = seen = 0
            while not any(frame["type"] == "bookmark" and frame["id"] == "a" for frame in client.frames[seen:]):
                seen = len(client.frames)
                await asyncio.wait_for(await client.socket.ping(), deadline_s * 4)
                answered += 1
            return answered

        pongs = loop.start(flood()).result(deadline_s * 8)
        self.assert_same_events(daemon.replay(one.path)[stream], client.event_texts()[stream], "the whole stream")
        self.assertGreater(client.count(), 7 * turns)
        self.assertGreater(pongs, 2)  # pongs that wait for the history: one before it and one after
