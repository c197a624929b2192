"""The stored state of a client that resumes its streams on a new connection."""
import collections
import json


class ResumeState:
    """What a client stores to resume without loss: per stream its events, the last of which has the cursor."""

    def __init__(self):
        self.events = collections.OrderedDict()
        self.seen = 0

    def learn(self, client):
        """Adds the frames received on this connection since the last call."""
        for frame, text in list(zip(client.frames, client.raw))[self.seen:]:
            self.seen += 1
            if frame["type"] == "session":
                for entry in frame["cursors"]:
                    self.events.setdefault(entry.rpartition(":")[0], [])
            elif frame["type"] in ("reset", "stream.removed"):
                self.events[frame["stream"]] = []
            elif "cursor" in frame:
                self.events.setdefault(frame["stream"], []).append(text)

    def after(self):
        return [f"{stream}:{json.loads(texts[-1])['cursor'] if texts else ''}" for stream, texts in self.events.items()]

    def resume(self, daemon, **more):
        """Opens a connection that resumes. Streams that the snapshot mentions for the first time are read from their beginning."""
        self.seen = 0
        client = daemon.client()
        known = set(self.events)
        snapshot = client.subscribe(id="a", after=self.after(), **more)
        shown = [entry.rpartition(":") for frame in snapshot for entry in frame["cursors"]]
        fresh = [stream for stream, _, cursor in shown if stream not in known and not cursor.startswith("0.")]
        client.wait_frame(type="bookmark", id="a", complete=True)
        if fresh:
            client.subscribe(id="b", after=[f"{stream}:" for stream in fresh], snapshot=False, **more)
            client.wait_frame(type="bookmark", id="b", complete=True)
        self.learn(client)
        for stream in fresh:  # live events arrived before the older ones
            self.events[stream].sort(key=lambda text: [int(n) for n in json.loads(text)["cursor"].split(".")[:2]])
        return client
