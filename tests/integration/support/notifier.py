"""Runs earshot-notify with a scripted webhook receiver and a real desktop: a session bus, Xvfb and dunst."""
import http.server
import json
import os
import shutil
import signal
import struct
import subprocess
import threading
import zlib

from support.harness import SANITIZER_REPORT, build, clean_environment, deadline_s, timeout_factor, wait_for


class Receiver:
    """An HTTP server on loopback that answers each POST with the next entry of its script, then with 200.

    An entry is a status, (status, {header: value}), or "hang": read the request and do not answer before close()."""

    def __init__(self, *script, address="127.0.0.1"):
        self.script, self.requests, self.lock = list(script), [], threading.Lock()
        self.released = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with receiver.lock:
                    answer_with = receiver.script.pop(0) if receiver.script else 200
                    receiver.requests.append({"path": self.path, "headers": dict(self.headers), "body": body, "answer": answer_with})
                if answer_with == "hang":
                    receiver.released.wait()
                    self.close_connection = True
                    return
                status, headers = answer_with if isinstance(answer_with, tuple) else (answer_with, {})
                answer = b"no\n" * 30_000 if headers.get("X-Large") else b"accepted"
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                try:
                    self.wfile.write(answer)
                except OSError:
                    pass

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.server.handle_error = lambda *who: None  # a notifier that is killed resets its connection
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://{address}:{self.port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def notices(self):
        return [json.loads(r["body"]) for r in list(self.requests)]

    def delivered(self):
        """Notices that were answered with 200."""
        return [json.loads(r["body"]) for r in list(self.requests) if r["answer"] == 200]

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


