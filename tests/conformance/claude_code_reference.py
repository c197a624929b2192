"""Reference assembler for transcripts of Claude Code, versions 0.2 to 2.1: plain, slow, and independent of the daemon.

C1, C2, … number the rules of the format.
"""
import collections
import re

from claude_code_records import (CAVEAT, CHAIN_TYPES, COMMAND_TAGS, COUNTS, INTERRUPTIONS, METADATA_TYPES, OTHER_TAGS, TURN_TAGS, Agent,
                                 Call, Content, agent_of, api_error_of, command_of, dialect_of, files_of, is_of_program, launch_of,
                                 launched_agent_of, leading_tag, monitor_of, notification_of, outcome_of, prompt_of, recorded_count, tasks_of,
                                 time_of, todos_after, unknown_name, usage_of, without_reminders)
from reference import integer_of, lines, list_of, member, number_of, object_of, text_of, union_ms

AGENT_TOOLS = {"Agent", "Task"}
QUESTIONS = {"AskUserQuestion", "ExitPlanMode"}
END_REASONS = {"end_turn", "max_tokens", "refusal", "stop_sequence"}
SPOKEN_SYSTEM = {None, "away_summary", "bridge_status", "informational", "model_refusal_fallback"}
HANDLED = {type: type.replace("-", "_") for type in CHAIN_TYPES | METADATA_TYPES}
HANDLED_OF_DIALECT = {"claude-messages": {"human": "user", "tool_result": "user", "compact_prelude": "compact_prelude",
                                          "compact_recap": "compact_recap"}, "claude-flat": {"compact_system": "compact_system"}}
AGENT_OUTCOMES = {"ok": "completed", "error": "failed"}
TASK_OUTCOMES = {"killed": "stopped"}
agent_stem = re.compile(r"(?:(?P<session>[^/]+)/subagents/(?:.*/)?)?agent-(?P<agent>[^/]+)", re.DOTALL)


def events(data: bytes, *, stem: str):
    """`stem` is the transcript's path in the directory of its project, without `.jsonl`: `<session>`, `agent-<agent>` or
    `<session>/subagents/…/agent-<agent>` (C2)."""
    found = agent_stem.fullmatch(stem)
    if found:
        session, agent = found["session"], found["agent"]
    else:
        session, agent = stem.split("/")[-1], None
    assembler = Assembler(session, agent)
    for line in lines(data):
        yield from assembler.line(line)


def unknown(data: bytes) -> collections.Counter:
    """Records without a meaning in the rules, by type."""
    assembler = Assembler("", None)
    for line in lines(data):
        assembler.line(line)
    return assembler.unknown


