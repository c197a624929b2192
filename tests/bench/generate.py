#!/usr/bin/env python3
"""Generates trees of sessions for the benchmarks with the shape of recorded ones: kinds of records, number per turn, sizes. The text is invented.

usage: generate.py [--sessions N] [--bytes B] [--era MIX] [--seed S] DIR
       generate.py --measure DIR      the shape of the transcripts below DIR, as JSON; shape.json is that of recorded ones
       generate.py --shape            shape.json as a table

MIX is an era of shape.json, several with weights (2.1.330=3,2.0=1), or `recorded`: each by its share of the recorded bytes (the default).
B may end in K, M or G. The same arguments give the same bytes.
"""
import argparse
import json
import os
import random
import re
import sys

import session_shape

WORDS = ("the build is green again and every test that was red has a reason now so we look at the next one with care "
         "while the cache warms and the log tells what it saw in plain words").split()
STAMP = "2026-01-01T%02d:%02d:%02d.%03dZ"
templates_count = 16          # sessions differ by length, content and ids
template_bytes_max = 4 << 20  # a longer session repeats the template with other ids
SESSION_MARK = "5e551035"     # replaced by the session's number: eight hex digits
COPY_MARK = "-c0b1-"          # replaced by the number of the repetition
prose_bytes = 256 << 10
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shape.json")) as file:
    SHAPES = json.load(file)
CHAINED = ("attachment", "progress", "system")  # types with a uuid, besides user and assistant


def made_prose():
    chance, words, size = random.Random(0), [], 0
    while size < prose_bytes:
        words.append(chance.choice(WORDS))
        size += len(words[-1]) + 1
    return " ".join(words)


PROSE = made_prose()


