"""Checks what a schema cannot express: the order of frames on one connection or in one replay.

`Order.check` takes each frame in turn and returns its problems as sentences. Streams are checked separately, as the order
between streams is not defined. Checks that a filter could invalidate apply to complete streams only.
"""
COMMON_FIELDS = ("type", "host", "stream", "session", "agent", "cursor", "time", "turn")
# Their totals are the program's own sums: they may begin anew when a session is resumed, and above 0 in a copied one.
OWN_TOTALS = {"codex"}


class Stream:
    """What was received of one stream."""

    def __init__(self, complete, view="full"):
        self.view = view
        self.complete = complete  # received from its first byte, unfiltered
        self.position = (0, 0)    # (offset, index) of the last cursor
        self.hash = None
        self.turn = 0
        self.turn_open = False
        self.main_agent = None    # the agent of the stream's own conversation, known from its first turn
        self.session_started = False
        self.program = None
        self.invoked = {}         # call -> still open
        self.finished = set()
        self.turn_tools = 0
        self.total = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
        self.total_at_turn_start = None
        self.total_stated = False
        self.total_stated_at_turn_start = False
        self.from_snapshot = False  # `position` is a snapshot's: missed events may precede it


def split_cursor(cursor):
    offset, index, prefix_hash = cursor.split(".")
    return (int(offset), int(index)), prefix_hash


class Order:
    def __init__(self, complete=False, connection=None, view="full"):
        """`complete`: streams are received from their first byte, unfiltered. `connection`: True for a WebSocket connection, False
        for a replay, None: True if the first frame is `welcome`."""
        self.complete = complete
        self.connection = connection
        self.view = view
        self.first = True
        self.streams = {}

    def check(self, frame):
        problems = [*field_order(frame), *truncated_paths(frame)]
        type_ = frame["type"]
        if self.connection is None:
            self.connection = type_ == "welcome"
        if type_ == "welcome":
            self.view = frame["view"]
        if self.connection and (type_ == "welcome") != self.first:
            problems.append("`welcome` is not the first frame")
        self.first = False
        if type_ == "session":
            problems += self._snapshot(frame)
        elif type_ in ("reset", "stream.removed"):
            self.streams.pop(frame["stream"], None)
        elif type_ == "stream.renamed":
            renamed = self.streams.pop(frame["from"], None)
            if renamed:
                self.streams.setdefault(frame["to"], renamed)
        elif type_ == "lagged":
            self.streams.clear()
        elif "cursor" in frame and type_ != "read":
            problems += self._event(frame)
        return problems

    def skip(self, frame):
        """Records that a malformed frame was not checked: its stream is no longer complete."""
        self.first = False
        if isinstance(frame.get("stream"), str):
            self.streams.setdefault(frame["stream"], Stream(False, self.view)).complete = False

    def _snapshot(self, frame):
        for entry in frame["cursors"]:
            name, _, cursor = entry.rpartition(":")
            position, prefix_hash = split_cursor(cursor)
            stream = self.streams.get(name)
            if stream and position < stream.position:
                yield f"the snapshot of {name} is older than an event before it: {position} after {stream.position}"
            if stream is None:
                stream = self.streams[name] = Stream(False, self.view)
            if position > stream.position:
                stream.position, stream.hash, stream.from_snapshot = position, prefix_hash, True

    def _event(self, event):
        name = event["stream"]
        if name not in self.streams:
            self.streams[name] = Stream(self.complete, self.view)
        stream = self.streams[name]
        yield from self._cursor(stream, event)
        yield from EVENT_RULES.get(event["type"], no_rule)(stream, event)
        if event["turn"] < stream.turn or (stream.complete and event["turn"] != stream.turn):
            yield f"turn {event['turn']} in the stream's turn {stream.turn}"
        stream.turn = event["turn"]

    @staticmethod
    def _cursor(stream, event):
        position, prefix_hash = split_cursor(event["cursor"])
        if stream.from_snapshot and position <= stream.position:
            stream.position, stream.hash = (0, 0), None
        stream.from_snapshot = False
        if position <= stream.position:
            yield f"the cursor does not advance: {position} after {stream.position}"
        if position[0] == stream.position[0] and stream.hash not in (None, prefix_hash):
            yield "two prefix hashes for one line"
        if position[1] == 0:
            yield "the index of an event's cursor is 0"
        if stream.complete and position[1] != (stream.position[1] + 1 if position[0] == stream.position[0] else 1):
            yield f"an event is missing: {position} after {stream.position}"
        stream.position, stream.hash = position, prefix_hash


