"""Reference assembler for rollouts of Codex (all dialects): plain, slow, and independent of the daemon.

C1, C2, … number the rules of the format.
"""
import collections
import datetime
import re

from reference import SPACE, decoded_bytes, integer_of, lines, list_of, member, milliseconds, number_of, object_of, parse, text_of, union_ms

ENVELOPES = {"session_meta", "turn_context", "compacted", "event_msg", "response_item", "world_state"}
ITEMS = {"reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "local_shell_call",
         "local_shell_call_output", "web_search_call"}
# C45, by the kind of the record: known to mean nothing.
NOTHING = {
    "": {"world_state", "retained_context", "inter_agent_communication_metadata", "state"},
    "event_msg": {"thread_settings_applied", "thread_goal_updated", "entered_review_mode", "exited_review_mode", "thread_rolled_back",
                  "undo_completed", "guardian_assessment", "context_compacted", "collab_agent_interaction_end", "collab_resume_end",
                  "dynamic_tool_call_request"},
    "response_item": {"ghost_snapshot", "additional_tools", "compaction", "context_compaction"},
    "event_msg/item_completed": {"ContextCompaction", "HookPrompt", "EnteredReviewMode", "ExitedReviewMode"},
}
# C19
INJECTED = re.compile(r"# AGENTS\.md instructions|Warning: |<(?:external_|(?:environment_context|user_instructions|INSTRUCTIONS|turn_aborted|"
                      r"user_shell_command|skill|subagent_notification|goal_context|hook_prompt|permissions instructions|model_switch|"
                      r"collaboration_mode|recommended_plugins|codex_internal_context|codex_delegation|personality_spec|realtime_conversation|"
                      r"user_action|token_budget|extension_context|additional_context)[\s>])")
# C32, each at the beginning
REFUSALS = ("rejected by user", "exec command rejected", "command rejected", "patch rejected", "user rejected", "user cancelled",
            "this action was rejected", "approval policy is")
FAILED = ("unsupported call", "unsupported custom tool call", "failed to parse", "apply_patch verification failed", "exec_command failed",
          "write_stdin failed", "script failed", "error:", "failed", "execution error", "tool call error", "err:", "unknown process id",
          "unable to", "collab tool failed", "agent with id", "invalid", "missing")
ABORTED = re.compile(r"(?:[Ww]all time:[^\n]*\n)?aborted")
EXIT_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d+)", re.MULTILINE)
PROCESS = re.compile(r"^Process running with session ID (-?\d+)", re.MULTILINE)
CELL = re.compile(r"^Script running with cell ID (-?\d+)", re.MULTILINE)
AGENT_ENDS = {"completed": "completed", "errored": "failed", "failed": "failed", "interrupted": "interrupted", "shutdown": "stopped",
              "not_found": "stopped", "stopped": "stopped", "closed": "stopped"}
