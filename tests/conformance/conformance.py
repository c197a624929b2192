#!/usr/bin/env python3
"""Compares the events of `earshot replay` with those of the reference assemblers, over all recorded sessions.

    tests/conformance/conformance.py                     # all programs
    tests/conformance/conformance.py codex pi            # these
    tests/conformance/conformance.py --only steer -n 20  # transcripts whose path contains it; more differences each
    tests/conformance/conformance.py --json | jq '.rows[] | select(.wrong > 0)'

Recorded sessions are below `<corpus>/<program>/` and in the lists there (`*.tsv`, the first column is a path), those of Claude Code also in
`<corpus>/claude-*/` and PUBLIC.tsv: EARSHOT_CORPUS, or shared/corpus next to the project. The events beside the transcripts in
tests/golden/seeds are written by hand and check the reference, too. EARSHOT_BUILD names the build (default build/release).

Columns: `wrong` is the number of events that are missing, too many or different; `unknown` that of records whose type has no meaning in the
rules. A version with a new format shows there first.

Exit codes: 0 all events agree; 1 some do not; 2 usage, or there is nothing to compare.
"""
import argparse
import collections
import csv
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(HERE))
import reference  # noqa: E402

NO_TRANSCRIPTS = {"timeline.jsonl", "notes.jsonl"}
EXPECTED = ".events.jsonl"  # suffix of the events expected of a golden transcript
UNKNOWN_VERSION = "?"
cost_tolerance = 1e-9  # sums of floating-point numbers


class Program:
    """A program whose transcripts have a reference assembler."""

    def __init__(self, name, layout, version):
        self.name, self.layout, self.version_member = name, layout, version
        self.reference = importlib.import_module(f"{name.replace('-', '_')}_reference")

    def transcripts(self, corpus):
        own = corpus / self.name
        found = {path.resolve() for path in own.rglob("*.jsonl") if path.name not in NO_TRANSCRIPTS and not path.name.endswith(EXPECTED)}
        for listing in own.glob("*.tsv"):  # may name transcripts elsewhere in the corpus
            found.update(path for line in listing.read_text("utf-8").splitlines()
                         if (path := (own / line.split("\t")[0]).resolve()).suffix == ".jsonl" and path.is_file())
        return sorted(found)

    @staticmethod
    def stem(path):
        return path.parent.name if path.name == "events.jsonl" else path.stem

    def place(self, path, directory):
        """Links the transcript to where the program would write it below `directory`: its path names the session."""
        link = directory / self.layout.format(stem=self.stem(path))
        link.parent.mkdir(parents=True)
        link.symlink_to(path.resolve())
        return link

    def version(self, data):
        for line in reference.lines(data):
            for record in line.records:
                version = reference.member(record, *self.version_member)
                if self.name == "pi" and reference.text_of(record, "type") == "session":
                    return f"format {version or 1}"  # it writes none of its own
                if isinstance(version, str) and version[:1].isdigit():
                    return version
        return UNKNOWN_VERSION

    def expected(self, path):
        """(version, events, unknown records by type)"""
        data = path.read_bytes()
        events = list(self.reference.events(data, stem=self.stem(path)))
        for event in events:
            if event["type"] == "session.started":
                event.setdefault("program", self.name)
        return self.version(data), events, self.reference.unknown(data)

    def written(self, path):
        """The events that are written by hand for this transcript, or None."""
        return None


class ClaudeCode(Program):
    """Its recordings are in several places; its subagents have transcripts of their own, below their session."""

    golden = TOP / "tests/golden/seeds"  # transcripts whose expected events are written by hand: for the daemon and for the reference
    no_transcript = re.compile(r"journal|agent-a(prompt_suggestion|compact)-.*")
    others = re.compile("codex|copilot|gemini|qwen", re.I)  # public transcripts of other programs that have records of type user

    def transcripts(self, corpus):
        found = set(super().transcripts(corpus))
        found.update(path.resolve() for path in corpus.glob("claude-*/*/tree/projects/**/*.jsonl"))
        if (listing := corpus / "PUBLIC.tsv").is_file():
            with listing.open(encoding="utf-8", newline="") as file:
                found.update((corpus / "public" / row["path"]).resolve() for row in csv.DictReader(file, delimiter="\t") if self.is_own(row))
        found.update(path for path in self.golden.glob("*.jsonl") if not path.name.endswith(EXPECTED))
        return sorted(path for path in found if path.is_file() and not self.no_transcript.fullmatch(path.stem))

    def is_own(self, row):
        types = {each.rsplit(":", 1)[0].split("/")[0] for each in row["line_types"].split()}
        return row["path"].endswith(".jsonl") and bool(types & {"assistant", "attachment", "system", "user"}) and not self.others.search(row["path"])

    @staticmethod
    def stem(path):
        """Below the directory of the project."""
        parts = path.with_suffix("").parts
        return "/".join(parts[parts.index("subagents") - 1:]) if "subagents" in parts[1:] else parts[-1]

    def written(self, path):
        if path.parent != self.golden:
            return None
        events = [wire_event(json.loads(line)) for line in path.with_suffix(EXPECTED).read_text("utf-8").splitlines()]
        return [{**event, "session": path.stem} for event in events]  # that of the expected events is another


def programs():
    return [
        ClaudeCode("claude-code", "projects/-home-ada-lamp/{stem}.jsonl", ("version",)),
        Program("codex", "sessions/2026/01/01/{stem}.jsonl", ("payload", "cli_version")),
        Program("copilot", "session-state/{stem}/events.jsonl", ("data", "copilotVersion")),
        Program("pi", "sessions/--home-ada-lamp--/{stem}.jsonl", ("version",)),
    ]


