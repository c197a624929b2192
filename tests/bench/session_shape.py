"""The shape of recorded sessions in numbers: printed by `generate.py --measure DIR`, stored in shape.json, used by generate.py.

Contains no content: only names of record types, counts, and quantiles of line sizes.
"""
import collections
import glob
import json
import os
import re

# The first era whose expression matches the most frequent version in a file.
ERAS = (("1.0", r"1\."), ("2.0", r"2\.0\."), ("2.1", r"2\.1\.[1-8]?\d$"), ("2.1.90", r"2\.1\.(9\d|1\d\d|2\d\d)$"), ("2.1.330", r"2\.1\.330$"))
MEANING = ("prompt", "result", "thinking", "text", "call", "system", "summary", "queue-operation")  # kinds that give events; the rest is bulk
large_result_bytes = 4096   # longer texts are truncated on the wire
kind_a_turn_min = 0.03      # rarer kinds are left out
QUANTILES = (0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1)


def era_of(version):
    return next((era for era, fits in ERAS if re.match(fits, version)), None)


def kind_of(record):
    """The generator's kind of a record: its type, refined for messages of the user, the model and tools."""
    kind, message = record.get("type"), record.get("message")
    blocks = message.get("content") if isinstance(message, dict) else None
    first = blocks[0] if isinstance(blocks, list) and blocks and isinstance(blocks[0], dict) else {}
    if kind == "assistant":
        return {"thinking": "thinking", "tool_use": "call"}.get(first.get("type"), "text")
    if kind == "user":
        return "result" if first.get("type") == "tool_result" else "meta" if record.get("isMeta") else "prompt"
    return kind if isinstance(kind, str) else None


def quantiles(numbers):
    numbers = sorted(numbers)
    return [numbers[int((len(numbers) - 1) * share)] for share in QUANTILES]


class Era:
    def __init__(self):
        self.file_bytes, self.line_bytes, self.escapes, self.kinds = [], [], 0, collections.defaultdict(list)

    def add(self, lines, escapes):
        self.escapes += escapes
        self.file_bytes.append(sum(size for _, size in lines))
        for kind, size in lines:
            self.line_bytes.append(size)
            self.kinds[kind].append(size)

    def shape(self):
        total = sum(self.line_bytes)
        results, prompts = self.kinds.get("result", []), len(self.kinds.get("prompt", ())) or 1
        often = {kind: sizes for kind, sizes in sorted(self.kinds.items()) if len(sizes) / prompts >= kind_a_turn_min}
        return {
            "files": len(self.file_bytes), "lines": len(self.line_bytes), "bytes": total,
            "bulk_share": round(sum(sum(sizes) for kind, sizes in self.kinds.items() if kind not in MEANING) / total, 3),
            "calls_a_turn": round(len(self.kinds.get("call", ())) / prompts, 2),
            "large_result_share": round(sum(size > large_result_bytes for size in results) / (len(results) or 1), 3),
            "line_bytes": quantiles(self.line_bytes),
            "file_bytes": quantiles(self.file_bytes),
            "escapes_a_kb": round(1000 * self.escapes / total, 1),
            "kinds": {kind: {"a_turn": round(len(sizes) / prompts, 3), "bytes": quantiles(sizes)} for kind, sizes in often.items()},
        }


def lines_of(path):
    """([(kind, bytes)] of a transcript, its number of escapes, its most frequent version)"""
    lines, escapes, versions = [], 0, collections.Counter()
    with open(path, "rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and kind_of(record):
                lines.append((kind_of(record), len(line)))
                escapes += line.count(b"\\")
                versions[str(record.get("version", ""))] += 1
    versions.pop("", None)
    return lines, escapes, versions.most_common(1)[0][0] if versions else ""


def measure(folder):
    """{era: shape} of all transcripts below a directory."""
    eras = {era: Era() for era, _ in ERAS}
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.jsonl"), recursive=True)):
        if os.path.basename(path) == "timeline.jsonl":  # describes the recording; not a transcript
            continue
        lines, escapes, version = lines_of(path)
        if lines and era_of(version):
            eras[era_of(version)].add(lines, escapes)
    return {era: found.shape() for era, found in eras.items() if found.line_bytes}


def table(shapes):
    """The shapes as a table."""
    rows = [("era", "files", "lines", "bytes", "bulk", "calls a turn", "large results", "escapes a KB", "line bytes p10 p50 p90 p99 max")]
    for era, shape in shapes.items():
        line = shape["line_bytes"]
        rows.append((era, str(shape["files"]), str(shape["lines"]), str(shape["bytes"]), f"{shape['bulk_share']:.0%}", str(shape["calls_a_turn"]),
                     f"{shape['large_result_share']:.0%}", str(shape["escapes_a_kb"]), " ".join(str(line[n]) for n in (1, 3, 5, 6, 7))))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def dumps(shapes):
    """The format of shape.json: one line per kind."""
    text = json.dumps(shapes, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]|\{[^\[\]{}]*\[[^\[\]{}]*\]\s*\}", lambda found: re.sub(r"\s+", " ", found[0]), text) + "\n"