TASK_OUTCOMES = {"ok": "completed", "error": "failed", "interrupted": "stopped", "denied": "stopped"}
QUESTION = "request_user_input"                             # the tool that waits for the user's answer
RESUMERS = {"send_input", "followup_task", "resume_agent"}
UUID = re.compile(r"({0})(?:_{0})?$".format(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"))  # a rewound part has its own behind it
limit_drift_seconds = 60


def events(data: bytes, *, stem: str):
    assembler = Assembler(stem)
    for line in lines(data):
        yield from assembler.line(line)


def unknown(data: bytes) -> collections.Counter:
    """Records without a meaning in the rules, by type."""
    assembler = Assembler("")
    for line in lines(data):
        assembler.line(line)
    return assembler.unknown


def dialect_of(record):
    """C5. None: the record decides nothing. So a file of foreign types has no events."""
    type = text_of(record, "type") or None
    if type in ENVELOPES or type and isinstance(record.get("payload"), dict) and "timestamp" in record:
        return "codex-paginated" if "ordinal" in record or text_of(record, "payload", "history_mode") == "paginated" else "codex-events"
    if "payload" in record:
        return None
    if type is None:
        return "codex-items" if "record_type" in record or text_of(record, "id") and "instructions" in record else None
    return "codex-items" if type in ITEMS or type == "message" and text_of(record, "role") and "content" in record else None


# ---- Values


def texts(content):
    """The texts of content: of one string, or of blocks."""
    if isinstance(content, str):
        return [content]
    return [text for part in content if (text := text_of(part, "text")) is not None] if isinstance(content, list) else []


def joined(content):
    """The same, of text blocks only."""
    if isinstance(content, list):
        content = [part for part in content if (text_of(part, "type") or "").endswith(("text", "Text"))]
    return "\n".join(texts(content))


def image(url):
    match = re.match(r"data:([^;,]*)[^,]*,", url or "", re.DOTALL)
    if not match:
        return {"kind": "image"}
    media = {"kind": "image", "media_type": match[1], "bytes": decoded_bytes(url[match.end():])}
    return {key: value for key, value in media.items() if value}


def images(content):
    """The images of content blocks."""
    found = []
    for part in content if isinstance(content, list) else []:
        if text_of(part, "type") in ("image", "local_image", "input_image", "inputImage"):
            if data := text_of(part, "data"):
                media = {"kind": "image", "media_type": text_of(part, "mimeType"), "bytes": decoded_bytes(data)}
                found.append({key: value for key, value in media.items() if value})
            else:
                found.append(image(text_of(part, "image_url") or text_of(part, "imageUrl")))
    return found


def without_context(text):
    """C16"""
    begin = "## My request for Codex:"
    return text.split(begin, 1)[1].strip(SPACE) if text.startswith("# Context from my IDE") and begin in text else text


def command(value):
    """The shell's command in an argument list."""
    words = [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
    if len(words) == 3 and words[1] in ("-lc", "-c"):
        return words[2]
    return value if isinstance(value, str) else " ".join(words)


def duration_of(item):
    """C33. The item's own, in milliseconds."""
    seconds, nanos = natural(item, "duration", "secs"), natural(item, "duration", "nanos")
    return natural(item, "duration_ms") if seconds is None else seconds * 1000 + (nanos or 0) // 1_000_000


def json_or_text(text):
    """C27. Arguments."""
    try:
        return parse(text)
    except ValueError:
        return text


def natural(value, *path):
    """A number that is not negative; None if it is absent."""
    found = integer_of(value, *path)
    return found if found is not None and found >= 0 else None


def counts(usage):
    """C42"""
    if not isinstance(usage, dict):
        return None
    read, write = natural(usage, "cached_input_tokens") or 0, natural(usage, "cache_write_input_tokens") or 0
    return {"input": max(0, (natural(usage, "input_tokens") or 0) - read - write), "output": natural(usage, "output_tokens") or 0,
            "cache_read": read, "cache_write": write}


def first_key(value):
    """A string, or the first key of an object."""
    return value if isinstance(value, str) else next(iter(value), None) if isinstance(value, dict) else None


def item_outcome(item):
    """C29"""
    status, result = text_of(item, "status"), item.get("result")
    if status == "declined":
        return "denied"
    errors = (status == "failed", item.get("success") is False, item.get("error") not in (None, ""), integer_of(item, "exit_code"),
              "Err" in object_of(item, "result"), *(member(each, "isError") is True for each in (item, result, member(result, "Ok"))))
    if any(errors):
        return "error"
    return "interrupted" if status in ("interrupted", "cancelled") else "ok"


class Output:
    """Of a call's `…_output`: text, images, outcome and what goes on in the background."""

    def __init__(self, output):
        is_failed, code, self.media = False, None, []
        if isinstance(output, str):
            self.text = output
            value = json_or_text(output) if output.startswith("{") else None
            if text_of(value, "output") is not None and isinstance(member(value, "metadata"), dict):
                self.text, code = value["output"], integer_of(value, "metadata", "exit_code")
        else:
            content = output["content"] if isinstance(output, dict) and "content" in output else output
            self.text = text_of(content, "text") or "" if isinstance(content, dict) else joined(content)
            self.media, is_failed = images(content), member(output, "success") is False
        text = self.text.strip(SPACE)
        head = re.split(r"^Output:", text, maxsplit=1, flags=re.MULTILINE)[0]
        if code is None and (match := EXIT_CODE.search(head)):
            code = int(match[1])
        process, cell = PROCESS.search(head), CELL.search(head)  # C31
        self.is_process, self.background = bool(process), (process or cell)[1] if process or cell else None
        if ABORTED.match(text):                             # C32
            self.outcome = "interrupted"
        elif text.lower().startswith(REFUSALS) or text.startswith("Script failed") and "reject" in text:
            self.outcome = "denied"
        elif is_failed or code or code is None and text.lower().startswith(FAILED):
            self.outcome = "error"
        else:
            self.outcome = "ok"


def agent_outcome(status):
    """C37. None: the agent goes on."""
    return AGENT_ENDS.get(first_key(status))


def closed_outcome(status):
    """What closing an agent that had this status makes of it."""
    return "stopped" if first_key(status) in ("running", "pending_init") else agent_outcome(status)


def tagged(text, name):
    """What stands between `<name>` and `</name>`."""
    _, begin, rest = text.partition(f"<{name}>")
    return rest.split(f"</{name}>", 1)[0].strip(SPACE) if begin else ""


def tool_name(space, tool):
    return f"{space}.{tool or ''}" if space else tool or ""


def utc(seconds):
    if seconds is None or not 0 < seconds < 253_402_300_800:
        return None
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Turn:
    """A turn that is announced or open."""

    def __init__(self, id, ms):
        self.id, self.begin_ms, self.last_ms, self.is_queued = id, ms, ms, False
        self.tools, self.usage, self.has_work, self.is_answered = 0, {}, False, False
        self.failure = None                                 # the kind of the error that was told


class Assembler:
    def __init__(self, stem):
        match = UUID.search(stem)
        self.session, self.unknown = match[1] if match else stem, collections.Counter()  # C2
        self.dialect = self.agent = self.thread = None
        self.is_started = self.has_meta = self.follows_meta = self.copy = False
        self.previous_ms = None
        self.known = {}                                     # what session.started and session.updated said
        self.turn, self.open, self.announced = 0, None, None
        self.has_lifecycle = self.has_prompts = self.has_shell_items = self.has_searches = self.has_pictures = False
        self.told_kinds, self.ids = set(), set()
        self.held = None                                    # C18
        self.calls, self.open_calls, self.tasks = set(), {}, {}
        self.agents, self.paths, self.ended_agents = {}, {}, set()  # agents: the call of each
        self.todos, self.waits = [], []                     # waits: times at which the turn asked, and was answered
        self.usage = dict.fromkeys(("input", "output", "cache_read", "cache_write"), 0)
        self.last_usage, self.context_tokens, self.limits = None, None, {}
        self.has_records, self.is_recorded, self.counted, self.first, self.responses = False, False, dict(self.usage), dict(self.usage), {}

    # ---- Lines and events

    def line(self, line):
        self.end, self.time, self.out = line.end, None, []
        for skipped in line.skipped:
            self.emit("line.skipped", **skipped)
        for number, record in enumerate(line.records):
            self.name = f"@{line.begin}" + (f".{number}" if number else "")
            self.record(record)
        return self.out

    def emit(self, type, **fields):
        event = {"type": type, "session": self.session, "agent": self.agent, "offset": self.end, "index": len(self.out) + 1,
                 "time": self.time, "turn": self.turn}
        event.update(fields)
        self.out.append({key: value for key, value in event.items() if value is not None})

    def record(self, record):
        if not isinstance(record, dict):
            self.unknown["(not an object)"] += 1
            return
        if self.dialect is None:                            # C5
            self.dialect = dialect_of(record)
        type = text_of(record, "type")
        if self.dialect is None:
            self.unknown[type or "(no type)"] += 1
            return
        is_items = self.dialect == "codex-items"
        payload = record["payload"] if isinstance(record.get("payload"), dict) else record  # C6
        kind = type
        if is_items and type is None:
            kind = "state" if "record_type" in record else "session_meta" if text_of(payload, "id") else None
        elif is_items:
            kind = "response_item"
        self.time = None if is_items else text_of(record, "timestamp")  # C7
        self.ms = milliseconds(self.time)
        if self.ms is None:
            self.time = None
        follows_meta, self.follows_meta = self.follows_meta, False
        if kind == "session_meta":
            self.session_meta(payload, follows_meta)
        else:
            self.end_copy(kind, payload)
            self.dispatch(kind or "(no type)", payload)
        if self.ms is not None:
            self.previous_ms = self.ms

    def dispatch(self, kind, payload):
        group, type, handlers = "", kind, HANDLERS
        if kind in ("event_msg", "response_item"):
            group, type = kind, text_of(payload, "type") or ""
            handlers = EVENTS if kind == "event_msg" else RESPONSES
            if kind == "event_msg" and type == "item_completed":
                group, payload, handlers = "event_msg/item_completed", object_of(payload, "item"), ITEM_TYPES
                type = text_of(payload, "type") or ""
            if kind == "response_item" and type.endswith("_output"):
                handlers = {type: Assembler.output}
        if type in NOTHING.get(group, ()) or group == "event_msg" and type.endswith(("_begin", "_delta")):  # C45
            return
        if type not in handlers:
            self.unknown[f"{group}/{type}" if group else type] += 1
            return
        self.start()
        self.is_item = group == "event_msg/item_completed"
        handlers[type](self, payload)

    # ---- Session

    def session_meta(self, meta, follows_meta):
        id = text_of(meta, "id") or ""
        fields = {"version": text_of(meta, "cli_version"), "cwd": text_of(meta, "cwd"), "git_branch": text_of(meta, "git", "branch")}
        if self.has_meta:
            if id == self.thread:                           # C10
                self.update(**fields)
            elif id and follows_meta:                       # C11
                self.copy = True
            return
        self.has_meta = self.follows_meta = True
        self.thread, self.meta_ms = id, milliseconds(text_of(meta, "timestamp"))
        if self.meta_ms is None:
            self.meta_ms = self.ms
        source, subagent = meta.get("source"), member(meta, "source", "subagent")
        spawn = object_of(subagent, "thread_spawn")
        parent = agent_type = None
        if subagent is not None or text_of(meta, "thread_source") == "subagent":  # C3
            parent = text_of(meta, "parent_thread_id") or text_of(spawn, "parent_thread_id")
            agent_type = (text_of(meta, "agent_role") or text_of(spawn, "agent_role") or text_of(meta, "agent_path")
                          or text_of(spawn, "agent_path") or text_of(subagent, "other") or first_key(subagent))
            self.agent = id or None
        self.session = text_of(meta, "session_id") or parent or id or self.session  # C2
        if self.is_started:
            return self.update(**fields)
        self.start(**fields, continues=text_of(meta, "forked_from_id"), source=first_key(source), originator=text_of(meta, "originator"),
                   parent=parent, agent_type=agent_type)   # C12

    def start(self, **fields):
        """C10"""
        if not self.is_started:
            self.is_started = True
            fields = {key: value for key, value in fields.items() if value}
            self.known.update(fields)
            self.emit("session.started", dialect=self.dialect, project=fields.get("cwd"), **fields)

    def update(self, **fields):
        """C13"""
        changed = {key: value for key, value in fields.items() if value and value != self.known.get(key)}
        self.known.update(changed)
        if changed:
            self.emit("session.updated", **changed)

    def end_copy(self, kind, payload):
        """C11. A record of the parent's history makes no event; ids and totals count."""
        if not self.copy:
            return
        is_start = self.dialect == "codex-events" and kind == "event_msg" and text_of(payload, "type") in ("task_started", "turn_started")
        started_at = integer_of(payload, "started_at")
        is_own = bool(self.thread) and text_of(payload, "thread_id") == self.thread
        is_own |= is_start and started_at is not None and self.meta_ms is not None and started_at >= self.meta_ms // 1000
        is_own |= self.ms is not None and self.previous_ms is not None and self.ms - self.previous_ms >= 1000
        self.copy = not is_own

    def turn_context(self, context):
        if not self.copy:
            sandbox = text_of(context, "sandbox_policy", "type") or text_of(context, "sandbox_policy", "mode")
            self.update(model=text_of(context, "model"), cwd=text_of(context, "cwd"), permission_mode=first_key(context.get("approval_policy")),
                        sandbox=sandbox, mode=text_of(context, "collaboration_mode", "mode"))

    def thread_name_updated(self, event):
        if not self.copy:
            self.update(title=text_of(event, "thread_name"))

    def is_new(self, kind, id):
        """C8. False for an id that was told before."""
        if not id:
            return True
        if (kind, id) in self.ids:
            return False
        self.ids.add((kind, id))
        return True

    # ---- Turns

    def task_started(self, event):
        """C14"""
        id = text_of(event, "turn_id")
        if not self.is_new("turn", id):
            return
        self.has_lifecycle = True                           # C15
        if self.copy:
            return
        self.update(mode=text_of(event, "collaboration_mode_kind"))
        if self.announced:
            announced_ms = self.announced.begin_ms
            self.begin_unprompted()
            self.open.last_ms = announced_ms                # nothing came since
        self.end_by_next()
        self.announced = Turn(id, self.ms)
        self.announced.is_queued = text_of(event, "turn_attribution", "turn_trigger") == "queue"

    def end_by_next(self):
        """C25, C34"""
        is_answered = bool(self.open and self.open.is_answered and not self.open_calls)
        self.close_calls("abandoned")
        if self.open:
            self.finish_turn("completed" if is_answered else "superseded", inferred=is_answered or None, end_ms=self.open.last_ms)

    def begin_turn(self, prompt, origin):
        """Begins the announced turn, or one of its own."""
        self.end_by_next()
        self.open, self.announced, self.held = self.announced or Turn(None, self.ms), None, None
        if self.open.begin_ms is None:
            self.open.begin_ms = self.ms
        self.open.last_ms, self.open.usage = self.ms, dict(self.usage)
        self.waits = []
        self.turn += 1
        self.emit("turn.started", prompt=prompt or None, origin="agent" if self.agent else origin)

    def begin_unprompted(self):
        """C17, C18"""
        self.begin_turn(self.held, "human" if self.held else "unknown")

    def work(self):
        """C17"""
        if not self.open:
            self.begin_unprompted()

    def touch(self, *, is_answer=False, is_work=True):
        """Something of the open turn; `is_answer`: the agent's text."""
        if self.open:
            self.open.is_answered = is_answer
            self.open.has_work |= is_work
            if self.ms is not None:
                self.open.last_ms = self.ms

    def finish_turn(self, outcome, *, stop_reason=None, inferred=None, duration_ms=None, end_ms=None):
        """C26"""
        turn, self.open = self.open, None
        if duration_ms is None and turn.begin_ms is not None and end_ms is not None:
            duration_ms = end_ms - turn.begin_ms
        self.emit("turn.finished", outcome=outcome, inferred=inferred, stop_reason=stop_reason or None,
                  duration_ms=None if duration_ms is None else max(0, duration_ms), tools=turn.tools,
                  usage={key: max(0, self.usage[key] - turn.usage[key]) for key in self.usage}, waited_ms=union_ms(self.waits))

    def begin_end(self, event):
        """C24. Whether it is the end of the open or the announced turn, which it begins (C14)."""
        id = text_of(event, "turn_id")
        current = self.open or self.announced
        if not self.is_new("turn", id) and not (current and current.id == id) or self.copy:
            return False
        if self.announced:
            self.begin_unprompted()
        return bool(self.open)

    def task_complete(self, event):
        if not self.begin_end(event):
            return
        if event.get("error") is not None:
            self.api_failed(event["error"], fatal=True)
        if self.open.failure is not None:
            outcome, reason = "failed", self.open.failure
        else:
            is_answered = self.open.has_work or text_of(event, "last_agent_message")
            outcome, reason = "completed", None if is_answered else "no_answer"
        self.finish_turn(outcome, stop_reason=reason, duration_ms=integer_of(event, "duration_ms"), end_ms=self.end_ms())

    def turn_aborted(self, event):
        if not self.begin_end(event):
            return
        self.close_calls("interrupted")
        reason = text_of(event, "reason")
        self.finish_turn("completed" if reason in ("review_ended", "budget_limited") else "interrupted",
                         stop_reason=None if reason == "interrupted" else reason, duration_ms=integer_of(event, "duration_ms"), end_ms=self.end_ms())

    def end_ms(self):
        return self.open.last_ms if self.ms is None else self.ms

    def error(self, event):
        """C24, C40"""
        if self.copy:
            return
        self.api_failed(event, fatal=True)
        if self.open and self.open.failure is not None and not self.has_lifecycle:
            self.finish_turn("failed", stop_reason=self.open.failure, end_ms=self.end_ms())

    def stream_error(self, event):
        """C41"""
        if not self.copy:
            self.api_failed(event, fatal=False)

    def api_failed(self, error, *, fatal):
        message = error if isinstance(error, str) else None
        error = object_of(error, "error") or error
        info = member(error, "codex_error_info")
        kind = first_key(info) or text_of(error, "kind")
        self.emit("api.failed", status=integer_of(info, first_key(info), "http_status_code") if isinstance(info, dict) else None,
                  error=text_of(error, "message") if message is None else message, kind=kind or None, fatal=fatal)
        turn = self.open or self.announced
        if fatal and turn and kind != "thread_rollback_failed":
            turn.failure = kind or ""

    # ---- Messages

    def user_message(self, event):
        pictures = [image(each if isinstance(each, str) else None) for each in list_of(event, "images") + list_of(event, "local_images")]
        self.prompt(text_of(event, "message") or "", pictures)

    def user_item(self, item):
        self.has_prompts = True
        if self.is_new("message", text_of(item, "id")):
            self.prompt(joined(item.get("content")), images(item.get("content")))

    def prompt(self, text, pictures):
        """C16"""
        self.has_prompts = True
        if self.copy:
            return
        self.held, text = None, without_context(text)
        if self.announced or not self.open or not self.has_lifecycle:
            self.begin_turn(text, "queued" if self.announced and self.announced.is_queued else "human")
        elif text:
            self.emit("message.added", role="user", kind="text", text=text)
        self.add_images(pictures)
        self.touch(is_work=False)

    def add_images(self, pictures):
        for picture in pictures:
            self.emit("message.added", role="user", kind="image", media=picture)

    def say(self, kind, text, id=None):
        """C21"""
        if self.is_new("message", id) and text and not self.copy:
            self.work()
            self.emit("message.added", role="assistant", kind=kind, text=text, message=id or None, model=self.known.get("model"))
            self.touch(is_answer=kind == "text")

    def agent_text(self, event):
        self.told_kinds.add("text")
        self.say("text", text_of(event, "message"))

    def agent_reasoning(self, event):
        self.told_kinds.add("thinking")
        self.say("thinking", text_of(event, "text"))

    def agent_item(self, item):
        self.told_kinds.add("text")
        self.say("text", joined(item.get("content")), text_of(item, "id"))

    def reasoning_item(self, item):
        self.told_kinds.add("thinking")
        texts = [text for text in list_of(item, "summary_text") if isinstance(text, str) and text]
        self.say("thinking", "\n".join(texts), text_of(item, "id"))

    def plan_item(self, item):
        """C22"""
        self.say("plan", text_of(item, "text"), text_of(item, "id"))

    def is_told(self, kind):
        """C20. Whether events or items tell this kind of text."""
        return self.dialect == "codex-paginated" or self.has_lifecycle or kind in self.told_kinds

    def reasoning(self, message):
        if not self.is_told("thinking"):
            self.say("thinking", "\n".join(filter(None, texts(list_of(message, "summary")))), text_of(message, "id"))

    def message(self, message):
        role, content = text_of(message, "role"), message.get("content")
        if role == "assistant" and not self.is_told("text"):
            self.say("text", joined(content), text_of(message, "id"))
        if role != "user" or not self.is_new("message", text_of(message, "id")):
            return
        for text in texts(content):
            self.shell_escape(text)
            self.notification(text)
        if self.copy:
            return
        own = [text for text in texts(content) if text and not INJECTED.match(text.strip(SPACE))]  # C19
        text, pictures = without_context("\n".join(own)), images(content)
        if self.dialect == "codex-items":                   # C18
            if text or pictures:
                self.begin_turn(text, "human")
                self.add_images(pictures)
        elif text and not self.has_prompts:
            self.held = text

    def shell_escape(self, text):
        """C23"""
        if text.startswith("<user_shell_command>") and not self.copy and not self.has_shell_items and (self.announced or not self.has_lifecycle):
            self.begin_shell_turn(tagged(text, "command"))

    def begin_shell_turn(self, cmd):
        self.begin_turn("!" + cmd, "command")
        self.open.has_work = True

    def inter_agent_message(self, message):
        """C38"""
        if not self.is_new("message", text_of(message, "id")) or self.copy:
            return
        text = joined(message.get("content")) or text_of(message, "message")
        if not self.open and (self.announced or message.get("trigger_turn") is True):
            return self.begin_turn(text, "agent")
        if text:
            self.emit("message.added", role="user", kind="agent", text=text)
        self.touch(is_work=False)

    def compacted(self, payload):
        """C39"""
        if not self.is_new("window", text_of(payload, "window_id")) or self.copy:
            return
        if self.announced:
            self.begin_unprompted()
        self.close_calls("abandoned")                       # C34
        self.emit("compaction.finished", kind="full", pre_tokens=self.context_tokens or None)
        if text := text_of(payload, "message"):
            self.emit("message.added", role="summary", kind="text", text=text)
        self.touch()

    # ---- Tools

    def call(self, item):
        """C27"""
        type, name = text_of(item, "type"), text_of(item, "name") or ""
        tool = {"local_shell_call": "local_shell", "tool_search_call": "tool_search"}.get(type)
        if tool is None:
            tool = f'{item["namespace"]}.{name}' if text_of(item, "namespace") else name
        value = item.get({"local_shell_call": "action", "custom_tool_call": "input"}.get(type, "arguments"))
        if isinstance(value, str) and type != "custom_tool_call":
            value = json_or_text(value)
        call = text_of(item, "call_id") or text_of(item, "id") or self.name
        if call in self.calls:
            return                                          # C8
        if self.copy:
            self.calls.add(call)
            return
        self.work()
        self.invoke(call, tool, value)
        target = text_of(value, "target") or text_of(value, "id") or text_of(value, "agent_id")
        self.open_calls[call].update(is_spawn=name == "spawn_agent", target=target)
        if name == "spawn_agent":                           # C36
            self.emit("agent.started", call=call, agent_type=text_of(value, "agent_type") or None,
                      description=text_of(value, "task_name") or text_of(value, "message") or None, background=True)
        elif name in RESUMERS:                              # C37
            self.ended_agents.discard(self.thread_at(target))

    def invoke(self, call, tool, value):
        self.calls.add(call)
        if self.open:
            self.open.tools += 1
        self.open_calls[call] = {"tool": tool, "ms": self.ms, "input": value, "is_spawn": False}
        self.emit("tool.invoked", call=call, tool=tool, input=value)
        self.touch()

    def close_calls(self, outcome):
        for call in list(self.open_calls):
            self.end_call(call, outcome)

    def finish_call(self, call, outcome, **fields):
        """C28. False: the call is not open, the result is late."""
        if call not in self.open_calls:
            return False
        self.end_call(call, outcome, **fields)
        self.touch()
        return True

    def end_call(self, call, outcome, *, output=None, media=None, duration_ms=None, background=None):
        """C33"""
        known = self.open_calls.pop(call)
        if known["tool"] == QUESTION and outcome != "abandoned" and known["ms"] is not None and self.ms is not None:
            self.waits.append((known["ms"], self.ms))
        if duration_ms is None and outcome != "abandoned" and known["ms"] is not None and self.ms is not None:
            duration_ms = max(0, self.ms - known["ms"])
        self.emit("tool.finished", call=call, tool=known["tool"], outcome=outcome, output=output or None, media=media or None,
                  duration_ms=duration_ms, background=background or None)
        if known["is_spawn"] and outcome != "ok":           # C37
            self.emit("agent.finished", call=call, outcome="failed" if outcome == "error" else outcome)
        if known["tool"] == "update_plan" and outcome == "ok":  # C35
            todos = [{"content": text_of(step, "step") or "", "status": text_of(step, "status") or ""} for step in list_of(known["input"], "plan")]
            if todos != self.todos:
                self.todos = todos
                self.emit("todo.updated", todos=todos, source="update_plan")

    def output(self, item):
        call = text_of(item, "call_id")
        if self.copy:
            self.calls.add(call)
        if call not in self.open_calls:
            return
        known, output = self.open_calls[call], Output(item.get("output"))
        background = output.background
        value = json_or_text(output.text)
        if known["is_spawn"] and output.outcome == "ok" and text_of(value, "agent_id"):
            background = value["agent_id"]
            self.agents.setdefault(background, call)
        self.finish_call(call, output.outcome, output=output.text, media=output.media, background=background)
        if output.is_process:                               # C31
            self.tasks[call] = output.background
        name = known["tool"].rsplit(".", 1)[-1]
        if name in ("wait", "wait_agent"):                  # C37
            self.end_agents(member(value, "status"))
        elif name == "close_agent":
            status = member(value, "status") if isinstance(value, dict) and "status" in value else member(value, "previous_status")
            self.end_agent(self.thread_at(known.get("target")), closed_outcome(status))

    def item(self, item, *, call=None, tool="", value=None, output=None, media=None, background=None, outcome=None):
        """C28. An item or an event with a call's end; without such a call, it is both begin and end."""
        call = call or text_of(item, "id" if self.is_item else "call_id")
        if self.copy:
            self.calls.add(call)
            return
        call, outcome, duration = call or self.name, outcome or item_outcome(item), duration_of(item)
        if call in self.tasks:                              # C31
            self.emit("task.finished", task=self.tasks.pop(call), call=call, outcome=TASK_OUTCOMES[outcome])
            return
        if call not in self.calls:
            if not tool:
                return
            if tool == "user_shell" and (self.announced or not self.has_lifecycle):  # C23
                self.begin_shell_turn(value["cmd"])
            self.invoke(call, tool, value)
            duration = duration or 0
        self.finish_call(call, outcome, output=output, media=media, duration_ms=duration, background=background)

    def command_item(self, item):
        tool = "exec_command"
        if text_of(item, "source") == "user_shell":
            tool, self.has_shell_items = "user_shell", True
        output = text_of(item, "aggregated_output") or (text_of(item, "stdout") or "") + (text_of(item, "stderr") or "")
        self.item(item, tool=tool, value={"cmd": command(item.get("command"))}, output=output)

    def patch_item(self, item):
        self.item(item, tool="apply_patch", value={"files": list(object_of(item, "changes"))},
                  output=text_of(item, "stdout") or text_of(item, "stderr"))

    def mcp_item(self, item):
        by = item["invocation"] if isinstance(item.get("invocation"), dict) else item
        result = object_of(item, "result")
        content = (result["Ok"] if isinstance(result.get("Ok"), dict) else result).get("content")
        self.item(item, tool=tool_name(text_of(by, "server"), text_of(by, "tool")), value=by.get("arguments"), media=images(content),
                  output=joined(content) or text_of(result, "Err") or text_of(item, "error", "message"))

    def dynamic_item(self, item):
        content = item.get("content_items")
        self.item(item, tool=tool_name(text_of(item, "namespace"), text_of(item, "tool")), value=item.get("arguments"),
                  output=joined(content) or text_of(item, "error"), media=images(content))

    def view_item(self, item):
        self.item(item, tool="view_image", value={"path": text_of(item, "path") or ""})

    def sleep_item(self, item):
        self.item(item, tool="sleep")

    def search_item(self, item, call=None):
        """C30"""
        self.has_searches |= call is None
        query = text_of(item, "query") or text_of(item, "action", "query") or text_of(item, "action", "url") or ""
        self.item(item, call=call, tool="web_search", value={"query": query})

    def extension_item(self, item):
        self.search_item(item, text_of(item, "id") or self.name)

    def picture_item(self, item, call=None):
        self.has_pictures |= call is None
        self.item(item, call=call, tool="image_generation", value={"prompt": text_of(item, "revised_prompt") or ""})

    def search_call(self, item):
        if not self.has_searches:
            self.hosted_call(item, self.search_item)

    def picture_call(self, item):
        if not self.has_pictures:
            self.hosted_call(item, self.picture_item)

    def hosted_call(self, item, read):
        call = text_of(item, "call_id") or text_of(item, "id") or self.name
        if not self.copy and call not in self.calls:
            self.work()
        read(item, call)

    # ---- Agents

    def thread_at(self, name):
        """The thread that an id or a path names; None: the path is unknown."""
        return self.paths.get(name, None if (name or "/").startswith("/") else name)

    def end_agent(self, agent, outcome):
        """C37"""
        if outcome and agent and agent not in self.ended_agents:
            self.ended_agents.add(agent)
            if not self.copy:
                self.emit("agent.finished", subagent=agent, call=self.agents.get(agent), outcome=outcome)

    def end_agents(self, statuses):
        for agent, status in statuses.items() if isinstance(statuses, dict) else ():
            self.end_agent(agent, agent_outcome(status["status"] if isinstance(status, dict) and "status" in status else status))

    def activity(self, item):
        """C36, C37"""
        call = text_of(item, "id") if self.is_item else text_of(item, "call_id") or text_of(item, "event_id")
        agent, kind = text_of(item, "agent_thread_id"), text_of(item, "kind")
        if agent and text_of(item, "agent_path"):
            self.paths[item["agent_path"]] = agent
        if kind == "started" and agent and (self.copy or call in self.calls):
            self.agents.setdefault(agent, call)
        elif kind == "interacted":
            self.ended_agents.discard(agent)
        self.end_agent(agent, agent_outcome(kind))
        if not self.copy:
            self.finish_call(call, "ok", background=agent if kind == "started" else None)

    def spawn_end(self, event):
        agent = text_of(event, "new_thread_id")
        if agent:
            self.agents.setdefault(agent, text_of(event, "call_id"))
        self.item(event, background=agent, outcome="ok" if agent else "error")

    def waiting_end(self, event):
        self.end_agents(event.get("statuses"))
        for each in list_of(event, "agent_statuses"):
            self.end_agent(text_of(each, "thread_id"), agent_outcome(member(each, "status")))
        self.item(event)

    def close_end(self, event):
        self.end_agent(text_of(event, "receiver_thread_id"), closed_outcome(event.get("status")))
        self.item(event)

    def collab_item(self, item):
        self.end_agents(item.get("agents_states"))
        self.item(item, tool=text_of(item, "tool") or "")

    def notification(self, text):
        if text.startswith("<subagent_notification>"):
            value = json_or_text(tagged(text, "subagent_notification"))
            agent = text_of(value, "agent_id") or text_of(value, "agent_path")
            self.end_agent(self.thread_at(agent), agent_outcome(member(value, "status")))

    # ---- Numbers

    def usage_record(self, record):
        """A response's own record, from 0.160 on: what follows it in `token_count` says nothing new about the response."""
        used, total = counts(record.get("usage")), counts(record.get("thread_token_usage"))
        if not used or not any(used.values()):
            return
        self.has_records = self.is_recorded = True
        id = text_of(record, "response_id")
        is_new = not id or used != self.responses.get(id)
        if id and not self.copy:
            self.responses[id] = used
        self.usage = total or {key: self.usage[key] + is_new * used[key] for key in used}
        tokens = natural(record, "usage", "total_tokens")
        self.context_tokens = tokens if tokens is not None else self.context_tokens
        if is_new and not self.copy:
            self.emit("usage.updated", message=id, model=self.known.get("model"), **used,
                      reasoning=natural(record, "usage", "reasoning_output_tokens"), total=dict(self.usage), context_tokens=tokens)

    def added(self, total, last):
        """What a total adds: none if it was written late; that of the message if it begins anew."""
        fell = any(total[key] < self.counted[key] for key in total)
        anew = last == total and total not in (self.counted, self.first)
        if fell and last and not anew:
            return dict.fromkeys(total, 0)
        is_first = not any(self.counted.values())
        more = last or dict.fromkeys(total, 0) if anew or fell or is_first and last else {key: total[key] - self.counted[key] for key in total}
        if last == total:
            self.first = total
        self.counted = total
        return more

    def token_count(self, event):
        """C42"""
        info = object_of(event, "info")
        last, total = counts(info.get("last_token_usage")), counts(info.get("total_token_usage"))
        if last or total:
            tokens, window = natural(info, "last_token_usage", "total_tokens"), natural(info, "model_context_window")
            if total and not any(total.values()) and window and natural(info, "total_token_usage", "total_tokens") == window:
                tokens = window                             # the request did not fit
            is_context_new = tokens is not None and tokens != self.context_tokens
            self.context_tokens = tokens if tokens is not None else self.context_tokens
            repeated = self.is_recorded or self.has_records and total == self.counted
            self.is_recorded = self.is_recorded and total == self.counted
            more = self.added(total, last) if total else None
            if not self.has_records:
                self.usage = total or self.usage
            elif more and not repeated:
                self.usage = {key: self.usage[key] + more[key] for key in more}
            now = {**(last or {}), "reasoning": natural(info, "last_token_usage", "reasoning_output_tokens"), "total": dict(self.usage),
                   "context_tokens": tokens, "context_window": window}
            is_window_new = not self.last_usage or self.last_usage["context_window"] != window
            is_new = is_context_new or is_window_new if repeated else now != self.last_usage
            self.last_usage = dict(now)
            if repeated:
                now = {key: now[key] for key in ("total", "context_tokens", "context_window")}
            if is_new and not self.copy:
                self.emit("usage.updated", model=self.known.get("model"), **now)
        if isinstance(event.get("rate_limits"), dict) and not self.copy:
            self.limit(event["rate_limits"])

    def limit(self, limits):
        """C43"""
        windows = []
        for name in ("primary", "secondary"):
            window = limits.get(name)
            if isinstance(window, dict):
                at, seconds = integer_of(window, "resets_at"), integer_of(window, "resets_in_seconds")
                at = at if at is not None else integer_of(window, "reset_at")
                if at is None and seconds is not None and self.ms is not None:
                    at = self.ms // 1000 + seconds
                windows.append((name, number_of(window, "used_percent"), integer_of(window, "window_minutes"), at))
        limit, plan, reached = text_of(limits, "limit_id"), text_of(limits, "plan_type"), first_key(limits.get("rate_limit_reached_type"))
        if not (windows or plan or reached):
            return
        before, self.limits[limit] = self.limits.get(limit), (plan, reached, windows)
        if before and before[:2] == (plan, reached) and len(before[2]) == len(windows) and all(
                a[:3] == b[:3] and abs((a[3] or 0) - (b[3] or 0)) <= limit_drift_seconds for a, b in zip(before[2], windows)):
            self.limits[limit] = before
            return
        shown = [{"name": name, "used_percent": used, "window_minutes": minutes, "resets_at": utc(at)} for name, used, minutes, at in windows]
        self.emit("limits.updated", limit=limit or None, plan=plan or None, reached=reached or None,
                  windows=[{key: value for key, value in each.items() if value is not None} for each in shown])


# ---- What reads which record

HANDLERS = {"turn_context": Assembler.turn_context, "compacted": Assembler.compacted, "token_usage_record": Assembler.usage_record,
            "inter_agent_communication": Assembler.inter_agent_message}
EVENTS = {"task_started": Assembler.task_started, "turn_started": Assembler.task_started, "task_complete": Assembler.task_complete,
          "turn_complete": Assembler.task_complete, "turn_aborted": Assembler.turn_aborted, "user_message": Assembler.user_message,
          "agent_message": Assembler.agent_text, "agent_reasoning": Assembler.agent_reasoning,
          "agent_reasoning_raw_content": Assembler.agent_reasoning, "token_count": Assembler.token_count, "error": Assembler.error,
          "stream_error": Assembler.stream_error, "thread_name_updated": Assembler.thread_name_updated,
          "exec_command_end": Assembler.command_item, "patch_apply_end": Assembler.patch_item, "mcp_tool_call_end": Assembler.mcp_item,
          "dynamic_tool_call_response": Assembler.dynamic_item, "view_image_tool_call": Assembler.view_item,
          "web_search_end": Assembler.search_item, "image_generation_end": Assembler.picture_item, "sub_agent_activity": Assembler.activity,
          "collab_agent_spawn_end": Assembler.spawn_end, "collab_waiting_end": Assembler.waiting_end, "collab_close_end": Assembler.close_end}
RESPONSES = {"message": Assembler.message, "reasoning": Assembler.reasoning, "agent_message": Assembler.inter_agent_message,
             "function_call": Assembler.call, "custom_tool_call": Assembler.call, "local_shell_call": Assembler.call,
             "tool_search_call": Assembler.call, "web_search_call": Assembler.search_call, "image_generation_call": Assembler.picture_call}
ITEM_TYPES = {"UserMessage": Assembler.user_item, "AgentMessage": Assembler.agent_item, "Reasoning": Assembler.reasoning_item,
              "Plan": Assembler.plan_item, "SubAgentActivity": Assembler.activity, "CommandExecution": Assembler.command_item,
              "FileChange": Assembler.patch_item, "McpToolCall": Assembler.mcp_item, "DynamicToolCall": Assembler.dynamic_item,
              "WebSearch": Assembler.search_item, "ImageView": Assembler.view_item, "ImageGeneration": Assembler.picture_item,
              "CollabAgentToolCall": Assembler.collab_item, "Sleep": Assembler.sleep_item, "Extension": Assembler.extension_item}
