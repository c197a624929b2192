"""Faults 88 to 93: hostile clients and a hostile relay beside an honest client and an honest host, which they must not affect."""
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time

from fault_case import FaultCase, Writer
from support.endpoints import curl
from support.harness import build, deadline_s, sanitized, wait_for
from support.team import TeamCase
from support.transcripts import Session

ROGUE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rogue.py")
rogue_s = 6                    # at least
growth_bytes_max = 64 << 20    # of the resident memory; not judged in sanitized builds
sessions = 1500
hub_files_max = 512            # that a hub keeps open, to write and to serve


class Memory:
    """The largest resident size of a process during a `with` block, above that at its begin."""

    def __init__(self, process):
        self.pid, self.running, self.growth = process.pid, True, 0

    def resident(self):
        with open(f"/proc/{self.pid}/status") as status:
            return int(re.search(r"^VmRSS:\s+(\d+) kB", status.read(), re.MULTILINE)[1]) << 10

    def __enter__(self):
        self.before = self.resident()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def watch(self):
        while self.running:
            self.growth = max(self.growth, self.resident() - self.before)
            time.sleep(0.05)

    def __exit__(self, *_):
        self.running = False
        self.thread.join()


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def sockets(daemon):
    """How many it has open. (Transcripts are closed later, and the search index opens files when it likes.)"""
    count, directory = 0, f"/proc/{daemon.process.pid}/fd"
    for descriptor in os.listdir(directory):
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(os.path.join(directory, descriptor)).startswith("socket:")
    return count


def gauges(daemon):
    """name → value of the daemon's gauges of memory and of subscriptions, except of the live log and the files"""
    text = curl(daemon, "/metrics", unix=True)[2].decode()
    names = [name for name in re.findall(r"^# TYPE (earshot_\w+) gauge$", text, re.MULTILINE)
             if re.search(r"_bytes$|_subscribers$|_folds$", name) and not re.search("_log_|_max_|_tail_|_file", name)]
    return {name: sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))) for name in names}


class Rogue(TeamCase, FaultCase):
    limits = ""  # the defaults are tested

    @contextlib.contextmanager
    def rogue(self, *words):
        """Plays during the block, at least. Afterwards its report is in self.report."""
        seconds = rogue_s / (2 if sanitized(build()) else 1)
        command = [sys.executable, ROGUE, *map(str, words), str(seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield
                out, errors = process.communicate(timeout=deadline_s * 8)
            finally:
                process.kill()
        self.assertEqual(process.returncode, 0, errors)
        self.report = json.loads(out)

    def judge(self, memory):
        if not sanitized(build()):
            self.assertLess(memory.growth, growth_bytes_max, self.report)

    def test_89_hostile_clients_do_not_affect_an_honest_one_and_leave_nothing_behind(self):
        for n in range(sessions):
            Session(self.root, f"/home/ada/p{n % 50}").prompt(f"turn {n}")
        long = Session(self.root, "/home/ada/long")
        long.turn("long", answer="x" * (1 << 20))
        honest = Session(self.root, "/home/ada/honest")
        honest.turn("first")
        daemon = self.start()
        stream = f"claude/-home-ada-honest/{honest.session}"
        client = daemon.subscriber(filter={"session": [honest.session]}, after=[stream + ":"])
        wait_for(lambda: json.loads(curl(daemon, "/v1/health", unix=True)[2])["sessions"] >= sessions, "the sessions")
        before, open_before = gauges(daemon), sockets(daemon)
        with Memory(daemon.process) as memory:
            writer = Writer(honest)
            self.addCleanup(writer.stop)
            with self.rogue("clients", daemon.port, os.path.join(self.state, "token")):
                first = client.wait_frame(type="turn.started", prompt="prompt 50")
                self.assertEqual(curl(daemon, "/v1/sessions?limit=1", unix=True)[0], 200)  # fault 90: the owner still gets in
                client.send(type="read", id="r", stream=stream, cursor=first["cursor"])
                client.wait_frame(type="record", id="r")  # fault 92
            writer.stop()
        self.assert_delivered(daemon, client, honest.path)  # once each, in order
        writer.assert_arrived(client)
        self.judge(memory)
        for kind in ("subscriptions", "snapshots", "requests", "records", "bytes", "upgrades", "connections"):
            self.assertGreater(self.report.get(kind, 0), 0, kind)
        wait_for(lambda: json.loads(curl(daemon, "/v1/health", unix=True)[2])["connections"] <= 2, "the connections to be released")
        wait_for(lambda: sockets(daemon) <= open_before + 2, "the sockets to be released")
        wait_for(lambda: all(value <= before.get(name, 0) for name, value in gauges(daemon).items()), "the memory to be released")

    def test_88_a_hostile_relay_does_not_affect_an_honest_host(self):
        broker, hub, ada = self.one_host()
        honest = self.published_session(hub, ada, "first")
        client = hub.subscriber(filter={"host": ["ada"]})
        open_before = descriptors(hub)
        with Memory(hub.process) as memory:
            writer = Writer(honest)
            self.addCleanup(writer.stop)
            with self.rogue("relay", broker.port):
                client.wait_frame(type="turn.started", prompt="prompt 50")
            writer.stop()
        client.wait_frame(type="turn.started", prompt=f"prompt {writer.written - 1}")
        writer.assert_arrived(client)
        self.judge(memory)
        for kind in ("forged_predecessor", "endless_session", "long_name", "false_owner"):
            self.assertGreater(self.report.get(kind, 0), 0, kind)
        self.assert_hub_serves(hub, self.published(), host=["ada"])
        self.assertLessEqual(descriptors(hub), open_before + hub_files_max)
