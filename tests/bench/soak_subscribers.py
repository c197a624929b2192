"""The soak's clients. Each resumes from its cursors after a disconnect, whether caused by itself, by a stall or by a restart.

They run on the harness's asyncio loop. Other threads only set `stalled` and `is_slow` and call drop() and leave().
"""
import asyncio
import json
import os
import sys
import time
import urllib.parse

import websockets

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from support.harness import loop  # noqa: E402
from soak_received import Received  # noqa: E402

reconnect_s = 0.1      # between two attempts to connect
stall_poll_s = 0.05
slow_frames = 64       # read at once by a slow client, which then waits slow_s
slow_s = 0.5           # so it reads a third of the default rate and lags behind the live log after about two minutes
read_bytes = 64 << 10  # buffered by a client that does not read, besides the kernel's buffers
DISCONNECTED = (OSError, EOFError, asyncio.TimeoutError, asyncio.IncompleteReadError, websockets.WebSocketException)


class Subscriber:
    def __init__(self, soak, name, unix, types=("*",), **options):
        self.soak, self.name, self.unix, self.options, self.received = soak, name, unix, options, Received(types)
        self.stalled, self.is_slow, self.offline_until, self.stopped, self.is_connected, self.connects = False, False, 0.0, False, False, 0
        self.reads_slowly, self.frames, self.transport = name.startswith("reads slowly"), 0, None
        self.done = loop.start(self.run())

    def checks_state(self):
        return self.options.get("deliver") == "state"

    def drop(self, seconds):
        """Aborts the connection; reconnects after this time."""
        self.offline_until = time.monotonic() + seconds
        loop.loop.call_soon_threadsafe(self.abort)

    def leave(self):
        self.stopped = True
        self.wake()
        loop.loop.call_soon_threadsafe(self.abort)

    def wake(self):
        self.stalled, self.is_slow, self.offline_until = False, False, 0.0

    def abort(self):
        if self.transport:
            self.transport.abort()

    async def run(self):
        while not self.stopped:
            if time.monotonic() >= self.offline_until and self.soak.daemon:
                try:
                    self.received.connected()
                    await self.receive(self.soak.daemon)
                except DISCONNECTED:
                    pass
                finally:
                    self.abort()
                    self.is_connected, self.transport = False, None
            await asyncio.sleep(reconnect_s)

    def connected(self, transport):
        self.transport, self.is_connected = transport, True
        self.connects += 1

    async def pause_reading(self):
        """Waits here while the client does not read, or reads slowly."""
        self.frames += 1
        if self.is_slow and self.frames % slow_frames == 0:
            await asyncio.sleep(slow_s)
        while self.stalled and not self.stopped:
            await asyncio.sleep(stall_poll_s)

    def subscription(self):
        return {"filter": {"type": list(self.received.types)}, **self.options, **({} if self.checks_state() else {"after": self.received.after()})}


class WebSocketSubscriber(Subscriber):
    """WebSocket, over TCP or the Unix socket."""

    async def receive(self, daemon):
        given = {"subprotocols": ["earshot.v1"], "compression": None, "max_size": None, "max_queue": 4, "read_limit": read_bytes,
                 "ping_interval": None, "close_timeout": 1, "open_timeout": 20}
        if self.unix:
            socket = await websockets.unix_connect(daemon.socket, "ws://localhost/v1/ws", **given)
        else:
            socket = await websockets.connect(daemon.url, extra_headers={"Authorization": f"Bearer {daemon.token}"}, **given)
        self.connected(socket.transport)
        await socket.send(json.dumps({"type": "subscribe", "id": "a", **self.subscription()}))
        async for text in socket:
            self.received.add(text)
            await self.pause_reading()


