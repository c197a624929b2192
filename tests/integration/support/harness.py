"""Runs a real earshotd on real files with real subscribers.

EARSHOT_BUILD names the build under test (default build/release). Tests never sleep: wait_for polls a condition until a generous deadline.
"""
import asyncio
import collections
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import websockets

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(TOP, "tests", "protocol"))
from schemas import Schemas  # noqa: E402
from support.transcripts import Session  # noqa: E402
from validate import Validator, parse  # noqa: E402

deadline_s = 120  # for one condition, on a busy machine; four times that in a sanitized build
indexing_deadline_s = 600  # likewise, for the search index: its thread has the lowest priority
HOST = "testhost"
NOBODY_UID = 65534
SCHEMAS = Schemas()
SANITIZER_REPORT = re.compile(rb"ERROR: AddressSanitizer|ERROR: LeakSanitizer|runtime error:|AddressSanitizer:DEADLYSIGNAL")


def build():
    return os.environ.get("EARSHOT_BUILD") or os.path.join(TOP, "build", "release")


@functools.cache
def sanitized(directory):
    with open(os.path.join(directory, "CMakeCache.txt")) as cache:
        return re.search(r"^EARSHOT_SANITIZE:\w+=.", cache.read(), re.MULTILINE) is not None


def timeout_factor():
    """The factor by which deadlines grow in this build."""
    return 4 if sanitized(build()) else 1


def corpus():
    """The directory of recorded sessions, or None. Tests that need it report that they are skipped."""
    for path in (os.environ.get("EARSHOT_CORPUS"), os.path.join(TOP, "..", "shared", "corpus")):
        if path and os.path.isdir(path):
            return os.path.abspath(path)
    return None


def wait_for(condition, what, deadline=None, give_up=lambda: None):
    """Returns the condition's first true value. `give_up` returns a reason to stop waiting early."""
    end = time.monotonic() + (deadline or deadline_s) * timeout_factor()
    while True:
        if value := condition():
            return value
        if reason := give_up():
            if value := condition():  # it may have become true before the reason did
                return value
            raise AssertionError(f"waited for {what}: {reason}")
        if time.monotonic() > end:
            raise AssertionError(f"timed out waiting for {what}")
        time.sleep(0.005)


