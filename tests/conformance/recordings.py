"""Recorded sessions, and a player that does to a directory what the recorded programs did (STATES.md)."""
import contextlib
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent

STATES = ("unknown", "ended", "idle", "working", "waiting")  # of several sessions the last of these is shown
same_moment_ms = 100  # a key, and what it did at once, as they were written down


class Program:
    """Where a program keeps what was recorded, and the file by which one of its processes says that it lives."""

    def __init__(self, name, corpus, command, below="", entry=None):
        self.name, self.corpus, self.command, self.below, self.entry = name, corpus, command, below, entry and re.compile(entry)


PROGRAMS = [
    Program("claude-code", "claude", "claude", entry=r"sessions/(\d+)\.json"),
    Program("codex", "codex", "codex"),  # an open rollout and its lock: Player.open
    Program("copilot", "copilot", "copilot", below="session-state", entry=r".*/inuse\.(\d+)\.lock"),
    Program("pi", "pi", "pi", below="sessions"),  # its working directory
]


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


class Recording:
    """`changes`: what the program did, in order of `ms`. `truth`: (from, to or None, accepted states, reason, row)."""

    def __init__(self, directory):
        self.directory = directory = pathlib.Path(directory).resolve()
        self.program = program_of(directory)
        self.version = version_of(directory, self.program)
        self.is_watched = not (directory / "timeline.jsonl").exists()
        self.changes = watched(directory) if self.is_watched else read_lines(directory / "timeline.jsonl")
        if own := [row for row in added_truth() if is_of(directory, row)]:
            self.truth = list(explicit_intervals(own))
        else:
            notes = directory / "notes.jsonl"
            own = read_lines(directory / "truth.jsonl")
            self.truth = list(intervals([row for row in own if row.get("state") in STATES], read_lines(notes) if notes.exists() else []))
        self.changes += [{**row, "op": row["process"]} for row in own if "process" in row]
        self.changes.sort(key=lambda change: change["ms"])


def program_of(directory):
    found = (program for part in directory.parts[::-1] for program in PROGRAMS if part.startswith(program.corpus))
    return next(found, PROGRAMS[0])


def version_of(directory, program):
    """Of `claude-2.1.332/c_ask`, or of `codex/recorded/0.171.0/x_basic`."""
    numbers = [found[1] for part in directory.parts[:-1] if (found := re.fullmatch(r"(?:[a-z]+-)?(\d[\d.]*)", part))]
    return numbers[-1] if numbers else {"copilot": "1.0.102"}.get(program.name, directory.parent.name)


def watched(directory):
    """The changes of a watch.log: files grow by whole lines, as what they contain was edited afterwards."""
    changes, start, grown = [], None, {}
    for row in read_lines(directory / "watch.log"):
        start = start if start is not None else row["t"]
        change = {"ms": row["t"] - start, "path": row["f"].removeprefix("session-state/")}
        if row["ev"] == "grow":
            grown[row["f"]] = grown.get(row["f"], 0) + len(row["lines"])
            change |= {"op": "append", "lines": grown[row["f"]]}
        elif row["ev"] == "content":
            change |= {"op": "write", "text": row["text"]}
        elif row["ev"] == "gone":
            change |= {"op": "remove"}
        else:
            continue
        changes.append(change)
    return changes


def added_truth():
    """The rows of truth/, of recordings that have none of their own; `recording` is the end of their path."""
    return [row for path in sorted((HERE / "truth").glob("*.jsonl")) for row in read_lines(path)]


def is_of(directory, row):
    return str(directory).endswith("/" + row["recording"])


def intervals(rows, notes):
    """The windows' most urgent state, until somebody does or sees something else."""
    times = sorted({row["ms"] for row in rows} | {note["ms"] for note in notes})
    windows = {}  # {window: (row, until)}
    for row in sorted(rows, key=lambda row: row["ms"]):
        until = next((ms for ms in times if ms > row["ms"] + same_moment_ms), None)
        windows[row.get("win", "")] = row, until
        is_known = all(state["state"] == "ended" or end is None or end >= row["ms"] for state, end in windows.values())
        if not is_known:  # what another window shows by now was not written down
            continue
        top = max((each for each, _ in windows.values()), key=lambda each: STATES.index(each["state"]))
        yield interval(top, row["ms"], until)