class Notifier:
    """A running earshot-notify."""

    def __init__(self, case, daemon_state, rules=None, wait=True, environment=None, args=(), program=None):
        self.case, self.home, self.state = case, case.home, daemon_state
        self.program = program or os.path.join(build(), "earshot-notify")
        self.environment = {**clean_environment(self.home), **(environment or {})}
        self.arguments = ["--state", daemon_state, "--verbose", *args]
        if rules is not None:
            self.rules = os.path.join(self.home, "notify.toml")
            self.write_rules(rules)
            self.arguments += ["--rules", self.rules]
        self.log_path = os.path.join(self.home, f"notify-{id(self)}.log")
        self.log = open(self.log_path, "wb")
        self.start(wait)

    def start(self, wait=True):
        before = len(self.output())
        self.process = subprocess.Popen([self.program, *self.arguments], env=self.environment,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        if wait:
            self.wait_output("listening to the daemon", before)
        return self

    def output(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def wait_output(self, text, after=0):
        return wait_for(lambda: text in self.output()[after:], f"{text!r} on stderr",
                        give_up=lambda: self.process.poll() is not None and text not in self.output()[after:] and f"it exited ({self.process.returncode}): {self.output()[-2000:]}")

    def write_rules(self, text):
        with open(self.rules, "w") as file:
            file.write(text)

    def reload(self, text, expected="reloaded the rules"):
        """Sends SIGHUP after writing these rules; waits until it listens with them, or for another message."""
        before = len(self.output())
        self.write_rules(text)
        self.process.send_signal(signal.SIGHUP)
        self.wait_output(expected, before)
        if expected == "reloaded the rules":
            self.wait_output("listening to the daemon", before + self.output()[before:].index(expected))

    def kill(self):
        """kill -9"""
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(deadline_s * timeout_factor())
        self.case.assertEqual(code, 0, self.output()[-4000:])

    def finish(self):
        try:
            if self.process.poll() is None:
                self.stop()
        finally:
            self.process.kill()
            self.process.wait()
            self.log.close()
        self.case.assertIsNone(SANITIZER_REPORT.search(self.output().encode()), self.output()[-8000:])

    def state_file(self, name):
        return os.path.join(self.state, "notify", name)

    def saved(self):
        """The state file; empty before it exists."""
        try:
            with open(self.state_file("state.json")) as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    def queue(self):
        """The saved deliveries that are not done."""
        return self.saved().get("queue", [])

    def journal(self):
        """The decisions, from `earshot-notify why`."""
        done = notify("why", "--json", "-n", "1000", "--state", self.state, home=self.home)
        return [entry for entry in map(json.loads, done.stdout.splitlines()) if "decision" in entry]

    def sinks(self):
        """The state of each sink, from `earshot-notify why`."""
        done = notify("why", "--json", "--state", self.state, home=self.home)
        last = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
        return {entry["sink"]: entry for entry in last.get("sinks", [])}

    def decisions(self, **fields):
        return [entry for entry in self.journal() if all(entry.get(k) == x for k, x in fields.items())]


def notify(*arguments, home, environment=None, **more):
    return subprocess.run([os.path.join(build(), "earshot-notify"), *arguments], capture_output=True, text=True, timeout=deadline_s * 8,
                          env={**clean_environment(home), **(environment or {})}, **more)


DESKTOP = ("dbus-run-session", "dunst", "Xvfb", "busctl", "dunstctl")


class Desktop:
    """A private session bus, a virtual screen and dunst. Records every message on the bus."""

    def __init__(self, home):
        self.folder = os.path.join(home, "desktop")
        os.makedirs(os.path.join(self.folder, "frame"))
        self.home = home
        self.processes = []
        read, write = os.pipe()
        self.screen = self._start("Xvfb", "-displayfd", str(write), "-screen", "0", "800x600x24", "-fbdir", os.path.join(self.folder, "frame"),
                                  "-nolisten", "tcp", pass_fds=(write,))
        os.close(write)
        with os.fdopen(read) as pipe:
            self.display = ":" + pipe.readline().strip()
        self.bus = subprocess.Popen(["dbus-run-session", "--", "/bin/sh", "-c", 'echo "$DBUS_SESSION_BUS_ADDRESS"; cat'], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_environment(home), text=True)
        self.address = self.bus.stdout.readline().strip()
        self.environment = {"DBUS_SESSION_BUS_ADDRESS": self.address, "DISPLAY": self.display, "XDG_RUNTIME_DIR": self.folder}
        self.traffic_path = os.path.join(self.folder, "traffic")
        self.traffic = open(self.traffic_path, "wb")
        self.monitor = self._start("busctl", "--user", "monitor", "--json=short", stdout=self.traffic)
        wait_for(lambda: self._names().count("Monitor") or "org.freedesktop.DBus.Monitoring" in self._names() or self._monitoring(), "the monitor")
        self.server = None
        self.start_server()

    def _monitoring(self):
        subprocess.run(["busctl", "--user", "call", "org.freedesktop.DBus", "/", "org.freedesktop.DBus", "GetId"], env=self._env(), capture_output=True)
        return os.path.getsize(self.traffic_path) > 0

    def _env(self):
        return {**clean_environment(self.home), **self.environment}

    def _start(self, *arguments, stdout=subprocess.DEVNULL, **more):
        environment = {**clean_environment(self.home), **getattr(self, "environment", {})}
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.DEVNULL, env=environment, **more)
        self.processes.append(process)
        return process

    def _names(self):
        return subprocess.run(["busctl", "--user", "list", "--no-legend"], env=self._env(), capture_output=True, text=True).stdout

    def start_server(self):
        config = os.path.join(self.folder, "dunstrc")
        menu = os.path.join(self.folder, "menu")
        with open(menu, "w") as file:
            file.write(f'grep -m1 "$(cat {self.folder}/choice)"\n')
        with open(config, "w") as file:
            file.write("[global]\n    font = Sans 12\n    width = 420\n    height = 200\n    origin = top-right\n    offset = 20x20\n    frame_width = 2\n"
                       "    idle_threshold = 0\n    notification_limit = 6\n"
                       f"    dmenu = /bin/sh {menu}\n[urgency_critical]\n    background = \"#5a1d1d\"\n    foreground = \"#ffffff\"\n"
                       "    frame_color = \"#ff5555\"\n    timeout = 0\n[urgency_normal]\n    background = \"#223344\"\n    foreground = \"#ffffff\"\n    timeout = 0\n")
        self.server = self._start("dunst", "-config", config)
        wait_for(lambda: "org.freedesktop.Notifications" in self._names(), "dunst on the bus", give_up=lambda: self.server.poll() is not None and "dunst exited")

    def stop_server(self):
        self.server.terminate()
        self.server.wait()

    def messages(self, member):
        """Method calls or signals with this name: (time in ms, payload, sender)."""
        found = []
        with open(self.traffic_path, errors="replace") as file:
            for line in file:
                if not line.endswith("\n"):
                    break
                message = json.loads(line)
                if message.get("member") == member and message.get("interface") == "org.freedesktop.Notifications":
                    found.append((message["timestamp-realtime"] / 1000, message["payload"]["data"], message.get("sender")))
        return found

    def notify_calls(self):
        """The arguments of each Notify call: (title, body, replaces, urgency)."""
        return [(d[3], d[4], d[1], d[6]["urgency"]["data"]) for _, d, _ in self.messages("Notify")]

    def displayed(self):
        """The number of notices that dunst displays."""
        done = subprocess.run(["dunstctl", "count", "displayed"], env=self._env(), capture_output=True, text=True)
        return int(done.stdout) if done.returncode == 0 else -1

    def invoke_action(self):
        subprocess.run(["dunstctl", "action"], env=self._env(), check=True, capture_output=True)

    def choose_action(self, label):
        """Chooses an action in dunst's menu."""
        with open(os.path.join(self.folder, "choice"), "w") as file:
            file.write(label)
        subprocess.run(["dunstctl", "context"], env=self._env(), check=True, capture_output=True)

    def screenshot(self, path):
        """Writes the screen as PNG; returns (width, height, number of colours)."""
        width, height, rows = read_xwd(os.path.join(self.folder, "frame", "Xvfb_screen0"))
        write_png(path, width, height, rows)
        return width, height, len({row[i:i + 3] for row in rows for i in range(0, len(row), 3)})

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()
        self.bus.stdin.close()
        self.bus.wait()
        self.bus.stdout.close()
        self.traffic.close()


def read_xwd(path):
    """Reads an XWD file with 32 bits per pixel, as Xvfb stores its screen: (width, height, rows of RGB)."""
    with open(path, "rb") as file:
        data = file.read()
    header = struct.unpack(">25I", data[:100])
    header_size, colours = header[0], header[19]
    width, height, order, bits, line = header[4], header[5], header[7], header[11], header[12]
    assert bits == 32, bits
    pixels = data[header_size + colours * 12:]
    rows = []
    for y in range(height):
        row = pixels[y * line:y * line + width * 4]
        red, green, blue = (row[2::4], row[1::4], row[0::4]) if order == 0 else (row[1::4], row[2::4], row[3::4])
        rows.append(bytes(b for pixel in zip(red, green, blue) for b in pixel))
    return width, height, rows


def write_png(path, width, height, rows):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    raw = b"".join(b"\0" + row for row in rows)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def missing_desktop():
    """The programs of the desktop that are not installed."""
    return [name for name in DESKTOP if not shutil.which(name)]


def hook_rules(receiver, more="", sink=""):
    """Rules for waiting and failed, delivered to the receiver without delay."""
    return f"""sinks = ["hook"]
[sink.hook]
kind = "json"
url = "{receiver.url}"
timeout = "60s"
{sink}
[[rule]]
name = "waiting"
status = "waiting"
reason = ["permission", "question", "plan"]
hold = "0"
title = "{{name}} needs you"
body = "{{reason}}[: {{tool}}]"
[[rule]]
name = "failed"
on = "turn.finished"
outcome = "failed"
hold = "0"
title = "{{name}} failed"
{more}
"""

