"""A team on loopback: a real nats-server, daemons that publish to it, and hubs; assertions that a hub has the events of the hosts' files.

The tests are skipped where nats-server is not installed.
"""
import base64
import collections
import contextlib
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

from support.harness import DaemonCase, clean_environment, deadline_s, wait_for
from support.transcripts import Session

SERVER = shutil.which("nats-server") or next((p for p in ("/usr/sbin/nats-server", "/usr/bin/nats-server") if os.path.exists(p)), None)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Broker:
    """A nats-server with JetStream. Its port stays the same across restarts."""

    def __init__(self, home, authorization="", more="", port=None, address="127.0.0.1", prefix=()):
        self.home, self.prefix, self.address = home, prefix, address
        self.store = os.path.join(home, "jetstream")
        self.config = os.path.join(home, "nats.conf")
        self.log = open(os.path.join(home, "nats.log"), "ab")
        self.process = None
        is_started = False
        while not is_started:
            self.port = port or free_port()
            with open(self.config, "w") as file:
                file.write(f'listen: "{address}:{self.port}"\nmax_payload: 1MB\n'
                           f'jetstream {{ store_dir: "{self.store}", max_mem: 64MB, max_file: 1GB }}\n{more}\n{authorization}\n')
            is_started = self.try_start()

    @property
    def url(self):
        return f"nats://{self.address}:{self.port}"

    def start(self):
        """As soon as no other program uses its port."""
        wait_for(self.try_start, "a free port")

    def try_start(self):
        """False: another program uses its port."""
        begin = self.log.seek(0, os.SEEK_END)
        self.process = subprocess.Popen([*self.prefix, SERVER, "-c", self.config], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
                                        env=clean_environment(self.home))
        if self.prefix:
            return True
        wait_for(lambda: self.process.poll() is not None or self.answers(), "nats-server")
        if self.process.poll() is None:
            return True
        with open(self.log.name, errors="replace") as log:
            log.seek(begin)
            text = log.read()
        if "address already in use" not in text:
            raise AssertionError("nats-server exited: " + text[-2000:])
        return False

    def answers(self):
        try:
            with socket.create_connection((self.address, self.port), timeout=deadline_s) as one:
                return one.recv(4) == b"INFO"
        except OSError:
            return False

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def wipe(self):
        """Kills the server, deletes its store and starts it again."""
        self.kill()
        shutil.rmtree(self.store)
        self.start()

    def stop(self):
        if self.process.poll() is None:
            self.resume()
            self.kill()
        self.log.close()


def subject_token(text):
    """Encodes a name as a token of a subject (protocol/TEAM.md); names that are too long are not handled."""
    return "".join(c if c.isalnum() and c.isascii() or c in "-_" else "".join(f"={b:02X}" for b in c.encode()) for c in text) or "="


class NatsConnection:
    """A raw client of the NATS protocol: https://docs.nats.io/reference/reference-protocols/nats-protocol"""

    def __init__(self, broker, **login):
        self.socket = socket.create_connection((broker.address, broker.port), timeout=deadline_s * 4)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        hello = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "protocol": 1, "lang": "test", "version": "0"}
        if "user" in login:
            hello |= {"user": login["user"], "pass": login["password"]}
        self.send(f"CONNECT {json.dumps(hello)}\r\n".encode())
        self.error_for("SUB inbox 1")

    def send(self, command):
        self.socket.sendall(command)

    def publish(self, subject, payload, **headers):
        """Publishes; returns JetStream's answer."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"NATS/1.0\r\n{lines}\r\n".encode()
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.send(f"HPUB {subject} inbox {len(head)} {len(head) + len(body)}\r\n".encode() + head + body + b"\r\n")
        return self.reply()

    def reply(self):
        """The next JSON message to this connection."""
        while line := self.file.readline():
            if line.startswith(b"PING"):
                self.send(b"PONG\r\n")
            elif line.startswith((b"MSG", b"HMSG")):
                return json.loads(self.file.read(int(line.split()[-1]) + 2)[:-2])
        raise AssertionError("the broker closed the connection")

    def last_headers(self, stream, subject):
        """The headers of the last message of a subject in a JetStream stream."""
        request = json.dumps({"last_by_subj": subject}).encode()
        self.send(f"PUB $JS.API.STREAM.MSG.GET.{stream} inbox {len(request)}\r\n".encode() + request + b"\r\n")
        message = self.reply()["message"]
        lines = base64.b64decode(message["hdrs"]).decode().split("\r\n")[1:]
        return dict(line.split(": ", 1) for line in lines if line)

    def publish_all(self, messages):
        """Publishes (subject, payload) pairs and waits until the broker has read them; JetStream's answers are not awaited."""
        for subject, payload in messages:
            body = json.dumps(payload).encode()
            self.send(f"PUB {subject} {len(body)}\r\n".encode() + body + b"\r\n")
        self.error_for("PING")

    def error_for(self, command):
        """The broker's error reply to this command."""
        self.send(f"{command}\r\nPING\r\n".encode())
        reply = b""
        while (line := self.file.readline()) and not line.startswith(b"PONG"):
            reply += line
        return reply

    def close(self):
        self.file.close()
        self.socket.close()


