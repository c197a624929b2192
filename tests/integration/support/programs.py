"""Writes invented transcripts as Codex, Copilot CLI and Pi do, and the files and processes that show who writes them.

The sessions have common methods, so that one test covers all programs: prompt, tool_call, result, say, reply, interrupt, compact, turn.
"""
import datetime
import fcntl
import itertools
import json
import os
import re
import subprocess
import sys
import time
import uuid

from support.transcripts import append, ids, now

CWD = "/home/ada/lamp"


def encoded_lines(records):
    return b"".join(json.dumps(r, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for r in records)


def start_process(case, name, *arguments, cwd=None):
    """A process that does nothing, whose command line begins with this name and ends with these arguments."""
    process = subprocess.Popen([name, "-c", "import time; time.sleep(100_000)", *arguments], executable=sys.executable, cwd=cwd)
    case.addCleanup(process.wait)
    case.addCleanup(process.kill)
    return process


def kill(process):
    process.kill()
    process.wait()


class ProgramSession:
    """A growing transcript. `stream(root)` is its stream in a root of this name."""

    program = dialect = shell_tool = directory = None

    def append(self, *records):
        append(self.path, encoded_lines(records))
        return records[-1]

    def stream(self, root=None):
        below = os.path.relpath(self.path, os.path.join(self.root, self.directory))
        return f"{root or self.program}/{below.removesuffix('.jsonl')}"

    @property
    def process_name(self):
        return self.program

    def tool_input(self, command):
        return {"command": command}

    def reply(self, text="Done."):
        """The last text of a turn, and its end."""
        raise NotImplementedError

    def turn(self, prompt, answer="Done."):
        """A complete turn: prompt, tool call, result, answer."""
        self.prompt(prompt)
        self.result(self.tool_call(f"echo {prompt}"), prompt)
        self.reply(answer)


# --- Codex


class CodexSession(ProgramSession):
    """0.147 and later: what happened are items, each line has an ordinal. The first line comes with the first prompt."""

    program, dialect, directory = "codex", "codex-paginated", "sessions"
    version, shell_tool, mode = "0.169.0", "exec_command", "default"

    def __init__(self, root, cwd=CWD, thread=None, parent=None, **meta):
        """`parent`: the session that started this one as a subagent. `meta`: further members of the first line."""
        self.root, self.cwd, self.parent, self.meta_more = root, cwd, parent, meta
        self.thread = thread or str(uuid.uuid4())
        self.session = parent.session if parent else self.thread
        self.ordinals, self.turns, self.turn_id = itertools.count(), [], None
        local = datetime.datetime.now()
        self.path = os.path.join(root, "sessions", f"{local:%Y/%m/%d}", f"rollout-{local:%Y-%m-%dT%H-%M-%S}-{self.thread}.jsonl")
        self.is_begun = False

    def tool_input(self, command):
        return {"cmd": command}

    def record(self, type, /, **payload):
        return {"timestamp": now(), "ordinal": next(self.ordinals), "type": type, "payload": payload}

    def event(self, type, /, **payload):
        return self.record("event_msg", type=type, **payload)

    def item(self, type, /, **item):
        return self.event("item_completed", thread_id=self.thread, turn_id=self.turn_id, item={"type": type, **item})

    def response(self, type, /, **payload):
        return self.record("response_item", type=type, **payload)

    def message(self, role, text, **more):
        return self.response("message", role=role, content=[{"type": "output_text" if role == "assistant" else "input_text", "text": text}], **more)

    def meta(self):
        meta = {"session_id": self.session, "id": self.thread, "timestamp": now(), "cwd": self.cwd, "originator": "codex-tui", "cli_version": self.version,
                "source": "cli", "thread_source": "user", "model_provider": "acme", "history_mode": "paginated", "git": {"branch": "main"}}
        if self.parent:
            spawn = {"parent_thread_id": self.parent.thread, "depth": 1, "agent_path": "/root/looker", "agent_role": None}
            meta.update(source={"subagent": {"thread_spawn": spawn}}, thread_source="subagent", parent_thread_id=self.parent.thread)
        return self.record("session_meta", **{**meta, **self.meta_more})

    def begin(self):
        if not self.is_begun:
            self.is_begun = True
            self.append(self.meta())

    def started_at(self):
        return int(time.time())

    def announce(self):
        self.begin()
        self.turn_id = str(uuid.uuid4())
        self.append(self.event("task_started", turn_id=self.turn_id, started_at=self.started_at(), collaboration_mode_kind=self.mode))
        self.append(self.record("turn_context", turn_id=self.turn_id, cwd=self.cwd, approval_policy="on-request", sandbox_policy={"type": "workspace-write"},
                                model="gpt-5.5", collaboration_mode={"mode": self.mode}))

    def prompt(self, text):
        self.announce()
        self.turns.append([text, None])
        self.append(self.message("user", text))
        self.append(self.item("UserMessage", id=str(uuid.uuid4()), content=[{"type": "text", "text": text}]))

    def say(self, text):
        id = f"msg_{next(ids):06}"
        self.append(self.item("AgentMessage", id=id, content=[{"type": "Text", "text": text}], phase="commentary"))
        self.append(self.message("assistant", text, id=id))

    def finish(self, text=None, **more):
        self.append(self.event("task_complete", turn_id=self.turn_id, last_agent_message=text, duration_ms=1200, **more))

    def reply(self, text="Done."):
        self.say(text)
        if self.turns:
            self.turns[-1][1] = text
        self.finish(text)

    def call(self, tool, input, **more):
        """Returns the call's id."""
        call = f"call_{next(ids):06}"
        self.append(self.response("function_call", name=tool, arguments=json.dumps(input), call_id=call, **more))
        return call

    def tool_call(self, command="make"):
        return self.call(self.shell_tool, self.tool_input(command))

    def command_end(self, call, output, exit_code):
        return self.item("CommandExecution", id=call, command=["/bin/bash", "-lc", "make"], source="unified_exec_startup",
                         status="failed" if exit_code else "completed", aggregated_output=output, exit_code=exit_code, duration={"secs": 0, "nanos": 90000000})

    def output(self, call, text):
        self.append(self.response("function_call_output", call_id=call, output=text))

    def result(self, call, output="done", error=False):
        exit_code = 2 if error else 0
        self.append(self.command_end(call, output, exit_code))
        self.output(call, f"Wall time: 0.1 seconds\nProcess exited with code {exit_code}\nOutput:\n{output}")

    def interrupt(self, call):
        """Escape during this call."""
        self.output(call, "Wall time: 4.0 seconds\naborted by user")
        self.append(self.message("user", "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>"))
        self.append(self.event("turn_aborted", turn_id=self.turn_id, reason="interrupted", duration_ms=4900))

    def compact(self, summary):
        """A compaction that the user asked for: a turn of its own."""
        self.announce()
        self.compacted(summary)
        self.finish()

    def compacted(self, summary):
        self.append(self.record("compacted", message=summary, window_id=str(uuid.uuid4()), replacement_history=[]))
        self.append(self.item("ContextCompaction", id=str(uuid.uuid4())))

    def unknown(self, name):
        """A record of a type that no version wrote; returns the name it is counted by."""
        self.append(self.record(name, text="?"))
        return name

    # Subagents, forks, migration, archive

    def spawn(self, message="Look around"):
        """(the call's id, the subagent's session)"""
        agent = type(self)(self.root, self.cwd, parent=self)
        call = self.call("spawn_agent", {"task_name": "looker", "message": message}, namespace="collaboration")
        self.append(self.item("SubAgentActivity", id=call, kind="started", agent_thread_id=agent.thread, agent_path="/root/looker"))
        self.output(call, json.dumps({"task_name": "/root/looker"}))
        return call, agent

    def spawn_finished(self, agent):
        self.append(self.item("SubAgentActivity", id=str(uuid.uuid4()), kind="completed", agent_thread_id=agent.thread, agent_path="/root/looker"))

    def copied(self):
        """This session's lines as a fork begins with them: all with one new time."""
        with open(self.path, "rb") as file:
            records = [json.loads(line) for line in file]
        at = now()
        return [{**record, "timestamp": at} for record in records]

    def migrated(self, path):
        """Writes the same history as a paginated rollout, as `codex migrate-rollouts` does."""
        other = CodexSession(self.root, self.cwd, thread=self.thread)
        other.path = path
        for prompt, answer in self.turns:
            other.prompt(prompt)
            other.reply(answer)
        return other

    def archive(self):
        """Moves the rollout; its new path."""
        return self.move(os.path.join(self.root, "archived_sessions", os.path.basename(self.path)), "archived_sessions")

    def unarchive(self, path):
        return self.move(path, "sessions")

    def move(self, path, directory):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.rename(self.path, path)
        self.path, self.directory = path, directory
        return path

    # Who writes it

    @property
    def lock_path(self):
        return os.path.join(self.root, "thread-writer-locks", f"{self.thread}.lock")

    def writer(self, case, opens=True, locks=True):
        """A process named codex that has the rollout open and holds the lock of its thread. SIGUSR1: it gives them up and lives on."""
        paths = [self.path if opens else "", self.lock_path if locks else ""]
        for path in filter(None, paths):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        process = subprocess.Popen(["codex", "-c", HOLD, *paths], executable=sys.executable, stdout=subprocess.PIPE, env={})
        case.addCleanup(process.stdout.close)
        case.addCleanup(process.wait)
        case.addCleanup(process.kill)
        if process.stdout.readline() != b"ready\n":
            raise AssertionError("the writer did not start")
        return process

    def is_locked(self):
        with open(self.lock_path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


HOLD = """
import fcntl, os, signal, sys, time
rollout, lock = sys.argv[1:]
opened = []
if rollout:
    opened.append(open(rollout, "a"))
if lock:
    opened.append(open(lock, "w"))
    fcntl.flock(opened[-1], fcntl.LOCK_EX)
def unload(*_):
    while opened:
        opened.pop().close()
    if lock:
        os.unlink(lock)
signal.signal(signal.SIGUSR1, unload)
print("ready", flush=True)
time.sleep(100_000)
"""


class CodexEventsSession(CodexSession):
    """0.32 to 0.146: what happened are events, and the items say it again."""

    dialect, version = "codex-events", "0.135.0"
    started_ago_s = 0  # how long before now its turns began

    def record(self, type, /, **payload):
        return {"timestamp": now(), "type": type, "payload": payload}

    def started_at(self):
        return int(time.time()) - self.started_ago_s

    def meta(self):
        record = super().meta()
        for name in ("session_id", "history_mode"):
            record["payload"].pop(name)
        if self.started_ago_s:
            record["payload"]["timestamp"] = (datetime.datetime.utcnow() - datetime.timedelta(seconds=self.started_ago_s)).isoformat(timespec="milliseconds") + "Z"
        return record

    def prompt(self, text):
        self.announce()
        self.turns.append([text, None])
        self.append(self.message("user", text))
        self.append(self.event("user_message", message=text, images=[]))

    def say(self, text):
        self.append(self.event("agent_message", message=text))
        self.append(self.message("assistant", text))

    def command_end(self, call, output, exit_code):
        return self.event("exec_command_end", call_id=call, command=["/bin/bash", "-lc", "make"], aggregated_output=output, exit_code=exit_code,
                          duration={"secs": 0, "nanos": 90000000}, status="failed" if exit_code else "completed")

    def compacted(self, summary):
        self.append(self.record("compacted", message=summary))
        self.append(self.event("context_compacted"))

    def fork(self):
        """A rollout that begins with this one's lines (0.130, 0.135)."""
        other = type(self)(self.root, self.cwd, forked_from_id=self.thread)
        other.is_begun = True
        append(other.path, encoded_lines([other.meta(), *self.copied()]))
        return other

    def interrupt(self, call):
        self.output(call, "aborted by user after 4.0s")
        self.append(self.event("turn_aborted", turn_id=self.turn_id, reason="interrupted"))


# --- Copilot CLI


class CopilotSession(ProgramSession):
    program, dialect, directory = "copilot", "copilot-cli", "session-state"
    version, shell_tool = "1.0.102", "bash"

    def __init__(self, root, cwd=CWD, session=None):
        self.root, self.cwd, self.session, self.parent = root, cwd, session or str(uuid.uuid4()), None
        self.folder = os.path.join(root, "session-state", self.session)
        self.path = os.path.join(self.folder, "events.jsonl")
        self.is_begun = False

    def record(self, type, /, **data):
        record = {"type": type, "data": data, "id": str(uuid.uuid4()), "timestamp": now(), "parentId": self.parent}
        self.parent = record["id"]
        return record

    def add(self, type, /, **data):
        if not self.is_begun:
            self.is_begun = True
            self.append(self.record("session.start", sessionId=self.session, version=1, producer="copilot-agent", copilotVersion=self.version,
                                    context={"cwd": self.cwd, "branch": "main"}, alreadyInUse=False))
        return self.append(self.record(type, **data))

    def prompt(self, text):
        self.add("user.message", content=text, delivery="idle", attachments=[])
        self.add("system.message", role="system", content="You are a terminal assistant. " * 20)
        self.add("assistant.turn_start", turnId="0")

    def assistant(self, text, *calls):
        self.add("session.usage_record", usage={"model": "gpt-5-mini", "inputTokens": 1200, "outputTokens": 12, "cacheReadTokens": 1000, "cacheWriteTokens": 0})
        requests = [{"toolCallId": call, "name": tool, "arguments": input, "type": "function"} for call, tool, input in calls]
        self.add("assistant.message", messageId=f"msg-{next(ids):06}", model="gpt-5-mini", content=text, toolRequests=requests, turnId="0")

    def say(self, text):
        self.assistant(text)

    def end_request(self):
        self.add("assistant.turn_end", turnId="0")

    def reply(self, text="Done."):
        self.assistant(text)
        self.end_request()

    def call(self, tool, input):
        call = f"call_{next(ids):06}"
        self.assistant("", (call, tool, input))
        self.add("tool.execution_start", toolCallId=call, toolName=tool, arguments=input, turnId="0")
        return call

    def tool_call(self, command="make"):
        return self.call(self.shell_tool, self.tool_input(command))

    def result(self, call, output="done", error=False, code="failure"):
        outcome = {"success": False, "error": {"message": output, "code": code}} if error else {"success": True, "result": {"content": output}}
        self.add("tool.execution_complete", toolCallId=call, turnId="0", **outcome)
        self.end_request()

    def interrupt(self, call):
        """Escape: the call has no result."""
        self.end_request()
        self.add("abort", reason="user_abort")

    def compact(self, summary):
        self.add("session.compaction_start", currentTokens=11000, trigger="manual")
        self.add("session.compaction_complete", success=True, preCompactionTokens=11000, postCompactionTokens=900, trigger="manual", summaryContent=summary)

    def unknown(self, name):
        self.add(name, text="?")
        return name

    def ask_permission(self, call, kind="shell"):
        """Returns the request's id."""
        request = str(uuid.uuid4())
        self.add("permission.requested", requestId=request, permissionRequest={"kind": kind, "toolCallId": call})
        return request

    def answer_permission(self, request, call, kind="approved"):
        self.add("permission.completed", requestId=request, toolCallId=call, result={"kind": kind})

    def shut_down(self):
        self.add("session.shutdown", shutdownType="routine", modelMetrics={}, currentTokens=1200)

    def lock(self, process):
        """The file that names the program's process; it stays when that is killed."""
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, f"inuse.{process.pid}.lock")
        with open(path, "w") as file:
            file.write(str(process.pid))
        return path


# --- Pi


class PiSession(ProgramSession):
    """Format 3. The file appears with the first answer, which brings the lines before it."""

    program, dialect, directory = "pi", "pi", "sessions"
    version, shell_tool = None, "bash"

    def __init__(self, root, cwd=CWD, session=None):
        self.root, self.cwd, self.session, self.parent = root, cwd, session or str(uuid.uuid4()), None
        folder = "--" + re.sub(r"[/\\:]", "-", cwd.removeprefix("/")) + "--"
        time = datetime.datetime.utcnow().isoformat(timespec="milliseconds").replace(":", "-").replace(".", "-")
        self.path = os.path.join(root, "sessions", folder, f"{time}Z_{self.session}.jsonl")
        self.unwritten = [self.header()]
        self.unwritten.append(self.record("model_change", provider="acme", modelId="m-1"))

    def header(self):
        return {"type": "session", "version": 3, "id": self.session, "timestamp": now(), "cwd": self.cwd}

    def record(self, type, /, **more):
        self.parent, parent = uuid.uuid4().hex[:8], self.parent
        return {"type": type, "id": self.parent, "parentId": parent, "timestamp": now(), **more}

    def message(self, role, **more):
        return self.record("message", message={"role": role, **more, "timestamp": int(time.time() * 1000)})

    def add(self, record):
        if self.unwritten is None:
            return self.append(record)
        self.unwritten.append(record)
        if record.get("message", {}).get("role") == "assistant":
            records, self.unwritten = self.unwritten, None
            self.append(*records)
        return record

    def prompt(self, text):
        self.add(self.message("user", content=[{"type": "text", "text": text}]))

    def assistant(self, *blocks, reason, **more):
        usage = {"input": 100, "output": 10, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 110, "cost": {"total": 0.001}}
        self.add(self.message("assistant", content=list(blocks), provider="acme", model="m-1", usage=usage, stopReason=reason, **more))

    def say(self, text):
        self.assistant({"type": "text", "text": text}, reason="toolUse")

    def reply(self, text="Done."):
        self.assistant({"type": "text", "text": text}, reason="stop")

    def call(self, tool, input):
        call = f"call_{next(ids):06}"
        self.assistant({"type": "toolCall", "id": call, "name": tool, "arguments": input}, reason="toolUse")
        return call

    def tool_call(self, command="make"):
        return self.call(self.shell_tool, self.tool_input(command))

    def result(self, call, output="done", error=False):
        self.add(self.message("toolResult", toolCallId=call, toolName="bash", content=[{"type": "text", "text": output}], isError=error))

    def interrupt(self, call):
        self.result(call, "Command aborted", error=True)
        self.assistant(reason="aborted", errorMessage="Request was aborted.")

    def compact(self, summary):
        self.add(self.record("compaction", summary=summary, tokensBefore=11000, firstKeptEntryId=self.parent))

    def unknown(self, name):
        self.add(self.record(name, text="?"))
        return name


class OldPiSession(PiSession):
    """Format 1: no ids. Pi rewrites it in place, as format 3, when it loads it."""

    def header(self):
        return {"type": "session", "id": self.session, "timestamp": now(), "cwd": self.cwd, "provider": "acme", "modelId": "m-1", "thinkingLevel": "off"}

    def record(self, type, /, **more):
        return {"type": type, "timestamp": now(), **more}

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.unwritten.pop()  # the header names the model

    def upgraded(self):
        """Its bytes as format 3: longer, and with ids."""
        with open(self.path, "rb") as file:
            header, *records = (json.loads(line) for line in file)
        upgraded, parent = [{**header, "version": 3}], None
        for record in records:
            upgraded.append({**record, "id": uuid.uuid4().hex[:8], "parentId": parent})
            parent = upgraded[-1]["id"]
        self.parent = parent
        return encoded_lines(upgraded)

    def continued(self):
        """The session as a Pi of today goes on with it, after upgraded() was written."""
        session = PiSession(self.root, self.cwd, self.session)
        session.path, session.parent, session.unwritten = self.path, self.parent, None
        return session


SESSIONS = {kind.program: kind for kind in (CodexSession, CopilotSession, PiSession)}
