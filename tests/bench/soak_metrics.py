"""The daemon's metrics that the soak samples once a second, and the growth that it allows.

Memory is checked without the live log, which may grow to its limit of 16 MiB: `rest` is the resident memory minus the log with its
entries, and minus the catch-up buffers of clients that do not read, which are limited too.
"""
import json
import os
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fault"))
from daemon_metrics import DaemonMetrics  # noqa: E402

growth_bytes_max = 4 << 20   # of `rest` over the measured time, by its slope: more is a leak
growth_bytes_short = 8 << 20  # the same if that time is shorter than short_s: the allocator is still warming up
short_s = 30
log_share = 1.15             # of the log's bytes: includes its entry for each frame
warm_share = 1 / 3           # of the last run: until allocators, sessions and buffers reach their size
window_s_min = 5.0           # a shorter window has no slope
TICKS = os.sysconf("SC_CLK_TCK")
METRICS = {
    "log_bytes": "earshot_log_bytes", "log_frames": "earshot_log_frames_total", "open_files": "earshot_tail_open_files",
    "read": "earshot_tail_read_bytes_total", "resets": "earshot_tail_resets_total", "events": "earshot_tail_events_total",
    "verifications": "earshot_tail_verifications_total", "sent": "earshot_sent_bytes_total", "lagged": "earshot_lagged_total",
    "catch_ups": "earshot_catch_ups_total", "catch_up_bytes": "earshot_catch_up_chunk_bytes", "known_files": "earshot_tail_known_files",
    "sessions": "earshot_sessions", "problems": "earshot_problems",
}


def number(text, name):
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))


class Sampler:
    """Samples one run of the daemon, over its own connection, which is among the counted descriptors."""

    def __init__(self, daemon, life):
        self.metrics, self.pid, self.life = DaemonMetrics(daemon), daemon.process.pid, life

    def sample(self):
        page = self.metrics.get("/metrics")
        seen = {name: int(number(page, metric)) for name, metric in METRICS.items()}
        base = f"/proc/{self.pid}"
        with open(f"{base}/smaps_rollup") as file:
            memory = file.read()
        with open(f"{base}/stat") as file:
            times = file.read().rsplit(")", 1)[1].split()
        descriptors = os.listdir(f"{base}/fd")
        seen.update(
            at=round(time.monotonic(), 3), life=self.life, rss=self.metrics.process("status", "VmRSS"),
            pss=int(re.search(r"^Pss:\s+(\d+)", memory, re.MULTILINE)[1]) * 1024, cpu_s=(int(times[11]) + int(times[12])) / TICKS,
            descriptors=len(descriptors), process_watches=sum(self.is_process_watch(fd) for fd in descriptors), watches=sum(self.watches(fd) for fd in descriptors), process_read=self.metrics.process("io", "rchar"))
        seen["rest"] = seen["rss"] - int(seen["log_bytes"] * log_share) - seen["catch_up_bytes"]
        return seen

    def watches(self, fd):
        try:
            with open(f"/proc/{self.pid}/fdinfo/{fd}") as file:
                return file.read().count("inotify wd:")
        except FileNotFoundError:  # closed since it was listed
            return 0

    def is_process_watch(self, fd):
        """A process that a sessions/<pid>.json names is watched with a pidfd."""
        try:
            return os.readlink(f"/proc/{self.pid}/fd/{fd}") == "anon_inode:[pidfd]"
        except FileNotFoundError:
            return False

    def close(self):
        self.metrics.close()


class Samples:
    def __init__(self, path):
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        self.path, self.all, self.file = path, [], open(path, "w")

    def add(self, sample):
        self.all.append(sample)
        self.file.write(json.dumps(sample) + "\n")
        self.file.flush()

    def total(self, name):
        """The total of a counter that restarts with each run."""
        last = {sample["life"]: sample[name] for sample in self.all}
        return sum(last.values())

    def measured(self):
        """The samples of the last run after its warm-up."""
        life = [sample for sample in self.all if sample["life"] == self.all[-1]["life"]]
        begin = life[0]["at"] + (life[-1]["at"] - life[0]["at"]) * warm_share
        return [sample for sample in life if sample["at"] >= begin]

    def growth(self, name):
        """{start, end, a_second, seconds} by linear regression over measured(); start and end are those of the line."""
        measured = self.measured()
        seconds = measured[-1]["at"] - measured[0]["at"] if measured else 0
        if len(measured) < 3 or seconds < window_s_min:
            return None
        slope, start = statistics.linear_regression([s["at"] - measured[0]["at"] for s in measured], [s[name] for s in measured])
        return {"start": start, "end": start + slope * seconds, "a_second": slope, "seconds": seconds}


def growth_allowed(seconds):
    return growth_bytes_max if seconds >= short_s else growth_bytes_short


def mebibytes(bytes):
    return f"{bytes / (1 << 20):.1f} MiB"
