"""What every fault test speaks with: the integration tests' harness, and a client that is judged by what it ended up with.

A case is provoked for real, then settled(): every stream that the client knows must hold exactly the events of a one-shot fold of the
final bytes, and no other stream may be there.
"""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
from support import harness  # noqa: E402


def told(client):
    """stream → the exact texts of the events that still hold: `reset` and `stream.removed` take back what came before them"""
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
    def settled(self, daemon, client, *paths):
        """Waits until the client holds what `earshot replay` tells of these files (directories are walked), and nothing else."""
        expected = {stream: texts for stream, texts in daemon.replay(*paths).items() if texts} if paths else {}

        try:
            client.wait(lambda: told(client) == expected, f"the events of {len(expected)} streams")  # what is to be taken back may be as long
        finally:
            got = told(client)
            for stream in sorted(expected.keys() | got.keys()):
                self.assert_same_events(expected.get(stream, []), got.get(stream, []), stream)
        return expected
