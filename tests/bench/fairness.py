#!/usr/bin/env python3
"""Memory of the daemon, and the latency of one client, while other clients make expensive requests. Prints a table.

usage: fairness.py [--quick] [NAME …]      NAME: resume, filters (the default is both)

resume    2,000 cursors are resumed at once after a restart of the daemon
filters   ten clients subscribe, again and again, with 192 patterns over 20,000 sessions
"""
import contextlib
import json
import os
import sys
import threading
import time

from lab import Lab, memory, project, until_idle
from plain_client import PlainClient

resumed, resumed_bytes = 2000, 50_000
filtered, filtering_clients = 20_000, 10
pings = 500
apart_s = 0.005
patterns = [f"*a*b*c{n}*" for n in range(63)]


def line(session, n, text):
    return json.dumps({"type": "user", "uuid": f"{session}-{n}", "sessionId": session, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w",
                       "version": "2.1.330", "message": {"role": "user", "content": text}}) + "\n"


def write(path, session, lines, text):
    with open(path, "w") as file:
        file.writelines(line(session, n, text) for n in range(lines))


class Pings:
    """Appends to one transcript, and measures the time until its event arrives."""

    def __init__(self, daemon, path):
        self.path, self.sent = path, 0
        write(path, "live", 1, "begin")
        self.client = PlainClient(daemon.port, daemon.token)
        self.client.subscribe(filter={"session": ["live"]}, snapshot=False)
        self.client.until(b'"ready"')

    def one(self):
        self.sent += 1
        began = time.monotonic()
        with open(self.path, "a") as file:
            file.write(line("live", self.sent, f"ping {self.sent}."))
        self.client.until(f'"prompt":"ping {self.sent}."'.encode())
        return (time.monotonic() - began) * 1000

    def measure(self, until):
        times = []
        while not until(len(times)):
            times.append(self.one())
            time.sleep(apart_s)
        return sorted(times)


def percentiles(times):
    return f"{len(times)} appends, p50 {times[len(times) // 2]:.2f} ms, p99 {times[int(len(times) * 0.99)]:.2f} ms, max {times[-1]:.2f} ms"


@contextlib.contextmanager
def peak_memory(daemon):
    """The largest resident size during the block, sampled every 5 ms."""
    peak, done = [0], threading.Event()

    def sample():
        while not done.wait(0.005):
            peak[0] = max(peak[0], memory(daemon))
    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def compare(daemon, root, load):
    """Prints latency and memory without and with `load(daemon)`, which runs in a thread."""
    live = Pings(daemon, os.path.join(project(root), "live.jsonl"))
    print("  idle:   ", percentiles(live.measure(lambda n: n >= pings)))
    until_idle(daemon)
    before = memory(daemon)
    thread = threading.Thread(target=load, args=(daemon,))
    with peak_memory(daemon) as peak:
        began = time.monotonic()
        thread.start()
        times = live.measure(lambda n: n > 0 and not thread.is_alive())
    print("  loaded: ", percentiles(times), f"in {time.monotonic() - began:.1f} s")
    print(f"  memory:  {before / 2**20:.1f} MiB, then at most {(peak[0] - before) / 2**20:.1f} MiB more")


def resume(lab):
    count = resumed // (20 if lab.quick else 1)
    with lab.scratch("resume") as root:
        paths = [os.path.join(project(root), f"s{n}.jsonl") for n in range(count)]
        text = "x" * 1000
        for n, path in enumerate(paths):
            write(path, f"s{n}", resumed_bytes // 1200, text)
        with lab.daemon(root) as daemon:
            client = PlainClient(daemon.port, daemon.token)
            client.subscribe()
            received = bytearray()
            while b'"type":"ready"' not in received[-100:]:
                received += client.socket.recv(1 << 18)
        cursors = [part.split(b'"')[1].decode() for part in bytes(received).split(b'"cursors":[')[1:]]
        for n, path in enumerate(paths):
            with open(path, "a") as file:
                file.write(line(f"s{n}", 10**6, "while the daemon was down"))

        def load(daemon):
            client = PlainClient(daemon.port, daemon.token)
            client.subscribe(after=cursors, filter={"session": ["s*"]}, snapshot=False)
            client.until(b'"complete":true')
        with lab.daemon(root) as daemon:
            print(f"{len(cursors)} cursors of {count} transcripts of {os.path.getsize(paths[0])} bytes are resumed")
            compare(daemon, root, load)


def filters(lab):
    count = filtered // (20 if lab.quick else 1)
    with lab.scratch("filters") as root:
        for n in range(count):
            write(os.path.join(project(root), f"s{n}.jsonl"), f"s{n}", 1, "x" * 50)
        filter = {"session": patterns + ["s*"], "project": patterns + ["*"], "host": patterns + ["*"]}

        def one(daemon):
            for _ in range(3):
                client = PlainClient(daemon.port, daemon.token)
                client.subscribe(filter=filter)
                client.until(b'"type":"ready"')
                client.close()

        def load(daemon):
            threads = [threading.Thread(target=one, args=(daemon,)) for _ in range(filtering_clients)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        with lab.daemon(root) as daemon:
            print(f"{filtering_clients} clients subscribe with 192 patterns over {count} sessions")
            compare(daemon, root, load)


def main(words):
    lab = Lab(quick="--quick" in words)
    try:
        for measure in (resume, filters):
            names = [word for word in words if not word.startswith("-")]
            if not names or measure.__name__ in names:
                measure(lab)
    finally:
        lab.close()


if __name__ == "__main__":
    main(sys.argv[1:])
