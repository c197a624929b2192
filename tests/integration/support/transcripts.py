"""Writes transcripts as the agent program does: whole lines, appended. One class per era, named after where it stores its subagents."""
import datetime
import itertools
import json
import os
import re
import subprocess
import uuid

ids = itertools.count(1)


def now():
    return datetime.datetime.utcnow().isoformat(timespec="milliseconds") + "Z"


def append(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, data)
    os.close(fd)


def rewrite(path, change):
    """Replaces the bytes of a file by change(bytes), in place."""
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(change(content))


def compress(path):
    """As Codex does some days after the last record."""
    subprocess.run(["zstd", "-q", "--rm", path], check=True)


def unpack(path):
    """As a resume does before it appends."""
    subprocess.run(["zstd", "-q", "-d", "--rm", path + ".zst"], check=True)


def encoded(cwd):
    return re.sub(r"[^A-Za-z0-9-]", "-", cwd)


class Transcript:
    """A growing transcript file. Every method appends one line and returns its record."""

    process_name = "claude"
    version = "2.1.330"
    sidechain = {}

    def __init__(self, path, session, cwd):
        self.path, self.session, self.cwd, self.parent = path, session, cwd, None

    def record(self, type, message=None, **more):
        record = {"parentUuid": self.parent, "isSidechain": False, **self.sidechain, "type": type, "uuid": str(uuid.uuid4()), "timestamp": now(),
                  "userType": "external", "cwd": self.cwd, "sessionId": self.session, "version": self.version, "gitBranch": "main"}
        if message is not None:
            record["message"] = message
        record.update(more)
        self.parent = record["uuid"]
        return record

    def append(self, *records):
        append(self.path, b"".join(json.dumps(r, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for r in records))
        return records[-1]

    def prompt(self, text, **more):
        return self.append(self.record("user", {"role": "user", "content": text}, **more))

    def assistant(self, *blocks, stop_reason=None, output=12, **more):
        return self.append(self.record("assistant", {
            "id": f"msg_{next(ids):06}", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": list(blocks),
            "stop_reason": stop_reason, "usage": {"input_tokens": 20, "output_tokens": output, "cache_read_input_tokens": 0,
                                                  "cache_creation_input_tokens": 0}}, **more))

    def reply(self, text, stop_reason=None, **more):
        return self.assistant({"type": "text", "text": text}, stop_reason=stop_reason, **more)

    def tool_call(self, tool, input, **more):
        """Returns the call's id."""
        call = f"toolu_{next(ids):06}"
        self.assistant({"type": "tool_use", "id": call, "name": tool, "input": input}, stop_reason="tool_use", **more)
        return call

    def result(self, call, output="done", error=False, details=None, **more):
        if details is not None:
            more["toolUseResult"] = details
        block = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": error}
        return self.append(self.record("user", {"role": "user", "content": [block]}, **more))

    def turn(self, prompt, answer="Done."):
        """A complete turn: prompt, tool call, result, answer."""
        self.prompt(prompt)
        self.result(self.tool_call("Bash", {"command": f"echo {prompt}", "description": "Say it"}), prompt)
        self.reply(answer, stop_reason="end_turn")


class Session(Transcript):
    """2.1: subagents in <session>/subagents/, each with a .meta.json."""

    def __init__(self, root, cwd="/home/ada/api", session=None):
        session = session or str(uuid.uuid4())
        self.folder = os.path.join(root, "projects", encoded(cwd))
        super().__init__(os.path.join(self.folder, f"{session}.jsonl"), session, cwd)

    def agent(self, description="Look around"):
        """(the call's id, the agent's id, the agent's transcript)"""
        agent = uuid.uuid4().hex[:17]
        call = self.tool_call(self.agent_tool, {"description": description, "prompt": description, "subagent_type": "general-purpose"})
        return call, agent, self.agent_transcript(agent, call, description)

    agent_tool = "Agent"

    def agent_transcript(self, agent, call, description):
        path = os.path.join(self.folder, self.session, "subagents", f"agent-{agent}.jsonl")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path[: -len(".jsonl")] + ".meta.json", "w") as meta:
            json.dump({"agentType": "general-purpose", "description": description, "toolUseId": call, "spawnDepth": 1}, meta)
        transcript = Transcript(path, self.session, self.cwd)
        transcript.sidechain = {"isSidechain": True, "agentId": agent}
        return transcript

    def agent_result(self, call, agent, text="All fine."):
        return self.result(call, [{"type": "text", "text": text}], details={
            "status": "completed", "agentId": agent, "totalDurationMs": 900, "totalTokens": 120, "totalToolUseCount": 1,
            "content": [{"type": "text", "text": text}]})


