"""The longest turn of the daemon's event loop under what files, and requests about them, can do to it: how long the slowest of many small requests
waits meanwhile."""
import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import threading
import time

from generate import prompt_line
from lab import project, until_idle

apart_s = 0.001
broken_bytes = 16_000_000 - 100
linked, cold, unread_bytes = 15_000, 20_000, 320 << 20
two_days_s = 2 * 86400
after_s = 2.0  # measured on after the cause: what it leads to comes later
LINKS, COLD = f"{linked:,} hard links", f"{cold:,} cold files"


class Probe:
    """Asks for /healthz again and again from another thread."""

    def __init__(self, daemon):
        self.daemon, self.times, self.stopped, self.error = daemon, [], threading.Event(), None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.daemon.port)
            while not self.stopped.wait(apart_s):
                began = time.monotonic()
                connection.request("GET", "/healthz")
                connection.getresponse().read()
                self.times.append(time.monotonic() - began)
        except Exception as error:
            self.error = error


@contextlib.contextmanager
def probed(daemon):
    probe = Probe(daemon)
    probe.thread.start()
    try:
        yield probe
        time.sleep(after_s)
    finally:
        probe.stopped.set()
        probe.thread.join()
    if probe.error:
        raise probe.error


def longest(daemon, cause):
    with probed(daemon) as probe:
        cause()
    return max(probe.times)


def write(path, lines=1, text="x" * 50, session="s"):
    with open(path, "w") as file:
        file.writelines(prompt_line(session, n, text) for n in range(lines))
    return path


def stall(lab, add):
    for measure in (quiet, broken, links, unread, cold_files):
        if any(add.selects(what) for what in measure.rows):
            measure(lab, add)


def rows(*names):
    def mark(measure):
        measure.rows = names
        return measure
    return mark


def repeated(lab, one):
    return [one() for _ in range(lab.rounds(3))]


@rows("longest turn: nothing happens")
def quiet(lab, add):
    with lab.scratch("quiet") as root:
        write(os.path.join(project(root), "s.jsonl"))
        with lab.daemon(root) as daemon:
            add("longest turn: nothing happens", repeated(lab, lambda: longest(daemon, lambda: None)))


@rows("longest turn: a broken line of 16 MB")
def broken(lab, add):
    """Each `{` may begin a record, and none is complete."""
    line = b'{"a" x ' + b'{"b":' * (broken_bytes // 5) + b"\n"
    with lab.scratch("broken") as root:
        path = write(os.path.join(project(root), "s.jsonl"))

        def append():
            with open(path, "ab") as file:
                file.write(line)
        with lab.daemon(root) as daemon:
            add("longest turn: a broken line of 16 MB", repeated(lab, lambda: longest(daemon, append)))


@rows(f"longest turn: {LINKS} made", f"longest turn: {LINKS} removed")
def links(lab, add):
    made, removed = [], []
    count = linked // (20 if lab.quick else 1)
    with lab.scratch("links") as root:
        for n in range(count):
            write(os.path.join(project(root), f"s{n}.jsonl"), session=f"s{n}")
        other = os.path.join(os.path.dirname(project(root)), "links")
        with lab.daemon(root) as daemon:
            for _ in range(lab.rounds(3)):
                made.append(longest(daemon, lambda: subprocess.run(["cp", "-al", project(root), other], check=True)))
                removed.append(longest(daemon, lambda: shutil.rmtree(other)))
    add(f"longest turn: {LINKS} made", made)
    add(f"longest turn: {LINKS} removed", removed)


@rows("longest turn: a directory is removed with 320 MB unread")
def unread(lab, add):
    size = lab.limited_size(unread_bytes)

    def one():
        with lab.scratch("unread") as root:
            path = write(os.path.join(project(root), "s.jsonl"))
            with lab.daemon(root) as daemon:
                with open(path, "a") as file:  # the daemon opens it
                    file.write(prompt_line("s", 1, "begin"))
                until_idle(daemon)
                os.kill(daemon.process.pid, signal.SIGSTOP)
                write_more(path, size)
                shutil.rmtree(project(root))
                return longest(daemon, lambda: os.kill(daemon.process.pid, signal.SIGCONT))
    add("longest turn: a directory is removed with 320 MB unread", repeated(lab, one))


def write_more(path, size):
    line = prompt_line("s", 2, "x" * 900)
    with open(path, "a") as file:
        for _ in range(size // len(line)):
            file.write(line)


@rows(*(f"longest turn: {COLD}, {page}" for page in ("/metrics", "/v1/health", "/v1/sessions?all=true")))
def cold_files(lab, add):
    with lab.scratch("cold") as root:
        old = time.time() - two_days_s
        for n in range(cold // (20 if lab.quick else 1)):
            directory = os.path.join(os.path.dirname(project(root)), f"p{n // 50}")
            os.makedirs(directory, exist_ok=True)
            os.utime(write(os.path.join(directory, f"s{n}.jsonl"), session=f"s{n}"), (old, old))
        with lab.daemon(root) as daemon:
            for page in ("/metrics", "/v1/health", "/v1/sessions?all=true"):
                def ask(page=page):
                    for _ in range(5):
                        connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
                        connection.request("GET", page, headers={"Authorization": f"Bearer {daemon.token}"})
                        connection.getresponse().read()
                        time.sleep(0.1)
                add(f"longest turn: {COLD}, {page}", repeated(lab, lambda: longest(daemon, ask)))
