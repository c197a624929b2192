"""What a listener was told, as a client that means to miss nothing would keep it, and how that is judged.

Of each stream: the place from which on everything was told (`base`), and the events since. `reset` and `stream.removed` take back what came before
them; `lagged` says that something is missing up to the next `session` frame. An event is kept as (offset, index, hash of its exact text).
"""
import bisect
import collections
import fnmatch
import json

START = (0, 0)


def place(cursor):
    offset, index, _ = cursor.split(".")
    return int(offset), int(index)


class Told:
    def __init__(self, base):
        self.base, self.events, self.cursor = base, [], ""  # base None: the next `session` frame says it


class Memory:
    def __init__(self, types=("*",)):
        self.types, self.streams, self.lagging = types, {}, set()
        self.events = self.resets = self.lags = 0
        self.states = {}  # session → {stream: place}, of the newest `session` frame
        self.ready, self.errors = False, []

    def connected(self):
        """A new connection: what it is told begins where `after` says, so no gap is left."""
        self.ready, self.lagging = False, set()

    def wants(self, type):
        return any(fnmatch.fnmatchcase(type, pattern) for pattern in self.types)

    def after(self):
        """Where to go on: what `subscribe` wants to know."""
        return [f"{stream}:{told.cursor}" for stream, told in self.streams.items() if told.base is not None]

    def learn(self, text):
        frame = json.loads(text)
        type = frame["type"]
        if handler := HANDLERS.get(type):
            handler(self, frame)
        elif "cursor" in frame:
            self.event(frame, text)

    def event(self, frame, text):
        stream = frame["stream"]
        told = self.streams.setdefault(stream, Told(START))
        if told.base is None:
            told.base = START
        self.lagging.discard(stream)
        told.events.append((*place(frame["cursor"]), hash(text)))
        told.cursor = frame["cursor"]
        self.events += 1

    def session(self, frame):
        cursors = [entry.rpartition(":")[::2] for entry in frame["cursors"]]
        self.states[frame["session"]] = {stream: place(cursor) for stream, cursor in cursors}
        for stream, cursor in cursors:
            told = self.streams.setdefault(stream, Told(None))
            if told.base is None or (stream in self.lagging and cursor != told.cursor):
                told.base, told.events, told.cursor = place(cursor), [], cursor
            self.lagging.discard(stream)

    def reset(self, frame):
        self.resets += 1
        if frame.get("reason") == "unknown":
            self.streams.pop(frame["stream"], None)
        else:  # in answer to `after` the session frame says where the new history is; live it is told from its first line
            self.streams[frame["stream"]] = Told(None if "id" in frame else START)

    def removed(self, frame):
        self.streams.pop(frame["stream"], None)

    def lagged(self, frame):
        self.lags += 1
        self.lagging = set(self.streams)

    def bookmark(self, frame):
        for entry in frame.get("cursors", ()):
            stream, _, cursor = entry.rpartition(":")
            told = self.streams.get(stream)
            if told and told.base is not None and stream not in self.lagging:
                told.cursor = cursor

    def is_ready(self, frame):
        self.ready = True

    def error(self, frame):
        self.errors.append(f"{frame['code']}: {frame['message']}")

    # the judgement

    def differences(self, expected):
        """stream → (lost, doubled, out of order) of those that are not as `expected`: stream → [(offset, index, hash, type)]"""
        found = {}
        for stream in expected.keys() | self.streams.keys():
            whole, told = expected.get(stream, ()), self.streams.get(stream)
            if told is None:
                told = Told(START)
            if told.base is None or (self.lags and not whole):  # nothing is known of it yet; or its end fell into a gap
                continue
            since = bisect.bisect_right(whole, told.base, key=lambda event: event[:2])
            should = [event[:3] for event in whole[since:] if self.wants(event[3])]
            if should != told.events:
                want, got = collections.Counter(should), collections.Counter(told.events)
                lost, doubled = (want - got).total(), (got - want).total()
                found[stream] = (lost, doubled, int(not lost and not doubled))
        return found

    def stale(self, expected):
        """Streams whose newest `session` frame is older than the last event: for those who asked for state only."""
        newest = {stream: at for places in self.states.values() for stream, at in places.items()}
        return [stream for stream, events in expected.items() if events and newest.get(stream, START) < events[-1][:2]]

    def settle(self, expected):
        """What was judged need not be kept: only what is told from here on."""
        for stream, told in list(self.streams.items()):
            if told.events:
                told.base, told.events = told.events[-1][:2], []
            if self.lags and stream not in expected:
                del self.streams[stream]
        self.states = {session: places for session, places in self.states.items() if places.keys() & expected.keys()}


HANDLERS = {
    "session": Memory.session,
    "reset": Memory.reset,
    "stream.removed": Memory.removed,
    "lagged": Memory.lagged,
    "bookmark": Memory.bookmark,
    "ready": Memory.is_ready,
    "error": Memory.error,
}
