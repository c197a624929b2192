"""Sessions for the benchmarks, in the shape that recorded ones have: nine tenths of the bytes are records without meaning to a listener
(attachments, request blobs), the rest turns of prompts, thinking, calls, results and usage. The text is our own."""
import json
import os
import random

WORDS = ("the build is green again and every test that was red has a reason now so we look at the next one with care "
         "while the cache warms and the log tells what it saw in plain words").split()
STAMP = "2026-01-01T%02d:%02d:%02d.%03dZ"
templates_count = 16  # sessions differ by length and content; ids are their own
PLACE = "5e551035"    # stands for the session in a template: eight hex digits


def text(chance, size):
    words = []
    while size > 0:
        words.append(chance.choice(WORDS))
        size -= len(words[-1]) + 1
    return " ".join(words)


class Template:
    """One session as text, about `size` bytes; every id in it begins with PLACE."""

    def __init__(self, seed, size):
        self.chance, self.lines, self.bytes, self.records, self.parent = random.Random(seed), [], 0, 0, None
        self.first_hello()
        while self.bytes < size - 40_000:  # half a turn
            self.turn()

    def id(self, kind):
        self.records += 1
        return f"{PLACE}-{kind:04x}-4000-8000-{self.records:012x}"

    def add(self, record):
        self.lines.append(json.dumps(record, separators=(",", ":")))
        self.bytes += len(self.lines[-1]) + 1

    def stamp(self):
        s = self.records
        return STAMP % (s // 3600 % 24, s // 60 % 60, s % 60, self.chance.randrange(1000))

    def record(self, type, **more):
        uuid = self.id(1)
        common = {"type": type, "uuid": uuid, "timestamp": self.stamp(), "userType": "external", "cwd": "/home/ada/project",
                  "sessionId": f"{PLACE}-0000-4000-8000-000000000000", "version": "2.1.330", "gitBranch": "main"}
        self.add({"parentUuid": self.parent, "isSidechain": False, **more, **common})
        self.parent = uuid

    def bulk(self):
        """What a listener skips: beside every request of the model."""
        session = f"{PLACE}-0000-4000-8000-000000000000"
        self.record("attachment", attachment={"type": "prompt_snapshot", "systemPrompt": [text(self.chance, 12000) for _ in range(2)]},
                    rendered=[{"content": text(self.chance, 400)}], renderedRole="system")
        self.add({"type": "api-request-blob", "sessionId": session, "hash": "%064x" % self.chance.getrandbits(256),
                  "message": {"role": "user", "content": [{"type": "text", "text": text(self.chance, 9000)}]}})
        self.add({"type": "api-request", "sessionId": session, "id": self.id(2), "timestamp": self.stamp(), "params": {"model": "m", "max_tokens": 128000}})

    def first_hello(self):
        for _ in range(5):
            self.bulk()

    def assistant(self, message, block, stop):
        self.record("assistant", message={
            "id": message, "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [block], "stop_reason": stop,
            "usage": {"input_tokens": 12, "cache_creation_input_tokens": 400, "cache_read_input_tokens": 21000,
                      "output_tokens": self.chance.randrange(20, 900), "service_tier": "standard"}}, requestId=self.id(3))

    def turn(self):
        self.record("user", message={"role": "user", "content": text(self.chance, 120)}, promptSource="typed")
        for _ in range(self.chance.randrange(1, 5)):
            message, call = self.id(4), f"toolu_{self.id(5)}"
            self.bulk()
            self.assistant(message, {"type": "thinking", "thinking": text(self.chance, 300), "signature": "%0200x" % self.chance.getrandbits(800)}, "tool_use")
            self.assistant(message, {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": text(self.chance, 80), "description": "Try it"}}, "tool_use")
            output = text(self.chance, self.chance.choice((40, 300, 1200, 6000)))
            self.record("user", message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": output, "is_error": False}]},
                        toolUseResult={"stdout": output, "stderr": "", "interrupted": False})
        self.assistant(self.id(4), {"type": "text", "text": text(self.chance, 400)}, "end_turn")

    def whole(self):
        return "\n".join(self.lines).encode() + b"\n"


def write_sessions(root, count, size):
    """`count` sessions of about `size` bytes together, below root/projects in directories of twenty; gives their paths."""
    mean = size // count
    templates = [Template(seed, max(20_000, mean * (seed % 4 * 2 + 1) // 4)) for seed in range(templates_count)]
    texts = [template.whole() for template in templates]
    paths = []
    for number in range(count):
        folder = os.path.join(root, "projects", f"-home-ada-project-{number // 20}")
        os.makedirs(folder, exist_ok=True)
        paths.append(os.path.join(folder, f"{number:08x}-0000-4000-8000-000000000000.jsonl"))
        with open(paths[-1], "wb") as file:
            file.write(texts[number % templates_count].replace(PLACE.encode(), b"%08x" % number))
    return paths
