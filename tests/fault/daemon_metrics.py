"""The daemon's metrics and health: how a test waits until bytes were read, without sleeping."""
import http.client
import json
import re

from support.harness import deadline_s, indexing_deadline_s, wait_for

requests_max = 200  # per connection, below the daemon's limit
attempts_max = 5    # per request


class DaemonMetrics:
    def __init__(self, daemon):
        self.daemon, self.requests = daemon, 0
        self.connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=deadline_s * 4)

    def get(self, target):
        self.requests += 1
        if self.requests % requests_max == 0:
            self.connection.close()  # the next request reconnects
        for attempt in range(attempts_max):
            try:
                return self.request(target)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):  # closed by the daemon after an idle period
                self.connection.close()
                if attempt == attempts_max - 1:
                    raise

    def request(self, target):
        self.connection.request("GET", target, headers={"Authorization": f"Bearer {self.daemon.token}"})
        return self.connection.getresponse().read().decode()

    def metric(self, name):
        return float(re.search(rf"^{name} (\S+)$", self.get("/metrics"), re.MULTILINE)[1])

    def troubles(self):
        """path → reason"""
        return {each["path"]: each["reason"] for each in json.loads(self.get("/v1/health"))["problems"]}

    def bytes(self):
        """Bytes of transcripts read so far: those on disk, once everything is read."""
        return self.metric("earshot_tail_read_bytes_total")

    def events(self):
        return self.metric("earshot_tail_events_total")

    def resets(self):
        return self.metric("earshot_tail_resets_total")

    def wait_bytes(self, bytes):
        """Waits until the daemon has read this many bytes of transcripts since it started."""
        self.wait(lambda: self.bytes() >= bytes, f"{bytes} bytes of transcripts")

    def wait(self, condition, what, deadline=None):
        return wait_for(condition, what, deadline, self.daemon.exit_reason)

    def wait_indexed(self):
        """Waits until the search index is at the end of every transcript: it reads them again, at the lowest priority."""
        def indexed():
            index = json.loads(self.get("/v1/health"))["search"]
            return not index["building"] and index["indexed"] == index["total"]

        return self.wait(indexed, "the search index", indexing_deadline_s)

    def wait_trouble(self, path, deadline=None):
        """Waits until the daemon reports this path; returns the reason."""
        return self.wait(lambda: self.troubles().get(path), f"a health entry of {path}", deadline)

    def process(self, file, name):
        """A number from /proc/<pid>/status or io, in bytes."""
        with open(f"/proc/{self.daemon.process.pid}/{file}") as lines:
            value, unit = re.search(rf"^{name}:\s+(\d+)( kB)?$", lines.read(), re.MULTILINE).groups()
        return int(value) * (1024 if unit else 1)

    def memory_max(self):
        return self.process("status", "VmHWM")

    def read_by_process(self):
        """Bytes read by its system calls, from any file."""
        return self.process("io", "rchar")

    def close(self):
        self.connection.close()
