"""Clients of the daemon's endpoints: HTTP, /v1/events, WebSocket over the Unix socket and over TLS."""
import json
import os
import re
import socket
import subprocess
import threading
import unittest

import websockets

from support.harness import DaemonCase, Client, deadline_s, wait_for


def curl(daemon, target, *args, unix=False, token=True, scheme="http", timeout=deadline_s * 4):
    """(status, headers in lower case, body) of one request. `target` begins with a slash."""
    base = "http://localhost" if unix else f"{scheme}://127.0.0.1:{daemon.port}"
    command = ["curl", "-sS", "-i", "--max-time", str(timeout), *(["--unix-socket", daemon.socket] if unix else []),
               *(["-H", f"Authorization: Bearer {daemon.token}"] if token and not unix else []), *args, base + target]
    done = subprocess.run(command, capture_output=True, timeout=timeout * 2)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit code {done.returncode}: {done.stderr.decode()}")
    return parse_response(done.stdout)


def promtool():
    """The path of Prometheus' promtool; skips the test where it is not installed."""
    path = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..", "build", "tools", "prometheus", "usr", "bin", "promtool"))
    if not os.path.exists(path):
        raise unittest.SkipTest("promtool is not installed; ./dev test downloads it")
    return path


def parse_response(bytes):
    head, _, body = bytes.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 100"):
        head, _, body = body.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split()[1]), headers, body


class RawConnection:
    """A TCP connection that sends exactly the given bytes."""

    def __init__(self, daemon):
        self.socket = socket.create_connection(("127.0.0.1", daemon.port), timeout=deadline_s * 4)
        self.left = b""  # what was received after the last response

    def send(self, *lines, body=b"", end=b"\r\n\r\n"):
        self.socket.sendall("\r\n".join(lines).encode() + end + body)

    def read(self, n=65536):
        try:
            return self.socket.recv(n)
        except ConnectionResetError:
            return b""

    def response(self):
        """One response with its body; None if the connection was closed first."""
        data, self.left = self.left, b""
        while b"\r\n\r\n" not in data:
            piece = self.read()
            if not piece:
                return None
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(re.search(rb"Content-Length: (\d+)", head)[1])
        while len(body) < length:
            body += self.read()
        self.left = body[length:]
        return parse_response(head + b"\r\n\r\n" + body[:length])

    def closed(self):
        """Waits until the daemon closes the connection."""
        while self.read():
            pass
        return True

    def close(self):
        self.socket.close()


class HttpCase(DaemonCase):
    def wait_session(self, daemon, session):
        """Waits until the daemon lists this session with its status."""
        def status():
            sessions = json.loads(curl(daemon, "/v1/sessions", unix=True)[2])["sessions"]
            return next((s["status"].get("since") for s in sessions if s["session"] == session.session), None)

        wait_for(status, f"session {session.session}")

    def raw(self, daemon):
        raw = RawConnection(daemon)
        self.addCleanup(raw.close)
        return raw


class UnixClient(Client):
    async def _open(self, url, headers):
        headers.pop("Authorization", None)
        return await websockets.unix_connect(self.daemon.socket, "ws://localhost/v1/ws", extra_headers=headers, subprotocols=["earshot.v1"],
                                             compression=None, max_size=None, max_queue=None, ping_interval=None, open_timeout=deadline_s * 4)


class TlsClient(Client):
    async def _open(self, url, headers):
        return await websockets.connect(url, ssl=self.daemon.trust, extra_headers=headers, subprotocols=["earshot.v1"], compression=None,
                                        max_size=None, max_queue=None, ping_interval=None, close_timeout=2, open_timeout=deadline_s * 4)


class EventStream:
    """curl reading /v1/events: the parsed lines, as they arrive."""

    def __init__(self, daemon, query="", unix=True, more=(), authorization=None):
        where = ["--unix-socket", daemon.socket] if unix else ["-H", f"Authorization: {authorization or 'Bearer ' + daemon.token}"]
        base = "http://localhost" if unix else f"http://127.0.0.1:{daemon.port}"
        self.frames = []
        self.process = subprocess.Popen(["curl", "-sSN", *where, *more, f"{base}/v1/events{query}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.frames.append(json.loads(line))

    def wait(self, **fields):
        return wait_for(lambda: next((f for f in list(self.frames) if all(f.get(k) == v for k, v in fields.items())), None), f"a line with {fields}",
                        give_up=lambda: self.process.poll() is not None and f"curl exited with {self.process.poll()}")

    def wait_end(self):
        code = self.process.wait(deadline_s * 4)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def kill(self):
        self.process.kill()
        self.wait_end()


class EndpointCase(HttpCase):
    def unix_client(self, daemon):
        client = UnixClient(daemon)
        daemon.clients.append(client)
        return client

    def event_stream(self, daemon, *args, **more):
        stream = EventStream(daemon, *args, **more)
        self.addCleanup(stream.kill)
        return stream

    def health(self, daemon):
        return json.loads(curl(daemon, "/v1/health", unix=True)[2])

    def start_refused(self, *args, code=1, **more):
        """Starts a daemon that refuses to run; returns its stderr."""
        daemon = self.start(*args, ready=False, **more)
        self.assertEqual(daemon.wait_exit(), code, daemon.stderr())
        self.assertEqual(daemon.out, [])
        return daemon.stderr().decode()