class SessionWithSiblingAgents(Session):
    """2.0.28 to 2.0.71: agent-<id>.jsonl in the session's directory; only its lines name the session."""

    version = "2.0.55"
    agent_tool = "Task"

    def agent_transcript(self, agent, call, description):
        transcript = Transcript(os.path.join(self.folder, f"agent-{agent}.jsonl"), self.session, self.cwd)
        transcript.version = self.version
        transcript.sidechain = {"isSidechain": True, "agentId": agent}
        return transcript


class SessionWithInlineAgents(Session):
    """Up to 2.0.19: a sidechain in the session's own file."""

    version = "1.0.83"
    agent_tool = "Task"

    def agent_transcript(self, agent, call, description):
        transcript = Transcript(self.path, self.session, self.cwd)
        transcript.version = self.version
        transcript.sidechain = {"isSidechain": True}
        return transcript


class Conversation(Transcript):
    """The oldest layout: conversations/, numeric timestamps, messages wrapped in {type: message}."""

    version = "1.0.128"

    def __init__(self, root, session="session_one", project="_home_ada_api"):
        super().__init__(os.path.join(root, "conversations", project, f"{session}.jsonl"), session, None)

    def record(self, type, content):
        self.parent, parent = f"msg_{next(ids):06}", self.parent
        return {"uuid": self.parent, "parentUuid": parent, "sessionId": self.session, "type": type,
                "timestamp": int(datetime.datetime.now().timestamp() * 1000), "version": self.version,
                "message": {"type": "message", "content": content}}

    def turn(self, prompt, answer="Done."):
        call = f"toolu_{next(ids):06}"
        self.append(self.record("human", prompt))
        self.append(self.record("assistant", [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "true"}}]))
        self.append(self.record("tool_result", [{"type": "tool_result", "tool_use_id": call, "content": "", "is_error": False}]))
        self.append(self.record("assistant", [{"type": "text", "text": answer}]))


class FlatSession(Session):
    """The message is a string, toolName and toolArguments are top-level fields, calls have no ids."""

    def flat(self, type, **more):
        self.parent, parent = f"msg-{next(ids):06}", self.parent
        return self.append({"type": type, "uuid": self.parent, "parentUuid": parent, "timestamp": now(), "sessionId": self.session, **more})

    def turn(self, prompt, answer="Done."):
        self.flat("user", message=prompt, userType="human")
        self.flat("assistant", subtype="tool_use", toolName="Bash", toolArguments={"command": "true"})
        self.flat("system", message="ran")
        self.flat("assistant", message=answer, subtype="response")


class Registry:
    """sessions/<pid>.json of a running process, rewritten in place as the agent program does."""

    def __init__(self, root, session, process):
        self.path = os.path.join(root, "sessions", f"{process.pid}.json")
        with open(f"/proc/{process.pid}/stat") as stat:
            start_time = stat.read().rsplit(")", 1)[1].split()[19]
        self.fields = {"pid": process.pid, "sessionId": session, "cwd": "/home/ada/api", "procStart": start_time, "version": "2.1.330",
                      "kind": "interactive", "pidDomain": f"linux:{self.machine()}:{os.readlink('/proc/self/ns/pid')}"}

    @staticmethod
    def machine():
        try:
            with open("/etc/machine-id") as file:
                return file.read().strip()
        except OSError:
            return ""

    def set_status(self, status, waiting_for=None):
        self.fields.update(status=status, statusUpdatedAt=int(datetime.datetime.now().timestamp() * 1000))
        self.fields.pop("waitingFor", None)
        if waiting_for:
            self.fields["waitingFor"] = waiting_for
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "w") as file:  # truncates first: a reader may see an empty file
            json.dump(self.fields, file)
