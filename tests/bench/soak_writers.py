"""The soak's writers: transcripts that grow at different rates, in torn writes and bursts, and are rotated, truncated, replaced and deleted.

Transcripts (`transcript_bytes_max`) and the number of subagents are limited, so the daemon's memory must not grow with time.
The ledger counts the bytes that a daemon may read for these operations: appended bytes, and complete files that must be read again.
"""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from generate import text  # noqa: E402
from support.transcripts import Registry, Session  # noqa: E402

transcript_bytes_max = 256 << 10  # then it is rotated, truncated, replaced or deleted
agents_max = 3                    # per session; the oldest is removed first
burst_lines = 120
tick_lines_max = 200              # a writer that is further behind skips the rest
# Operations on a transcript (methods of Writer), and those on a full one.
ACTS = ("agent", "rotate", "rename", "empty", "cut", "replace", "same_again", "delete", "remove_agent", "agent")
BEGINNINGS = ("rotate", "rename", "empty", "cut", "replace", "delete")
acts_a_minute = 4                 # per writer, in addition to those on full transcripts


class Ledger:
    """Counts the bytes appended, and the bytes that a daemon may read because of the operations."""

    def __init__(self):
        self.written = self.readable = self.lines = 0
        self.acts = {}

    def appended(self, size, lines):
        self.written += size
        self.readable += size
        self.lines += lines

    def reread(self, path):
        """The daemon may read this file again from its start."""
        if os.path.exists(path):
            self.readable += os.path.getsize(path)

    def act(self, name):
        self.acts[name] = self.acts.get(name, 0) + 1


class TornAppender:
    """Appends to files; sometimes only a part, and the rest with the next write."""

    def __init__(self, ledger, chance):
        self.ledger, self.chance, self.rest = ledger, chance, {}

    def write(self, path, data, torn=False):
        data = self.rest.pop(path, b"") + data
        if torn and len(data) > 1:
            at = self.chance.randrange(1, len(data))
            data, self.rest[path] = data[:at], data[at:]
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, data)
        os.close(fd)
        self.ledger.appended(len(data), data.count(b"\n"))

    def finish(self):
        for path in list(self.rest):
            self.write(path, b"")

    def discard(self, below):
        """Drops the pending rest of deleted files."""
        self.rest = {path: rest for path, rest in self.rest.items() if not path.startswith(below)}


def remove(path):
    if os.path.exists(path):
        os.remove(path)


def buffered(transcript, writer):
    """Makes the transcript append to the writer's buffer, which flush() writes at once."""

    def append(*records):
        for record in records:
            writer.buffer.append((transcript.path, json.dumps(record, separators=(",", ":")).encode() + b"\n"))
        return records[-1]

    transcript.append = append
    return transcript


