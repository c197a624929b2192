#!/usr/bin/env python3
"""Measures a hub under the simulated load of a team: many publishing hosts, and subscribers that read everything.

usage: team_load.py [--hosts 1000] [--sessions 10] [--rate 2000] [--subscribers 100] [--seconds 30] [--json FILE]
       team_load.py --table                   several loads, as in protocol/TEAM.md

Creates every session first; when the hub has them all, measures the load. One process simulates the hosts: one connection each, one message in
flight per subject, each with its expected sequence. Another process simulates the subscribers: most discard what they read, a few parse every
event for its latency since publication. The broker, the hub and both processes share this machine.
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
from support.team import Broker, subject_token  # noqa: E402
from support.harness import Daemon, wait_for  # noqa: E402

PARSERS = 3  # subscribers that parse every event
TICK_S = 0.02
HEARTBEAT_S = 5  # as publishers do


class Stream:
    def __init__(self, host, number):
        self.host, self.session = host, f"{host}-{number:04}"
        self.name = f"claude/-home-{host}/{self.session}"
        self.subject = f"earshot.v1.{subject_token(host)}.{subject_token('claude/-home-' + host)}.{subject_token(self.session)}"
        self.offset, self.sequence, self.busy, self.turn, self.last = 0, 0, False, 0, "0.0.0000000000000000"

    def message(self, reply):
        """The HPUB command of the next event, with the publisher's headers. The prompt contains the time."""
        self.offset += 700
        self.turn += 1
        cursor = f"{self.offset}.1.{self.offset:016x}"
        event = {"type": "turn.started", "host": self.host, "stream": self.name, "session": self.session, "cursor": cursor, "time": "2026-03-14T09:26:53.589Z",
                 "turn": self.turn, "prompt": f"at {time.time_ns()} " + "x" * 300, "origin": "human"}
        if self.turn == 1:
            event = {**event, "type": "session.started", "program": "claude-code", "dialect": "claude-code", "version": "2.1.330", "cwd": f"/home/{self.host}", "project": f"/home/{self.host}"}
            del event["prompt"], event["origin"]
        headers = (f"NATS/1.0\r\nNats-Msg-Id: {self.host}/{self.name}/{cursor}\r\nNats-Expected-Last-Subject-Sequence: {self.sequence}\r\n"
                 f"Earshot-After: {self.last}\r\nEarshot-Owner: bench\r\nce-specversion: 1.0\r\nce-id: {self.host}/{self.name}/{cursor}\r\nce-source: earshot://{self.host}/{self.name}\r\nce-type: dev.earshot.{event['type']}\r\n\r\n").encode()
        self.last = cursor
        payload = json.dumps(event, separators=(",", ":")).encode()
        self.busy = True
        return f"HPUB {self.subject} {reply} {len(headers)} {len(headers) + len(payload)}\r\n".encode() + headers + payload + b"\r\n"


class Host:
    """One connection to the broker with its streams."""

    def __init__(self, name, sessions):
        self.name, self.streams = name, [Stream(name, n) for n in range(sessions)]
        self.acked = self.refused = 0

    async def connect(self, port):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        await self.reader.readline()
        self.inbox = f"_INBOX.{subject_token(self.name)}"
        hello = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "protocol": 1, "lang": "bench", "version": "0"}
        self.writer.write(f"CONNECT {json.dumps(hello)}\r\nSUB {self.inbox}.* 1\r\nPING\r\n".encode())
        while not (await self.reader.readline()).startswith(b"PONG"):
            pass
        self.task = asyncio.create_task(self.receive_acks())

    async def receive_acks(self):
        while line := await self.reader.readline():
            if line.startswith(b"PING"):
                self.writer.write(b"PONG\r\n")
            elif line.startswith(b"MSG"):
                _, subject, *_, size = line.split()
                reply = json.loads((await self.reader.readexactly(int(size) + 2))[:-2])
                stream = self.streams[int(subject.rpartition(b".")[2])]
                stream.busy = False
                if "error" in reply:
                    self.refused += 1
                else:
                    stream.sequence = reply["seq"]
                    self.acked += 1

    def publish(self, number):
        if self.streams[number].busy:
            return False
        self.writer.write(self.streams[number].message(f"{self.inbox}.{number}"))
        return True

    def send_heartbeat(self):
        body = json.dumps({"type": "host", "host": self.name, "owner": self.name, "instance": "bench", "beat_ms": 5000})
        self.writer.write(f"PUB earshot.status.v1.{subject_token(self.name)} {len(body)}\r\n{body}\r\n".encode())


