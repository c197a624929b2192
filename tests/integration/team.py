"""A team: a real nats-server, daemons that publish to it, hubs that tell what was published. And the checker: what a hub has is what the files say.

Everything on loopback, on free ports. Without nats-server the tests that want it are skipped, out loud.
"""
import collections
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

from harness import Case, clean_environment, wait_for
from sessions import Session

SERVER = shutil.which("nats-server") or next((p for p in ("/usr/sbin/nats-server", "/usr/bin/nats-server") if os.path.exists(p)), None)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Broker:
    """A nats-server with JetStream; its port stays the same from life to life."""

    def __init__(self, home, authorization="", more="", port=None, address="127.0.0.1", prefix=()):
        self.home, self.prefix, self.address = home, prefix, address
        self.store = os.path.join(home, "jetstream")
        self.config = os.path.join(home, "nats.conf")
        self.log = open(os.path.join(home, "nats.log"), "ab")
        self.process = None
        for last in (False, False, True):
            self.port = port or free_port()
            with open(self.config, "w") as file:
                file.write(f'listen: "{address}:{self.port}"\nmax_payload: 1MB\n'
                           f'jetstream {{ store_dir: "{self.store}", max_mem: 64MB, max_file: 1GB }}\n{more}\n{authorization}\n')
            try:
                return self.start()
            except AssertionError:  # somebody else may have been given the port in between
                if last or "address already in use" not in self.last_words():
                    raise

    @property
    def url(self):
        return f"nats://{self.address}:{self.port}"

    def start(self):
        self.process = subprocess.Popen([*self.prefix, SERVER, "-c", self.config], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
                                        env=clean_environment(self.home))
        if not self.prefix:
            wait_for(self.answers, "nats-server", give_up=lambda: self.process.poll() is not None and "nats-server is gone: " + self.last_words())

    def answers(self):
        try:
            with socket.create_connection((self.address, self.port), timeout=1) as one:
                return one.recv(4) == b"INFO"
        except OSError:
            return False

    def last_words(self):
        with open(self.log.name, errors="replace") as log:
            return log.read()[-2000:]

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def wipe(self):
        """Killed, and its store is gone."""
        self.kill()
        shutil.rmtree(self.store)
        self.start()

    def end(self):
        if self.process.poll() is None:
            self.go_on()
            self.kill()
        self.log.close()


def word(text):
    """A name as a token of a subject (protocol/TEAM.md), where it is not too long."""
    return "".join(c if c.isalnum() and c.isascii() or c in "-_" else "".join(f"={b:02X}" for b in c.encode()) for c in text) or "="


