"""The soak's writers: transcripts that grow at rates of their own, torn and in bursts, and to which everything happens that happens to files.

A transcript is bounded (`transcript_bytes_max`) and so are a session's subagents: what the daemon must know stays as large as it is, however long it runs.
The ledger knows how many bytes a daemon may read for what was done here: what was appended, and whole files where they had to be read anew.
"""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from generate import text  # noqa: E402
from support.transcripts import Registry, Session  # noqa: E402

transcript_bytes_max = 256 << 10  # then something happens to it, and it begins again
agents_max = 3                    # of a session at a time; the oldest goes for another
burst_lines = 120
tick_lines_max = 200              # a writer that is further behind lets it go
# What happens to a transcript, as Writer's methods are called; and what happens to one that is full.
ACTS = ("agent", "rotate", "rename", "empty", "cut", "replace", "same_again", "depart", "agent_leaves", "agent")
BEGINNINGS = ("rotate", "rename", "empty", "cut", "replace", "depart")
acts_a_minute = 4                 # of each writer, beside those that a full transcript asks for


class Ledger:
    """Bytes appended, and bytes that a daemon may read for it: never more, however often it looks."""

    def __init__(self):
        self.written = self.readable = self.lines = 0
        self.acts = {}

    def appended(self, size, lines):
        self.written += size
        self.readable += size
        self.lines += lines

    def again(self, path):
        """This file may be read from its first byte."""
        if os.path.exists(path):
            self.readable += os.path.getsize(path)

    def act(self, name):
        self.acts[name] = self.acts.get(name, 0) + 1


class Pen:
    """Appends to a file; sometimes only a part, and the rest with the next stroke."""

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

    def forget(self, below):
        """What was torn off in a file that is no more."""
        self.rest = {path: rest for path, rest in self.rest.items() if not path.startswith(below)}


def remove(path):
    if os.path.exists(path):
        os.remove(path)


def penned(transcript, writer):
    """Its lines go into the writer's stroke, and to the disk all at once."""

    def append(*records):
        for record in records:
            writer.stroke.append((transcript.path, json.dumps(record, separators=(",", ":")).encode() + b"\n"))
        return records[-1]

    transcript.append = append
    return transcript


