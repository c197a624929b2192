#!/usr/bin/env python3
"""Hostile clients of a daemon, or a hostile relay, for a bounded time.

usage: rogue.py clients PORT TOKEN_FILE SECONDS      against the daemon on 127.0.0.1:PORT
       rogue.py relay PORT SECONDS                   through the broker on 127.0.0.1:PORT, as host `eve`

Plays for at least so long, until each thing was done. Prints how often, as JSON, and exits. Connections that the daemon closes are opened again. Each kind stays below the daemon's limit of
messages per second: what exceeds it is closed anyway.
"""
import asyncio
import base64
import collections
import itertools
import json
import os
import random
import resource
import socket
import struct
import sys
import time

receive_buffer_bytes = 4096
messages_per_second = 80   # the daemon accepts 100
reconnect_s = 0.1
seconds_max = 240          # for each thing to be done

done = collections.Counter()


class Connection:
    """A TCP connection that reads only when told to: its receive buffer is small."""

    def __init__(self, port):
        self.port = port

    async def __aenter__(self):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        await asyncio.get_running_loop().sock_connect(self.socket, ("127.0.0.1", self.port))
        return self

    async def __aexit__(self, *_):
        self.socket.close()

    async def write(self, data):
        await asyncio.get_running_loop().sock_sendall(self.socket, data)

    async def read(self, most=1 << 16):
        data = await asyncio.get_running_loop().sock_recv(self.socket, most)
        if not data:
            raise ConnectionResetError
        return data

    async def request(self, target, token=None, *headers):
        bearer = [f"Authorization: Bearer {token}"] if token else []
        await self.write("\r\n".join([f"GET {target} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *bearer, *headers, "", ""]).encode())

    async def upgrade(self, token):
        await self.request("/v1/ws", token, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                           "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Protocol: earshot.v1")
        if not (await self.read(12)).startswith(b"HTTP/1.1 101"):
            raise ConnectionResetError

    async def send(self, **message):
        """One masked text frame."""
        text = json.dumps(message).encode()
        size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack(">H", len(text)) if len(text) < 1 << 16 else b"\xff" + struct.pack(">Q", len(text))
        await self.write(b"\x81" + size + bytes(4) + text)

    async def skip(self):
        """Reads and discards everything until the daemon closes the connection."""
        while True:
            await self.read()


async def forever():
    await asyncio.get_running_loop().create_future()


class Clients:
    kinds = ("subscriptions", "snapshots", "requests", "records", "bytes", "upgrades", "connections")

    def __init__(self, port, token):
        self.port, self.token = port, token

    def connection(self):
        return Connection(self.port)

    async def read_nothing(self):
        """Subscribes to all events of all sessions."""
        async with self.connection() as one:
            await one.upgrade(self.token)
            await one.send(type="subscribe", id="a", all=True, new_streams="beginning", on_lag="catch_up")
            await forever()

    async def subscribe_in_a_loop(self):
        """Subscribes and unsubscribes; reads a byte a second."""
        async with self.connection() as one:
            await one.upgrade(self.token)

            async def read():
                while True:
                    await one.read(1)
                    await asyncio.sleep(1)

            reader = asyncio.ensure_future(read())
            try:
                for n in itertools.count():
                    await one.send(type="subscribe", id=f"{n}", all=True)
                    await one.send(type="unsubscribe", id=f"{n}")
                    done["subscriptions"] += 1
                    await asyncio.sleep(2 / messages_per_second)
            finally:
                reader.cancel()

    async def flood_of_snapshots(self):
        """Subscribes with the most and longest patterns, and reads all."""
        patterns = ["*" + "a*b" * 80 + f"{n}" for n in range(64)]
        async with self.connection() as one:
            await one.upgrade(self.token)
            reader = asyncio.ensure_future(one.skip())
            try:
                for n in itertools.count():
                    await one.send(type="subscribe", id=f"{n % 8}", all=True, filter={"project": patterns, "session": patterns, "host": patterns})
                    done["snapshots"] += 1
                    await asyncio.sleep(4 / messages_per_second)
            finally:
                reader.cancel()

    async def unread_answers(self):
        async with self.connection() as one:
            for _ in range(4):
                await one.request("/v1/sessions?limit=1000&all=true", self.token)
                done["requests"] += 1
            await forever()

    async def unread_records(self):
        """Requests the longest records of the first stream that it receives, and of streams that do not exist."""
        async with self.connection() as one:
            await one.upgrade(self.token)
            await one.send(type="subscribe", id="a", all=True, new_streams="beginning", filter={"project": ["*long*"]})
            seen = b""
            while (found := seen.rfind(b'"cursor":"')) < 0 or b'"' not in seen[found + 10:]:
                seen += await one.read()
            cursor = seen[found + 10:].split(b'"')[0].decode()
            stream = seen[seen.rfind(b'"stream":"') + 10:].split(b'"')[0].decode()
            for n in itertools.count():
                await one.send(type="read", id=f"{n}", stream=stream if n % 2 else f"claude/x/{n}", cursor=cursor)
                done["records"] += 1
                await asyncio.sleep(1 / messages_per_second)

    async def trickle(self):
        """Sends the head of a request a byte at a time."""
        async with self.connection() as one:
            await one.write(b"GET /v1/sessions HTTP/1.1\r\nX: ")
            while True:
                await one.write(b"x")
                done["bytes"] += 1
                await asyncio.sleep(0.2)

    async def idle(self):
        """Keeps an unauthenticated connection."""
        async with self.connection() as one:
            await one.request("/healthz")
            while True:
                await one.read()

    async def silent(self):
        """Keeps a WebSocket without ever sending the token."""
        async with self.connection() as one:
            await one.upgrade(None)
            done["upgrades"] += 1
            await one.skip()

    async def reset(self):
        """Opens connections and resets them."""
        while True:
            for _ in range(10):
                async with self.connection() as one:
                    done["connections"] += 1
                    one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await asyncio.sleep(0.05)

    async def repeat(self, kind):
        while True:
            try:
                await kind()
            except OSError:
                done["closed"] += 1
            await asyncio.sleep(reconnect_s * (1 + random.random()))

    async def repeat_later(self, kind):
        """These connections shut out further ones: each kind of subscriber gets in before."""
        while not all(done[each] for each in ("subscriptions", "snapshots", "records")):
            await asyncio.sleep(0.05)
        await self.repeat(kind)

    def all(self):
        few = {self.read_nothing: 20, self.subscribe_in_a_loop: 4, self.flood_of_snapshots: 2, self.unread_records: 8, self.trickle: 50}
        many = {self.unread_answers: 200, self.reset: 1, self.idle: 700, self.silent: 300}  # together more than the daemon accepts
        return [start(kind) for start, kinds in ((self.repeat, few), (self.repeat_later, many)) for kind, count in kinds.items() for _ in range(count)]


class Relay:
    """Has valid credentials, as host `eve`."""

    batch = 20
    batches_per_second = 40
    kinds = ("forged_predecessor", "endless_session", "long_name", "false_owner")

    def __init__(self, port):
        self.port = port

    def publish(self, subject, payload, **headers):
        head = ("NATS/1.0\r\n" + "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()) + "\r\n").encode()
        body = json.dumps(payload).encode()
        return f"HPUB {subject} {len(head)} {len(head) + len(body)}\r\n".encode() + head + body + b"\r\n"

    def cursor(self, n):
        return f"{n * 100}.{n}.{n:016x}"

    def event(self, name, session, n, **headers):
        stream = f"claude/p/{name}"
        event = {"type": "session.updated", "host": "eve", "stream": stream, "session": session, "cursor": self.cursor(n), "turn": 0, "title": "x"}
        return self.publish(f"earshot.v1.eve.p.s.claude=2Fp=2F{name}", event, **headers)

    def forged_predecessor(self, n):
        """A file of some length; then each message names an earlier event as its predecessor, so that the file has to be written again."""
        last = 500
        return self.event("forged", "s", n, **({"Earshot_After": self.cursor(last)} if n > last + 1 else {}))

    def endless_session(self, n):
        status = {"type": "status", "host": "eve", "session": f"session{n}", "state": "idle", "source": "registry"}
        return self.event(f"session{n}", f"session{n}", 1) + self.publish(f"earshot.status.v1.eve.session{n}", status)

    def long_name(self, n):
        return self.event(f"long{n}", "y" * (16 << 10), 1)

    def false_owner(self, n):
        status = {"type": "host", "host": "eve", "owner": f"{random.getrandbits(64):x}", "instance": f"{n}"}
        return self.publish("earshot.status.v1.eve", status) + self.event("owned", "o", n, Earshot_Owner=f"{random.getrandbits(64):x}")

    async def run(self, kind):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        await reader.readline()
        writer.write(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"lang":"test","version":"0"}\r\n')
        answers = asyncio.ensure_future(self.answer(reader, writer))
        try:
            for n in itertools.count(1):
                writer.write(kind(n))
                done[kind.__name__] += 1
                if n % self.batch == 0:
                    await writer.drain()
                    await asyncio.sleep(1 / self.batches_per_second)
        finally:
            answers.cancel()
            writer.close()

    async def answer(self, reader, writer):
        while line := await reader.readline():
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")

    def all(self):
        return [self.run(kind) for kind in (self.forged_predecessor, self.endless_session, self.long_name, self.false_owner)]


async def play(rogues, seconds):
    tasks, end = [asyncio.ensure_future(each) for each in rogues.all()], time.monotonic() + seconds_max
    finished, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    while not finished and not all(done[kind] for kind in rogues.kinds) and time.monotonic() < end:
        finished, _ = await asyncio.wait(tasks, timeout=0.1, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in finished:
        task.result()  # raises


def main():
    match sys.argv[1:]:
        case ["clients", port, token, seconds]:
            with open(token) as file:
                rogues = Clients(int(port), file.read().strip())
        case ["relay", port, seconds]:
            rogues = Relay(int(port))
        case _:
            sys.exit(__doc__)
    _, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    start = time.monotonic()
    asyncio.run(play(rogues, float(seconds)))
    print(json.dumps({**done, "seconds": round(time.monotonic() - start, 1)}))


if __name__ == "__main__":
    main()
