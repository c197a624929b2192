"""Reference assembler for event logs of GitHub Copilot CLI: plain, slow, and independent of the daemon.

K1, K2, … number the rules of the format.
"""
import collections
import re

from reference import count_of, integer_of, lines, list_of, milliseconds, object_of, text_of, union_ms

COUNTS = {"input": "inputTokens", "output": "outputTokens", "cache_read": "cacheReadTokens", "cache_write": "cacheWriteTokens"}
HANDLED = """abort assistant.message assistant.reasoning assistant.turn_end permission.completed permission.requested
    session.compaction_complete session.compaction_start session.context_changed session.error session.info session.mode_changed
    session.model_change session.permissions_changed session.resume session.shutdown session.start session.task_complete
    session.truncation session.usage_record session.warning subagent.completed subagent.failed subagent.started
    system.notification tool.execution_complete tool.execution_start tool.user_requested user.message""".split()
WITHOUT_MEANING = """assistant.turn_start external_tool.completed external_tool.requested hook.end hook.start
    human_response.recorded model.message model.messages_snapshot model.model_call_started model.model_call_success model.response
    model.turn_ended model.turn_started session.mode_notice_delivered session.auto_mode_resolved session.autopilot_objective_changed session.binary_asset
    session.canvas.recorded session.canvas.removed session.context_cleared session.handoff session.plan_changed
    session.remote_steerable_changed session.schedule_cancelled session.schedule_created session.schedule_rearmed
    session.session_limits_changed session.usage_checkpoint session.workspace_file_changed skill.invoked subagent.configured
    subagent.deselected subagent.selected system.message tool_search.activated""".split()  # K27
KNOWN_TYPES = {*HANDLED, *WITHOUT_MEANING}
OWN_CHAIN_ONLY = """assistant.turn_end session.context_changed session.mode_changed session.model_change session.permissions_changed
    session.resume session.shutdown session.start session.task_complete""".split()  # K2, K8: a subagent's say nothing of the session
QUESTIONS = {"ask_user", "exit_plan_mode"}  # tools that wait for the user's answer
TODO_LINE = re.compile(r"\s*(?:[-*+]|[0-9]+[.)])[ \t]*\[([ xX~/-])\][ \t]*(.*)", re.ASCII)


def events(data: bytes, *, stem: str):
    """`stem` is the session: the directory's name of an `events.jsonl`, else the file's without `.jsonl` (K1)."""
    assembler = Assembler(stem)
    for line in lines(data):
        yield from assembler.line(line)


def unknown(data: bytes) -> collections.Counter:
    """Records without a meaning in the rules, by type."""
    assembler = Assembler("")
    for line in lines(data):
        assembler.line(line)
    return assembler.unknown


class Call:
    """A call of a tool."""

    def __init__(self, id, tool, arguments, agent, ms):
        self.id, self.tool, self.arguments, self.agent, self.ms = id, tool, arguments, agent, ms
        self.is_open = True

    @property
    def is_background(self):
        return text_of(self.arguments, "mode") == "background"


class Agent:
    """A subagent."""

    def __init__(self, id, call):
        self.id, self.call, self.is_finished = id, call, False


class Request:
    """A request for the user's permission that is not answered."""

    def __init__(self, id, call, ms, waits):
        self.id, self.call, self.ms, self.waits = id, call, ms, waits