class HttpSubscriber(Subscriber):
    """The NDJSON of /v1/events."""

    async def receive(self, daemon):
        subscription = self.subscription()
        query = [("type", type) for type in subscription["filter"]["type"]] + [("after", entry) for entry in subscription.get("after", ())]
        query += [(name, value) for name, value in self.options.items()]
        if self.unix:
            reader, writer = await asyncio.open_unix_connection(daemon.socket, limit=1 << 20)
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port, limit=1 << 20)
        self.connected(writer.transport)
        writer.write((f"GET /v1/events?{urllib.parse.urlencode(query)} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n"
                      f"Authorization: Bearer {daemon.token}\r\n\r\n").encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            self.received.errors.append(head.decode(errors="replace").split("\r\n")[0])
            return
        rest = b""
        while size := int(await reader.readline() or b"0", 16):
            *lines, rest = (rest + (await reader.readexactly(size + 2))[:-2]).split(b"\n")
            for line in lines:
                self.received.add(line.decode())
            await self.pause_reading()


QUIET = ("turn.*", "tool.*")
# Connected throughout: class, name, over the Unix socket, types, options.
PERMANENT = (
    (WebSocketSubscriber, "socket", True, ("*",), {}),
    (WebSocketSubscriber, "tcp", False, ("*",), {"on_lag": "catch_up"}),
    (WebSocketSubscriber, "filtered", True, QUIET, {"on_lag": "catch_up"}),
    (WebSocketSubscriber, "state", False, ("*",), {"deliver": "state"}),
    (HttpSubscriber, "ndjson", True, ("*",), {"on_lag": "catch_up"}),
    (HttpSubscriber, "ndjson, filtered", False, QUIET, {"on_lag": "catch_up"}),
    (WebSocketSubscriber, "reads slowly", False, ("*",), {"on_lag": "snapshot"}),
    (WebSocketSubscriber, "reads slowly, catches up", True, ("*",), {"on_lag": "catch_up"}),
)


class Subscribers:
    """The permanent subscribers, and temporary ones up to `count` in total."""

    def __init__(self, soak, count, chance):
        self.soak, self.count, self.chance = soak, count, chance
        self.all = [kind(soak, name, unix, types, **options) for kind, name, unix, types, options in PERMANENT[:count]]
        self.connects_removed = self.events_removed = self.resets_removed = self.lags_removed = 0

    def tick(self, seconds):
        """Disconnects and stalls each subscriber a few times a minute; adds and removes temporary ones."""
        for subscriber in self.all:
            if subscriber.reads_slowly:
                subscriber.is_slow = True
                continue
            roll = self.chance.random() / seconds
            if roll < 2 / 60:
                subscriber.drop(self.chance.uniform(0, 5))
            elif roll < 3 / 60:
                subscriber.stalled = True
            elif roll < 6 / 60:
                subscriber.stalled = False
        temporary = self.all[len(PERMANENT):]
        if self.chance.random() < seconds / 4:
            if len(self.all) < self.count:
                kind = self.chance.choice((WebSocketSubscriber, HttpSubscriber))
                self.all.append(kind(self.soak, "temporary", self.chance.random() < 0.5, self.chance.choice((("*",), QUIET)), on_lag="catch_up"))
            elif temporary:
                self.remove(self.chance.choice(temporary))

    def remove(self, subscriber):
        subscriber.leave()
        self.all.remove(subscriber)
        self.connects_removed += subscriber.connects
        self.events_removed += subscriber.received.events
        self.resets_removed += subscriber.received.resets
        self.lags_removed += subscriber.received.lags

    def wake(self, slow_too):
        """Lets the subscribers read again that are checked now; returns them."""
        checked = [subscriber for subscriber in self.all if slow_too or not subscriber.reads_slowly]
        for subscriber in checked:
            subscriber.wake()
        return checked

    def leave(self):
        for subscriber in list(self.all):
            subscriber.leave()
        for subscriber in self.all:
            subscriber.done.result(30)

    def totals(self):
        """(events, resets, connections, times lagged) of all subscribers, including removed ones."""
        received = [subscriber.received for subscriber in self.all]
        return (self.events_removed + sum(m.events for m in received), self.resets_removed + sum(m.resets for m in received),
                self.connects_removed + sum(subscriber.connects for subscriber in self.all), self.lags_removed + sum(m.lags for m in received))
