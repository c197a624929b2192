"""Base of the fault tests: provokes a fault, then compares what a client holds with a replay of the final files.

assert_settled(): every stream that the client holds has exactly the events that `earshot replay` prints, and there is no other stream.
"""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
from daemon_metrics import DaemonMetrics  # noqa: E402
from support import harness  # noqa: E402


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
    def follow(self, *args, **more):
        """Starts a daemon with a subscriber and a connection for its metrics."""
        self.daemon = self.start(*args, **more)
        self.client = self.daemon.subscriber()
        self.metrics = DaemonMetrics(self.daemon)
        self.addCleanup(self.metrics.close)

    def assert_settled(self, daemon, client, *paths):
        """Waits until the client holds the events of these files (directories are walked), and nothing else."""
        expected = {stream: texts for stream, texts in daemon.replay(*paths).items() if texts} if paths else {}

        try:
            client.wait(lambda: held_events(client) == expected, f"the events of {len(expected)} streams")  # compares contents: the discarded history may have the same length
        finally:
            got = held_events(client)
            for stream in sorted(expected.keys() | got.keys()):
                self.assert_same_events(expected.get(stream, []), got.get(stream, []), stream)
        return expected
