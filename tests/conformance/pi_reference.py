"""Reference assembler for transcripts of Pi (pi-coding-agent), formats 1 to 3: plain, slow, and independent of the daemon.

P1, P2, … number the rules of the format.
"""
import collections
import re

from reference import SPACE, count_of, decoded_bytes, integer_of, lines, milliseconds, number_of, object_of, text_of

LIMITS = """gousagelimiterror freeusagelimiterror monthlyusagelimitreached availablebalance insufficientquota outofbudget quotaexceeded
    billing""".split()
PASSING = """overloaded currentlyexperiencinghighdemand ratelimit toomanyrequests 429 500 502 503 504 520 524 serviceunavailable servererror
    internalerror providerreturnederror exceededrequestbufferlimit networkerror connectionerror connectionrefused connectionlost
    othersideclosed fetchfailed getaddrinfo enotfound eaiagain upstreamconnect resetbeforeheaders sockethangup socketconnectionwasclosed
    timedout timeout terminated websocketclosed websocketerror endedwithout endedbefore http2requestdidnotgetaresponse retrydelay
    retryyourrequest tryyourrequestagain resourceexhausted""".split()
OVERFLOW = """promptistoolong requesttoolarge inputistoolong exceedsthecontextwindow exceedsthemaximum maximumpromptlengthis
    reducethelengthofthemessages maximumcontextlength exceedsthelimitof exceedstheavailablecontextsize greaterthanthecontextlength
    contextwindowexceedslimit exceededmodeltokenlimit modelcontextwindowexceeded prompttoolong contextlengthexceeded toomanytokens
    tokenlimitexceeded 400statuscodenobody 413statuscodenobody""".split()
ABORTS = ("thisoperationwasaborted", "operationaborted", "operationwasaborted", "requestwasaborted", "requestaborted")
errors_in_row_max = 3
steering_late_ms = 1000
READ_TYPES = {"model_change", "session_info", "compaction", "branch_summary", "usage"}
READ_ROLES = {"user", "assistant", "toolResult", "custom", "hookMessage"}
KNOWN_TYPES = {"thinking_level_change", "custom", "label", "context_edit"}  # P26: without events
KNOWN_ROLES = {"bashExecution", "system", "branchSummary", "compactionSummary"}
COUNTS = {"input": "input", "output": "output", "cacheRead": "cache_read", "cacheWrite": "cache_write"}
interrupted_text = re.compile(r"(operation|command|tool execution|request) (was )?aborted|skipped due to queued user message", re.I)
status_text = re.compile(r" *(?:Error:)? *([45]\d\d)(?!\d)", re.ASCII)


def session_of(stem):
    """P1: what follows the first `_`, or all."""
    return stem.split("_", 1)[-1]


def events(data: bytes, *, stem: str):
    assembler = Assembler(session_of(stem))
    for line in lines(data):
        yield from assembler.line(line)


def unknown(data: bytes) -> collections.Counter:
    """Records without a meaning in the rules, by type or `message/<role>`."""
    assembler = Assembler("")
    for line in lines(data):
        assembler.line(line)
    return assembler.unknown


class Content:
    """Of a message: text blocks joined by LF, and images."""

    def __init__(self, content):
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts = [text for block in blocks if text_of(block, "type") == "text" and (text := text_of(block, "text")) is not None]
        self.text = "\n".join(texts) if texts else None
        self.images = []
        for block in blocks:
            if text_of(block, "type") == "image":
                image = {"kind": "image", "media_type": text_of(block, "mimeType"), "bytes": decoded_bytes(text_of(block, "data") or "")}
                self.images.append({key: value for key, value in image.items() if value})