class Assembler:
    def __init__(self, session, agent):
        self.session, self.own_agent, self.unknown = session, agent, collections.Counter()
        self.dialect, self.is_started, self.is_dropped, self.uuids = None, False, False, set()
        self.known, self.titles = {}, {}          # known: version, cwd, git_branch, model, mode, permission_mode, title
        self.project = self.continues = None
        self.summaries = {}                       # titles of leaves that are not in the file yet
        self.has_other_records = False            # than leading summaries
        self.chains, self.last_chain, self.dropped_chains = {}, None, set()  # inline sidechains: uuid to root
        self.spoken_chains = set()                # whose first text of the user was read
        self.turn, self.is_open, self.turn_tools, self.turn_ms = 0, False, 0, None
        self.last_step, self.last_ms = None, None  # of the own chain's last user or assistant record
        self.last_message = None                  # the own chain's: its later blocks belong to the same turn
        self.was_hook_feedback = False            # since the last turn ended
        self.commands, self.fires = {}, set()     # records of slash commands, of schedules
        self.calls, self.waits = {}, []
        self.answered = {}                        # calls whose result was read before they were
        self.agents, self.told, self.early = {}, set(), {}
        self.tasks = {}                           # background commands and monitors that were not told finished: their calls
        self.todos = {}
        self.usage, self.requests, self.cost = dict.fromkeys([*COUNTS, "cache_write"], 0), {}, None
        self.is_compacted = False                 # a boundary was read, its summary was not
        self.knows_position = False               # C21

    # ---- Lines and events

    def line(self, line):
        self.end, self.time, self.ms, self.agent, self.out = line.end, None, None, self.own_agent, []
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
        type = text_of(record, "type")
        self.dialect = self.dialect or dialect_of(record)
        if name := unknown_name(record, self.dialect):
            self.unknown[name] += 1
        if not self.dialect and type not in METADATA_TYPES:  # C5
            return
        uuid = text_of(record, "uuid")
        if uuid in self.uuids:                               # C9
            return
        if uuid:
            self.uuids.add(uuid)
            if uuid in self.summaries:                       # C12
                self.titles["summary"] = self.summaries.pop(uuid)
        self.session = self.session or text_of(record, "sessionId")  # C2
        self.time, self.ms = time_of(record)
        self.id, self.parent = uuid or self.name, text_of(record, "parentUuid")
        self.agent = self.own_agent or self.sidechain(record)
        if record.get("isDeleted") is True or self.is_dropped:  # C31
            return
        self.has_other_records |= type != "summary"
        is_warmup = self.is_warmup(record)
        if not self.is_dropped:
            self.properties(record, uuid)
        if is_warmup:
            return
        if handler := HANDLED.get(type) or HANDLED_OF_DIALECT.get(self.dialect, {}).get(type):
            getattr(self, handler)(record)
        if record.get("isAborted") is True:                  # C31
            self.interrupt()

    @property
    def is_own(self):
        """C4: the main chain, or the agent of the agent's file."""
        return self.agent == self.own_agent

    def sidechain(self, record):
        """C3: the root of an inline sidechain."""
        if record.get("isSidechain") is not True:
            return None
        if "parentUuid" in record or self.last_chain is None:
            root = self.chains.get(self.parent, self.id)
        else:
            root = self.last_chain
        self.chains[self.id], self.last_chain = root, root
        return root

    def is_warmup(self, record):
        """C1"""
        if not self.agent or self.agent in self.dropped_chains:
            return bool(self.agent)
        if text_of(record, "type") in ("user", "human") and self.agent not in self.spoken_chains:
            self.spoken_chains.add(self.agent)
            if Content(self.message_of(record)).first == "Warmup":
                self.dropped_chains.add(self.agent)
                self.is_dropped = self.own_agent is not None
                return True
        return False

    @staticmethod
    def message_of(record):
        message = record.get("message")
        return message.get("content") if isinstance(message, dict) else message

    # ---- Session

    def properties(self, record, uuid):
        """C11, C12"""
        type, model = text_of(record, "type"), text_of(record, "message", "model")
        found = {"version": text_of(record, "version"), "cwd": text_of(record, "cwd"), "git_branch": text_of(record, "gitBranch")}
        if type == "user" and self.is_own:
            found["permission_mode"] = text_of(record, "permissionMode")
        self.project = self.project or found["cwd"] or None
        if uuid and not self.is_started:
            self.known.update({key: value for key, value in {**found, "title": self.title}.items() if value})
            self.is_started = True
            self.emit("session.started", program="claude-code", dialect=self.dialect, project=self.project, continues=self.continues,
                      **{key: value for key, value in self.known.items() if key != "model"})
        if not self.is_own:
            self.update(title=self.title)
        else:
            self.update(**found, title=self.title, model=model if type == "assistant" and not is_of_program(record) else None)

    def update(self, **found):
        changed = {key: value for key, value in found.items() if value and value != self.known.get(key)}
        self.known.update(changed)
        if changed and self.is_started:
            self.emit("session.updated", **changed)

    @property
    def title(self):
        return next((self.titles[source] for source in ("custom", "ai", "summary", "name") if self.titles.get(source)), None)

    def set_title(self, source, title):
        self.titles[source] = title
        self.update(title=self.title)

    def summary(self, record):
        title, leaf = text_of(record, "summary"), text_of(record, "leafUuid") or None
        if not self.has_other_records and self.continues is None:
            self.continues = leaf
        if leaf in self.uuids:
            self.set_title("summary", title)
        elif leaf:
            self.summaries.setdefault(leaf, title)

    def custom_title(self, record):
        self.set_title("custom", text_of(record, "customTitle"))

    def ai_title(self, record):
        self.set_title("ai", text_of(record, "aiTitle"))

    def agent_name(self, record):
        self.set_title("name", text_of(record, "agentName"))

    def mode(self, record):
        self.update(mode=text_of(record, "mode"))

    def permission_mode(self, record):
        self.update(permission_mode=text_of(record, "permissionMode"))

    # ---- Turns

    def start_turn(self, origin, prompt=None):
        was_done = self.last_step == "text" and not any(call.is_open for call in self.calls.values())
        self.close_calls("abandoned", of_all_chains=True)    # C22
        if self.is_open:                                     # C18
            self.finish_turn(*(("completed", True) if was_done else ("superseded", None)), end_ms=self.last_ms)
        self.turn += 1
        self.is_open, self.turn_ms, self.turn_tools, self.turn_usage, self.waits = True, self.ms, 0, dict(self.usage), []
        self.last_step, self.last_ms = "prompt", self.ms
        self.emit("turn.started", origin="agent" if self.own_agent else origin, prompt=prompt)

    def finish_turn(self, outcome, inferred=None, *, end_ms, stop_reason=None, duration_ms=None):
        if not self.is_open:
            return
        self.is_open = self.was_hook_feedback = False
        if duration_ms is None and end_ms is not None and self.turn_ms is not None:
            duration_ms = max(0, end_ms - self.turn_ms)
        self.emit("turn.finished", outcome=outcome, inferred=inferred, stop_reason=stop_reason, duration_ms=duration_ms, tools=self.turn_tools,
                  usage={key: self.usage[key] - self.turn_usage[key] for key in self.usage}, waited_ms=union_ms(self.waits))

    @property
    def end_ms(self):
        """Of a turn that this record finishes."""
        return self.last_ms if self.ms is None else self.ms

    def interrupt(self):
        self.close_calls("interrupted")
        if self.is_own:
            self.finish_turn("interrupted", end_ms=self.end_ms)

    def step(self, kind):
        if self.is_own:
            self.last_step = kind
            self.last_ms = self.last_ms if self.ms is None else self.ms

    # ---- Users' records

    def user(self, record):
        content = Content(self.message_of(record))
        name, is_meta = leading_tag(content.first), record.get("isMeta") is True
        self.knows_position |= isinstance(record.get("turnPosition"), dict)
        if content.results:
            return self.results(record, content)
        if record.get("isCompactSummary") is True:
            self.compact_summary(content)
            return self.step("user")
        if name == "local-command-caveat" or content.first.startswith(CAVEAT) or not is_meta and name in COMMAND_TAGS | OTHER_TAGS:
            if not is_meta and self.is_own and name in COMMAND_TAGS:
                self.commands[self.id] = command_of(content.first)
            return None                                      # what the user ran is no part of the turn
        if content.first in INTERRUPTIONS:                   # C18
            self.interrupt()
        elif content.first.startswith("Operation stopped by hook:"):
            if self.is_own:
                self.finish_turn("failed", end_ms=self.end_ms, stop_reason="hook")
        elif is_meta:
            self.meta(content)
        else:
            self.prompt(record, content, TURN_TAGS.get(name))
        return self.step("user")

    def meta(self, content):
        """C14, C15"""
        text = content.text or ""
        if not self.is_own:
            return
        if command := self.commands.pop(self.parent, None):
            self.start_turn("command", command)
        elif text.startswith("Stop hook feedback"):
            self.was_hook_feedback = True
        elif self.parent in self.fires:
            self.add_message("user", "text", text)

    def prompt(self, record, content, origin):
        """C13, C15"""
        notified = text_of(record, "origin", "kind") == "task-notification"
        if origin or notified:
            self.notify(content.first)
        prompt = content.text if origin else prompt_of(content)
        if prompt is None and not content.media and not any(text == "" for text in content.texts):
            return
        if self.is_own:
            is_queued = text_of(record, "promptSource") == "queued"
            self.start_turn(origin or ("task" if notified else "queued" if is_queued else "human"), prompt)
        else:
            self.add_message("user", "text", prompt)
        self.add_media("user", content)

    def add_message(self, role, kind, text, **fields):
        if text:
            self.emit("message.added", role=role, kind=kind, text=text, **fields)

    def add_media(self, role, content):
        for media in content.media:
            self.emit("message.added", role=role, kind=media["kind"], media=media)

    # ---- Assistant records

    def assistant(self, record):
        message = record.get("message")
        is_message = isinstance(message, dict) or self.dialect == "claude-flat"
        content = Content(self.message_of(record) or None if is_message else None)
        id, model = text_of(message, "id") or None, text_of(message, "model") or None
        is_synthetic, is_error = is_of_program(record), record.get("isApiErrorMessage") is True
        if is_synthetic and content.first == "No response requested.":
            return
        if self.is_own and not is_synthetic and not self.is_open and (id is None or id != self.last_message):  # C16, C18
            self.start_turn("hook" if self.was_hook_feedback else "unknown")
        made = [self.block(block, id, model) for block in content.blocks]
        is_call = text_of(record, "subtype") == "tool_use" or "toolName" in record
        if self.dialect == "claude-flat" and is_call:        # C20
            made.append(self.invoke(self.id, text_of(record, "toolName") or "", record.get("toolArguments"), None))
        self.add_usage(record, message, id, model)
        if is_error:                                         # C29
            self.emit("api.failed", fatal=True, status=integer_of(record, "apiErrorStatus"), error=text_of(record, "error") or content.text)
        if not self.is_own:
            return
        if not is_synthetic:
            self.step("call" if "call" in made else "text" if "spoken" in made else "thinking")
            self.last_message = id
        reason = text_of(message, "stop_reason")
        if is_error:
            self.finish_turn("failed", end_ms=self.end_ms)
        elif reason in END_REASONS and "spoken" in made and not self.has_open_call and not is_synthetic:
            self.finish_turn("failed" if reason == "refusal" else "completed", end_ms=self.end_ms, stop_reason=reason,
                             duration_ms=recorded_count(record, "durationMs"))

    def block(self, block, message, model):
        """Returns what the block is: spoken, thinking or a call; None for none of these."""
        type = text_of(block, "type")
        if not type:
            return None
        if type == "tool_use":
            self.invoke(text_of(block, "id") or self.id, text_of(block, "name") or "", member(block, "input"), message)
            return "call"
        if type != "text" or text_of(block, "text"):
            self.emit("message.added", role="assistant", kind=type, text=text_of(block, type) or None, message=message, model=model)
        return "thinking" if type in ("thinking", "redacted_thinking") else "spoken"

    def add_usage(self, record, message, id, model):
        """C27: of each request the largest values."""
        key = id or self.id, text_of(record, "requestId")
        before, cost_before = self.requests.get(key, (dict.fromkeys(self.usage, 0), 0))
        found = usage_of(object_of(message, "usage"))
        now, cost = {name: max(before[name], found[name]) for name in self.usage}, max(cost_before, number_of(record, "costUSD") or 0)
        if not isinstance(message, dict) or (now, cost) == (before, cost_before):
            return
        self.requests[key] = now, cost
        for name in self.usage:
            self.usage[name] += now[name] - before[name]
        if cost != cost_before:
            self.cost = (self.cost or 0) + cost - cost_before
        self.emit("usage.updated", message=id or self.id, model=model, **now, total=dict(self.usage), cost_usd=self.cost)

    def cost_state(self, record):
        cost = number_of(record, "totalCostUSD")
        if cost is not None and cost >= 0 and cost != self.cost:
            self.cost = cost
            self.emit("usage.updated", total=dict(self.usage), cost_usd=cost)

    # ---- Tools

    @property
    def has_open_call(self):
        """Of the own chain."""
        return any(call.is_open and call.agent == self.own_agent for call in self.calls.values())

    def invoke(self, id, tool, input, message):
        """C20"""
        if id in self.calls:
            return "call"
        call = self.calls[id] = Call(id, tool, input, self.agent, self.ms)
        call.is_open = id not in self.answered
        self.turn_tools += self.is_own
        self.emit("tool.invoked", call=id, tool=tool, input=input, message=message)
        if tool in AGENT_TOOLS:                              # C24
            agent = self.agents[id] = Agent(call)
            if not call.is_open:
                agent.id = agent_of(self.answered[id][1])
            self.emit("agent.started", call=id, subagent=agent.id, agent_type=agent.type, description=agent.description,
                      background=True if member(input, "run_in_background") is True else None)
            if not call.is_open:
                self.end_agent(agent, *self.answered[id])
        return "call"

    def finish_call(self, call, outcome, **fields):
        call.is_open = False
        is_timed = outcome != "abandoned" and call.ms is not None and self.ms is not None
        self.emit("tool.finished", call=call.id, tool=call.tool, outcome=outcome,
                  duration_ms=max(0, self.ms - call.ms) if is_timed else None, **fields)
        if is_timed and call.tool in QUESTIONS and call.agent == self.own_agent:
            self.waits.append((call.ms, self.ms))

    def close_calls(self, outcome, *, of_all_chains=False):
        """In order of invocation."""
        chain = self.agent
        for call in self.calls.values():
            if call.is_open and (of_all_chains or call.agent == chain):
                self.agent = call.agent
                self.finish_call(call, outcome)
                if agent := self.agents.get(call.id):
                    self.finish_agent(agent, outcome)
        self.agent = chain

    def results(self, record, content):
        for block in content.results:
            self.result(record, block)
        self.step("result")
        self.add_message("user", "text", without_reminders([text for text in content.texts if text not in INTERRUPTIONS]))  # C17
        self.add_media("user", content)

    def result(self, record, block):
        id, content = text_of(block, "tool_use_id"), Content(block.get("content"))
        result = record.get("toolUseResult", launch_of(content.text or ""))
        outcome = outcome_of(record, block, content, self.knows_position)
        call = self.calls.get(id)
        if resumed := text_of(result, "resumedAgentId"):     # C25
            self.told = {(task, status) for task, status in self.told if task != resumed}
        if not id or id in self.answered or call and not call.is_open:  # C22
            return
        background = text_of(result, "backgroundTaskId") or launched_agent_of(result) or None
        fields = {"output": content.text, "media": content.media or None, "background": background}
        if call:
            self.finish_call(call, outcome, **fields)
        else:                                                # a result can precede the call of a sibling
            self.answered[id] = outcome, result
            self.emit("tool.finished", call=id, outcome=outcome, **fields)
        if agent := self.agents.get(id):
            self.end_agent(agent, outcome, result)
        elif task := background or monitor_of(result):
            self.tasks[task] = id
        if outcome == "ok":
            self.task_result(result)
            if call:
                self.todo_result(call, result)

    # ---- Subagents and tasks

    def end_agent(self, agent, outcome, result):
        agent.id = agent_of(result) or agent.id
        if launched_agent_of(result) is not None:
            agent.is_background = True
            if early := self.early.pop(agent.id, None):
                self.finish_agent(agent, early.status, **early.numbers)
            return
        self.finish_agent(agent, outcome, duration_ms=recorded_count(result, "totalDurationMs"), tokens=recorded_count(result, "totalTokens"),
                          tools=recorded_count(result, "totalToolUseCount"))

    def finish_agent(self, agent, outcome, **numbers):
        if agent.is_finished:
            return
        agent.is_finished = True
        self.emit("agent.finished", subagent=agent.id, call=agent.call.id, agent_type=agent.type, description=agent.description,
                  outcome=AGENT_OUTCOMES.get(outcome) or TASK_OUTCOMES.get(outcome, outcome), background=True if agent.is_background else None,
                  **numbers)

    def task_result(self, result):
        """C25"""
        stopped = text_of(result, "task_id") or text_of(result, "shell_id")
        is_command = text_of(result, "task_type") in (None, "local_bash")
        if is_command and stopped in self.tasks:             # the program writes no notification of a command that it stops
            self.finish_task(stopped, "killed", self.tasks[stopped], None)

    def finish_task(self, task, status, call, summary):
        """C25"""
        if not task or (task, status) in self.told:
            return False
        self.told.add((task, status))
        self.tasks.pop(task, None)
        self.emit("task.finished", task=task, outcome=status, call=call, summary=summary)
        return True

    def notify(self, text):
        """C25"""
        notification = notification_of(text)
        if not notification or not self.finish_task(notification.task, notification.status, notification.call, notification.summary):
            return
        launched = self.agents.get(notification.call)        # its id is not known if the result has no `toolUseResult`
        agent = next((each for each in self.agents.values() if each.id == notification.task), None)
        if agent := agent or (launched if launched and launched.is_background and not launched.id else None):
            self.finish_agent(agent, notification.status, **notification.numbers)
        else:
            self.early[notification.task] = notification

    def progress(self, record):
        """C24"""
        agent = self.agents.get(text_of(record, "parentToolUseID"))
        if agent and text_of(record, "data", "type") == "agent_progress":
            agent.id = text_of(record, "data", "agentId") or agent.id

    # ---- Todos

    def todo_result(self, call, result):
        """C26"""
        todos = todos_after(self.todos.get(self.agent, []), call.tool, call.input, result)
        if todos is not None:
            self.set_todos(todos, call.tool)

    def set_todos(self, todos, source):
        if todos != self.todos.get(self.agent, []):
            self.todos[self.agent] = todos
            self.emit("todo.updated", todos=todos, source=source)

    # ---- The rest

    def system(self, record):
        kind = text_of(record, "subtype") or None
        if self.dialect == "claude-flat" and kind is None:
            self.answer(record)
        elif kind in SPOKEN_SYSTEM:                          # C32
            self.add_message("system", "text", text_of(record, "content"))
        elif kind in ("compact_boundary", "microcompact_boundary"):
            self.boundary(record, kind)
        elif kind == "api_error":                            # C29
            self.emit("api.failed", fatal=False, **api_error_of(record))
        elif kind == "agents_killed":                        # C37
            for agent in self.agents.values():
                if agent.is_background:
                    self.finish_agent(agent, "stopped")
        elif self.is_own:
            self.end_or_start(record, kind)

    def end_or_start(self, record, kind):
        """C15, C18"""
        if kind == "scheduled_task_fire":
            self.fires.add(self.id)
            self.start_turn("task")
            return
        is_late = self.ms is not None and self.turn_ms is not None and self.ms < self.turn_ms or self.last_step in ("call", "result")
        is_blocked = member(record, "preventedContinuation") is True or list_of(record, "hookErrors")
        if is_late or kind not in ("turn_duration", "stop_hook_summary") or kind == "stop_hook_summary" and is_blocked:
            return
        self.finish_turn("completed", end_ms=self.end_ms, duration_ms=recorded_count(record, "durationMs"))

    def answer(self, record):
        """C20: in claude-flat a system record answers a call."""
        if self.parent:
            call = self.calls.get(self.parent)
        else:
            call = next((call for call in reversed(self.calls.values()) if call.is_open and call.agent == self.agent), None)
        text = text_of(record, "message")
        if text is not None and call and call.is_open:
            outcome = "interrupted" if record.get("isAborted") is True else "ok"
            self.finish_call(call, outcome, output=text)
            if agent := self.agents.get(call.id):
                self.finish_agent(agent, outcome)
            self.last_step = "result" if self.is_own else self.last_step
        else:
            self.add_message("system", "text", text)

    def boundary(self, record, kind):
        """C28"""
        metadata = object_of(record, "compactMetadata") or object_of(record, "microcompactMetadata")
        if kind == "compact_boundary":
            self.close_calls("abandoned", of_all_chains=self.is_own)
            self.is_compacted = True
        self.emit("compaction.finished", kind="full" if kind == "compact_boundary" else "micro", trigger=text_of(metadata, "trigger") or None,
                  pre_tokens=recorded_count(metadata, "preTokens"), post_tokens=recorded_count(metadata, "postTokens"),
                  duration_ms=recorded_count(metadata, "durationMs"))

    def compact_summary(self, content):
        if not self.is_compacted:
            self.close_calls("abandoned", of_all_chains=self.is_own)
            self.emit("compaction.finished", kind="full")
        self.is_compacted = False
        self.emit("message.added", role="summary", kind="text", text=content.text)

    def compact_prelude(self, record):
        self.emit("compaction.started")

    def compact_recap(self, record):
        self.is_compacted = False
        self.compact_summary(Content(self.message_of(record)))

    def compact_system(self, record):
        if record.get("message") == "conversation_compacting":
            self.emit("compaction.started")
        elif record.get("message") == "conversation_compacted":
            self.close_calls("abandoned", of_all_chains=self.is_own)
            self.is_compacted = True
            self.emit("compaction.finished", kind="full")

    def attachment(self, record):
        attachment = object_of(record, "attachment")
        kind = text_of(attachment, "type")
        if kind == "queued_command":                         # C17
            content = Content(attachment.get("prompt"))
            if text_of(attachment, "commandMode") == "task-notification" or leading_tag(content.first) == "task-notification":
                self.notify(content.text)
            else:
                self.add_message("user", "text", without_reminders(content.texts))
                self.add_media("user", content)
        elif kind in ("task_reminder", "todo_reminder"):  # C26
            self.set_todos(tasks_of(list_of(attachment, "content"), self.todos.get(self.agent, [])), kind)
        elif kind == "max_turns_reached" and self.is_own:    # C18
            self.finish_turn("completed", end_ms=self.end_ms, stop_reason="max_turns")

    def queue_operation(self, record):
        content = Content(record.get("content"))
        self.emit("queue.changed", operation=text_of(record, "operation") or "", text=content.text)
        self.notify(content.text)

    def file_history_snapshot(self, record):
        """C30"""
        if files := files_of(record):
            self.emit("files.snapshotted", message=text_of(record, "messageId") or None, files=files)

    file_history_delta = file_history_snapshot