class Writer:
    def __init__(self, root, number, rate, ledger, chance):
        self.root, self.number, self.rate, self.ledger, self.chance = root, number, rate, ledger, chance
        self.pen, self.due, self.stroke, self.registry = Pen(ledger, chance), 0.0, [], None
        self.first = getattr(self, ACTS[number % len(ACTS)])  # so that a short run has seen each of them
        self.begin()

    def begin(self):
        self.session = penned(Session(self.root, f"/home/ada/soak-{self.number}"), self)
        self.agents = []

    @property
    def path(self):
        return self.session.path

    def tick(self, seconds):
        if self.first and self.size():
            self.do(self.first)
            self.first = None
        self.due = min(self.due + self.rate * seconds, tick_lines_max)
        self.pen.finish()
        if self.chance.random() < acts_a_minute / 60 * seconds or self.size() > transcript_bytes_max:
            self.happen()
        if self.chance.random() < seconds / 60:
            self.due += burst_lines
        while self.due >= 1:
            self.turn()
            self.due -= len(self.stroke)
            self.flush()
        if self.registry:
            self.registry.set_status(self.chance.choice(("busy", "idle")))

    def size(self):
        return os.path.getsize(self.path) if os.path.exists(self.path) else 0

    def turn(self, whose=None):
        whose = whose or self.chance.choice([self.session, *self.agents])
        whose.prompt(text(self.chance, self.chance.randrange(10, 300)))
        for _ in range(self.chance.randrange(3)):
            if self.chance.random() < 0.1:  # what a listener skips
                whose.append(whose.record("attachment", attachment={"type": "prompt_snapshot", "systemPrompt": text(self.chance, 6000)}))
            call = whose.tool_call("Bash", {"command": text(self.chance, 60)})
            whose.result(call, text(self.chance, self.chance.choice((40, 300, 6000))), error=self.chance.random() < 0.1)
        whose.reply(text(self.chance, 200), stop_reason="end_turn")

    def flush(self):
        """One write a file, as the agent program does it; sometimes torn."""
        data = {}
        for path, line in self.stroke:
            data[path] = data.get(path, b"") + line
        self.stroke = []
        for path, lines in data.items():
            self.pen.write(path, lines, torn=self.chance.random() < 0.2)

    # what happens to files

    def happen(self):
        act = self.chance.choice(BEGINNINGS if self.size() > transcript_bytes_max else ACTS)
        if act == "agent" or os.path.exists(self.path):
            self.do(getattr(self, act))

    def do(self, act):
        self.ledger.act(act.__name__)
        act()

    def anew(self):
        """The same name, another history."""
        self.pen.forget(self.path)
        session = self.session.session
        self.session = penned(Session(self.root, self.session.cwd, session), self)

    def rotate(self):
        os.rename(self.path, self.path + ".1")
        self.anew()

    def rename(self):
        """Another session's name, in another project: the same bytes are another stream."""
        self.pen.finish()
        old = self.path
        self.leave_agents()
        parent = self.session.parent
        self.session = penned(Session(self.root, f"/home/ada/moved-{self.number}"), self)
        self.session.parent = parent
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        os.rename(old, self.path)
        remove(old + ".1")
        self.ledger.again(self.path)

    def empty(self):
        os.truncate(self.path, 0)
        self.anew()

    def cut(self):
        """In the middle of a line, mostly: the next line is glued to what is left."""
        self.pen.forget(self.path)
        os.truncate(self.path, self.size() // 3)
        self.ledger.again(self.path)

    def replace(self):
        """Another history, renamed over it."""
        self.anew()
        real, self.session.path = self.path, self.path + ".new"
        self.turn(self.session)
        self.flush()
        self.pen.finish()
        os.rename(self.session.path, real)
        self.session.path = real

    def same_again(self):
        """The same bytes in another file, as rsync and editors do it: no event, but every byte is proven."""
        self.pen.finish()
        shutil.copyfile(self.path, self.path + ".new")
        os.rename(self.path + ".new", self.path)
        self.ledger.again(self.path)

    def depart(self):
        """The session is deleted; another one takes its place."""
        self.leave_agents()
        self.pen.forget(self.path)
        remove(self.path)
        remove(self.path + ".1")
        self.begin()

    def agent(self):
        if len(self.agents) == agents_max:
            self.agent_leaves()
        call, agent, transcript = self.session.agent(text(self.chance, 30))
        self.agents.append(penned(transcript, self))
        transcript.prompt(text(self.chance, 80))
        transcript.reply(text(self.chance, 80), stop_reason="end_turn")
        self.session.agent_result(call, agent)
        self.flush()

    def agent_leaves(self):
        if self.agents:
            gone = self.agents.pop(0).path
            self.pen.forget(gone)
            remove(gone)
            remove(gone[: -len(".jsonl")] + ".meta.json")

    def leave_agents(self):
        while self.agents:
            self.agent_leaves()
        shutil.rmtree(os.path.join(self.session.folder, self.session.session), ignore_errors=True)


class Writers:
    """Rates from one to many times that, together `lines_a_second`."""

    def __init__(self, root, count, lines_a_second, chance):
        self.root, self.ledger = root, Ledger()
        shares = [1 + n % 4 * 3 for n in range(count)]
        self.all = [Writer(root, n, lines_a_second * share / sum(shares), self.ledger, chance) for n, share in enumerate(shares)]
        if self.all:
            me = type("Process", (), {"pid": os.getpid()})
            self.all[0].registry = Registry(root, self.all[0].session.session, me)

    def tick(self, seconds):
        for writer in self.all:
            writer.tick(seconds)

    def pause(self):
        """Every line that was begun is whole."""
        for writer in self.all:
            writer.pen.finish()

    def transcripts(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.root) for name in names if name.endswith(".jsonl")]

    def bytes_on_disk(self):
        return sum(map(os.path.getsize, self.transcripts()))

    def directories(self):
        return sum(1 for _ in os.walk(self.root))
