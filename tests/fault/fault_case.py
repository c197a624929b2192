"""Base of the fault tests: provokes a fault, then compares what a client holds with a replay of the final files.

assert_settled(): every stream that the client holds has exactly the events that `earshot replay` prints, and there is no other stream.
"""
import collections
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
from daemon_metrics import DaemonMetrics  # noqa: E402
from support import harness  # noqa: E402

turn_interval_s = 0.05
probe_interval_s = 0.005
late_share_max = 0.005  # half of what a 99th percentile leaves out


def held_events(client):
    """stream → the texts of the events that the client holds: `reset` and `stream.removed` discard the earlier ones"""
    streams = collections.defaultdict(list)
    for frame, text in list(zip(client.frames, client.raw)):
        if frame["type"] == "reset":
            streams[frame["stream"]] = []
        elif frame["type"] == "stream.removed":
            streams.pop(frame["stream"], None)
        elif "cursor" in frame and "stream" in frame:
            streams[frame["stream"]].append(text)
    return {stream: texts for stream, texts in streams.items() if texts}


class FaultCase(harness.DaemonCase):
    # A slow test pauses the daemon, or does not read, for longer than a client may be silent. Empty: the defaults.
    limits = '[limits]\nhandshake = "10m"\nkeep_alive = "1h"\nanswer = "1h"\nsilence = "1h"\nstall = "1h"\n'

    def setUp(self):
        super().setUp()
        if self.limits:
            folder = os.path.join(self.home, ".config", "earshot")
            os.makedirs(folder)
            with open(os.path.join(folder, "earshot.toml"), "w") as file:
                file.write(self.limits)

    def follow(self, *args, **more):
        """Starts a daemon with a subscriber and a connection for its metrics."""
        self.daemon = self.start(*args, **more)
        self.client = self.daemon.subscriber()
        self.metrics = DaemonMetrics(self.daemon)
        self.addCleanup(self.metrics.close)

    def start_with_much(self, *args, **more):
        """Starts a daemon that reads much before it is ready."""
        daemon = self.start(*args, ready=False, **more)
        harness.wait_for(lambda: any("listening on" in line for line in list(daemon.out)), "everything to be read", 300, daemon.exit_reason)
        return daemon.wait_ready()

    def assert_settled(self, daemon, client, *paths, deadline=None):
        """Waits until the client holds the events of these files (directories are walked), and nothing else."""
        expected = {stream: texts for stream, texts in daemon.replay(*paths).items() if texts} if paths else {}

        try:
            client.wait(lambda: held_events(client) == expected, f"the events of {len(expected)} streams", deadline)  # compares contents: the discarded history may have the same length
        finally:
            got = held_events(client)
            for stream in sorted(expected.keys() | got.keys()):
                self.assert_same_events(expected.get(stream, []), got.get(stream, []), stream)
        return expected


class Writer:
    """Appends numbered prompts and answers until it is stopped."""

    def __init__(self, session, prompt="prompt"):
        self.session, self.prompt, self.running, self.written = session, prompt, True, []
        self.thread = threading.Thread(target=self.write, daemon=True)
        self.thread.start()

    def write(self):
        while self.running:
            self.written.append(time.monotonic())
            self.session.prompt(f"{self.prompt} {len(self.written) - 1}")
            self.session.reply("Done.", stop_reason="end_turn")
            time.sleep(turn_interval_s)

    def stop(self):
        self.running = False
        self.thread.join()

    def latencies(self, client):
        """The time in ms from each write to its event's arrival, ascending. Each prompt arrived once, in order."""
        prompts = [(frame["prompt"], at) for frame, at in zip(client.frames, client.times)
                   if frame["type"] == "turn.started" and frame["prompt"].startswith(f"{self.prompt} ")]
        expected = [f"{self.prompt} {n}" for n in range(len(self.written))]
        assert [text for text, _ in prompts] == expected, f"{len(prompts)} prompts arrived of {len(expected)}"
        return sorted((at - written) * 1000 for (_, at), written in zip(prompts, self.written))


class Delays:
    """How late a thread of this process wakes up during a `with` block: what delays it delays every measured latency too."""

    def __init__(self, late_ms):
        self.late_s, self.running, self.late_sum_s = late_ms / 1000, True, 0

    def __enter__(self):
        self.start = time.monotonic()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def watch(self):
        while self.running:
            before = time.monotonic()
            time.sleep(probe_interval_s)
            delay = time.monotonic() - before - probe_interval_s
            if delay > self.late_s:
                self.late_sum_s += delay

    def __exit__(self, *_):
        self.running = False
        self.thread.join()
        self.share = self.late_sum_s / (time.monotonic() - self.start)

    def is_prompt(self):
        """True if too little of the time was late to change a 99th percentile."""
        return self.share <= late_share_max


def idle_share(seconds=0.5):
    """The share of the processors' time that is idle."""
    def read():
        with open("/proc/stat") as stat:
            numbers = list(map(int, stat.readline().split()[1:9]))
        return numbers[3] + numbers[4], sum(numbers)

    idle, total = read()
    time.sleep(seconds)
    idle_after, total_after = read()
    return (idle_after - idle) / max(1, total_after - total)