class Writer:
    def __init__(self, root, number, rate, ledger, chance):
        self.root, self.number, self.rate, self.ledger, self.chance = root, number, rate, ledger, chance
        self.appender, self.due, self.buffer, self.registry = TornAppender(ledger, chance), 0.0, [], None
        self.first = getattr(self, ACTS[number % len(ACTS)])  # so that a short run has every operation
        self.start_session()

    def start_session(self):
        self.session = buffered(Session(self.root, f"/home/ada/soak-{self.number}"), self)
        self.agents = []

    @property
    def path(self):
        return self.session.path

    def tick(self, seconds):
        if self.first and self.size():
            self.perform(self.first)
            self.first = None
        self.due = min(self.due + self.rate * seconds, tick_lines_max)
        self.appender.finish()
        if self.chance.random() < acts_a_minute / 60 * seconds or self.size() > transcript_bytes_max:
            self.act()
        if self.chance.random() < seconds / 60:
            self.due += burst_lines
        while self.due >= 1:
            self.turn()
            self.due -= len(self.buffer)
            self.flush()
        if self.registry:
            self.registry.set_status(self.chance.choice(("busy", "idle")))

    def size(self):
        return os.path.getsize(self.path) if os.path.exists(self.path) else 0

    def turn(self, transcript=None):
        transcript = transcript or self.chance.choice([self.session, *self.agents])
        transcript.prompt(text(self.chance, self.chance.randrange(10, 300)))
        for _ in range(self.chance.randrange(3)):
            if self.chance.random() < 0.1:  # a record without events
                transcript.append(transcript.record("attachment", attachment={"type": "prompt_snapshot", "systemPrompt": text(self.chance, 6000)}))
            call = transcript.tool_call("Bash", {"command": text(self.chance, 60)})
            transcript.result(call, text(self.chance, self.chance.choice((40, 300, 6000))), error=self.chance.random() < 0.1)
        transcript.reply(text(self.chance, 200), stop_reason="end_turn")

    def flush(self):
        """One write per file, as the agent program does; sometimes torn."""
        data = {}
        for path, line in self.buffer:
            data[path] = data.get(path, b"") + line
        self.buffer = []
        for path, lines in data.items():
            self.appender.write(path, lines, torn=self.chance.random() < 0.2)

    # operations on files

    def act(self):
        act = self.chance.choice(BEGINNINGS if self.size() > transcript_bytes_max else ACTS)
        if act == "agent" or os.path.exists(self.path):
            self.perform(getattr(self, act))

    def perform(self, act):
        self.ledger.act(act.__name__)
        act()

    def restart_history(self):
        """A new history under the same name."""
        self.appender.discard(self.path)
        session = self.session.session
        self.session = buffered(Session(self.root, self.session.cwd, session), self)

    def rotate(self):
        os.rename(self.path, self.path + ".1")
        self.restart_history()

    def rename(self):
        """Renames to another session in another project: the same bytes are another stream."""
        self.appender.finish()
        old = self.path
        self.remove_agents()
        parent = self.session.parent
        self.session = buffered(Session(self.root, f"/home/ada/moved-{self.number}"), self)
        self.session.parent = parent
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        os.rename(old, self.path)
        remove(old + ".1")
        self.ledger.reread(self.path)

    def empty(self):
        os.truncate(self.path, 0)
        self.restart_history()

    def cut(self):
        """Truncates, usually within a line: the next line is appended to the rest."""
        self.appender.discard(self.path)
        os.truncate(self.path, self.size() // 3)
        self.ledger.reread(self.path)

    def replace(self):
        """Renames another history over it."""
        self.restart_history()
        real, self.session.path = self.path, self.path + ".new"
        self.turn(self.session)
        self.flush()
        self.appender.finish()
        os.rename(self.session.path, real)
        self.session.path = real

    def same_again(self):
        """Replaces the file by a copy, as rsync and editors do: no event, but every byte is verified."""
        self.appender.finish()
        shutil.copyfile(self.path, self.path + ".new")
        os.rename(self.path + ".new", self.path)
        self.ledger.reread(self.path)

    def delete(self):
        """Deletes the session and starts another one."""
        self.remove_agents()
        self.appender.discard(self.path)
        remove(self.path)
        remove(self.path + ".1")
        self.start_session()

    def agent(self):
        if len(self.agents) == agents_max:
            self.remove_agent()
        call, agent, transcript = self.session.agent(text(self.chance, 30))
        self.agents.append(buffered(transcript, self))
        transcript.prompt(text(self.chance, 80))
        transcript.reply(text(self.chance, 80), stop_reason="end_turn")
        self.session.agent_result(call, agent)
        self.flush()

    def remove_agent(self):
        if self.agents:
            removed = self.agents.pop(0).path
            self.appender.discard(removed)
            remove(removed)
            remove(removed[: -len(".jsonl")] + ".meta.json")

    def remove_agents(self):
        while self.agents:
            self.remove_agent()
        shutil.rmtree(os.path.join(self.session.folder, self.session.session), ignore_errors=True)


class Writers:
    """Writers with different rates, in total `lines_a_second`."""

    def __init__(self, root, count, lines_a_second, chance):
        self.root, self.ledger = root, Ledger()
        shares = [1 + n % 4 * 3 for n in range(count)]
        self.all = [Writer(root, n, lines_a_second * share / sum(shares), self.ledger, chance) for n, share in enumerate(shares)]
        if self.all:
            this_process = type("Process", (), {"pid": os.getpid()})
            self.all[0].registry = Registry(root, self.all[0].session.session, this_process)

    def tick(self, seconds):
        for writer in self.all:
            writer.tick(seconds)

    def pause(self):
        """Completes every torn line."""
        for writer in self.all:
            writer.appender.finish()

    def transcripts(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.root) for name in names if name.endswith(".jsonl")]

    def bytes_on_disk(self):
        return sum(map(os.path.getsize, self.transcripts()))

    def directories(self):
        return sum(1 for _ in os.walk(self.root))