def clean_environment(home):
    """An environment without the real user's configuration, sessions and state."""
    foreign = ("XDG_", "CLAUDE_", "CODEX_", "COPILOT_", "PI_", "EARSHOT_", "NOTIFY_", "LISTEN_", "OTEL_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**kept, "HOME": home, "TMPDIR": home, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}


class Loop:
    """The asyncio loop of all clients, on its own thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(deadline_s * 4)

    def start(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)


loop = Loop()


class Client:
    """A subscriber that collects every frame, as text and parsed, in order of arrival, and the time of its arrival."""

    def __init__(self, daemon, token=None, bearer=True, **headers):
        self.daemon, self.raw, self.frames, self.times, self.close_code = daemon, [], [], [], None
        send = {name.replace("_", "-"): value for name, value in headers.items()}
        if bearer:
            send["Authorization"] = f"Bearer {daemon.token if token is None else token}"
        self.socket = loop.run(self._open(daemon.url, send))
        self.reader = loop.start(self._read())

    async def _open(self, url, headers):
        return await websockets.connect(url, extra_headers=headers, subprotocols=["earshot.v1"], compression=None, max_size=None,
                                        max_queue=None, ping_interval=None, close_timeout=2, open_timeout=deadline_s * 4)

    async def _read(self):
        try:
            async for text in self.socket:
                self.times.append(time.monotonic())
                self.raw.append(text)
                self.frames.append(json.loads(text))
        except websockets.ConnectionClosedError:
            pass
        finally:
            self.close_code = self.socket.close_code

    def send(self, **message):
        loop.run(self.socket.send(json.dumps(message)))

    def subscribe(self, id="a", wait=True, **more):
        """Waits for `ready`; returns the session frames received since the call and before it."""
        before = len(self.frames)
        self.send(type="subscribe", id=id, **more)
        if not wait:
            return []
        ready = self.wait(lambda: next((f for f in self.frames[before:] if f["type"] == "ready" and f["id"] == id), None), "ready")
        return [f for f in self.frames[before : self.frames.index(ready, before)] if f["type"] == "session"]

    def wait(self, condition, what, deadline=None):
        def give_up():
            return self.daemon.exit_reason() or (self.close_code and f"the connection was closed with {self.close_code}")

        try:
            return wait_for(condition, what, deadline, give_up)
        except AssertionError as failed:
            raise AssertionError(f"{failed}\nlast frames:\n  " + "\n  ".join(t[:300] for t in self.raw[-12:]) + self.daemon.log_tail()) from None

    def wait_frame(self, deadline=None, **fields):
        """The first frame with these fields."""
        return self.wait(lambda: self.find(**fields), f"a frame with {fields}", deadline)

    def find(self, **fields):
        return next((f for f in list(self.frames) if has(f, fields)), None)

    def all(self, **fields):
        return [f for f in list(self.frames) if has(f, fields)]

    def event_texts(self):
        """stream → the events' exact texts, in order"""
        found = collections.defaultdict(list)
        for frame, text in list(zip(self.frames, self.raw)):
            if "cursor" in frame:
                found[frame["stream"]].append(text)
        return found

    def count(self):
        return sum("cursor" in f for f in list(self.frames))

    def wait_closed(self):
        self.reader.result(deadline_s * 4)
        return self.close_code

    def close(self):
        if not self.reader.done():
            loop.run(self.socket.close())
            self.reader.result(deadline_s * 4)


def has(frame, fields):
    return all(frame.get(name) == value for name, value in fields.items())


class Daemon:
    """An earshotd process on a free port."""

    def __init__(self, roots, state, home, args=(), prefix=(), earshotd=None, listen="127.0.0.1:0", runtime=None, host=HOST, environment={}):
        self.state, self.clients, self.home, self.host = state, [], home, host
        self.runtime = runtime or tempfile.mkdtemp(prefix="run-", dir=home)  # its own Unix socket, with a short path
        command = [*prefix, earshotd or os.path.join(build(), "earshotd"), "--state", state, "--listen", listen, "--host", host]
        for root in roots:
            command += ["--root", root]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*command, *args], stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL,
                                        env={**clean_environment(home), "XDG_RUNTIME_DIR": self.runtime, **environment})
        self.socket = os.path.join(self.runtime, "earshot", "sock")
        self.out = []
        self.stdout_reader = threading.Thread(target=self._read_stdout, daemon=True)
        self.stdout_reader.start()

    def wait_ready(self):
        line = wait_for(lambda: next((line for line in self.out if "listening on" in line), None), "the ready line",
                        give_up=lambda: self.exit_reason() and self.exit_reason() + self.log_tail())
        self.url = line.split("listening on ")[1].strip()
        self.port = int(re.search(r":(\d+)/", self.url)[1])
        with open(os.path.join(self.state, "token")) as token:
            self.token = token.read().strip()
        return self

    def _read_stdout(self):
        for line in self.process.stdout:
            self.out.append(line.decode())

    def client(self, **given):
        client = Client(self, **given)
        self.clients.append(client)
        return client

    def subscriber(self, **given):
        client = self.client()
        client.subscribe(**given)
        return client

    def stderr(self):
        self.log.flush()
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), size, 0)

    def log_tail(self):
        return "\nstderr of earshotd:\n" + self.stderr()[-4000:].decode(errors="replace")

    def exit_reason(self):
        code = self.process.poll()
        return None if code is None else f"earshotd exited with code {code}"

    def wait_log(self, pattern):
        """Waits for a line on stderr that matches the pattern."""
        def logged():
            return re.search(pattern, self.stderr().decode(errors="replace"))

        return wait_for(logged, f"{pattern!r} on stderr", give_up=lambda: not logged() and self.exit_reason())

    def wait_exit(self):
        try:
            code = self.process.wait(deadline_s * timeout_factor())
        except subprocess.TimeoutExpired:
            raise AssertionError("earshotd did not stop" + self.log_tail()) from None
        self.stdout_reader.join()
        return code

    def stop(self):
        """Sends SIGTERM; asserts exit code 0 and no sanitizer report."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.wait_exit()
        for client in self.clients:
            client.wait_closed()
        stderr = self.stderr()
        if SANITIZER_REPORT.search(stderr) or code != 0:
            raise AssertionError(f"earshotd stopped with exit code {code}" + "\n" + stderr[-8000:].decode(errors="replace"))

    def replay(self, *paths, view=None):
        """stream → the exact texts of its events, from `earshot replay` of the files as they are now"""
        done = earshot("replay", "--state", self.state, "--host", self.host, *(["--view", view] if view else []), *paths, home=self.home)
        if done.returncode != 0:
            raise AssertionError(f"earshot replay: exit code {done.returncode}: {done.stderr}")
        found = collections.defaultdict(list)
        for line in done.stdout.removesuffix("\n").split("\n") if done.stdout else ():  # not splitlines(): text may contain U+2028
            found[json.loads(line)["stream"]].append(line)
        return found


def earshot(*args, home=None, prefix=(), **more):
    """Runs the command; again if a daemon accepted its connection but was too busy to answer."""
    more = {"stdin": subprocess.DEVNULL, **more}
    if home:
        more["env"] = clean_environment(home)
    for _ in range(10):
        done = subprocess.run([*prefix, os.path.join(build(), "earshot"), *args], capture_output=True, text=True, timeout=deadline_s * 8, **more)
        if done.returncode == 0 or not re.search("accepted but not answered|no answer", done.stderr):
            break
    return done


class CommandLines:
    """A command whose output is read line by line."""

    def __init__(self, command, env, **more):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=env, **more)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.removesuffix("\n"))

    def stop(self):
        """Sends SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(deadline_s * 4)
        self.reader.join()
        return code

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


