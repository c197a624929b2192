"""What a subscriber received, and the check against the files.

Per stream: the position after which every event is expected (`base`), and the events since. `reset` and `stream.removed` discard the earlier
events; `lagged` permits a gap up to the next `session` frame. An event is stored as (offset, index, hash of its text).
"""
import bisect
import collections
import fnmatch
import json

START = (0, 0)


def position(cursor):
    offset, index, _ = cursor.split(".")
    return int(offset), int(index)


class StreamEvents:
    def __init__(self, base):
        self.base, self.events, self.cursor = base, [], ""  # base None: set by the next `session` frame


class Received:
    def __init__(self, types=("*",)):
        self.types, self.streams, self.lagging = types, {}, set()
        self.events = self.resets = self.lags = 0
        self.states = {}  # session → {stream: position}, of the latest `session` frame
        self.ready, self.errors = False, []

    def connected(self):
        """A new connection: it resumes at after(), so there is no gap."""
        self.ready, self.lagging = False, set()

    def selects(self, type):
        return any(fnmatch.fnmatchcase(type, pattern) for pattern in self.types)

    def after(self):
        """The `after` list of `subscribe`."""
        return [f"{stream}:{stream_events.cursor}" for stream, stream_events in self.streams.items() if stream_events.base is not None]

    def add(self, text):
        frame = json.loads(text)
        type = frame["type"]
        if handler := HANDLERS.get(type):
            handler(self, frame)
        elif "cursor" in frame:
            self.event(frame, text)

    def event(self, frame, text):
        stream = frame["stream"]
        stream_events = self.streams.setdefault(stream, StreamEvents(START))
        if stream_events.base is None:
            stream_events.base = START
        self.lagging.discard(stream)
        stream_events.events.append((*position(frame["cursor"]), hash(text)))
        stream_events.cursor = frame["cursor"]
        self.events += 1

    def session(self, frame):
        cursors = [entry.rpartition(":")[::2] for entry in frame["cursors"]]
        self.states[frame["session"]] = {stream: position(cursor) for stream, cursor in cursors}
        for stream, cursor in cursors:
            stream_events = self.streams.setdefault(stream, StreamEvents(None))
            if stream_events.base is None or (stream in self.lagging and cursor != stream_events.cursor):
                stream_events.base, stream_events.events, stream_events.cursor = position(cursor), [], cursor
            self.lagging.discard(stream)

    def reset(self, frame):
        self.resets += 1
        if frame.get("reason") == "unknown":
            self.streams.pop(frame["stream"], None)
        else:  # in reply to `after` the session frame gives the new position; live, the events start at the first line
            self.streams[frame["stream"]] = StreamEvents(None if "id" in frame else START)

    def removed(self, frame):
        self.streams.pop(frame["stream"], None)

    def lagged(self, frame):
        self.lags += 1
        self.lagging = set(self.streams)

    def bookmark(self, frame):
        for entry in frame.get("cursors", ()):
            stream, _, cursor = entry.rpartition(":")
            stream_events = self.streams.get(stream)
            if stream_events and stream_events.base is not None and stream not in self.lagging:
                stream_events.cursor = cursor

    def is_ready(self, frame):
        self.ready = True

    def error(self, frame):
        self.errors.append(f"{frame['code']}: {frame['message']}")

    # checks

    def differences(self, expected):
        """stream → (lost, doubled, out of order) of those that are not as `expected`: stream → [(offset, index, hash, type)]"""
        found = {}
        for stream in expected.keys() | self.streams.keys():
            all_events, stream_events = expected.get(stream, ()), self.streams.get(stream)
            if stream_events is None:
                stream_events = StreamEvents(START)
            if stream_events.base is None or (self.lags and not all_events):  # no position yet, or the stream ended in a gap
                continue
            since = bisect.bisect_right(all_events, stream_events.base, key=lambda event: event[:2])
            wanted_events = [event[:3] for event in all_events[since:] if self.selects(event[3])]
            if wanted_events != stream_events.events:
                wanted_count, received_count = collections.Counter(wanted_events), collections.Counter(stream_events.events)
                lost, doubled = (wanted_count - received_count).total(), (received_count - wanted_count).total()
                found[stream] = (lost, doubled, int(not lost and not doubled))
        return found

    def stale(self, expected):
        """Streams whose latest `session` frame is older than the last event, for subscribers with `deliver: state`."""
        newest = {stream: at for positions in self.states.values() for stream, at in positions.items()}
        return [stream for stream, events in expected.items() if events and newest.get(stream, START) < events[-1][:2]]

    def settle(self, expected):
        """Drops the events that were checked; later checks start here."""
        for stream, stream_events in list(self.streams.items()):
            if stream_events.events:
                stream_events.base, stream_events.events = stream_events.events[-1][:2], []
            if self.lags and stream not in expected:
                del self.streams[stream]
        self.states = {session: positions for session, positions in self.states.items() if positions.keys() & expected.keys()}


HANDLERS = {
    "session": Received.session,
    "reset": Received.reset,
    "stream.removed": Received.removed,
    "lagged": Received.lagged,
    "bookmark": Received.bookmark,
    "ready": Received.is_ready,
    "error": Received.error,
}
