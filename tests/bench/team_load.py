#!/usr/bin/env python3
"""A hub under a team's load, simulated: many hosts that publish as a relay does, and subscribers that read everything.

usage: team_load.py [--hosts 1000] [--sessions 10] [--rate 2000] [--subscribers 100] [--seconds 30] [--json FILE]
       team_load.py --table                   how it grows: several such loads, as protocol/TEAM.md shows them

First every session is born; then, when all of that is at the hub, the load is measured. One process is all hosts: a connection each, one message on its way a subject, each naming the sequence that its subject must be at. Another process is all
subscribers: most only read what comes, a few look at every event, for its time from publication. The broker, the hub and both of these share this machine.
"""
import argparse
import asyncio
import base64
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
from support.team import Broker, word  # noqa: E402
from support.harness import Daemon, wait_for  # noqa: E402

LOOKERS = 3  # subscribers that look at every event
TICK_S = 0.02
BEAT_S = 5  # as relays do


class Stream:
    def __init__(self, host, number):
        self.host, self.session = host, f"{host}-{number:04}"
        self.name = f"claude/-home-{host}/{self.session}"
        self.subject = f"earshot.v1.{word(host)}.{word('claude/-home-' + host)}.{word(self.session)}"
        self.offset, self.sequence, self.busy, self.turn, self.last = 0, 0, False, 0, "0.0.0000000000000000"

    def message(self, reply):
        """As the relay publishes: the event with its heads. The prompt says when."""
        self.offset += 700
        self.turn += 1
        cursor = f"{self.offset}.1.{self.offset:016x}"
        event = {"type": "turn.started", "host": self.host, "stream": self.name, "session": self.session, "cursor": cursor, "time": "2026-03-14T09:26:53.589Z",
                 "turn": self.turn, "prompt": f"at {time.time_ns()} " + "x" * 300, "origin": "human"}
        if self.turn == 1:
            event = {**event, "type": "session.started", "dialect": "claude-code", "version": "2.1.330", "cwd": f"/home/{self.host}", "project": f"/home/{self.host}"}
            del event["prompt"], event["origin"]
        heads = (f"NATS/1.0\r\nNats-Msg-Id: {self.host}/{self.name}/{cursor}\r\nNats-Expected-Last-Subject-Sequence: {self.sequence}\r\n"
                 f"Earshot-After: {self.last}\r\nEarshot-Owner: bench\r\nce-specversion: 1.0\r\nce-id: {self.host}/{self.name}/{cursor}\r\nce-source: earshot\r\nce-type: dev.earshot.{event['type']}\r\n\r\n").encode()
        self.last = cursor
        payload = json.dumps(event, separators=(",", ":")).encode()
        self.busy = True
        return f"HPUB {self.subject} {reply} {len(heads)} {len(heads) + len(payload)}\r\n".encode() + heads + payload + b"\r\n"


class Host:
    """One connection to the broker, and its streams."""

    def __init__(self, name, sessions):
        self.name, self.streams = name, [Stream(name, n) for n in range(sessions)]
        self.acked = self.refused = 0

    async def connect(self, port):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        await self.reader.readline()
        self.inbox = f"_INBOX.{word(self.name)}"
        hello = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "protocol": 1, "lang": "bench", "version": "0"}
        self.writer.write(f"CONNECT {json.dumps(hello)}\r\nSUB {self.inbox}.* 1\r\nPING\r\n".encode())
        while not (await self.reader.readline()).startswith(b"PONG"):
            pass
        self.task = asyncio.create_task(self.listen())

    async def listen(self):
        while line := await self.reader.readline():
            if line.startswith(b"PING"):
                self.writer.write(b"PONG\r\n")
            elif line.startswith(b"MSG"):
                _, subject, *_, size = line.split()
                answer = json.loads((await self.reader.readexactly(int(size) + 2))[:-2])
                stream = self.streams[int(subject.rpartition(b".")[2])]
                stream.busy = False
                if "error" in answer:
                    self.refused += 1
                else:
                    stream.sequence = answer["seq"]
                    self.acked += 1

    def publish(self, number):
        if self.streams[number].busy:
            return False
        self.writer.write(self.streams[number].message(f"{self.inbox}.{number}"))
        return True

    def beat(self):
        body = json.dumps({"type": "host", "host": self.name, "owner": self.name, "instance": "bench", "beat_ms": 5000})
        self.writer.write(f"PUB earshot.status.v1.{word(self.name)} {len(body)}\r\n{body}\r\n".encode())