def http(port, *lines, body=b""):
    """One raw HTTP exchange: (status code, response text)."""
    with socket.create_connection(("127.0.0.1", port), timeout=deadline_s * 4) as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = connection.recv(65536)
            if not piece:
                break
            answer += piece
    status = re.match(rb"HTTP/1\.1 (\d+)", answer)
    return (int(status[1]) if status else None), answer.decode(errors="replace")


class DaemonCase(unittest.TestCase):
    """Provides a temporary root and daemons. Afterwards asserts that each daemon stopped cleanly and sent only valid frames."""

    longMessage = True
    # On a busy machine a client may be slow without being defective. Empty: the daemon's defaults.
    limits = '[limits]\nhandshake = "10m"\nhello = "10m"\nkeep_alive = "1h"\nanswer = "1h"\nsilence = "1h"\nstall = "1h"\nstop = "1500ms"\n'

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.root = os.path.join(self.home, "claude")
        self.state = os.path.join(self.home, "state")
        os.mkdir(self.root)

    def start(self, *args, roots=None, state=None, ready=True, **more):
        """Starts a daemon with these options; ready=False for one that is expected to refuse to start."""
        if self.limits and "--config" not in args:
            path = os.path.join(self.home, ".config", "earshot", "earshot.toml")
            if not os.path.exists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as file:
                    file.write(self.limits)
        daemon = Daemon([self.root] if roots is None else roots, state or self.state, self.home, args, **more)
        self.addCleanup(self.finish, daemon)
        return daemon.wait_ready() if ready else daemon

    def configured(self, text, *args, **more):
        """Starts a daemon with this text as its configuration file."""
        path = os.path.join(self.home, "earshot.toml")
        with open(path, "w") as file:
            file.write(self.with_limits(text))
        return self.start("--config", path, *args, **more)

    def with_limits(self, text):
        """A configuration with the limits of this test, except those that it sets itself."""
        before, table, own = text.partition("[limits]\n")
        names = {line.partition(" =")[0] for line in own.split("\n")}
        lines = [line for line in self.limits.splitlines(keepends=True)[1:] if line.partition(" =")[0] not in names]
        return f"{before}{table}{''.join(lines)}{own}" if table else f"{text}\n{self.limits}"

    def start_again(self, stopped, *args, **more):
        """Starts a daemon on the port of one that has stopped, as soon as no other program uses it."""
        def started():
            daemon = self.start(*args, listen=f"127.0.0.1:{stopped.port}", ready=False, **more)
            wait_for(lambda: daemon.out or daemon.exit_reason(), "the ready line")
            return daemon if daemon.out else None

        return wait_for(started, "a free port").wait_ready()

    def held_open(self, session):
        """The session. A process that is named like its program has its transcript open until the test ends.

        Without such a process, and without a registry entry, a session ends after ten seconds, which a busy machine needs for a few steps."""
        os.makedirs(os.path.dirname(session.path), exist_ok=True)
        file = os.open(session.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)  # before the first line
        try:
            process = subprocess.Popen([session.process_name, "infinity"], executable=shutil.which("sleep"), pass_fds=[file], cwd="/")
        finally:
            os.close(file)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return session

    def snapshot(self, daemon, **given):
        """The session frames that a new client receives."""
        client = daemon.client()
        frames = client.subscribe(**given)
        client.close()  # polls that keep theirs would reach the limit of connections
        return frames

    def daemon_with_a_turn(self):
        """A daemon that has sent a session's first turn; and the session."""
        daemon = self.start()
        client = daemon.subscriber()
        session = Session(self.root)
        session.turn("hello")
        client.wait_frame(type="turn.finished")
        return daemon, session

    def process(self):
        """A running process that does nothing."""
        process = subprocess.Popen(["sleep", "infinity"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def unprivileged(self):
        """Arguments of start() for a daemon to which file permissions apply (they do not for root). Its user owns the test's directory."""
        if os.geteuid() != 0:
            return {}
        earshotd = os.path.join(self.home, "earshotd")  # that user may have no access to the build directory
        shutil.copy(os.path.join(build(), "earshotd"), earshotd)
        for folder, folders, names in os.walk(self.home):
            for name in [folder, *(os.path.join(folder, n) for n in folders + names)]:
                os.chown(name, NOBODY_UID, NOBODY_UID)
        return {"prefix": ("setpriv", f"--reuid={NOBODY_UID}", f"--regid={NOBODY_UID}", "--clear-groups", "--"), "earshotd": earshotd}

    def finish(self, daemon):
        try:
            if daemon.exit_reason() is None:
                daemon.stop()
        finally:
            daemon.process.kill()
            daemon.process.wait()
            daemon.stdout_reader.join()
            daemon.process.stdout.close()
            stderr = daemon.stderr()
            daemon.log.close()
        self.assertIsNone(SANITIZER_REPORT.search(stderr), stderr[-8000:].decode(errors="replace"))
        for client in daemon.clients:
            client.close()
            validator = Validator(SCHEMAS, connection=True)
            for text in client.raw:
                problems = list(validator.problems(parse(text)))
                self.assertEqual(problems, [], f"a frame violates the protocol: {text[:2000]}")

    def assert_delivered(self, daemon, client, *paths):
        """Waits until the subscriber received the events of these files, exactly as `earshot replay` prints them."""
        expected = daemon.replay(*paths)
        self.assertTrue(expected, "replay printed no events")
        count = {stream: len(lines) for stream, lines in expected.items()}

        def arrived():
            got = client.event_texts()
            return all(len(got[stream]) >= n for stream, n in count.items())

        try:
            client.wait(arrived, f"{sum(count.values())} events")
        finally:
            got = client.event_texts()
            for stream, lines in expected.items():
                self.assert_same_events(lines, got[stream], stream)
        return expected

    def assert_same_events(self, expected, got, what):
        """assertEqual for long lists: shows only the first difference."""
        for n, (one, other) in enumerate(zip(expected, got)):
            if one != other:
                self.fail(f"{what}: event {n} differs\n  expected {one[:1500]}\n  got      {other[:1500]}")
        if len(expected) != len(got):
            longer = expected if len(expected) > len(got) else got
            self.fail(f"{what}: {len(expected)} events expected, {len(got)} received; the first extra or missing one: "
                      f"{longer[min(len(expected), len(got))][:1500]}")