def field_order(frame):
    fields = list(frame)
    if fields[0] != "type":
        yield "`type` is not the first field"
    if "cursor" in frame and "turn" in frame:
        common = [f for f in COMMON_FIELDS if f in frame]
        if fields[: len(common)] != common:
            yield f"the common fields are not first or not in order: {', '.join(fields[:len(common)])}"
    if "truncated" in frame and fields[-1] != "truncated":
        yield "`truncated` is not the last field"


def truncated_paths(frame):
    for path in frame.get("truncated", ()):
        value = frame
        try:
            for step in path.split("/"):
                step = step.replace("~1", "/").replace("~0", "~")
                value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, TypeError, ValueError):
            yield f"`truncated` lists {path!r}, which is not in the frame"
            continue
        if not isinstance(value, str):
            yield f"`truncated` lists {path!r}, which is not a string"


def no_rule(_stream, _event):
    return ()


def session_started(stream, event):
    if stream.session_started:
        yield "a second session.started in one stream"
    stream.program = event["program"]
    stream.session_started = True


def turn_started(stream, event):
    if stream.complete:
        if stream.turn_open:
            yield f"turn {event['turn']} starts while turn {stream.turn} is open"
        if event["turn"] != stream.turn + 1:
            yield f"turn {event['turn']} starts after turn {stream.turn}"
        open_calls = [call for call, is_open in stream.invoked.items() if is_open]
        if open_calls:
            yield f"calls are open when the next turn starts: {', '.join(open_calls)}"
    stream.turn, stream.turn_open, stream.main_agent = event["turn"], True, event.get("agent")
    stream.turn_tools, stream.total_at_turn_start = 0, dict(stream.total)
    stream.total_stated_at_turn_start = stream.total_stated


def turn_finished(stream, event):
    if stream.complete and not stream.turn_open:
        yield "turn.finished without an open turn"
    elif stream.complete:
        if event["tools"] != stream.turn_tools:
            yield f"`tools` is {event['tools']}, {stream.turn_tools} were invoked"
        used = {k: v - stream.total_at_turn_start[k] for k, v in stream.total.items()}
        if stream.program in OWN_TOTALS:
            used = {k: max(0, v) for k, v in used.items()} if stream.total_stated_at_turn_start else event["usage"]
        if event["usage"] != used:
            yield f"the turn's usage is {event['usage']}, its totals differ by {used}"
    stream.turn_open = False


def tool_invoked(stream, event):
    if event["call"] in stream.invoked:
        yield f"call {event['call']} is invoked twice"
    stream.invoked[event["call"]] = event["call"] not in stream.finished
    if stream.turn_open and event.get("agent") == stream.main_agent:
        stream.turn_tools += 1


def tool_finished(stream, event):
    call = event["call"]
    if call in stream.finished:
        yield f"call {call} finishes twice"
    if stream.complete and (call in stream.invoked) != ("tool" in event):
        yield "`tool` must be present exactly if the call was invoked"
    stream.finished.add(call)
    if call in stream.invoked:
        stream.invoked[call] = False


def agent_started(stream, event):
    if stream.complete and event["call"] not in stream.invoked:
        yield f"an agent starts before its call {event['call']}"


def usage_updated(stream, event):
    for key, value in event["total"].items():
        if value < stream.total[key] and stream.program not in OWN_TOTALS:
            yield f"the total of {key} decreases from {stream.total[key]} to {value}"
    stream.total, stream.total_stated = event["total"], True


def session_updated(stream, event):
    # In the meta view the update of a title has no field of its own.
    if stream.view == "full" and not set(event) - set(COMMON_FIELDS):
        yield "an update without a changed field"


def line_skipped(_stream, event):
    (offset, index), _ = split_cursor(event["cursor"])
    if event["line"] + event["bytes"] > offset:
        yield "the skipped bytes end after the cursor"
    if index != 1:
        yield "line.skipped is not the first event of its line"
    if event["salvaged"] and event["lines"] != 1:
        yield "a salvaged line is reported together with others"


EVENT_RULES = {
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