class Assembler:
    def __init__(self, session):
        self.session, self.unknown = session, collections.Counter()
        self.is_proved, self.is_started, self.ids = False, False, set()
        self.project = None                   # the first cwd
        self.known = {}                       # cwd, git_branch, version, model, mode, permission_mode
        self.turn, self.is_open, self.turn_tools = 0, False, 0
        self.steps = None                     # what the own chain's last record was: prompt, text, calls, result
        self.is_task_complete = False         # the program said so in this turn
        self.was_notified = False             # since the last turn ended
        self.last_ms = None                   # of the own chain's last user, assistant, result or turn_end record
        self.calls, self.agents = {}, {}
        self.user_calls = set()               # commands of the user, not of the model
        self.permissions, self.denied = {}, set()  # a request's call; calls
        self.requests, self.waits = [], []    # waits: times at which the turn asked, and was answered
        self.tasks, self.todos = set(), {}
        self.usage, self.output = dict.fromkeys(COUNTS, 0), {}  # the stream's; each message's output
        self.has_usage_records = False
        self.compactions = {}                 # by agent, those that began: their time and trigger

    # ---- Lines and events

    def line(self, line):
        self.end, self.time, self.ms, self.agent, self.out = line.end, None, None, None, []
        for skipped in line.skipped:
            self.emit("line.skipped", **skipped)
        for number, record in enumerate(line.records):
            self.name = f"@{line.begin}" + (f".{number}" if number else "")
            self.record(record)
        return self.out

    def emit(self, type, **fields):
        event = {"type": type, "session": self.session, "agent": self.agent, "offset": self.end, "index": len(self.out) + 1,
                 "time": self.time, "turn": self.turn, **fields}
        self.out.append({key: value for key, value in event.items() if value is not None})

    def record(self, record):
        if not isinstance(record, dict):
            self.unknown["(not an object)"] += 1
            return
        type, data = text_of(record, "type") or "(no type)", record.get("data")
        is_record = type in KNOWN_TYPES and isinstance(data, dict)
        self.is_proved |= is_record           # the program: before, no record has a meaning
        if not self.is_proved or type not in KNOWN_TYPES:
            self.unknown[type] += 1
        if not self.is_proved:
            return
        time = text_of(record, "timestamp")   # K4
        self.ms = milliseconds(time)
        self.time = time if self.ms is not None else None
        if id := text_of(record, "id"):       # K5
            if id in self.ids:
                return
            self.ids.add(id)
        if not is_record or record.get("ephemeral") is True:
            return
        self.id = id or self.name
        self.agent = None
        agent = text_of(record, "agentId") or text_of(data, "parentToolCallId") or None  # K2
        if not self.is_started and type != "session.context_changed":
            self.start(data if type == "session.start" and not agent else {})
        self.agent = agent
        if type in HANDLED and (self.is_own or type not in OWN_CHAIN_ONLY):
            getattr(self, type.replace(".", "_"))(data)

    @property
    def is_own(self):
        """K3"""
        return self.agent is None

    # ---- Session

    def start(self, data):
        """K7"""
        self.is_started = True
        self.set(**properties(data))
        self.emit("session.started", program="copilot", dialect="copilot-cli", project=self.project,
                  version=self.known.get("version"), cwd=self.known.get("cwd"), git_branch=self.known.get("git_branch"))

    def set(self, **fields):
        """Returns what changed."""
        changed = {key: value for key, value in fields.items() if value and value != self.known.get(key)}
        self.known |= changed
        self.project = self.project or self.known.get("cwd")
        return changed

    def update(self, **fields):
        """K8"""
        changed = self.set(**fields)
        if changed and self.is_started:
            self.emit("session.updated", **changed)

    def session_start(self, data):
        self.update(**properties(data), model=model_of(data, "selectedModel"))
        if self.is_open and data.get("alreadyInUse") is not True and data.get("continuePendingWork") is not True:  # K14
            self.finish_turn("interrupted", self.last_ms, stop_reason="resumed")
        if data.get("alreadyInUse") is not True and data.get("continuePendingWork") is not True:
            self.forget_requests()

    session_resume = session_start

    def session_context_changed(self, data):
        self.update(cwd=text_of(data, "cwd"), git_branch=text_of(data, "branch"))

    def session_model_change(self, data):
        self.update(model=model_of(data, "newModel"))

    def session_mode_changed(self, data):
        self.update(mode=text_of(data, "newMode"))

    def session_permissions_changed(self, data):
        allows_all = data.get("allowAllPermissions")
        mode = {True: "allow-all", False: "manual"}[allows_all] if isinstance(allows_all, bool) else None
        self.update(permission_mode=text_of(data, "mode") or mode)

    # ---- Turns

    def user_message(self, data):
        if self.is_own and text_of(data, "agentMode") == "shell":            # K9
            return
        content, delivery = text_of(data, "content"), text_of(data, "delivery") or "idle"
        if not self.is_own or (delivery == "steering" and self.is_open):     # K10, K11
            self.add_message("user", "text", content)
        elif data.get("isAutopilotContinuation") is True:
            self.start_turn("unknown")
        else:
            self.start_turn("human" if delivery == "idle" else "queued", content or None)
        for attachment in list_of(data, "attachments"):                      # K11
            text = text_of(attachment, "displayName") or text_of(attachment, "path") or None
            if media_type := text_of(attachment, "type"):
                self.emit("message.added", role="user", kind="document", text=text, media={"kind": "document", "media_type": media_type})
            elif text:
                self.emit("message.added", role="user", kind="document", text=text)
        self.count_last("prompt")

    def count_last(self, steps=None):
        if self.is_own:
            self.steps = steps or self.steps
            self.last_ms = self.last_ms if self.ms is None else self.ms

    @property
    def end_ms(self):
        """Of a turn that this record finishes."""
        return self.last_ms if self.ms is None else self.ms

    def start_turn(self, origin, prompt=None):
        was_done = self.steps == "text" and not any(call.is_open for call in self.calls.values())
        self.close_calls("abandoned")                                        # K18
        if self.is_open:                                                     # K13
            outcome, inferred = ("completed", True) if was_done else ("superseded", None)
            self.finish_turn(outcome, self.last_ms, inferred=inferred)
        self.forget_requests()
        self.waits = []
        self.turn += 1
        self.is_open, self.turn_ms, self.turn_tools, self.turn_usage = True, self.ms, 0, dict(self.usage)
        self.steps, self.is_task_complete, self.last_ms = None, False, self.ms
        self.emit("turn.started", prompt=prompt, origin=origin)

    def finish_turn(self, outcome, end_ms, **fields):
        is_timed = end_ms is not None and self.turn_ms is not None
        self.is_open = self.was_notified = False
        self.emit("turn.finished", outcome=outcome, duration_ms=max(0, end_ms - self.turn_ms) if is_timed else None,
                  tools=self.turn_tools, usage={key: self.usage[key] - self.turn_usage[key] for key in COUNTS}, waited_ms=union_ms(self.waits), **fields)

    def assistant_turn_end(self, data):
        """K13"""
        self.count_last()
        is_done = self.steps == "text" or self.is_task_complete
        if self.is_open and is_done and not any(call.is_open and not call.agent for call in self.calls.values()):
            self.finish_turn("completed", self.end_ms)

    def session_task_complete(self, data):
        self.is_task_complete = True

    def abort(self, data):
        """K14; that of a subagent ends its calls only."""
        self.close_calls("interrupted", only_agent=self.agent)
        if self.is_own:
            self.forget_requests(is_known=True)
        if self.is_own and self.is_open:
            self.finish_turn("interrupted", self.end_ms, stop_reason=text_of(data, "reason") or None)

    def session_error(self, data):
        """K25, K14"""
        self.emit("api.failed", status=integer_of(data, "statusCode"), error=text_of(data, "message") or None, fatal=True)
        if self.is_own and self.is_open:
            self.forget_requests(is_known=True)
            self.finish_turn("failed", self.end_ms, stop_reason=text_of(data, "errorType") or None)

    def session_shutdown(self, data):
        """K14, K23"""
        ends_turn = self.is_open
        if ends_turn:
            self.close_calls("interrupted")
        self.forget_requests(is_known=True)
        total = collections.Counter()
        for metrics in object_of(data, "modelMetrics").values():
            total.update(usage_of(object_of(metrics, "usage")))
        grown = {key: max(self.usage[key], total[key]) for key in COUNTS}
        if grown != self.usage:
            self.usage = grown
            self.emit("usage.updated", total=dict(self.usage))
        if ends_turn:
            outcome = "failed" if text_of(data, "shutdownType") == "error" else "interrupted"
            self.finish_turn(outcome, self.end_ms, stop_reason="shutdown")

    # ---- Messages

    def add_message(self, role, kind, text, **fields):
        """K22"""
        if text:
            self.emit("message.added", role=role, kind=kind, text=text, **fields)

    def assistant_message(self, data):
        model, message = text_of(data, "model") or None, text_of(data, "messageId") or None
        if self.is_own:
            self.update(model=model_of(data, "model"))
            if not self.is_open:                                             # K12
                self.start_turn("task" if self.was_notified else "unknown")
        self.add_message("assistant", "thinking", text_of(data, "reasoningText"), message=message, model=model)
        self.add_message("assistant", "text", text_of(data, "content"), message=message, model=model)
        requests = list_of(data, "toolRequests")
        for request in requests:                                             # K15
            self.invoke(request, "name", message=message)
        self.add_output(message, model, count_of(data, "outputTokens") or 0)
        self.count_last("calls" if requests else "text")

    def assistant_reasoning(self, data):
        self.add_message("assistant", "thinking", text_of(data, "content"), message=text_of(data, "reasoningId") or None)

    def session_info(self, data):
        self.add_message("system", "text", text_of(data, "message"))

    session_warning = session_info

    # ---- Tools

    def invoke(self, data, name, **fields):
        """K15"""
        id = text_of(data, "toolCallId")
        if not id or id in self.calls:
            return
        call = self.calls[id] = Call(id, text_of(data, name) or "", data.get("arguments"), self.agent, self.ms)
        self.turn_tools += self.is_own
        self.emit("tool.invoked", call=id, tool=call.tool, input=call.arguments, **fields)

    def tool_user_requested(self, data):
        """K16"""
        if id := text_of(data, "toolCallId"):
            self.user_calls.add(id)

    def tool_execution_start(self, data):
        id = text_of(data, "toolCallId")
        if id in self.user_calls:
            return
        self.invoke(data, "toolName")
        if id in self.calls and self.ms is not None:
            self.calls[id].ms = self.ms

    def finish_call(self, call, outcome, **fields):
        is_timed = outcome != "abandoned" and call.ms is not None and self.ms is not None
        call.is_open = False
        self.emit("tool.finished", call=call.id, tool=call.tool, outcome=outcome,
                  duration_ms=max(0, self.ms - call.ms) if is_timed else None, **fields)
        if is_timed and call.tool in QUESTIONS and not call.agent:
            self.waits.append((call.ms, self.ms))
        self.end_requests(lambda request: request.call == call.id, is_known=outcome != "abandoned")
        if outcome in ("denied", "interrupted", "abandoned"):                # K20
            for agent in self.agents_of(call.id):
                self.finish_agent(agent, outcome)

    def close_calls(self, outcome, only_agent=None):
        """In order of invocation."""
        agent = self.agent
        for call in self.calls.values():
            if call.is_open and (only_agent is None or call.agent == only_agent):
                self.agent = call.agent
                self.finish_call(call, outcome)
        self.agent = agent

    def tool_execution_complete(self, data):
        """K16"""
        id = text_of(data, "toolCallId")
        call = self.calls.get(id)
        is_open = call and call.is_open
        if not is_open and (data.get("isUserRequested") is True or id in self.user_calls):
            return
        self.count_last("result")
        if not is_open:
            return
        code = text_of(data, "error", "code")
        if data.get("success") is True:
            outcome = "ok"
        elif id in self.denied or code in ("denied", "rejected"):
            outcome = "denied"
        elif code in ("aborted", "abort", "cancelled", "canceled", "interrupted"):
            outcome = "interrupted"
        else:
            outcome = "error"
        output = text_of(data, "result", "content")
        if output is None:
            output = text_of(data, "error", "message")
        running = self.agents_of(id) if outcome == "ok" and call.is_background else []
        self.finish_call(call, outcome, output=output, background=running[0].id if running else None)
        if outcome == "ok" and call.tool == "update_todo":
            self.set_todos(text_of(call.arguments, "todos"))

    def set_todos(self, text):
        """K25"""
        if text is None:
            return
        todos = []
        for line in text.split("\n"):
            if match := TODO_LINE.fullmatch(line.removesuffix("\r")):
                todos.append({"content": match[2], "status": {"x": "completed", "X": "completed", " ": "pending"}.get(match[1], "in_progress")})
        if todos != self.todos.get(self.agent, []):
            self.todos[self.agent] = todos
            self.emit("todo.updated", todos=todos, source="update_todo")

    def permission_requested(self, data):
        id, call = text_of(data, "requestId"), text_of(data, "permissionRequest", "toolCallId")
        if id:
            self.permissions[id] = call
            self.end_requests(lambda request: request.id == id)
        is_done = call in self.calls and not self.calls[call].is_open
        if id or call:
            self.requests.append(Request(id, call, self.ms, self.is_own and data.get("resolvedByHook") is not True and not is_done))

    def end_requests(self, is_one, is_known=True):
        """The user's answer ends a wait, and so does what makes it pointless."""
        for request in [each for each in self.requests if is_one(each)]:
            self.requests.remove(request)
            self.end_wait(request, is_known)

    def end_wait(self, request, is_known):
        if request.waits and is_known and request.ms is not None and self.ms is not None:
            self.waits.append((request.ms, self.ms))
        request.waits = False

    def forget_requests(self, is_known=False):
        """They do not wait any more; an answer may still come."""
        for request in self.requests:
            self.end_wait(request, is_known)

    def permission_completed(self, data):
        """K17"""
        id = text_of(data, "requestId")
        if any(request.id and request.id == id for request in self.requests):
            self.end_requests(lambda request: request.id == id)
        else:
            self.end_requests(lambda request: (request.call or "") == (text_of(data, "toolCallId") or ""))
        call = self.permissions.pop(id, None) or text_of(data, "toolCallId")
        kind = text_of(data, "result", "kind") or ""
        if kind.startswith("denied-") or kind == "cancelled":
            self.denied.add(call)

    # ---- Subagents and background work

    def agents_of(self, call):
        """The call's unfinished agents, by id."""
        return [agent for _, agent in sorted(self.agents.items()) if agent.call == call and not agent.is_finished]

    def subagent_started(self, data):
        """K19"""
        call, id = text_of(data, "toolCallId"), self.agent or text_of(data, "toolCallId")
        self.agent = None
        if not call or id in self.agents and not self.agents[id].is_finished:
            return
        self.agents[id] = Agent(id, call)
        made = self.calls.get(call)
        arguments = made.arguments if made and made.is_open else None
        description = text_of(arguments, "description") or text_of(data, "agentDisplayName") or None
        self.emit("agent.started", subagent=id, agent_type=text_of(data, "agentName") or None, call=call, description=description,
                  background=True if text_of(arguments, "mode") == "background" else None)

    def subagent_completed(self, data):
        self.end_subagent(data, "stopped" if data.get("cancelled") is True else "completed")

    def subagent_failed(self, data):
        self.end_subagent(data, "failed")

    def end_subagent(self, data, outcome):
        """K20"""
        call, id = text_of(data, "toolCallId"), self.agent or text_of(data, "toolCallId")
        self.agent = None
        if not id:
            return
        agent = self.agents.get(id) or next(iter(self.agents_of(call or "")), None) or self.agents.setdefault(id, Agent(id, call or ""))
        if not agent.is_finished:
            self.finish_agent(agent, outcome, duration_ms=count_of(data, "durationMs"), tokens=count_of(data, "totalTokens"),
                              tools=count_of(data, "totalToolCalls"))

    def finish_agent(self, agent, outcome, **fields):
        agent.is_finished, chain, self.agent = True, self.agent, None
        self.emit("agent.finished", subagent=agent.id, call=agent.call or None, outcome=outcome, **fields)
        self.agent = chain

    def system_notification(self, data):
        """K21, K12"""
        self.was_notified |= self.is_own
        kind = object_of(data, "kind")
        type = text_of(kind, "type") or ""
        task = text_of(kind, "agentId") or text_of(kind, "shellId") or text_of(kind, "runId")
        if not task or not (type.endswith("completed") or type == "agent_idle"):
            return
        outcome = text_of(kind, "status") or ("failed" if integer_of(kind, "exitCode") else "completed")
        if (task, outcome) in self.tasks:
            return
        self.tasks.add((task, outcome))
        agent = self.agents.get(task)
        summary = text_of(kind, "description") or text_of(data, "content") or None
        self.emit("task.finished", task=task, call=(agent.call or None) if agent else None, outcome=outcome, summary=summary)

    # ---- Usage and compaction

    def session_usage_record(self, data):
        """K23"""
        usage = data.get("usage")
        if not isinstance(usage, dict):
            return
        self.has_usage_records = True
        counts = usage_of(usage)
        for key in COUNTS:
            self.usage[key] += counts[key]
        self.emit("usage.updated", model=text_of(usage, "model") or None, **counts, total=dict(self.usage))

    def add_output(self, message, model, output):
        """K23: in a stream without records of usage."""
        key = message or self.id
        before = self.output.get(key, 0)
        if self.has_usage_records or output <= before:
            return
        self.output[key] = output
        self.usage["output"] += output - before
        self.emit("usage.updated", message=message, model=model, **{**dict.fromkeys(COUNTS, 0), "output": output}, total=dict(self.usage))

    def session_compaction_start(self, data):
        """K24"""
        trigger = text_of(data, "trigger") or None
        self.compactions[self.agent] = self.ms, trigger
        self.emit("compaction.started", trigger=trigger)

    def session_compaction_complete(self, data):
        began_ms, trigger = self.compactions.pop(self.agent, (None, None))
        if data.get("success") is not True:
            return self.add_message("system", "text", text_of(data, "error"))
        is_timed = began_ms is not None and self.ms is not None
        self.emit("compaction.finished", kind="full", trigger=text_of(data, "trigger") or trigger,
                  pre_tokens=count_of(data, "preCompactionTokens"), post_tokens=count_of(data, "postCompactionTokens"),
                  duration_ms=max(0, self.ms - began_ms) if is_timed else None)
        self.add_message("summary", "text", text_of(data, "summaryContent"))

    def session_truncation(self, data):
        self.emit("compaction.finished", kind="micro", pre_tokens=count_of(data, "preTruncationTokensInMessages"),
                  post_tokens=count_of(data, "postTruncationTokensInMessages"))


def properties(data):
    """What `session.start` and `session.resume` say of the session."""
    context = object_of(data, "context")
    found = {"cwd": text_of(context, "cwd"), "git_branch": text_of(context, "branch"), "version": text_of(data, "copilotVersion")}
    return {key: value for key, value in found.items() if value}


def model_of(data, key):
    """K8: `auto` is no model."""
    model = text_of(data, key)
    return model if model != "auto" else None


def usage_of(usage):
    """K23: the cached tokens are part of `inputTokens`."""
    counts = {key: count_of(usage, name) or 0 for key, name in COUNTS.items()}
    counts["input"] = max(0, counts["input"] - counts["cache_read"] - counts["cache_write"])
    return counts