def publish_all(port, hosts, sessions, rate, seconds, go, result):
    async def run():
        team = [Host(f"host{n:04}", sessions) for n in range(hosts)]
        for at in range(0, hosts, 50):
            await asyncio.gather(*(h.connect(port) for h in team[at:at + 50]))
        async def send_heartbeats():
            while True:
                for at in range(0, hosts, 50):
                    for host in team[at:at + 50]:
                        host.send_heartbeat()
                    await asyncio.sleep(HEARTBEAT_S * 50 / hosts)

        heartbeats = asyncio.create_task(send_heartbeats())
        slots = [(host, n) for n in range(sessions) for host in team]
        async def acked(sent):
            end = time.monotonic() + 60
            while sum(h.acked + h.refused for h in team) < sent and time.monotonic() < end:
                await asyncio.sleep(0.05)

        created, begun = 0, time.monotonic()
        while created < len(slots):
            for host, number in slots[created:created + max(1, int(rate * TICK_S))]:
                host.publish(number)
                created += 1
            await asyncio.sleep(TICK_S)
        await acked(created)
        result.put({"created": created, "wall_s": time.monotonic() - begun})
        await asyncio.to_thread(go.wait, 120)
        begun, sent, at, skipped = time.monotonic(), 0, 0, 0
        while (now := time.monotonic()) - begun < seconds:
            due = int((now - begun) * rate) - sent
            for _ in range(min(due, rate)):
                host, number = slots[at % len(slots)]
                at += 1
                if host.publish(number):
                    sent += 1
                else:
                    skipped += 1
            await asyncio.sleep(TICK_S)
        wall = time.monotonic() - begun
        await acked(created + sent)
        result.put({"sent": sent, "acked": sum(h.acked for h in team), "refused": sum(h.refused for h in team), "skipped_busy": skipped, "wall_s": wall})
        heartbeats.cancel()
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
        bytes_read, latencies_ms, seen = [0] * count, [], [0] * min(PARSERS, count)

        async def discard(n, reader):
            while piece := await reader.read(1 << 18):
                bytes_read[n] += len(piece)

        async def parse_events(n, reader, writer):
            async for opcode, payload in frames(reader):
                if opcode == 9:
                    writer.write(bytes([0x8A, 0x80]) + b"\0\0\0\0")
                if b'"type":"turn.started"' in payload:
                    seen[n] += 1
                    fewest.value = min(seen)
                    begin = payload.index(b'"prompt":"at ') + 13
                    latencies_ms.append((time.time_ns() - int(payload[begin:begin + 19])) / 1e6)
                elif b'"type":"session.started"' in payload:
                    seen[n] += 1
                    fewest.value = min(seen)

        tasks = []
        for n in range(count):
            reader, writer = await open_socket(port, token)
            tasks.append(asyncio.create_task(parse_events(n, reader, writer) if n < PARSERS else discard(n, reader)))
        await asyncio.sleep(0.5)
        ready.set()
        while not stop.is_set():
            await asyncio.sleep(0.1)
        latencies_ms.sort()

        def at(part):
            return round(latencies_ms[min(len(latencies_ms) - 1, int(part * len(latencies_ms)))], 2) if latencies_ms else None

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
        fewest = context.Value("L", 0, lock=False)  # events seen by the parser that has the fewest
        ready, stop, subscribed, published = context.Event(), context.Event(), context.Queue(), context.Queue()
        subscribers = context.Process(target=subscribe_all, args=(hub.port, hub.token, given.subscribers, ready, stop, fewest, subscribed))
        subscribers.start()
        ready.wait(60)
        wait_for(lambda: team(hub)["open"], "the hub's broker")
        go = context.Event()
        load = context.Process(target=publish_all, args=(broker.port, given.hosts, given.sessions, given.rate, given.seconds, go, published))
        load.start()
        creations = published.get(timeout=300)
        wait_for(lambda: team(hub)["appended"] >= creations["created"], f"{creations['created']} sessions at the hub", 60, lambda: hub.exit_reason())
        before = {"hub": used(hub.process.pid), "broker": used(broker.process.pid)}
        begun = time.monotonic()
        go.set()
        sent = published.get(timeout=given.seconds * 3 + 120)
        wait_for(lambda: team(hub)["appended"] >= sent["acked"], f"{sent['acked']} events at the hub", 60, lambda: hub.exit_reason())
        end = time.monotonic() + 60
        while fewest.value < sent["acked"] and time.monotonic() < end:
            time.sleep(0.1)  # frames in flight to subscribers
        wall = time.monotonic() - begun
        after = {"hub": used(hub.process.pid), "broker": used(broker.process.pid)}
        stop.set()
        seen = subscribed.get(timeout=60)
        load.join(), subscribers.join()
        return {"hosts": given.hosts, "sessions": given.hosts * given.sessions, "subscribers": given.subscribers, "rate": round(sent["sent"] / sent["wall_s"]),
                "created_per_s": round(creations["created"] / creations["wall_s"]), "published": sent, "subscribed": seen, "hub": team(hub),
                "cpu": {name: round((after[name][0] - before[name][0]) / wall, 3) for name in after}, "rss_mib": {name: round(after[name][1], 1) for name in after}}
    finally:
        if hub:
            hub.process.kill()
            hub.process.wait()
        broker.stop()
        shutil.rmtree(home, ignore_errors=True)