class Assembler:
    def __init__(self, session):
        self.session, self.unknown = session, collections.Counter()
        self.started, self.ids = False, set()
        self.known = {}                                 # title, cwd, model
        self.calls, self.open_calls = set(), {}         # every id; the open ones with tool and time
        self.total, self.cost = dict.fromkeys(COUNTS.values(), 0), None
        self.turn, self.is_open = 0, False
        self.extension_spoke = False                    # since the last turn ended
        self.last_role = None                           # of the last user, assistant or result record
        self.result_ms = None                           # of the last result
        self.last_ms = self.work_ms = None              # of the last of these that has a time, and that is not the user's
        self.last_step = None                           # what the turn's last assistant record was
        self.errors_in_row = 0

    # ---- Lines and events

    def line(self, line):
        self.offset, self.end, self.time, self.out = line.begin, line.end, None, []
        for skipped in line.skipped:
            self.emit("line.skipped", **skipped)
        for number, record in enumerate(line.records):
            self.name = f"@{line.begin}" + (f".{number}" if number else "")
            self.record(record)
        return self.out

    def emit(self, type, **fields):
        event = {"type": type, "session": self.session, "offset": self.end, "index": len(self.out) + 1, "time": self.time,
                 "turn": self.turn, **fields}
        self.out.append({key: value for key, value in event.items() if value is not None})

    def record(self, record):
        if not isinstance(record, dict):
            self.unknown["(not an object)"] += 1
            return
        type = text_of(record, "type") or "(no type)"
        message = object_of(record, "message")
        role = text_of(message, "role")
        self.time = text_of(record, "timestamp")        # P4
        self.ms = milliseconds(self.time)
        if self.ms is None:
            self.time = None
        if type == "session":
            return self.header(record)
        if not self.started:                            # P5
            self.unknown[type] += 1
            return
        if not self.is_known(type, role):
            self.unknown[f"message/{role or ''}" if type == "message" else type] += 1
        if id := text_of(record, "id"):                 # P7
            if id in self.ids:
                return
            self.ids.add(id)
        self.id = id or self.name
        if type == "message" and role in ("user", "assistant", "toolResult"):
            getattr(self, role)(message)
        elif type == "custom_message" or type == "message" and role in ("custom", "hookMessage"):
            self.custom(record if type == "custom_message" else message)
        elif type in READ_TYPES:
            getattr(self, type)(record)

    @staticmethod
    def is_known(type, role):
        """P26"""
        return role in READ_ROLES | KNOWN_ROLES if type == "message" else type in READ_TYPES | KNOWN_TYPES | {"custom_message"}

    # ---- Session

    def header(self, record):
        cwd, model = text_of(record, "cwd") or None, text_of(record, "modelId")
        if self.started:                                # P5
            return self.update(cwd=cwd, model=model)
        self.started = True                             # P8
        self.known["cwd"] = cwd
        parent = text_of(record, "parentSession") or text_of(record, "branchedFrom") or ""
        continues = session_of(re.split(r"[/\\]", parent)[-1].removesuffix(".jsonl"))
        self.emit("session.started", program="pi", dialect="pi", project=cwd, cwd=cwd, continues=continues or None)
        self.update(model=model)

    def update(self, **fields):
        """P9"""
        changed = {key: value for key, value in fields.items() if value and value != self.known.get(key)}
        self.known.update(changed)
        if changed:
            self.emit("session.updated", **changed)

    def model_change(self, record):
        self.update(model=text_of(record, "modelId"))

    def session_info(self, record):
        self.update(title=text_of(record, "name"))

    # ---- Turns

    def user(self, message):
        content = Content(message.get("content"))
        text = content.text if (content.text or "").strip(SPACE) else None
        if not text and not content.images:             # P10: no prompt
            return
        typed = integer_of(message, "timestamp")
        if self.is_steering(typed):                     # P11
            if text:
                self.emit("message.added", role="user", kind="text", text=text)
        else:                                           # P12
            is_queued = not self.is_open and typed is not None and self.work_ms is not None and typed < self.work_ms
            self.start_turn("queued" if is_queued else "human", text)
        self.add_images("user", content)
        self.remember("user")

    def is_steering(self, typed):
        if not self.is_open or self.open_calls or self.last_role != "toolResult":
            return False
        return typed is None or self.result_ms is None or typed <= self.result_ms + steering_late_ms

    def remember(self, role):
        self.last_role = role
        if role == "toolResult":
            self.result_ms = self.ms
        if self.ms is not None:
            self.last_ms = self.ms
            self.work_ms = self.work_ms if role == "user" else self.ms

    def add_images(self, role, content):
        for image in content.images:
            self.emit("message.added", role=role, kind="image", media=image)

    def start_turn(self, origin, prompt=None):
        if self.last_step == "error":                        # P16
            outcome, inferred = "failed", True
        elif self.last_step == "text" and not self.open_calls:
            outcome, inferred = "completed", True
        else:
            outcome, inferred = "superseded", None
        self.close_calls(list(self.open_calls), "abandoned")  # P20
        if self.is_open:
            self.finish_turn(outcome, inferred=inferred)
        self.turn += 1
        self.is_open, self.turn_ms, self.turn_tools, self.turn_total = True, self.ms, 0, dict(self.total)
        self.last_step, self.errors_in_row = None, 0
        self.emit("turn.started", prompt=prompt, origin=origin)

    def finish_turn(self, outcome, *, stop_reason=None, inferred=None):
        is_timed = self.last_ms is not None and self.turn_ms is not None
        self.is_open = self.extension_spoke = False
        self.emit("turn.finished", outcome=outcome, inferred=inferred, stop_reason=stop_reason,
                  duration_ms=max(0, self.last_ms - self.turn_ms) if is_timed else None, tools=self.turn_tools,
                  usage={key: self.total[key] - self.turn_total[key] for key in self.total})

    def assistant(self, message):
        model = text_of(message, "model") or None
        self.update(model=model)
        if not self.is_open:                            # P13
            self.start_turn("hook" if self.extension_spoke else "unknown")
        blocks, has_text, made = message.get("content"), False, []
        if not isinstance(blocks, list):
            blocks = [{"type": "text", "text": blocks}]
        for n, block in enumerate(blocks):
            type = text_of(block, "type")
            if type in ("text", "thinking"):
                if text := text_of(block, type):
                    has_text |= type == "text"
                    self.emit("message.added", role="assistant", kind=type, text=text, message=self.id, model=model)
            elif type == "toolCall":
                made += self.invoke(block, f"{self.name}.{n}")
        self.add_usage(message, model)
        self.remember("assistant")
        self.last_step = "text" if has_text else "other"
        self.end_step(message, made)

    def end_step(self, message, made):
        reason = text_of(message, "stopReason")
        error = text_of(message, "errorMessage") or ""
        kept = re.sub("[^A-Za-z0-9]", "", error).lower()
        is_abort = reason == "aborted" or reason == "error" and kept.startswith(ABORTS)
        if is_abort or reason == "error":               # P18
            self.close_calls(list(self.open_calls) if is_abort else made, "interrupted")
        if is_abort:                                    # P15
            self.finish_turn("interrupted", stop_reason="aborted")
        elif reason == "error":
            self.errors_in_row += 1
            passes = (self.errors_in_row <= errors_in_row_max and not any(word in kept for word in LIMITS)
                      and any(word in kept for word in PASSING + OVERFLOW))  # P14
            status = status_text.match(error)
            self.emit("api.failed", status=int(status[1]) if status else None, error=error or None, attempt=self.errors_in_row,
                      fatal=not passes)                 # P24
            if passes:
                self.last_step = "error"
            else:
                self.finish_turn("failed", stop_reason="error")
        else:
            self.errors_in_row = 0
            if reason in ("stop", "length") and not self.open_calls:
                self.finish_turn("completed", stop_reason=reason)

    # ---- Tools

    def invoke(self, block, name):
        """P17. The call's id, unless it was made before."""
        call = text_of(block, "id") or name
        if call in self.calls:
            return []
        self.calls.add(call)
        tool = text_of(block, "name") or ""
        self.open_calls[call] = tool, self.ms
        self.turn_tools += 1
        self.emit("tool.invoked", call=call, tool=tool, input=block.get("arguments"), message=self.id)
        return [call]

    def close_calls(self, calls, outcome, **fields):
        for call in calls:
            tool, ms = self.open_calls.pop(call)
            is_timed = outcome != "abandoned" and ms is not None and self.ms is not None
            duration_ms = max(0, self.ms - ms) if is_timed else None
            self.emit("tool.finished", call=call, tool=tool, outcome=outcome, duration_ms=duration_ms, **fields)

    def toolResult(self, message):
        content = Content(message.get("content"))
        text, call = content.text or "", text_of(message, "toolCallId")
        if message.get("isError") is not True:          # P19
            outcome = "ok"
        elif interrupted_text.match(text) or text.endswith("Command aborted"):
            outcome = "interrupted"
        else:
            outcome = "denied" if text.startswith("Tool execution was blocked") else "error"
        if call in self.open_calls:                     # P20
            self.close_calls([call], outcome, output=content.text, media=content.images or None)
        self.add_usage(message)
        self.remember("toolResult")

    # ---- The rest

    def compaction(self, record):
        """P21"""
        self.emit("compaction.finished", pre_tokens=count_of(record, "tokensBefore"), kind="full")
        self.branch_summary(record)

    def branch_summary(self, record):
        """P22"""
        if summary := text_of(record, "summary"):
            self.emit("message.added", role="summary", kind="text", text=summary)
        self.add_usage(record)

    def usage(self, record):
        self.add_usage(record, text_of(record, "model") or None)

    def custom(self, message):
        """P24"""
        self.extension_spoke = True
        if message.get("display") is False:
            return
        content = Content(message.get("content"))
        if content.text:
            self.emit("message.added", role="system", kind="text", text=content.text)
        self.add_images("system", content)

    def add_usage(self, record, model=None):
        """P23"""
        usage = object_of(record, "usage")
        counts = {name: count_of(usage, key) or 0 for key, name in COUNTS.items()}
        cost = number_of(usage, "cost", "total")
        if cost is not None:
            self.cost = (self.cost or 0) + max(0, cost)
        if any(counts.values()) or (cost or 0) > 0:
            for name, count in counts.items():
                self.total[name] += count
            self.emit("usage.updated", message=self.id, model=model, **counts, total=dict(self.total), cost_usd=self.cost)