def explicit_intervals(rows):
    """Of rows that say until when they are true."""
    for row in rows:
        if "state" in row:
            yield interval(row, row["ms"], row.get("to"))


def interval(row, begin, until):
    return begin, until, {row["state"], row.get("also", row["state"])}, row.get("reason") if row["state"] == "waiting" else None, row


# A process of a recorded program. A line of its input is a file to open and a lock to hold; at its end it leaves as a program that was told to.
STAND_IN = """
import fcntl, os, sys
held = []
print(flush=True)
for line in sys.stdin:
    path, lock = line.rstrip("\\n").split("\\t")
    os.makedirs(os.path.dirname(lock), exist_ok=True)
    held += [(open(path, "a"), None), (open(lock, "w"), lock)]
    fcntl.flock(held[-1][0], fcntl.LOCK_EX)
    print(flush=True)
for file, lock in held:
    lock and os.unlink(lock)
"""

ISO = re.compile(rb'"(timestamp)":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z"')
MILLIS = re.compile(rb'"(timestamp)":(\d{13})(?=[,}])')
CWD = re.compile(rb'"cwd":"(/[^"]*)"')


class Player:
    """Plays a recording into `root`, the program's own directory; each recorded process is one that lives."""

    def __init__(self, recording, root):
        self.recording, self.program = recording, recording.program
        self.tree = recording.directory if recording.is_watched else recording.directory / "tree"
        self.top, self.root = root, root / self.program.below
        self.size, self.content, self.shift, self.processes, self.windows = {}, {}, None, {}, {}
        self.made = []  # when each change was made, by the monotonic clock
        named = {change["path"] for change in recording.changes if "path" in change}
        self.untimed = [] if recording.is_watched else [
            path.relative_to(self.tree) for path in self.tree.rglob("*") if path.is_file() and str(path.relative_to(self.tree)) not in named]

    # Contents

    def final(self, path):
        """The bytes of a transcript, its times moved so that the recording begins now; their number stays, unless lines are counted."""
        if path not in self.content:
            data = self.source(path).read_bytes()
            if self.shift is None:
                times = [datetime.datetime.fromisoformat(found.decode()) for _, found in ISO.findall(data)]
                self.shift = (datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) - min(times)) if times else datetime.timedelta()
            shift_ms = round(self.shift.total_seconds() * 1000)
            moved = lambda found: (datetime.datetime.fromisoformat(found.decode()) + self.shift).isoformat(timespec="milliseconds").encode()
            data = ISO.sub(lambda found: b'"%s":"%sZ"' % (found[1], moved(found[2])), data)
            data = MILLIS.sub(lambda found: b'"%s":%d' % (found[1], int(found[2]) + shift_ms), data)
            if self.recording.is_watched:  # a directory that is there
                data = CWD.sub(lambda found: b'"cwd":"%s"' % os.fsencode(self.here(os.fsdecode(found[1]))), data)
            self.content[path] = data
        return self.content[path]

    def source(self, path):
        """A watched file may be kept without the directories it was in."""
        return next(each for part in (path, path.split("/", 1)[-1]) if (each := self.tree / part).exists())

    def here(self, directory):
        made = self.top.parent / "home" / directory.lstrip("/")
        made.mkdir(parents=True, exist_ok=True)
        return made

    def target(self, path):
        whole = self.root / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        return whole

    # Changes

    def append(self, path, to=None, lines=None, text=None):
        at = self.size.get(path, 0)
        if lines is not None:
            to = sum(map(len, self.final(path).splitlines(keepends=True)[:lines]))
        data = self.final(path)[at:to] if text is None else text.encode("utf-8", "surrogatepass")
        if self.program.name == "codex" and self.windows and path not in self.size:
            self.open(list(self.windows)[-1], path)
        with open(self.target(path), "ab", buffering=0) as file:
            file.write(data)
        self.size[path] = max(at, to)

    def write(self, path, text):
        path, text = self.entry(path, text) if text.strip() else (path, text)
        with open(self.target(path), "wb", buffering=0) as file:  # truncated first: as the programs do
            file.write(text.encode("utf-8", "surrogatepass"))
        if path.endswith(".jsonl"):
            self.size[path] = len(text.encode("utf-8", "surrogatepass"))

    def entry(self, path, text):
        """The path and text of a file that names a process, with one that lives here and now."""
        found = self.program.entry and self.program.entry.fullmatch(path)
        if not found:
            return path, text
        old = found[1]
        if old not in self.processes:
            self.processes[old] = self.process()
        pid = self.processes[old].pid
        path = path[:found.start(1)] + str(pid) + path[found.end(1):]
        if text.strip() == old:
            return path, text.replace(old, str(pid))
        born = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
        machine = pathlib.Path("/etc/machine-id")
        domain = f"linux:{machine.read_text().strip() if machine.exists() else ''}:{os.readlink('/proc/self/ns/pid')}"
        text = re.sub(r'"pid":( ?)\d+', rf'"pid":\g<1>{pid}', text)
        text = re.sub(r'"procStart":"?\d+"?', f'"procStart":"{born}"', text)
        text = re.sub(r'"pidDomain":"[^"]*"', f'"pidDomain":"{domain}"', text)
        now = int(time.time() * 1000)
        return path, re.sub(r'"(startedAt|updatedAt|statusUpdatedAt|nameSince)":\d+', rf'"\g<1>":{now}', text)

    def remove(self, path):
        found = self.program.entry and self.program.entry.fullmatch(path)
        process = found and self.processes.get(found[1])
        if process:
            path = path[:found.start(1)] + str(process.pid) + path[found.end(1):]
            end(process, is_killed=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.root / path)

    # Processes

    def process(self, directory=None):
        process = subprocess.Popen([self.program.command, "-c", STAND_IN], executable=sys.executable, cwd=directory, env={},
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes[process.pid] = process
        process.stdout.readline()
        return process

    def open(self, window, path):
        """A Codex process has its rollout open and holds the lock of its thread."""
        process, thread = self.windows[window], path.removesuffix(".jsonl")[-36:]
        if not self.target(path).exists():
            self.target(path).touch()
        process.stdin.write(f"{self.root / path}\t{self.top}/thread-writer-locks/{thread}.lock\n")
        process.stdin.flush()
        process.stdout.readline()

    def start(self, window, directory=None, opens=None):
        self.windows[window] = self.process(self.here(directory) if directory else None)
        if opens:
            self.open(window, next(path for path in self.size if opens in path))

    def exit(self, window, how="quit"):
        end(self.windows.pop(window), is_killed=how == "killed")

    def play(self, start):
        """`start`: the monotonic time of the recording's 0."""
        if self.recording.is_watched and (self.recording.directory / "watch.log").exists():
            first = read_lines(self.recording.directory / "watch.log")[0]["t"] / 1000
            wall = time.time() + start - time.monotonic()
            self.shift = datetime.timedelta(seconds=wall - first)
        directories = {os.path.dirname(change["path"]) for change in self.recording.changes if "path" in change}
        for change in self.recording.changes:
            time.sleep(max(0.0, start + change["ms"] / 1000 - time.monotonic()))
            self.made.append(time.monotonic())
            operation, path = change["op"], change.get("path")
            if operation == "append":
                self.append(path, change.get("to"), change.get("lines"), change.get("text"))
            elif operation == "write":
                self.write(path, change["text"])
            elif operation == "remove":
                self.remove(path)
            elif operation == "starts":
                self.start(change["win"], change.get("directory"), change.get("opens"))
            elif operation == "exits":
                self.exit(change["win"], change.get("how", "quit"))
            here = os.path.dirname(path) if path else None
            for other in [each for each in self.untimed if nearest(each, directories) == here]:
                self.untimed.remove(other)
                self.target(other).write_bytes(self.final(str(other)) if other.suffix == ".jsonl" else (self.tree / other).read_bytes())

    def close(self):
        for process in self.processes.values():
            end(process, is_killed=True)


def end(process, is_killed):
    if is_killed:
        process.kill()
    process.stdin.close()
    process.wait()
    process.stdout.close()


def nearest(path, directories):
    """The directory with a timed change that a file without one belongs to: its own, or the nearest above."""
    above = path.parent
    while str(above) not in directories and above != above.parent:
        above = above.parent
    return "" if str(above) == "." else str(above)
