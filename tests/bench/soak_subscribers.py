"""The soak's clients: each goes on from its cursors whenever it is disconnected, by itself, by a stall or by the daemon's restart.

They live on the harness's asyncio loop. Other threads only set `stalled`, `is_slow` and call drop() and leave().
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
from soak_received import Memory  # noqa: E402

again_s = 0.1          # between two tries to connect
gate_s = 0.05
slow_frames = 64       # are read at once by a client that reads slowly; then it waits slow_s
slow_s = 0.5           # so it reads a third of what it is told by default, and falls out of the live log in some two minutes
read_bytes = 64 << 10  # what a client that does not read takes in at most, beside the kernel's buffers
LOST = (OSError, EOFError, asyncio.TimeoutError, asyncio.IncompleteReadError, websockets.WebSocketException)


class Listener:
    def __init__(self, house, name, unix, types=("*",), **options):
        self.house, self.name, self.unix, self.options, self.memory = house, name, unix, options, Memory(types)
        self.stalled, self.is_slow, self.away_until, self.gone, self.is_connected, self.connects = False, False, 0.0, False, False, 0
        self.reads_slowly, self.frames, self.transport = name.startswith("reads slowly"), 0, None
        self.done = loop.start(self.assert_delivered())

    def judged_by_state(self):
        return self.options.get("deliver") == "state"

    def drop(self, seconds):
        """The connection is torn down at once; it comes back after this time."""
        self.away_until = time.monotonic() + seconds
        loop.loop.call_soon_threadsafe(self.abort)

    def leave(self):
        self.gone = True
        self.wake()
        loop.loop.call_soon_threadsafe(self.abort)

    def wake(self):
        self.stalled, self.is_slow, self.away_until = False, False, 0.0

    def abort(self):
        if self.transport:
            self.transport.abort()

    async def live(self):
        while not self.gone:
            if time.monotonic() >= self.away_until and self.house.daemon:
                try:
                    self.memory.connected()
                    await self.listen(self.house.daemon)
                except LOST:
                    pass
                finally:
                    self.abort()
                    self.is_connected, self.transport = False, None
            await asyncio.sleep(again_s)

    def begun(self, transport):
        self.transport, self.is_connected = transport, True
        self.connects += 1

    async def gate(self):
        """Here a client stands that does not read, or slowly."""
        self.frames += 1
        if self.is_slow and self.frames % slow_frames == 0:
            await asyncio.sleep(slow_s)
        while self.stalled and not self.gone:
            await asyncio.sleep(gate_s)

    def wish(self):
        return {"filter": {"type": list(self.memory.types)}, **self.options, **({} if self.judged_by_state() else {"after": self.memory.after()})}


class SocketListener(Listener):
    """WebSocket, over TCP or the Unix socket."""

    async def listen(self, daemon):
        given = {"subprotocols": ["earshot.v1"], "compression": None, "max_size": None, "max_queue": 4, "read_limit": read_bytes,
                 "ping_interval": None, "close_timeout": 1, "open_timeout": 20}
        if self.unix:
            socket = await websockets.unix_connect(daemon.socket, "ws://localhost/v1/ws", **given)
        else:
            socket = await websockets.connect(daemon.url, extra_headers={"Authorization": f"Bearer {daemon.token}"}, **given)
        self.begun(socket.transport)
        await socket.send(json.dumps({"type": "subscribe", "id": "a", **self.wish()}))
        async for text in socket:
            self.memory.learn(text)
            await self.gate()


class HttpListener(Listener):
    """The NDJSON of /v1/events."""

    async def listen(self, daemon):
        wish = self.wish()
        query = [("type", type) for type in wish["filter"]["type"]] + [("after", entry) for entry in wish.get("after", ())]
        query += [(name, value) for name, value in self.options.items()]
        if self.unix:
            reader, writer = await asyncio.open_unix_connection(daemon.socket, limit=1 << 20)
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port, limit=1 << 20)
        self.begun(writer.transport)
        writer.write((f"GET /v1/events?{urllib.parse.urlencode(query)} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n"
                      f"Authorization: Bearer {daemon.token}\r\n\r\n").encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            self.memory.errors.append(head.decode(errors="replace").split("\r\n")[0])
            return
        rest = b""
        while size := int(await reader.readline() or b"0", 16):
            *lines, rest = (rest + (await reader.readexactly(size + 2))[:-2]).split(b"\n")
            for line in lines:
                self.memory.learn(line.decode())
            await self.gate()


QUIET = ("turn.*", "tool.*")
# Who is there from beginning to end: class, name, over the Unix socket, types, options.
RESIDENTS = (
    (SocketListener, "socket", True, ("*",), {}),
    (SocketListener, "tcp", False, ("*",), {"on_lag": "catch_up"}),
    (SocketListener, "filtered", True, QUIET, {"on_lag": "catch_up"}),
    (SocketListener, "state", False, ("*",), {"deliver": "state"}),
    (HttpListener, "ndjson", True, ("*",), {"on_lag": "catch_up"}),
    (HttpListener, "ndjson, filtered", False, QUIET, {"on_lag": "catch_up"}),
    (SocketListener, "reads slowly", False, ("*",), {"on_lag": "snapshot"}),
    (SocketListener, "reads slowly, catches up", True, ("*",), {"on_lag": "catch_up"}),
)


class Listeners:
    """The residents, and passers-by up to `count` altogether."""

    def __init__(self, house, count, chance):
        self.house, self.count, self.chance, self.passed = house, count, chance, []
        self.all = [kind(house, name, unix, types, **options) for kind, name, unix, types, options in RESIDENTS[:count]]
        self.connects_gone = self.events_gone = self.resets_gone = self.lags_gone = 0

    def tick(self, seconds):
        """A few times a minute each: a loss of the connection, a stall; passers-by come and go."""
        for listener in self.all:
            if listener.reads_slowly:
                listener.is_slow = True
                continue
            roll = self.chance.random() / seconds
            if roll < 2 / 60:
                listener.drop(self.chance.uniform(0, 5))
            elif roll < 3 / 60:
                listener.stalled = True
            elif roll < 6 / 60:
                listener.stalled = False
        passing = self.all[len(RESIDENTS):]
        if self.chance.random() < seconds / 4:
            if len(self.all) < self.count:
                kind = self.chance.choice((SocketListener, HttpListener))
                self.all.append(kind(self.house, "passer-by", self.chance.random() < 0.5, self.chance.choice((("*",), QUIET)), on_lag="catch_up"))
            elif passing:
                self.away(self.chance.choice(passing))

    def away(self, listener):
        listener.leave()
        self.all.remove(listener)
        self.connects_gone += listener.connects
        self.events_gone += listener.memory.events
        self.resets_gone += listener.memory.resets
        self.lags_gone += listener.memory.lags

    def wake(self, slow_too):
        """Those who are to be judged now."""
        judged = [listener for listener in self.all if slow_too or not listener.reads_slowly]
        for listener in judged:
            listener.wake()
        return judged

    def leave(self):
        for listener in list(self.all):
            listener.leave()
        for listener in self.all:
            listener.done.result(30)

    def told(self):
        """(events, resets, connections, times lagged) of all, those included who left."""
        memories = [listener.memory for listener in self.all]
        return (self.events_gone + sum(m.events for m in memories), self.resets_gone + sum(m.resets for m in memories),
                self.connects_gone + sum(listener.connects for listener in self.all), self.lags_gone + sum(m.lags for m in memories))