TABLE = (  # hosts, events/s, subscribers
    (100, 500, 10), (1000, 500, 100), (1000, 1000, 100), (1000, 2000, 100), (1000, 4000, 100), (1000, 2000, 10), (1000, 2000, 300), (100, 2000, 100), (2000, 2000, 100))


def table(given):
    """Prints a Markdown table, a row per load."""
    print("| hosts | sessions | events/s | subscribers | p50, p99 ms | lost or duplicated | hub: CPU, memory | broker: CPU, memory |\n|---|---|---|---|---|---|---|---|", flush=True)
    rows, bad = [], 0
    for hosts, rate, subscribers in TABLE:
        given.hosts, given.rate, given.subscribers = hosts, rate, subscribers
        found = measure(given)
        rows.append(found)
        bad += wrong(found)
        latency, cpu, rss = found["subscribed"]["latency_ms"], found["cpu"], found["rss_mib"]
        print(f"| {hosts:,} | {found['sessions']:,} | {found['rate']:,} | {subscribers} | {latency['p50']:.1f}, {latency['p99']:.1f} | {wrong(found)} of {found['published']['acked']:,} | "
              f"{cpu['hub']:.2f} core, {rss['hub']:.0f} MiB | {cpu['broker']:.2f} core, {rss['broker']:.0f} MiB |", flush=True)
    return rows, bad


def wrong(found):
    """The number of lost or duplicated events at the subscribers that parse each event."""
    return sum(abs(found["published"]["acked"] - n) for n in found["subscribed"]["events_seen"])


def team(hub):
    import urllib.request
    request = urllib.request.Request(f"http://127.0.0.1:{hub.port}/v1/health", headers={"Authorization": f"Bearer {hub.token}"})
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.load(reply)["team"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("hosts", 1000), ("sessions", 10), ("rate", 2000), ("subscribers", 100), ("seconds", 30)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.seconds > 300 or given.hosts > 2000 or given.subscribers > 1000 or min(given.hosts, given.sessions, given.subscribers, given.rate) < 1 or given.rate > 20_000:
        parser.error("values out of range: at most 300 seconds, 2000 hosts, 1000 subscribers, 20000 events/s, and at least 1 each")
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