def text(chance, size, prose=PROSE):
    """About `size` bytes of words."""
    at = chance.randrange(len(prose))
    return (prose[at:at + size] + prose * ((size + at) // len(prose)))[:size].strip() or "so"


def escaped_prose(escapes_a_kb):
    """Words with as many line feeds and quotation marks as recorded sessions have escapes."""
    apart = max(2, int(1000 / max(escapes_a_kb, 1)))
    return "".join(PROSE[at:at + apart - 1] + ('"' if at // apart % 4 == 0 else "\n") for at in range(0, len(PROSE), apart))


def sampled(chance, quantiles):
    """A random number with these quantiles, log-uniform between two of them."""
    at = chance.random()
    n = max(n for n, share in enumerate(session_shape.QUANTILES[:-1]) if share <= at)
    low, high = max(1, quantiles[n]), max(1, quantiles[n + 1])
    along = (at - session_shape.QUANTILES[n]) / (session_shape.QUANTILES[n + 1] - session_shape.QUANTILES[n])
    return int(low * (high / low) ** along)


class Template:
    """One session as text, about `size` bytes; every id begins with SESSION_MARK."""

    def __init__(self, seed, size, era="2.1.330"):
        self.chance, self.lines, self.bytes, self.records, self.parent = random.Random(seed), [], 0, 0, None
        self.era, self.kinds = era, SHAPES[era]["kinds"]
        self.prose, self.due, self.calls = escaped_prose(SHAPES[era]["escapes_a_kb"]), dict.fromkeys(self.kinds, 0.0), []
        turns = 0
        while turns == 0 or self.bytes + self.bytes // turns // 2 < size:  # rounds to the nearest turn
            self.turn()
            turns += 1

    def id(self, kind):
        self.records += 1
        return f"{SESSION_MARK}{COPY_MARK}4{kind:03x}-8000-{self.records:012x}"

    def fill(self, size):
        return text(self.chance, max(size, 2), self.prose)

    def add(self, record):
        self.lines.append(json.dumps(record, separators=(",", ":")))
        self.bytes += len(self.lines[-1]) + 1

    def stamp(self):
        s = self.records
        return STAMP % (s // 3600 % 24, s // 60 % 60, s % 60, self.chance.randrange(1000))

    def record(self, type, **more):
        uuid = self.id(1)
        common = {"type": type, "uuid": uuid, "timestamp": self.stamp(), "userType": "external", "cwd": "/home/ada/project",
                  "sessionId": f"{SESSION_MARK}-0000-4000-8000-000000000000", "version": VERSIONS[self.era], "gitBranch": "main"}
        self.add({"parentUuid": self.parent, "isSidechain": False, **more, **common})
        self.parent = uuid

    def turn(self):
        """Writes the era's average number of each kind per turn, spread between the calls."""
        counts = {}
        for kind, shape in self.kinds.items():
            self.due[kind] += shape["a_turn"]
            counts[kind] = int(self.due[kind])
            self.due[kind] -= counts[kind]
        texts = counts.pop("text", 0)
        counts.pop("result", 0)  # one per call
        self.write("prompt"), counts.pop("prompt")
        calls = counts.pop("call", 0)
        for n in range(calls + 1):
            for kind, count in counts.items():
                for _ in range(count * (n + 1) // (calls + 1) - count * n // (calls + 1)):
                    self.write(kind)
            if n < calls:
                if n < texts - 1:
                    self.write_text("text", "tool_use")
                self.write("call")
                self.write("result")
        self.write_text("text", "end_turn")

    def write(self, kind):
        WRITERS.get(kind, Template.bulk)(self, kind, sampled(self.chance, self.kinds[kind]["bytes"]) if kind in self.kinds else 200)

    def write_text(self, kind, stop):
        self.assistant({"type": "text", "text": self.fill(sampled(self.chance, self.kinds[kind]["bytes"]) - 700)}, stop)

    def assistant(self, block, stop="tool_use"):
        self.record("assistant", message={
            "id": f"msg_{self.id(4)}", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [block], "stop_reason": stop,
            "usage": {"input_tokens": 12, "cache_creation_input_tokens": 400, "cache_read_input_tokens": 21000,
                      "output_tokens": self.chance.randrange(20, 900), "service_tier": "standard"}}, requestId=self.id(3))

    def prompt(self, kind, size):
        more = {"isMeta": True} if kind == "meta" else {}
        self.record("user", message={"role": "user", "content": self.fill(size - 400)}, **more)

    def thinking(self, kind, size):
        fill = max(40, size - 750)
        self.assistant({"type": "thinking", "thinking": self.fill(fill // 2), "signature": f"{self.chance.getrandbits(256):064x}" * (fill // 128 + 1)})

    def call(self, kind, size):
        self.calls.append(f"toolu_{self.id(5)}")
        self.assistant({"type": "tool_use", "id": self.calls[-1], "name": "Bash", "input": {"command": self.fill(size - 900), "description": "Try it"}})

    def result(self, kind, size):
        output = self.fill((size - 600) // 2)
        self.record("user", message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": self.calls.pop(), "content": output, "is_error": False}]},
                    toolUseResult={"stdout": output, "stderr": "", "interrupted": False})

    def system(self, kind, size):
        self.record("system", subtype="turn_duration", durationMs=self.chance.randrange(1000, 90000), isMeta=False)

    def queue(self, kind, size):
        self.add({"type": kind, "operation": self.chance.choice(("enqueue", "dequeue")), "timestamp": self.stamp(),
                  "sessionId": f"{SESSION_MARK}-0000-4000-8000-000000000000", "content": self.fill(size - 160)})

    def summary(self, kind, size):
        self.add({"type": kind, "summary": self.fill(size - 90), "leafUuid": self.id(6)})

    def bulk(self, kind, size):
        """A record without events."""
        if kind in CHAINED:
            name = {"attachment": "prompt_snapshot", "progress": "hook_progress"}[kind]
            return self.record(kind, **{"data" if kind == "progress" else kind: {"type": name, "content": self.fill(size - 420)}})
        self.add({"type": kind, "sessionId": f"{SESSION_MARK}-0000-4000-8000-000000000000", "hash": "%064x" % self.chance.getrandbits(256),
                  "content": self.fill(size - 170)})

    def text_bytes(self):
        return "\n".join(self.lines).encode() + b"\n"


VERSIONS = {"1.0": "1.0.120", "2.0": "2.0.64", "2.1": "2.1.17", "2.1.90": "2.1.206", "2.1.330": "2.1.330"}
WRITERS = {"prompt": Template.prompt, "meta": Template.prompt, "thinking": Template.thinking, "call": Template.call, "result": Template.result,
           "system": Template.system, "queue-operation": Template.queue, "summary": Template.summary}


def mix_of(given):
    """{era: share}; raises ValueError for an invalid mix."""
    if given == "recorded":
        parts = {era: shape["bytes"] for era, shape in SHAPES.items()}
    else:
        parts = {}
        for part in given.split(","):
            era, _, weight = part.partition("=")
            if era not in SHAPES:
                raise ValueError(f"unknown era '{era}': use {', '.join(SHAPES)} or recorded")
            if weight and not re.fullmatch(r"\d+(\.\d+)?", weight) or weight and float(weight) == 0:
                raise ValueError(f"the weight of {era} must be a number above 0, not '{weight}'")
            parts[era] = float(weight or 1)
    return {era: weight / sum(parts.values()) for era, weight in parts.items()}


def templates_of(count, mean, mix, seed):
    chance, eras = random.Random(seed), []
    for n in range(min(count, templates_count)):
        eras.append(max(mix, key=lambda era: mix[era] * (n + 1) - eras.count(era)))
    sizes = [sampled(chance, SHAPES[era]["file_bytes"]) if count > 1 else 1 for era in eras]
    scale = mean * len(sizes) / sum(sizes)
    sizes = [max(1, int(size * scale)) for size in sizes]
    return [(Template(f"{seed}/{n}", min(size, template_bytes_max), era).text_bytes(), size) for n, (era, size) in enumerate(zip(eras, sizes))]


def prompt_line(session, n, prompt):
    """A user's prompt, the n-th line of a transcript."""
    return json.dumps({"type": "user", "uuid": f"{session}-{n}", "sessionId": session, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w",
                       "version": "2.1.330", "message": {"role": "user", "content": prompt}}) + "\n"


def write_one(path, template, number, size):
    """Writes copies of a template with different ids, about `size` bytes."""
    template = template.replace(SESSION_MARK.encode(), b"%08x" % number)
    with open(path, "wb") as file:
        for copy in range(max(1, round(size / len(template)))):
            file.write(template.replace(COPY_MARK.encode(), b"-%04x-" % copy))


def write_sessions(root, count, size, era="recorded", seed=0):
    """Writes `count` sessions of `size` bytes in total below root/projects, twenty per directory; returns their paths."""
    templates = templates_of(count, size / count, mix_of(era), seed)
    paths = []
    for number in range(count):
        folder = os.path.join(root, "projects", f"-home-ada-project-{number // 20}")
        os.makedirs(folder, exist_ok=True)
        paths.append(os.path.join(folder, f"{number:08x}-0000-4000-8000-000000000000.jsonl"))
        write_one(paths[-1], templates[number % len(templates)][0], number, templates[number % len(templates)][1])
    return paths


def bytes_of(given):
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)", given)
    if not found:
        raise argparse.ArgumentTypeError(f"'{given}' is not a number of bytes such as 868M or 1.4G")
    return int(float(found[1]) * 1024 ** " KMG".index(found[2] or " "))


def main(argv=None):
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1], add_help=True)
    parser.add_argument("--sessions", type=int, default=20, metavar="N")
    parser.add_argument("--bytes", type=bytes_of, default=20 << 20, metavar="B")
    parser.add_argument("--era", default="recorded", metavar="MIX")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--measure", metavar="DIR")
    parser.add_argument("--shape", action="store_true")
    parser.add_argument("dir", nargs="?", metavar="DIR")
    given = parser.parse_args(argv)
    if given.measure:
        shapes = session_shape.measure(given.measure)
        print(session_shape.table(shapes), file=sys.stderr)
        sys.stdout.write(session_shape.dumps(shapes))
    elif given.shape:
        print(session_shape.table(SHAPES))
    elif not given.dir:
        parser.error("DIR is missing")
    elif given.sessions < 1 or given.bytes < given.sessions:
        parser.error("--sessions and --bytes: at least one session, and one byte per session")
    else:
        try:
            paths = write_sessions(given.dir, given.sessions, given.bytes, given.era, given.seed)
        except ValueError as error:
            parser.error(f"--era: {error}")
        print(f"{len(paths)} sessions, {sum(map(os.path.getsize, paths)):,} bytes, below {given.dir}/projects")


if __name__ == "__main__":
    main()
