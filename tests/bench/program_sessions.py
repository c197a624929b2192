"""Sessions of Codex, Copilot CLI and Pi for the benchmarks: the records of an invented turn, as often as the size needs, with the bulk that
the programs write (instructions, encrypted reasoning, system prompts). The same arguments give the same bytes."""
import base64
import json
import os
import random

from generate import STAMP, text

output_bytes, answer_bytes, sealed_bytes, prompt_bytes = 2000, 600, 3000, 12_000
calls_a_turn = 4


class Session:
    """The lines of one session; `size` is about its bytes."""

    def __init__(self, number, size):
        self.number, self.chance, self.lines, self.bytes, self.records = number, random.Random(number), [], 0, 0
        self.id = f"5e551035-0000-7000-8000-{number:012x}"
        self.begin()
        turn = 0
        while self.bytes < size:
            turn += 1
            self.turn(turn)

    def add(self, record):
        self.lines.append(json.dumps(record, separators=(",", ":")))
        self.bytes += len(self.lines[-1]) + 1

    def stamp(self):
        self.records += 1
        s = self.records
        return STAMP % (s // 3600 % 24, s // 60 % 60, s % 60, 0)

    def text(self, size):
        return text(self.chance, size)

    def sealed(self):
        return base64.b64encode(self.chance.randbytes(sealed_bytes * 3 // 4)).decode()


class Codex(Session):
    layout = "sessions/2026/01/01/rollout-2026-01-01T00-00-00-{id}.jsonl"

    def record(self, kind, /, **payload):
        self.add({"timestamp": self.stamp(), "type": kind, "payload": payload, "ordinal": self.records})

    def item(self, kind, turn, /, **item):
        self.record("event_msg", type="item_completed", turn_id=turn, item={"type": kind, **item})

    def begin(self):
        self.record("session_meta", id=self.id, session_id=self.id, cwd="/home/ada/project", cli_version="0.169.0", source="cli", history_mode="paginated",
                    base_instructions={"text": self.text(2 * prompt_bytes)})

    def turn(self, number):
        turn, tokens = f"t{number}", 3000 * number
        self.record("event_msg", type="task_started", turn_id=turn)
        self.record("world_state", state={"text": self.text(prompt_bytes // 2)})
        self.record("turn_context", turn_id=turn, cwd="/home/ada/project", approval_policy="never", sandbox_policy={"type": "read-only"}, model="m-1")
        self.item("UserMessage", turn, id=f"u{number}", content=[{"type": "text", "text": self.text(200)}])
        for n in range(calls_a_turn):
            call, output = f"c{number}.{n}", self.text(output_bytes)
            self.record("response_item", type="reasoning", id=f"r{call}", summary=[], encrypted_content=self.sealed())
            self.record("response_item", type="function_call", name="exec_command", arguments=json.dumps({"cmd": self.text(60)}), call_id=call)
            self.item("CommandExecution", turn, id=call, command=["/bin/sh", "-c", "x"], status="completed", aggregated_output=output, exit_code=0,
                      duration={"secs": 1, "nanos": 0})
            self.record("response_item", type="function_call_output", call_id=call, output="Process exited with code 0\nOutput:\n" + output)
            usage = {"input_tokens": tokens + n, "cached_input_tokens": tokens, "output_tokens": 10 * n, "total_tokens": tokens + 11 * n}
            self.record("event_msg", type="token_count", info={"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 258400})
        answer = self.text(answer_bytes)
        self.item("AgentMessage", turn, id=f"m{number}", content=[{"type": "Text", "text": answer}])
        self.record("response_item", type="message", id=f"m{number}", role="assistant", content=[{"type": "output_text", "text": answer}])
        self.record("event_msg", type="task_complete", turn_id=turn, last_agent_message=answer, duration_ms=9000)


class Copilot(Session):
    layout = "session-state/{id}/events.jsonl"

    def record(self, kind, /, **data):
        self.add({"type": kind, "data": data, "timestamp": self.stamp(), "id": f"{self.id[:8]}-{self.records:012x}", "parentId": None})

    def begin(self):
        self.record("session.start", sessionId=self.id, version=1, copilotVersion="1.0.102", context={"cwd": "/home/ada/project", "branch": "main"})

    def turn(self, number):
        self.record("user.message", content=self.text(200), delivery="idle")
        self.record("system.message", role="system", content=self.text(2 * prompt_bytes))
        for n in range(calls_a_turn + 1):
            call = f"c{number}.{n}"
            requests = [{"toolCallId": call, "name": "bash", "arguments": {"command": self.text(60)}, "type": "function"}] if n < calls_a_turn else []
            self.record("session.usage_record", usage={"model": "m-1", "inputTokens": 9000 + n, "outputTokens": 10, "cacheReadTokens": 100, "cacheWriteTokens": 0})
            self.record("assistant.message", messageId=f"m{call}", model="m-1", content="" if requests else self.text(answer_bytes), toolRequests=requests,
                        encryptedContent=self.sealed())
            if requests:
                self.record("tool.execution_start", toolCallId=call, toolName="bash", arguments=requests[0]["arguments"])
                self.record("tool.execution_complete", toolCallId=call, success=True, result={"content": self.text(output_bytes)})
            self.record("assistant.turn_end", turnId=str(n))


class Pi(Session):
    layout = "sessions/--home-ada-project--/2026-01-01T00-00-00-000Z_{id}.jsonl"

    def record(self, kind, /, **more):
        self.add({"type": kind, "timestamp": self.stamp(), **({"id": f"{self.records:08x}"} if kind != "session" else {}), **more})

    def message(self, role, content, **more):
        self.record("message", message={"role": role, "content": content, **more})

    def assistant(self, content, reason):
        self.message("assistant", content, model="m-1", stopReason=reason,
                     usage={"input": 100, "output": 10, "cacheRead": 5, "cacheWrite": 0, "cost": {"total": 0.001}})

    def begin(self):
        self.record("session", version=3, id=self.id, cwd="/home/ada/project")

    def turn(self, number):
        self.message("user", [{"type": "text", "text": self.text(200)}])
        for n in range(calls_a_turn):
            call = f"c{number}.{n}"
            self.assistant([{"type": "thinking", "thinking": self.text(answer_bytes), "thinkingSignature": self.sealed()},
                            {"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": self.text(60)}}], "toolUse")
            self.message("toolResult", [{"type": "text", "text": self.text(output_bytes)}], toolCallId=call, toolName="bash", isError=False)
        self.assistant([{"type": "text", "text": self.text(answer_bytes)}], "stop")


programs = {"codex": Codex, "copilot": Copilot, "pi": Pi}
templates_count = 16


def write_program_sessions(root, program, sessions, size):
    """Writes about `size` bytes in that many transcripts below a root; returns their paths."""
    templates, paths = {}, []
    for number in range(sessions):
        kind = number % templates_count
        if kind not in templates:
            templates[kind] = programs[program](kind, size // sessions)
        made = templates[kind]
        own_id = f"5e551035-0000-7000-8000-{number:012x}"
        path = os.path.join(root, made.layout.format(id=own_id))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write("\n".join(made.lines).replace(made.id, own_id) + "\n")
        paths.append(path)
    return paths