def corpus():
    """The directory of recorded sessions, or None."""
    for path in (os.environ.get("EARSHOT_CORPUS"), TOP.parent / "shared/corpus"):
        if path and os.path.isdir(path):
            return pathlib.Path(path).resolve()
    return None


# ---- The daemon's events


def replay(path):
    """(events, unknown records by type) of the build under test."""
    build = os.environ.get("EARSHOT_BUILD") or TOP / "build/release"
    command = [os.path.join(build, "earshot"), "replay", "--no-redact", "--stats", "--events", "--json", str(path)]
    *events, stats = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
    return [wire_event(json.loads(event)) for event in events], json.loads(stats)["unknown_types"]


def wire_event(event):
    """The event with its position, and without what the transcript does not say."""
    offset, index, _ = event.pop("cursor").split(".")
    del event["host"], event["stream"]
    return {**event, "offset": int(offset), "index": int(index)}


# ---- Comparison


def same(expected, found):
    """`found` may be cut as on the wire."""
    expected, found = reference.cut(expected), dict(found)
    if found.get("truncated", {}).get("input", 0) > reference.INPUT_BYTES_MAX and isinstance(found["input"], str):
        for event in (expected, found):  # the beginning of the input's JSON
            event.pop("input", None)
            event.pop("truncated", None)
    costs = expected.pop("cost_usd", None), found.pop("cost_usd", None)
    if None in costs and costs != (None, None) or None not in costs and abs(costs[0] - costs[1]) > cost_tolerance:
        return False
    return expected == found


def differences(expected, found):
    """(expected, found) of each event that is not the same; None: there is no such event. Events are paired by position."""
    paired = collections.defaultdict(lambda: [None, None])
    for side, events in enumerate((expected, found)):
        for event in events:
            paired[event["offset"], event["index"]][side] = event
    for _, (one, other) in sorted(paired.items()):
        if not (one and other and same(one, other)):
            yield one, other


class Row:
    def __init__(self):
        self.transcripts = self.events = self.wrong = 0
        self.unknown = collections.Counter()


def compare(chosen, directory, only="", report=lambda path, one, other: None):
    """Rows by (program, version). `report` gets each difference."""
    rows = collections.defaultdict(Row)
    with tempfile.TemporaryDirectory(prefix="earshot-conformance-") as links:
        for program in chosen:
            for number, path in enumerate(program.transcripts(directory)):
                if only not in str(path):
                    continue
                version, expected, unknown = program.expected(path)
                found, found_unknown = replay(program.place(path, pathlib.Path(links, program.name, str(number))))
                row = rows[program.name, version]
                row.transcripts += 1
                row.events += len(expected)
                row.unknown.update(unknown)
                written = program.written(path)
                for one, other in [*differences(expected, found), *(differences(written, expected) if written is not None else ())]:
                    row.wrong += 1
                    report(path, one, other)
                if dict(unknown) != found_unknown:
                    row.wrong += 1
                    report(path, {"unknown records": dict(unknown)}, {"unknown records": found_unknown})
    return rows


# ---- Output


class Differences:
    """Prints the first differences of the first transcripts."""

    transcripts_max = 10
    event_chars_max = 2000

    def __init__(self, shown_max, out=sys.stderr):
        self.shown_max, self.out, self.shown = shown_max, out, collections.Counter()

    def __call__(self, path, one, other):
        self.shown[path] += 1
        if len(self.shown) > self.transcripts_max or self.shown[path] > self.shown_max:
            return
        if self.shown[path] == 1:
            print(path, file=self.out)
        for name, event in (("expected", one), ("earshot", other)):
            text = json.dumps(event, ensure_ascii=False, sort_keys=True) if event else "no event"
            print(f"  {name + ':':9} {text[:self.event_chars_max]}", file=self.out)


def order(version):
    """Versions in the order of their numbers."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in version.replace("-", ".").split(".")]


def table(rows):
    head = ("program", "version", "transcripts", "events", "wrong", "unknown")
    cells = [(*key, row.transcripts, row.events, row.wrong, row.unknown.total())
             for key, row in sorted(rows.items(), key=lambda item: (item[0][0], order(item[0][1])))]
    cells.append(("all", "", *(sum(row[column] for row in cells) for column in range(2, len(head)))))
    text = [head, *[[each if isinstance(each, str) else f"{each:,}" for each in row] for row in cells]]
    widths = [max(len(row[column]) for row in text) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) if column < 2 else cell.rjust(width)
                               for column, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in text)


def as_json(rows):
    listed = [{"program": program, "version": version, "transcripts": row.transcripts, "events": row.events, "wrong": row.wrong,
               "unknown": dict(row.unknown)} for (program, version), row in rows.items()]
    return json.dumps({"rows": listed, "wrong": sum(row.wrong for row in rows.values())})


def main():
    known = {program.name: program for program in programs()}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("program", nargs="*", help=f"{', '.join(known)} (default: all)")
    parser.add_argument("--corpus", type=pathlib.Path, default=corpus(), metavar="DIR", help="the recorded sessions")
    parser.add_argument("--only", default="", metavar="TEXT", help="transcripts whose path contains TEXT")
    parser.add_argument("-n", "--show", type=int, default=3, metavar="N", help="differences printed per transcript (default 3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    options = parser.parse_args()
    if unfit := set(options.program) - set(known):
        parser.error(f"no such program: {', '.join(sorted(unfit))}")
    if options.corpus is None:
        print("no recorded sessions: set EARSHOT_CORPUS or --corpus", file=sys.stderr)
        options.corpus = pathlib.Path("/nonexistent")
    rows = compare([known[name] for name in options.program or known], options.corpus, options.only, Differences(options.show))
    if not rows:
        parser.exit(2, "nothing to compare\n")
    print(as_json(rows) if options.json else table(rows))
    return 1 if any(row.wrong for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
