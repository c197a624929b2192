"""Base of the fault tests: provokes a fault, then compares what a client holds with a replay of the final files.

assert_settled(): every stream that the client holds has exactly the events that `earshot replay` prints, and there is no other stream.
"""
import collections
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
from daemon_metrics import DaemonMetrics  # noqa: E402
from support import harness  # noqa: E402

turn_interval_s = 0.05


def held_events(client):
    """stream → the texts of the events that the client holds: `reset` and `stream.removed` discard the earlier ones. Those of a renamed
    stream have its new name."""
    streams = collections.defaultdict(list)
    for frame, text in list(zip(client.frames, client.raw)):
        if frame["type"] == "reset":
            streams[frame["stream"]] = []
        elif frame["type"] == "stream.removed":
            streams.pop(frame["stream"], None)
        elif frame["type"] == "stream.renamed" and frame["from"] in streams:
            named = [f'"stream":{json.dumps(frame[which], ensure_ascii=False)}' for which in ("from", "to")]
            streams.setdefault(frame["to"], [each.replace(*named, 1) for each in streams.pop(frame["from"])])
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
        self.session, self.prompt, self.running, self.written = session, prompt, True, 0
        self.thread = threading.Thread(target=self.write, daemon=True)
        self.thread.start()

    def write(self):
        while self.running:
            self.session.prompt(f"{self.prompt} {self.written}")
            self.written += 1
            self.session.reply("Done.", stop_reason="end_turn")
            time.sleep(turn_interval_s)

    def stop(self):
        self.running = False
        self.thread.join()

    def assert_arrived(self, client):
        """Each prompt arrived once, in order."""
        prompts = [frame["prompt"] for frame in client.frames if frame["type"] == "turn.started" and frame["prompt"].startswith(f"{self.prompt} ")]
        assert prompts == [f"{self.prompt} {n}" for n in range(self.written)], f"{len(prompts)} prompts arrived of {self.written}"