def transcripts_below(folder):
    return glob.glob(os.path.join(folder, "**", "*.jsonl"), recursive=True)


@unittest.skipUnless(SERVER, "nats-server is not installed (Debian: nats-server)")
class TeamCase(DaemonCase):
    def setUp(self):
        super().setUp()
        self.hosts = {}  # name → its daemon

    def broker(self, **given):
        home = os.path.join(self.home, "nats")
        os.makedirs(home, exist_ok=True)
        broker = Broker(home, **given)
        self.addCleanup(broker.stop)
        return broker

    def nats_connection(self, broker, **login):
        connection = NatsConnection(broker, **login)
        self.addCleanup(connection.close)
        return connection

    def write(self, name, text):
        path = os.path.join(self.home, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def host(self, name, broker, view="full", more="", url=None, args=(), **given):
        """Starts a daemon that publishes as this host. A second call with the same name restarts it."""
        root = given.pop("root", None) or os.path.join(self.home, name, "claude")
        os.makedirs(root, exist_ok=True)
        config = self.write(f"{name}.toml", self.with_limits(f'[relay]\nurl = "{url or broker.url}"\nview = "{view}"\n{more}\n'))
        daemon = self.start("--config", config, *args, roots=[root], state=given.pop("state", os.path.join(self.home, name, "state")), host=name, **given)
        daemon.root = root
        self.hosts[name] = daemon
        return daemon

    def hub(self, broker, name="hub", more="", top="", url=None, again=None, **given):
        """`again`: one that has stopped; the port is the same."""
        config = self.write(f"{name}.toml", self.with_limits(f'{top}\n[hub]\nurl = "{url or broker.url}"\n{more}\n'))
        given |= {"roots": [], "state": os.path.join(self.home, name), "host": name}
        hub = self.start_again(again, "--config", config, **given) if again else self.start("--config", config, **given)
        hub.files = os.path.join(self.home, name, "hub", "projects")
        return hub

    def one_host(self, **host):
        """(a broker, its hub, a daemon that publishes as ada)"""
        broker = self.broker()
        return broker, self.hub(broker), self.host("ada", broker, **host)

    def session(self, daemon, project="/home/ada/api"):
        return Session(daemon.root, project)

    def published_session(self, hub, daemon, *prompts):
        """A session with these turns, all of which the hub has."""
        session = self.session(daemon)
        for prompt in prompts:
            session.turn(prompt)
        self.assert_hub_complete(hub)
        return session

    # --- Assertions ---

    def published_pair(self, hub, daemon):
        """Two published sessions: one stays, the test deletes the other."""
        one, other = self.session(daemon), self.session(daemon, "/home/ada/other")
        one.turn("stays"), other.turn("is deleted")
        self.assert_hub_complete(hub)
        return one, other

    def published(self, view="full"):
        """(host, stream) → the texts of the events in the hosts' files."""
        events_of = {}
        for name, daemon in self.hosts.items():
            paths = transcripts_below(os.path.join(daemon.root, "projects"))
            if not paths:
                continue
            for stream, lines in daemon.replay(*sorted(paths), view=None if view == "full" else view).items():
                events_of[name, stream] = lines
        return events_of

    def hub_events(self, hub):
        """(host, stream) → the events in the hub's files."""
        found = collections.defaultdict(list)
        for path in transcripts_below(hub.files):
            try:
                file = open(path)
            except FileNotFoundError:
                continue  # removed since it was listed
            with file:
                lines = file.read().split("\n")
            for line in lines[:-1]:  # the last one is being written, or empty
                event = json.loads(line)
                if "cursor" in event:
                    del event["received"]
                    found[event["host"], event["stream"]].append(event)
        return found

    def hub_cursors(self, hub, deadline=None):
        """stream at the hub → its last cursor, once a client is served all that the hub's files hold. Makes the hub read every file."""
        def served():
            ends = collections.Counter()  # an offset → how many files have their last event there
            for path in transcripts_below(hub.files):
                with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                    head, event, _ = file.read().rpartition(b'"cursor":')
                    if event:
                        ends[file.seek(len(head)) + len(file.readline())] += 1
            client = hub.client()
            try:
                cursors = dict(place.rsplit(":", 1) for frame in client.subscribe(all=True) for place in frame["cursors"])
            finally:
                client.close()
            if ends == collections.Counter(int(cursor.split(".")[0]) for cursor in cursors.values()):
                return [cursors]
        return wait_for(served, "the hub to serve what its files hold", deadline, hub.exit_reason)[0]

    def assert_hub_complete(self, hub, deadline=None, view="full"):
        """Waits until the hub has every event of the hosts' files, stored and served: once each, in order, unchanged."""
        expected = self.published(view)
        count = {key: len(lines) for key, lines in expected.items()}
        self.assertTrue(count, "no host has a file")
        cursors = {key: [json.loads(line)["cursor"] for line in lines] for key, lines in expected.items()}

        def arrived():
            try:
                events = self.hub_events(hub)
            except json.JSONDecodeError:
                return None  # a file was replaced while it was read
            return all([event["cursor"] for event in events[key]] == wanted for key, wanted in cursors.items()) and events

        try:
            wait_for(arrived, f"{sum(count.values())} events at the hub", deadline, hub.exit_reason)
        except AssertionError as failed:
            events = self.hub_events(hub)
            have = {key: len(events[key]) for key in count}
            raise AssertionError(f"{failed}: expected {count}, the hub has {have}{hub.log_tail()}"
                                 + "".join(d.log_tail() for d in self.hosts.values())) from None
        events = self.hub_events(hub)
        self.assertEqual({k for k in events if events[k]}, set(expected))
        for key, lines in expected.items():
            self.assert_same_events([json.dumps(json.loads(line)) for line in lines], [json.dumps(event) for event in events[key]], key)
        self.hub_cursors(hub, deadline)
        return expected

    def assert_hub_serves(self, hub, expected, **filter):
        """Asserts that a client of the hub receives these events from the beginning, apart from the fields that the hub rewrites."""
        client = hub.client()
        streams = {}
        for frame in client.subscribe(id="look", **({"filter": filter} if filter else {})):
            for entry in frame["cursors"]:
                streams[entry.rpartition(":")[0]] = frame
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
            self.assert_same_events(sorted(json.dumps(e, sort_keys=True) for e in events), as_text.get(host, []), host)
        return client

    def health(self, daemon):
        import urllib.request
        request = urllib.request.Request(f"http://127.0.0.1:{daemon.port}/v1/health", headers={"Authorization": f"Bearer {daemon.token}"})
        with urllib.request.urlopen(request, timeout=deadline_s * 4) as answer:
            return json.load(answer)

    def wait_team(self, daemon, deadline=None, **counters):
        """Waits until the counters of the publisher or the hub reach at least these values."""
        return wait_for(lambda: all(self.health(daemon)["team"][name] >= value for name, value in counters.items()), f"{counters}", deadline,
                        lambda: daemon.exit_reason() and daemon.exit_reason() + daemon.log_tail())
