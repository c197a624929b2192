"""Memory of the daemon, and the latency of one client, while other clients make expensive requests."""
import contextlib
import os
import threading
import time

from generate import prompt_line
from lab import memory, project, until_idle
from plain_client import PlainClient

resumed, resumed_bytes = 2000, 50_000
filtered, filtering_clients = 20_000, 10
warm_ups = 100
apart_s = 0.005
RESUMED, FILTERED = "2,000 cursors resumed at once", "10 clients with 192 patterns over 20,000 sessions"
patterns = [f"*a*b*c{n}*" for n in range(63)]


def write(path, session, lines, text):
    with open(path, "w") as file:
        file.writelines(prompt_line(session, n, text) for n in range(lines))


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
            file.write(prompt_line("live", self.sent, f"ping {self.sent}."))
        self.client.until(f'"prompt":"ping {self.sent}."'.encode())
        return time.monotonic() - began

    def measure(self, until):
        times = []
        while not until(len(times)):
            times.append(self.one())
            time.sleep(apart_s)
        return sorted(times)


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


def loaded(daemon, root, load):
    """(latencies in seconds, sorted; bytes of memory more) while `load(daemon)` runs in a thread."""
    live = Pings(daemon, os.path.join(project(root), "live.jsonl"))
    live.measure(lambda n: n >= warm_ups)
    until_idle(daemon)
    before = memory(daemon)
    failures = []

    def run():
        try:
            load(daemon)
        except Exception as error:
            failures.append(error)
    thread = threading.Thread(target=run)
    with peak_memory(daemon) as peak:
        thread.start()
        times = live.measure(lambda n: n > 0 and not thread.is_alive())
    thread.join()
    if failures:
        raise failures[0]
    return times, max(0, peak[0] - before)


def percentile(times, part):
    return times[min(int(len(times) * part), len(times) - 1)]


def fairness(lab, add):
    for measure, what in ((resume, RESUMED), (filters, FILTERED)):
        if add.selects(what):
            measure(lab, add, what)


def resume(lab, add, what):
    """After a restart, and with another key: then no cursor matches, and each stream gets a reset."""
    count = resumed // (20 if lab.quick else 1)
    with lab.scratch("resume") as root, lab.scratch("state") as home:
        paths = [os.path.join(project(root), f"s{n}.jsonl") for n in range(count)]
        text = "x" * 1000
        for n, path in enumerate(paths):
            write(path, f"s{n}", resumed_bytes // 1200, text)
        with lab.daemon(root, home=home) as daemon:
            client = PlainClient(daemon.port, daemon.token)
            client.subscribe()
            received = bytearray()
            while b'"type":"ready"' not in received[-100:]:
                received += client.socket.recv(1 << 18)
        cursors = [part.split(b'"')[1].decode() for part in bytes(received).split(b'"cursors":[')[1:]]
        for n, path in enumerate(paths):
            with open(path, "a") as file:
                file.write(prompt_line(f"s{n}", 10**6, "while the daemon was down"))

        def load(daemon):
            client = PlainClient(daemon.port, daemon.token)
            client.subscribe(after=cursors, filter={"session": ["s*"]}, snapshot=False)
            client.until(b'"complete":true')
        with lab.daemon(root, home=home) as daemon:
            times, more = loaded(daemon, root, load)
        with lab.daemon(root) as daemon:
            reset_times, _ = loaded(daemon, root, load)
    note = "" if len(cursors) == resumed else f"{len(cursors)}"
    add(f"{what}: memory more", [more], note=note)
    add(f"{what}: an append to another session, p99", [percentile(times, 0.99)], note=note)
    add(f"{what}, all reset: an append to another session, p99", [percentile(reset_times, 0.99)], note=note)


def filters(lab, add, what):
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
            times, more = loaded(daemon, root, load)
    note = "" if count == filtered else f"{count} sessions"
    add(f"{what}: memory more", [more], note=note)
    add(f"{what}: an append, p99", [percentile(times, 0.99)], note=note)
