"""How much was used: `session` frames, their `day`, /metrics, OpenTelemetry and `earshot usage` give one answer, also where transcripts repeat each other."""
import glob
import json
import os
import shutil
import tempfile
import unittest
import uuid

from support.endpoints import curl
from support.harness import corpus, earshot, wait_for
from support.otlp import OtlpCase
from support.programs import CodexEventsSession, CopilotSession, PiSession, append
from support.transcripts import Session

KINDS = ("input", "output", "cache_read", "cache_write")
micro_usd = 1e6  # costs are compared in these


def copy_of(path, target, old, new):
    """What a fork is in every program but Codex: the lines of another session, under a new id."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(path, "rb") as file:
        data = file.read()

    def is_later():  # files of one tick of the kernel's clock are born at the same time
        with tempfile.TemporaryFile(dir=os.path.dirname(path)) as probe:
            return os.fstat(probe.fileno()).st_mtime_ns > os.stat(path).st_mtime_ns

    wait_for(is_later, "a later time")
    append(target, data.replace(old.encode(), new.encode()))


def last_time(path):
    """Of the records of a transcript, as text; empty if they have none."""
    with open(path) as file:
        return max((record.get("timestamp") or "" for record in map(json.loads, file) if isinstance(record, dict)), default="", key=str)


class Ledger(OtlpCase):
    def begin(self, roots):
        self.collector = self.receiver()
        return self.exporting(self.collector, settings="traces = false\n", roots=roots, environment={"OTEL_METRIC_EXPORT_INTERVAL": "200"})

    def exported(self):
        """Tokens of KINDS and millionths of a USD, in the last request."""
        sums = dict.fromkeys((*KINDS, "cost"), 0)
        for request in self.collector.received("/v1/metrics")[-1:]:
            for metric in (metric for resource in request["resourceMetrics"] for scope in resource["scopeMetrics"] for metric in scope["metrics"]):
                for point in metric["sum"]["dataPoints"] if metric["name"] in ("earshot.tokens", "earshot.cost") else ():
                    kind = next((label["value"]["stringValue"] for label in point["attributes"] if label["key"] == "earshot.token.kind"), "cost")
                    sums[kind] += point["asDouble"]
        return [*(sums[kind] for kind in KINDS), round(sums["cost"] * micro_usd)]

    def usage(self, by, roots):
        return json.loads(earshot("usage", "--json", "--by", by, *(arg for root in roots for arg in ("--root", root)), home=self.home).stdout)

    def answers(self, daemon, roots):
        """{name: {session: numbers}}, each in tokens of KINDS and millionths of a USD; the sums of all sessions are those of session ''."""
        frames = self.snapshot(daemon, all=True)
        numbers = lambda usage: [*(usage[kind] for kind in KINDS), round(usage.get("cost_usd", 0) * micro_usd)]
        usage = self.usage("session", roots)
        answers = {"frames": {frame["session"]: numbers(frame["usage"]) for frame in frames if any(numbers(frame["usage"]))},
                   "earshot usage": {row["session"]: numbers(row) for row in usage["rows"] if any(numbers(row))}}
        metrics = curl(daemon, "/metrics", unix=True)[2].decode().split("\n")
        value = lambda name: sum(float(line.split()[-1]) for line in metrics if line.startswith(name))
        tokens = lambda kind: sum(float(line.split()[-1]) for line in metrics if line.startswith("earshot_tokens_total") and f'kind="{kind}"' in line)
        total = numbers(usage["total"])
        answers["earshot usage"][""] = total
        answers["frames"][""] = [sum(column) for column in zip(*answers["frames"].values())] or [0] * len(total)
        answers["/metrics"] = {**answers["earshot usage"], "": [*map(tokens, KINDS), round(value("earshot_cost_usd_total") * micro_usd)]}
        answers["OpenTelemetry"] = {**answers["earshot usage"], "": self.exported()}
        days = {frame["session"]: numbers(frame["day"]) for frame in frames if "day" in frame and any(numbers(frame["usage"]))}
        return answers, days

    def differences(self, answers, tolerance):
        expected = answers["earshot usage"]
        return [(name, session, row, expected.get(session)) for name, rows in answers.items() for session, row in
                {**dict.fromkeys(expected), **rows}.items() if not self.is_near(row, expected.get(session), tolerance)]

    def is_near(self, row, expected, tolerance):
        return row and expected and row[:4] == expected[:4] and abs(row[4] - expected[4]) <= tolerance

    def assert_agreement(self, daemon, roots, tolerance=1):
        """Waits until everything was read."""
        last = {}

        def agree():
            last["answers"], last["days"] = self.answers(daemon, roots)
            return not self.differences(last["answers"], tolerance)

        try:
            wait_for(agree, "one answer")
        except AssertionError:
            self.assertEqual(self.differences(last["answers"], tolerance)[:5], [])
            raise
        return last

    def test_127_what_forks_repeat_counts_once_in_every_program(self):
        roots = {name: os.path.join(self.home, name) for name in ("claude", "codex", "copilot", "pi")}
        for root in roots.values():
            os.makedirs(root, exist_ok=True)
        named = [f"{name}:{root}" if name != "claude" else root for name, root in roots.items()]
        daemon = self.begin(roots=named)
        claude = Session(roots["claude"])
        claude.turn("one")
        claude.turn("two")
        first, second = (Session(roots["claude"]) for _ in range(2))
        self.assert_agreement(daemon, named)  # what is repeated was read
        copy_of(claude.path, first.path, claude.session, first.session)
        first.turn("three")
        self.assert_agreement(daemon, named)
        copy_of(first.path, second.path, first.session, second.session)  # a fork of a fork
        second.turn("four")
        codex = CodexEventsSession(roots["codex"])
        codex.started_ago_s = 60
        codex.prompt("one")
        codex.append(codex.event("token_count", rate_limits=None, info={
            name: {"input_tokens": 1300, "cached_input_tokens": 1000, "output_tokens": 40} for name in ("total_token_usage", "last_token_usage")}))
        codex.reply()
        self.assert_agreement(daemon, named)
        codex.fork()
        copilot = CopilotSession(roots["copilot"])
        copilot.prompt("one")
        copilot.append(copilot.record("session.usage_record", usage={"model": "gpt-5", "inputTokens": 50, "outputTokens": 7, "cacheReadTokens": 5, "cacheWriteTokens": 0}))
        copilot.assistant("well")
        self.assert_agreement(daemon, named)
        copied = CopilotSession(roots["copilot"])
        copy_of(copilot.path, copied.path, copilot.session, copied.session)
        pi = PiSession(roots["pi"])
        pi.prompt("one")
        pi.reply()
        self.assert_agreement(daemon, named)
        copy_of(pi.path, pi.path.replace(pi.session, (other := str(uuid.uuid4()))), pi.session, other)
        found = self.assert_agreement(daemon, named)
        frames = found["answers"]["frames"]
        self.assertEqual(frames[claude.session][:2], [80, 48])
        self.assertEqual(frames[second.session][:2], [40, 24])
        self.assertEqual(found["days"][pi.session][:2], [100, 10])
        self.assertEqual(frames[""][:2], [160 + 300 + 245 + 100, 96 + 40 + 19 + 10])

    def test_128_codex_a_total_that_was_written_late_counts_nothing(self):
        root = os.path.join(self.home, "codex")
        os.makedirs(root)
        daemon = self.begin(roots=["codex:" + root])
        session = CodexEventsSession(root)
        session.prompt("one")

        def count(total, last):
            info = {name: dict(zip(("input_tokens", "cached_input_tokens", "output_tokens"), counts)) for name, counts in
                    (("total_token_usage", total), ("last_token_usage", last))}
            session.append(session.event("token_count", rate_limits=None, info=info))

        count((100, 50, 10), (100, 50, 10))
        count((150, 80, 15), (50, 30, 5))
        count((151, 80, 16), (1, 0, 1))
        count((150, 80, 15), (50, 30, 5))
        count((153, 80, 18), (2, 0, 2))
        found = self.assert_agreement(daemon, ["codex:" + root])
        self.assertEqual(found["answers"]["frames"][""][:3], [73, 18, 80])
        count((5, 0, 1), (5, 0, 1))  # it begins anew
        found = self.assert_agreement(daemon, ["codex:" + root])
        wait_for(lambda: self.answers(daemon, ["codex:" + root])[0]["frames"][""][:3] == [78, 19, 80], "the new total")


@unittest.skipUnless(corpus(), "the recorded sessions are not installed")
class RecordedSessions(Ledger):
    test_127_what_forks_repeat_counts_once_in_every_program = test_128_codex_a_total_that_was_written_late_counts_nothing = None

    def agree(self, name, copies):
        """`copies`: {the path below the root: its recording}, read by a daemon that runs."""
        root = os.path.join(self.home, name)
        os.makedirs(root, exist_ok=True)
        named = f"{name}:{root}" if name != "claude" else root
        daemon = self.begin(roots=[named])
        for target, source in sorted(copies.items(), key=lambda copy: last_time(copy[1])):  # a fork is born after what it repeats
            os.makedirs(os.path.dirname(os.path.join(root, target)), exist_ok=True)
            shutil.copyfile(source, os.path.join(root, target))
            self.wait_read(daemon, os.path.join(root, target))
        self.assertGreater(len(copies), 3)
        found = self.assert_agreement(daemon, [named], tolerance=len(copies))
        self.assertGreater(found["answers"]["frames"][""][0], 0)

    def wait_read(self, daemon, path):
        """Until the session frames name the end of this transcript, if they do at all."""
        with open(path, "rb") as file:
            end = file.read().rfind(b"\n") + 1
        is_shown = any(json.loads(line)["type"] in ("turn.started", "message.added") for lines in daemon.replay(path).values() for line in lines)
        name, place = os.path.basename(path).removesuffix(".jsonl"), f":{end}."

        def is_read():
            return any(name in cursor and place in cursor for frame in self.snapshot(daemon, all=True) for cursor in frame["cursors"])

        if is_shown:
            wait_for(is_read, f"{path} to be read")

    def trees(self, pattern):
        """The transcripts of recordings, each below a directory of its own where paths may be equal."""
        found = {}
        for tree in sorted(glob.glob(os.path.join(corpus(), pattern), recursive=True)):
            for path in glob.glob(os.path.join(tree, "**", "*.jsonl"), recursive=True):
                found.setdefault(os.path.relpath(path, tree), path)
        return found

    def test_claude_code(self):
        self.agree("claude", self.trees("claude-2.1.*/*/tree"))

    def test_codex(self):
        self.agree("codex", self.trees("codex/recorded/*/*/tree"))

    def test_copilot(self):
        found = {}
        for path in glob.glob(os.path.join(corpus(), "copilot", "**", "events.jsonl"), recursive=True):
            with open(path) as file:
                id = json.loads(file.readline()).get("data", {}).get("sessionId")
            if id:
                found[os.path.join("session-state", id, "events.jsonl")] = path
        self.agree("copilot", found)

    def test_pi(self):
        found = {}
        for path in glob.glob(os.path.join(corpus(), "pi", "**", "*.jsonl"), recursive=True):
            with open(path) as file:
                header = json.loads(file.readline())
            if header.get("type") == "session":
                found[os.path.join("sessions", "--home-ada--", f"{len(found)}_{header['id']}.jsonl")] = path
        self.agree("pi", found)