def publish_all(port, hosts, sessions, rate, seconds, go, result):
    async def run():
        team = [Host(f"host{n:04}", sessions) for n in range(hosts)]
        for at in range(0, hosts, 50):
            await asyncio.gather(*(h.connect(port) for h in team[at:at + 50]))
        async def beat():
            while True:
                for at in range(0, hosts, 50):
                    for host in team[at:at + 50]:
                        host.beat()
                    await asyncio.sleep(BEAT_S * 50 / hosts)

        beating = asyncio.create_task(beat())
        places = [(host, n) for n in range(sessions) for host in team]
        async def acked(sent):
            end = time.monotonic() + 60
            while sum(h.acked + h.refused for h in team) < sent and time.monotonic() < end:
                await asyncio.sleep(0.05)

        born, begun = 0, time.monotonic()
        while born < len(places):
            for host, number in places[born:born + max(1, int(rate * TICK_S))]:
                host.publish(number)
                born += 1
            await asyncio.sleep(TICK_S)
        await acked(born)
        result.put({"born": born, "wall_s": time.monotonic() - begun})
        await asyncio.to_thread(go.wait, 120)
        begun, sent, at, behind = time.monotonic(), 0, 0, 0
        while (now := time.monotonic()) - begun < seconds:
            due = int((now - begun) * rate) - sent
            for _ in range(min(due, rate)):
                host, number = places[at % len(places)]
                at += 1
                if host.publish(number):
                    sent += 1
                else:
                    behind += 1
            await asyncio.sleep(TICK_S)
        wall = time.monotonic() - begun
        await acked(born + sent)
        result.put({"sent": sent, "acked": sum(h.acked for h in team), "refused": sum(h.refused for h in team), "skipped_busy": behind, "wall_s": wall})
        beating.cancel()
        for host in team:
            host.task.cancel()

    asyncio.run(run())


