"""What no schema can say: how frames follow each other on one connection, or in one replay.

Feed every frame to `Order.check`; it gives back what is wrong with it, as sentences. Streams are judged apart, as nothing is
promised between them. What a filter may hide is judged only of streams that are told whole.
"""
COMMON = ("type", "host", "stream", "session", "agent", "cursor", "time", "turn")


class Stream:
    """One stream, as far as it was told here."""

    def __init__(self, whole, view="full"):
        self.view = view
        self.whole = whole  # told from its first byte, unfiltered: every event was seen
        self.place = (0, 0)
        self.mark = None
        self.turn = 0
        self.open = False     # a turn is
        self.own = None       # the agent of the stream's own chain, once a turn told it
        self.session_started = False
        self.invoked = {}     # call -> is it open
        self.finished = set()
        self.tools = 0        # calls of the own chain in this turn
        self.total = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
        self.total_at_start = None
        self.shown = False    # its place is that of a snapshot: what `after` missed may be older


def cursor_place(cursor):
    offset, index, mark = cursor.split(".")
    return (int(offset), int(index)), mark


class Order:
    def __init__(self, whole=False, connection=None, view="full"):
        """`whole`: streams are told from their first byte, unfiltered. `connection`: a WebSocket connection, not a replay;
        None: it is one when it begins with `welcome`."""
        self.whole = whole
        self.connection = connection
        self.view = view
        self.first = True
        self.streams = {}

    def check(self, frame):
        problems = list(keys_in_order(frame))
        type_ = frame["type"]
        if self.connection is None:
            self.connection = type_ == "welcome"
        if type_ == "welcome":
            self.view = frame["view"]
        if self.connection and (type_ == "welcome") != self.first:
            problems.append("the first frame is `welcome`, and no other is" if type_ == "welcome" else "`welcome` comes first")
        self.first = False
        if type_ == "session":
            problems += self._snapshot(frame)
        elif type_ in ("reset", "stream.removed"):
            self.streams.pop(frame["stream"], None)
        elif type_ == "lagged":
            self.streams.clear()
        elif "cursor" in frame and type_ != "read":
            problems += self._event(frame)
        return problems

    def lose(self, frame):
        """A frame that is not well formed cannot be judged: its stream is no longer whole."""
        self.first = False
        if isinstance(frame.get("stream"), str):
            self.streams.setdefault(frame["stream"], Stream(False, self.view)).whole = False

    def _snapshot(self, frame):
        for place in frame["cursors"]:
            name, _, cursor = place.rpartition(":")
            here, mark = cursor_place(cursor)
            stream = self.streams.get(name)
            if stream and here < stream.place:
                yield f"the snapshot of {name} is older than an event that came before it: {here} after {stream.place}"
            if stream is None:
                stream = self.streams[name] = Stream(False, self.view)
            if here > stream.place:
                stream.place, stream.mark, stream.shown = here, mark, True

    def _event(self, event):
        name = event["stream"]
        if name not in self.streams:
            self.streams[name] = Stream(self.whole, self.view)
        stream = self.streams[name]
        yield from self._place(stream, event)
        yield from RULES.get(event["type"], nothing)(stream, event)
        if event["turn"] < stream.turn or (stream.whole and event["turn"] != stream.turn):
            yield f"turn {event['turn']} while turn {stream.turn} is the stream's"
        stream.turn = event["turn"]

    @staticmethod
    def _place(stream, event):
        here, mark = cursor_place(event["cursor"])
        if stream.shown and here <= stream.place:
            stream.place, stream.mark = (0, 0), None
        stream.shown = False
        if here <= stream.place:
            yield f"the cursor does not advance: {here} after {stream.place}"
        if here[0] == stream.place[0] and stream.mark not in (None, mark):
            yield "two marks for one line"
        if here[1] == 0:
            yield "an event's cursor includes the event: its index is at least 1"
        if stream.whole and here[1] != (stream.place[1] + 1 if here[0] == stream.place[0] else 1):
            yield f"an event is missing: {here} after {stream.place}"
        stream.place, stream.mark = here, mark


def keys_in_order(frame):
    keys = list(frame)
    if keys[0] != "type":
        yield "`type` is not the first field"
    if "cursor" in frame and "turn" in frame:
        common = [k for k in COMMON if k in frame]
        if keys[: len(common)] != common:
            yield f"the common fields do not come first, in order: {', '.join(keys[:len(common)])}"


def nothing(_stream, _event):
    return ()


def session_started(stream, _event):
    if stream.session_started:
        yield "the session starts twice in one stream"
    stream.session_started = True


def turn_started(stream, event):
    if stream.whole:
        if stream.open:
            yield f"turn {event['turn']} starts while turn {stream.turn} is open"
        if event["turn"] != stream.turn + 1:
            yield f"turn {event['turn']} starts after turn {stream.turn}"
        left = [call for call, is_open in stream.invoked.items() if is_open]
        if left:
            yield f"calls are open when the next turn starts: {', '.join(left)}"
    stream.turn, stream.open, stream.own = event["turn"], True, event.get("agent")
    stream.tools, stream.total_at_start = 0, dict(stream.total)


def turn_finished(stream, event):
    if stream.whole and not stream.open:
        yield "a turn finishes that is not open"
    elif stream.whole:
        if event["tools"] != stream.tools:
            yield f"the turn says {event['tools']} tools, {stream.tools} were invoked"
        used = {k: v - stream.total_at_start[k] for k, v in stream.total.items()}
        if event["usage"] != used:
            yield f"the turn's usage is {event['usage']}, its totals differ by {used}"
    stream.open = False


def tool_invoked(stream, event):
    if event["call"] in stream.invoked:
        yield f"call {event['call']} is invoked twice"
    stream.invoked[event["call"]] = event["call"] not in stream.finished
    if stream.open and event.get("agent") == stream.own:
        stream.tools += 1


def tool_finished(stream, event):
    call = event["call"]
    if call in stream.finished:
        yield f"call {call} finishes twice"
    if stream.whole and (call in stream.invoked) != ("tool" in event):
        yield "`tool` is there exactly when the call was seen"
    stream.finished.add(call)
    if call in stream.invoked:
        stream.invoked[call] = False


def agent_started(stream, event):
    if stream.whole and event["call"] not in stream.invoked:
        yield f"an agent starts before its call {event['call']}"


def usage_updated(stream, event):
    for key, value in event["total"].items():
        if value < stream.total[key]:
            yield f"the total of {key} falls from {stream.total[key]} to {value}"
    stream.total = event["total"]


def session_updated(stream, event):
    # In the meta view a title that changed is an update without words.
    if stream.view == "full" and not set(event) - set(COMMON):
        yield "an update that says nothing"


def line_skipped(_stream, event):
    (offset, index), _ = cursor_place(event["cursor"])
    if event["line"] + event["bytes"] > offset:
        yield "the skipped bytes reach beyond the cursor"
    if index != 1:
        yield "skipped lines are told first of the events of a line"
    if event["salvaged"] and event["lines"] != 1:
        yield "a salvaged line is told alone"


RULES = {
    "session.started": session_started,
    "session.updated": session_updated,
    "turn.started": turn_started,
    "turn.finished": turn_finished,
    "tool.invoked": tool_invoked,
    "tool.finished": tool_finished,
    "agent.started": agent_started,
    "usage.updated": usage_updated,
    "line.skipped": line_skipped,
}