class Anybody:
    """Publishes what it likes, in NATS' own words: https://docs.nats.io/reference/reference-protocols/nats-protocol"""

    def __init__(self, broker, **who):
        self.socket = socket.create_connection((broker.address, broker.port), timeout=20)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        hello = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "protocol": 1, "lang": "test", "version": "0"}
        if "user" in who:
            hello |= {"user": who["user"], "pass": who["password"]}
        self.say(f"CONNECT {json.dumps(hello)}\r\n".encode())
        self.refused("SUB anybody 1")

    def say(self, words):
        self.socket.sendall(words)

    def publish(self, subject, payload, **headers):
        """What JetStream answers."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"NATS/1.0\r\n{lines}\r\n".encode()
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.say(f"HPUB {subject} anybody {len(head)} {len(head) + len(body)}\r\n".encode() + head + body + b"\r\n")
        while line := self.file.readline():
            if line.startswith(b"PING"):
                self.say(b"PONG\r\n")
            elif line.startswith((b"MSG", b"HMSG")):
                return json.loads(self.file.read(int(line.split()[-1]) + 2)[:-2])
        raise AssertionError("the broker hung up")

    def refused(self, words):
        """What the broker says to this instead of nothing."""
        self.say(f"{words}\r\nPING\r\n".encode())
        said = b""
        while (line := self.file.readline()) and not line.startswith(b"PONG"):
            said += line
        return said

    def close(self):
        self.file.close()
        self.socket.close()


@unittest.skipUnless(SERVER, "nats-server is not here (Debian: nats-server)")
class TeamCase(Case):
    def setUp(self):
        super().setUp()
        self.hosts = {}

    def broker(self, **given):
        home = os.path.join(self.home, "nats")
        os.makedirs(home, exist_ok=True)
        broker = Broker(home, **given)
        self.addCleanup(broker.end)
        return broker

    def anybody(self, broker, **who):
        one = Anybody(broker, **who)
        self.addCleanup(one.close)
        return one

    def write(self, name, text):
        path = os.path.join(self.home, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def host(self, name, broker, view="full", more="", url=None, words=(), **given):
        """A daemon that publishes as this host; started again, it is the same one."""
        root = given.pop("root", None) or os.path.join(self.home, name, "claude")
        os.makedirs(root, exist_ok=True)
        config = self.write(f"{name}.toml", f'[relay]\nurl = "{url or broker.url}"\nview = "{view}"\n{more}\n')
        daemon = self.start("--config", config, *words, roots=[root], state=given.pop("state", os.path.join(self.home, name, "state")), host=name, **given)
        daemon.root = root
        self.hosts[name] = daemon
        return daemon

    def hub(self, broker, name="hub", more="", top="", url=None, **given):
        config = self.write(f"{name}.toml", f'{top}\n[hub]\nurl = "{url or broker.url}"\n{more}\n')
        hub = self.start("--config", config, roots=[], state=os.path.join(self.home, name), host=name, **given)
        hub.files = os.path.join(self.home, name, "hub", "projects")
        return hub

    def session(self, daemon, project="/home/ada/api"):
        return Session(daemon.root, project)

    # --- The checker ---

    def published(self, view="full"):
        """(host, stream) → the events of the files as they are, as the wire tells them."""
        told = {}
        for name, daemon in self.hosts.items():
            paths = glob.glob(os.path.join(daemon.root, "projects", "**", "*.jsonl"), recursive=True)
            if not paths:
                continue
            for stream, lines in daemon.replay(*sorted(paths), view=None if view == "full" else view).items():
                told[name, stream] = lines
        return told

    def kept(self, hub):
        """(host, stream) → the events that the hub's files have."""
        found = collections.defaultdict(list)
        for path in glob.glob(os.path.join(hub.files, "*", "*.jsonl")):
            with open(path) as file:
                for line in file:
                    if not line.endswith("\n"):
                        continue  # being written
                    event = json.loads(line)
                    if "cursor" in event:
                        del event["received"]
                        found[event["host"], event["stream"]].append(event)
        return found

    def equal(self, hub, deadline=None, view="full"):
        """Waits until the hub has what the files say; then: each event once, in order, word for word."""
        expected = self.published(view)
        count = {key: len(lines) for key, lines in expected.items()}
        self.assertTrue(count, "no host has a file")
        cursors = {key: [json.loads(line)["cursor"] for line in lines] for key, lines in expected.items()}

        def arrived():
            kept = self.kept(hub)
            return all([event["cursor"] for event in kept[key]] == wanted for key, wanted in cursors.items()) and kept

        try:
            wait_for(arrived, f"{sum(count.values())} events at the hub", deadline, hub.why_dead)
        except AssertionError as failed:
            kept = self.kept(hub)
            have = {key: len(kept[key]) for key in count}
            raise AssertionError(f"{failed}: of {count} there are {have}{hub.last_words()}"
                                 + "".join(d.last_words() for d in self.hosts.values())) from None
        kept = self.kept(hub)
        self.assertEqual({k for k in kept if kept[k]}, set(expected))
        for key, lines in expected.items():
            self.same([json.dumps(json.loads(line)) for line in lines], [json.dumps(event) for event in kept[key]], key)
        return expected

    def told(self, hub, expected, **filter):
        """What a client of the hub is told from each first line on: word for word but for what the hub says in its own words."""
        client = hub.client()
        streams = {}
        for frame in client.subscribe(id="look", **({"filter": filter} if filter else {})):
            for place in frame["cursors"]:
                streams[place.rpartition(":")[0]] = frame
        client.subscribe(id="all", snapshot=False, after=[f"{stream}:" for stream in streams])
        client.wait_frame(type="bookmark", id="all", complete=True)
        found = collections.defaultdict(list)
        for frame in client.frames:
            if "cursor" in frame:
                found[frame["host"]].append({k: v for k, v in frame.items() if k not in ("stream", "session", "cursor")})
        wanted = collections.defaultdict(list)
        for (host, _), lines in expected.items():
            wanted[host] += [{k: v for k, v in json.loads(line).items() if k not in ("stream", "session", "cursor")} for line in lines]
        as_text = {host: sorted(json.dumps(e, sort_keys=True) for e in events) for host, events in found.items()}
        for host, events in wanted.items():
            self.same(sorted(json.dumps(e, sort_keys=True) for e in events), as_text.get(host, []), host)
        return client

    def health(self, daemon):
        import urllib.request
        request = urllib.request.Request(f"http://127.0.0.1:{daemon.port}/v1/health", headers={"Authorization": f"Bearer {daemon.token}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def wait_team(self, daemon, deadline=None, **figures):
        """Until the figures of the relay or the hub are at least these."""
        return wait_for(lambda: all(self.health(daemon)["team"][name] >= value for name, value in figures.items()), f"{figures}", deadline,
                        lambda: daemon.why_dead() and daemon.why_dead() + daemon.last_words())