async def open_socket(port, token):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    key = base64.b64encode(os.urandom(16)).decode()
    writer.write(f"GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                 f"Sec-WebSocket-Key: {key}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    text = json.dumps({"type": "subscribe", "id": "a", "snapshot": False, "on_lag": "catch_up"}).encode()
    mask = b"\0\0\0\0"
    writer.write(bytes([0x81, 0x80 | len(text)]) + mask + text)
    return reader, writer


async def frames(reader):
    while True:
        head = await reader.readexactly(2)
        length = head[1] & 127
        if length == 126:
            length = int.from_bytes(await reader.readexactly(2), "big")
        elif length == 127:
            length = int.from_bytes(await reader.readexactly(8), "big")
        yield head[0] & 15, await reader.readexactly(length)


def subscribe_all(port, token, count, ready, stop, fewest, result):
    async def run():
        bytes_read, late_ms, seen = [0] * count, [], [0] * min(LOOKERS, count)

        async def drop(n, reader):
            while piece := await reader.read(1 << 18):
                bytes_read[n] += len(piece)

        async def look(n, reader, writer):
            async for opcode, payload in frames(reader):
                if opcode == 9:
                    writer.write(bytes([0x8A, 0x80]) + b"\0\0\0\0")
                if b'"prompt":"at ' in payload:
                    seen[n] += 1
                    fewest.value = min(seen)
                    begin = payload.index(b'"prompt":"at ') + 13
                    late_ms.append((time.time_ns() - int(payload[begin:begin + 19])) / 1e6)
                elif b'"type":"session.started"' in payload:
                    seen[n] += 1
                    fewest.value = min(seen)

        tasks = []
        for n in range(count):
            reader, writer = await open_socket(port, token)
            tasks.append(asyncio.create_task(look(n, reader, writer) if n < LOOKERS else drop(n, reader)))
        await asyncio.sleep(0.5)
        ready.set()
        while not stop.is_set():
            await asyncio.sleep(0.1)
        late_ms.sort()

        def at(part):
            return round(late_ms[min(len(late_ms) - 1, int(part * len(late_ms)))], 2) if late_ms else None

        result.put({"events_seen": seen, "latency_ms": {"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1)}, "bytes_dropped": sum(bytes_read)})
        for task in tasks:
            task.cancel()

    asyncio.run(run())


def used(pid):
    """(CPU seconds, resident MiB)"""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    with open(f"/proc/{pid}/status") as status:
        rss = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), rss / 1024


def measure(given):
    home = tempfile.mkdtemp(prefix="earshot-team-bench-")
    broker = Broker(home)
    hub = None
    try:
        config = os.path.join(home, "hub.toml")
        with open(config, "w") as file:
            file.write(f'[hub]\nurl = "{broker.url}"\nhosts = {given.hosts}\n')
        hub = Daemon([], os.path.join(home, "hub"), home, ("--config", config), host="hub").wait_ready()
        context = multiprocessing.get_context("spawn")
        fewest = context.Value("L", 0, lock=False)  # events that each looker has seen
        ready, stop, told, published = context.Event(), context.Event(), context.Queue(), context.Queue()
        crowd = context.Process(target=subscribe_all, args=(hub.port, hub.token, given.subscribers, ready, stop, fewest, told))
        crowd.start()
        ready.wait(60)
        wait_for(lambda: team(hub)["open"], "the hub's broker")
        go = context.Event()
        load = context.Process(target=publish_all, args=(broker.port, given.hosts, given.sessions, given.rate, given.seconds, go, published))
        load.start()
        births = published.get(timeout=300)
        wait_for(lambda: team(hub)["appended"] >= births["born"], f"{births['born']} sessions at the hub", 60, lambda: hub.exit_reason())
        before = {"hub": used(hub.process.pid), "broker": used(broker.process.pid)}
        begun = time.monotonic()
        go.set()
        sent = published.get(timeout=given.seconds * 3 + 120)
        wait_for(lambda: team(hub)["appended"] >= sent["acked"], f"{sent['acked']} events at the hub", 60, lambda: hub.exit_reason())
        end = time.monotonic() + 60
        while fewest.value < sent["acked"] and time.monotonic() < end:
            time.sleep(0.1)  # what is on its way to subscribers
        wall = time.monotonic() - begun
        after = {"hub": used(hub.process.pid), "broker": used(broker.process.pid)}
        stop.set()
        seen = told.get(timeout=60)
        load.join(), crowd.join()
        return {"hosts": given.hosts, "sessions": given.hosts * given.sessions, "subscribers": given.subscribers, "rate": round(sent["sent"] / sent["wall_s"]),
                "born_per_s": round(births["born"] / births["wall_s"]), "published": sent, "subscribed": seen, "hub": team(hub),
                "cpu": {name: round((after[name][0] - before[name][0]) / wall, 3) for name in after}, "rss_mib": {name: round(after[name][1], 1) for name in after}}
    finally:
        if hub:
            hub.process.kill()
            hub.process.wait()
        broker.end()
        shutil.rmtree(home, ignore_errors=True)


TABLE = (  # hosts, events/s, subscribers
    (100, 500, 10), (1000, 500, 100), (1000, 1000, 100), (1000, 2000, 100), (1000, 4000, 100), (1000, 2000, 10), (1000, 2000, 300), (100, 2000, 100), (2000, 2000, 100))


def table(given):
    """Markdown, a row a load."""
    print("| hosts | sessions | events/s | subscribers | p50, p99 ms | lost or doubled | hub: CPU, memory | broker: CPU, memory |\n|---|---|---|---|---|---|---|---|", flush=True)
    rows, bad = [], 0
    for hosts, rate, subscribers in TABLE:
        given.hosts, given.rate, given.subscribers = hosts, rate, subscribers
        found = measure(given)
        rows.append(found)
        bad += wrong(found)
        late, cpu, rss = found["subscribed"]["latency_ms"], found["cpu"], found["rss_mib"]
        print(f"| {hosts:,} | {found['sessions']:,} | {found['rate']:,} | {subscribers} | {late['p50']:.1f}, {late['p99']:.1f} | {wrong(found)} of {found['published']['acked']:,} | "
              f"{cpu['hub']:.2f} core, {rss['hub']:.0f} MiB | {cpu['broker']:.2f} core, {rss['broker']:.0f} MiB |", flush=True)
    return rows, bad


def wrong(found):
    """Events that a subscriber who looks at each did not get, or got twice."""
    return sum(abs(found["published"]["acked"] - n) for n in found["subscribed"]["events_seen"])


def team(hub):
    import urllib.request
    request = urllib.request.Request(f"http://127.0.0.1:{hub.port}/v1/health", headers={"Authorization": f"Bearer {hub.token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)["team"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("hosts", 1000), ("sessions", 10), ("rate", 2000), ("subscribers", 100), ("seconds", 30)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.seconds > 300 or given.hosts > 2000 or given.subscribers > 1000 or min(given.hosts, given.sessions, given.subscribers, given.rate) < 1 or given.rate > 20_000:
        parser.error("that is more than this machine is asked to bear")
    if given.table:
        found, bad = table(given)
    else:
        found = measure(given)
        bad = wrong(found)
        print(json.dumps(found, indent=1))
    if given.json:
        with open(given.json, "w") as file:
            json.dump(found, file, indent=1)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
