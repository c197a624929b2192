"""The daemon's own figures: how a test knows that bytes have been seen, without waiting for time."""
import http.client
import json
import re

from support.harness import deadline_s, wait_for

requests_max = 200  # of one connection: the daemon lets no client ask faster than it likes


class Figures:
    def __init__(self, daemon):
        self.daemon, self.asked = daemon, 0
        self.connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=deadline_s * 4)

    def get(self, target):
        self.asked += 1
        if self.asked % requests_max == 0:
            self.connection.close()  # the next request opens another one
        try:
            return self.ask(target)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):  # it was idle for too long
            self.connection.close()
            return self.ask(target)

    def ask(self, target):
        self.connection.request("GET", target, headers={"Authorization": f"Bearer {self.daemon.token}"})
        return self.connection.getresponse().read().decode()

    def metric(self, name):
        return float(re.search(rf"^{name} (\S+)$", self.get("/metrics"), re.MULTILINE)[1])

    def troubles(self):
        """path → reason"""
        return {each["path"]: each["reason"] for each in json.loads(self.get("/v1/health"))["troubles"]}

    def bytes(self):
        """Of transcripts, fed so far: exactly those that are on disk, once all are seen."""
        return self.metric("earshot_tail_read_bytes_total")

    def events(self):
        return self.metric("earshot_tail_events_total")

    def resets(self):
        return self.metric("earshot_tail_resets_total")

    def wait_bytes(self, bytes):
        """A look: the daemon has read so many bytes of transcripts since it started."""
        self.wait(lambda: self.bytes() >= bytes, f"{bytes} bytes of transcripts")

    def wait(self, condition, what, deadline=None):
        return wait_for(condition, what, deadline, self.daemon.exit_reason)

    def wait_trouble(self, path, deadline=None):
        """Why this file cannot be used, as soon as the daemon says so."""
        return self.wait(lambda: self.troubles().get(path), f"a health entry of {path}", deadline)

    def process(self, file, name):
        """A number from /proc/<pid>/status or io; bytes where it says kB."""
        with open(f"/proc/{self.daemon.process.pid}/{file}") as lines:
            value, unit = re.search(rf"^{name}:\s+(\d+)( kB)?$", lines.read(), re.MULTILINE).groups()
        return int(value) * (1024 if unit else 1)

    def memory_max(self):
        return self.process("status", "VmHWM")

    def read_by_process(self):
        """Bytes that its system calls have read, of whatever."""
        return self.process("io", "rchar")

    def close(self):
        self.connection.close()
