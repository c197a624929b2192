"""`earshot usage`: each message counts once, in every program; the sums are those of ccusage."""
import atexit
import datetime
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from support.harness import TOP, build, clean_environment, corpus, deadline_s
from support.programs import CodexEventsSession, CopilotSession, PiSession, append, encoded_lines
from support.terminal import CONTROL_SEQUENCES, Terminal, assert_no_control_characters

sys.path.insert(0, os.path.join(TOP, "tests", "bench"))
import generate  # noqa: E402
import peers  # noqa: E402

MODELS = """
[[model]]
pattern = "test-model"
input = 1
output = 10
cache_write_5m = 2
cache_write_1h = 4
cache_read = 0.5
date = "2026-01-01"
source = "invented"
"""
UTC = datetime.timezone.utc


def at(text):
    """The timestamp of a record: `2026-03-01 12:00:00`, in UTC."""
    return text.replace(" ", "T") + ".000Z"


class Lines:
    """One Claude Code transcript with fixed times and ids."""

    def __init__(self, root, session, folder="-home-ada-api", cwd="/home/ada/api", file=None, **common):
        self.path = os.path.join(root, "projects", folder, (file or session) + ".jsonl")
        self.common = {"isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": session, "version": "2.1.330", **common}
        self.records, self.count = [], 0

    def record(self, type, time, **more):
        self.count += 1
        record = {"parentUuid": None, **self.common, "type": type, "uuid": f"{self.common['sessionId']}-{self.count:04}", "timestamp": at(time), **more}
        self.records.append(record)
        append(self.path, encoded_lines([record]))
        return record

    def prompt(self, time, text="go"):
        return self.record("user", time, message={"role": "user", "content": text})

    def answer(self, time, id, input=0, output=0, write=0, read=0, model="test-model", request=True, hour=0, **more):
        usage = {"input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": write, "cache_read_input_tokens": read}
        if hour:
            usage["cache_creation"] = {"ephemeral_5m_input_tokens": write - hour, "ephemeral_1h_input_tokens": hour}
        if request:
            more["requestId"] = f"req_of_{id}"
        return self.record("assistant", time, message={"id": id, "type": "message", "role": "assistant", "model": model, "stop_reason": None,
                                                       "content": [{"type": "text", "text": "well"}], "usage": usage}, **more)

    def copy(self, records, change=lambda record: record):
        """Appends another transcript's lines, as a fork begins with them."""
        append(self.path, encoded_lines([change(dict(record)) for record in records]))


def message_id(name):
    return f"msg_{name:_<24}"


class UsageCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.root = os.path.join(self.home, ".claude")
        self.models = os.path.join(self.home, "models.toml")
        with open(self.models, "w") as file:
            file.write(MODELS)

    def run_usage(self, *args, zone="UTC", models=True):
        command = [os.path.join(build(), "earshot"), "usage", *(["--models", self.models] if models else []), *args]
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=deadline_s * 4, env={**clean_environment(self.home), "TZ": zone})

    def usage(self, *args, **more):
        done = self.run_usage("--json", *args, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return json.loads(done.stdout)

    def rows(self, by, *args, **more):
        """{name: (input, output, cache write, cache read)}"""
        return {row[by]: (row["input"], row["output"], row["cache_write"], row["cache_read"]) for row in self.usage("--by", by, *args, **more)["rows"]}


class CountedOnce(UsageCase):
    def test_the_lines_of_a_message_count_once_with_the_largest_counts(self):
        lines = Lines(self.root, "s1")
        lines.prompt("2026-03-01 12:00:00")
        for output in (1, 1, 260):
            lines.answer("2026-03-01 12:00:01", message_id("a"), input=10, output=output, write=20, read=30)
        lines.answer("2026-03-01 12:00:09", message_id("b"), input=1, output=2)
        found = self.usage()
        self.assertEqual([row["day"] for row in found["rows"]], ["2026-03-01"])
        total = found["total"]
        self.assertEqual([total[key] for key in ("input", "output", "cache_write", "cache_read", "total", "messages")], [11, 262, 20, 30, 323, 2])

    def test_a_message_that_crosses_midnight_counts_for_the_day_of_its_first_line(self):
        lines = Lines(self.root, "s1")
        lines.answer("2026-03-01 23:59:59", message_id("a"), output=5)
        lines.answer("2026-03-02 00:00:01", message_id("a"), output=9)
        lines.answer("2026-03-02 00:00:02", message_id("b"), output=1)
        self.assertEqual(self.rows("day"), {"2026-03-01": (0, 9, 0, 0), "2026-03-02": (0, 1, 0, 0)})
        self.assertEqual(self.rows("day", zone="Asia/Tokyo"), {"2026-03-02": (0, 10, 0, 0)})
        self.assertEqual(self.rows("day", zone="America/New_York"), {"2026-03-01": (0, 10, 0, 0)})

    def test_a_fork_and_a_resumed_copy_repeat_nothing(self):
        first = Lines(self.root, "s1")
        first.prompt("2026-03-01 12:00:00")
        first.answer("2026-03-01 12:00:01", message_id("a"), output=5)
        fork = Lines(self.root, "s2")
        fork.copy(first.records, lambda record: {**record, "sessionId": "s2"})
        fork.answer("2026-03-03 12:00:00", message_id("b"), output=7)
        # Older versions write the copied lines with new times.
        resumed = Lines(self.root, "s3")
        resumed.copy(first.records, lambda record: {**record, "sessionId": "s3", "timestamp": at("2026-03-04 12:00:00")})
        resumed.answer("2026-03-04 12:00:01", message_id("c"), output=11)
        first.answer("2026-03-05 12:00:00", message_id("d"), output=13)  # the original goes on
        self.assertEqual(self.rows("session"), {"s1": (0, 18, 0, 0), "s2": (0, 7, 0, 0), "s3": (0, 11, 0, 0)})
        found = self.usage()
        self.assertEqual({row["day"]: row["output"] for row in found["rows"]},
                         {"2026-03-01": 5, "2026-03-03": 7, "2026-03-04": 11, "2026-03-05": 13})
        self.assertEqual(found["copies"], 2)

    def test_the_largest_counts_of_any_copy_are_used(self):
        first, fork = Lines(self.root, "s1"), Lines(self.root, "s2")
        first.answer("2026-03-01 12:00:01", message_id("a"), input=3, output=5)
        fork.answer("2026-03-01 12:00:01", message_id("a"), input=3, output=50)
        self.assertEqual(self.rows("session"), {"s2": (3, 50, 0, 0)})

    def test_a_message_without_a_request_id_counts_once(self):
        lines = Lines(self.root, "s1")
        for _ in range(3):
            lines.answer("2026-03-01 12:00:01", message_id("a"), output=5, request=False)
        self.assertEqual(self.rows("model"), {"test-model": (0, 5, 0, 0)})

    def test_subagents_of_every_layout_and_internal_calls_count_for_their_session(self):
        main = Lines(self.root, "s1")
        main.prompt("2026-03-01 12:00:00")
        main.answer("2026-03-01 12:00:01", message_id("a"), output=1)
        main.answer("2026-03-01 12:00:02", message_id("inline"), output=10, isSidechain=True)
        agent = {"isSidechain": True, "agentId": "a1"}
        below = Lines(self.root, "s1", file="s1/subagents/agent-a1", cwd="/home/ada/elsewhere", **agent)
        below.prompt("2026-03-01 12:00:02")
        below.answer("2026-03-01 12:00:03", message_id("below"), output=100)
        beside = Lines(self.root, "s1", file="agent-a2", **agent)
        beside.prompt("2026-03-01 12:00:02")
        beside.answer("2026-03-01 12:00:03", message_id("beside"), output=1000)
        warmup = Lines(self.root, "s1", file="agent-a3", **agent)
        warmup.prompt("2026-03-01 12:00:00", "Warmup")
        warmup.answer("2026-03-01 12:00:01", message_id("warmup"), output=10000)
        compaction = Lines(self.root, "s1", file="s1/subagents/agent-acompact-1", **agent)
        compaction.prompt("2026-03-01 12:00:00")
        compaction.answer("2026-03-01 12:00:01", message_id("compact"), output=100000)
        self.assertEqual(self.rows("session"), {"s1": (0, 111111, 0, 0)})
        self.assertEqual(self.rows("project"), {"/home/ada/api": (0, 111111, 0, 0)})

    def test_an_unterminated_last_line_counts(self):
        lines = Lines(self.root, "s1")
        lines.answer("2026-03-01 12:00:01", message_id("a"), output=5)
        with open(lines.path, "r+b") as file:
            file.truncate(os.path.getsize(lines.path) - 1)
        self.assertEqual(self.rows("model"), {"test-model": (0, 5, 0, 0)})

    def test_since_leaves_out_what_is_older(self):
        lines = Lines(self.root, "s1")
        lines.answer("2026-03-01 11:59:59", message_id("a"), output=1)
        lines.answer("2026-03-01 12:00:00", message_id("b"), output=2)
        old = Lines(self.root, "s2")
        old.answer("2026-02-01 12:00:00", message_id("c"), output=4)
        old_time = datetime.datetime(2026, 2, 1, 12, tzinfo=UTC).timestamp()
        os.utime(old.path, (old_time, old_time))
        found = self.usage("--since", "2026-03-01T12:00:00Z")
        self.assertEqual((found["total"]["output"], found["since"]), (2, "2026-03-01T12:00:00.000Z"))
        self.assertEqual(found["transcripts"], 1, "the old file was read")
        self.assertEqual(self.usage()["total"]["output"], 7)
        none = self.run_usage("--since", "0s")
        self.assertEqual((none.returncode, none.stdout), (0, "no tokens were used since then\n"))


class Programs(UsageCase):
    def token_count(self, session, total, last):
        names = ("input_tokens", "cached_input_tokens", "output_tokens")
        session.append(session.event("token_count", info={"total_token_usage": dict(zip(names, total)), "last_token_usage": dict(zip(names, last)),
                                                          "model_context_window": 258400}, rate_limits=None))

    def test_codex_counts_each_response_and_a_fork_does_not_repeat_its_parent(self):
        root = os.path.join(self.home, ".codex")
        first = CodexEventsSession(root)
        first.started_ago_s = 60  # copied turns are known by their time
        first.prompt("one")
        self.token_count(first, (1300, 1000, 40), (1300, 1000, 40))
        self.token_count(first, (1300, 1000, 40), (1300, 1000, 40))  # repeated with new limits
        first.reply()
        first.prompt("two")
        self.token_count(first, (2300, 1900, 60), (1000, 900, 20))
        first.reply()
        fork = first.fork()
        fork.prompt("three")
        self.token_count(fork, (2900, 2400, 65), (600, 500, 5))
        fork.reply()
        sessions = self.rows("session")
        self.assertEqual(sessions, {first.thread: (400, 60, 0, 1900), fork.thread: (100, 5, 0, 500)})
        self.assertEqual(self.rows("program"), {"codex": (500, 65, 0, 2400)})
        self.assertEqual(self.rows("model"), {"gpt-5.5": (500, 65, 0, 2400)})

    def test_since_divides_requests_without_an_id_within_a_quarter_of_an_hour(self):
        codex = CodexEventsSession(os.path.join(self.home, ".codex"))
        total = 0
        for minute, output in ((4, 1), (1, 2), (5, 4), (9, 8)):
            total += output
            record = codex.event("token_count", info={"total_token_usage": {"output_tokens": total}, "last_token_usage": {"output_tokens": output}})
            codex.append({**record, "timestamp": at(f"2026-03-01 12:0{minute}:00")})
        self.assertEqual(self.usage("--since", "2026-03-01T12:05:00Z")["total"]["output"], 12)
        self.assertEqual(self.usage("--since", "2026-03-01T12:00:00Z")["total"]["output"], 15)

    def test_copilot_adds_what_only_its_final_totals_have(self):
        root = os.path.join(self.home, ".copilot")
        session = CopilotSession(root)
        session.prompt("one")
        session.assistant("well")
        session.add("session.shutdown", shutdownType="routine", modelMetrics={"gpt-5-mini": {"usage": {
            "inputTokens": 2000, "outputTokens": 30, "cacheReadTokens": 1500, "cacheWriteTokens": 0}}}, currentTokens=10)
        self.assertEqual(self.rows("model"), {"gpt-5-mini": (500, 30, 0, 1500)})

    def test_the_short_ids_of_pi_are_unique_in_a_session_only_and_a_fork_repeats_nothing(self):
        root = os.path.join(self.home, ".pi", "agent")
        session = PiSession(root, session="00000000-0000-4000-8000-000000000001")
        session.prompt("one")
        session.reply()
        with open(session.path) as file:
            header, *records = map(json.loads, file)

        def other(number, records):
            id = f"00000000-0000-4000-8000-00000000000{number}"
            append(session.path.replace(header["id"], id), encoded_lines([{**header, "id": id}, *records]))

        other(2, records)
        self.assertEqual(self.rows("program"), {"pi": (100, 10, 0, 0)})
        other(3, [{**record, "timestamp": at("2026-03-01 12:00:00")} for record in records])  # the same ids by chance
        found = self.usage("--by", "session")
        self.assertEqual({row["session"]: row["input"] for row in found["rows"]},
                         {"00000000-0000-4000-8000-000000000003": 100, "00000000-0000-4000-8000-000000000001": 100})
        self.assertEqual((found["total"]["cost_usd"], found["total"]["cost_source"]), (0.002, "recorded"))

    def test_the_default_roots_are_those_of_all_programs(self):
        Lines(self.root, "s1").answer("2026-03-01 12:00:01", message_id("a"), output=1)
        codex = CodexEventsSession(os.path.join(self.home, ".codex"))
        codex.prompt("one")
        self.token_count(codex, (10, 0, 2), (10, 0, 2))
        self.assertEqual(self.rows("program"), {"claude-code": (0, 1, 0, 0), "codex": (10, 2, 0, 0)})
        self.assertEqual(self.rows("program", "--root", self.root), {"claude-code": (0, 1, 0, 0)})


class Cost(UsageCase):
    def total(self, *args):
        total = self.usage(*args)["total"]
        return total.get("cost_usd"), total.get("cost_source"), total.get("unpriced_tokens")

    def test_an_estimate_uses_the_price_of_each_kind_of_token(self):
        Lines(self.root, "s1").answer("2026-03-01 12:00:01", message_id("a"), input=1_000_000, output=100_000, write=300_000, hour=100_000, read=2_000_000)
        self.assertEqual(self.total(), (1 + 1 + 0.4 + 0.4 + 1, "estimated", None))

    def test_a_recorded_cost_wins_per_message(self):
        lines = Lines(self.root, "s1", version="1.0.120")
        lines.answer("2026-03-01 12:00:01", message_id("a"), output=100_000, costUSD=7)
        self.assertEqual(self.total(), (7, "recorded", None))
        lines.answer("2026-03-01 12:00:02", message_id("b"), output=100_000)
        self.assertEqual(self.total(), (8, "mixed", None))

    def test_the_recorded_cost_of_a_session_is_divided_among_its_messages(self):
        main = Lines(self.root, "s1")
        main.prompt("2026-03-01 12:00:00")
        main.answer("2026-03-01 12:00:01", message_id("a"), output=100_000)
        agent = Lines(self.root, "s1", file="s1/subagents/agent-a1", isSidechain=True, agentId="a1")
        agent.prompt("2026-03-01 12:00:01")
        agent.answer("2026-03-01 12:00:01", message_id("agent"), output=200_000)
        main.answer("2026-03-02 12:00:01", message_id("b"), output=100_000)
        append(main.path, encoded_lines([{"type": "cost-state", "sessionId": "s1", "totalCostUSD": 8.0}]))
        self.assertEqual({row["day"]: row["cost_usd"] for row in self.usage()["rows"]}, {"2026-03-01": 6, "2026-03-02": 2})
        main.answer("2026-03-03 12:00:01", message_id("c"), output=100_000)  # not in it yet
        self.assertEqual(self.total(), (9, "mixed", None))
        fork = Lines(self.root, "s2")  # its cost includes that of the copied messages
        fork.copy(main.records[:3], lambda record: {**record, "sessionId": "s2"})
        fork.answer("2026-03-04 12:00:01", message_id("d"), output=200_000)
        append(fork.path, encoded_lines([{"type": "cost-state", "sessionId": "s2", "totalCostUSD": 4.0}]))
        self.assertEqual({row["session"]: row["cost_usd"] for row in self.usage("--by", "session")["rows"]}, {"s1": 9, "s2": 2})

    def test_models_without_a_price_are_named(self):
        lines = Lines(self.root, "s1")
        lines.answer("2026-03-01 12:00:01", message_id("a"), output=100_000)
        lines.answer("2026-03-02 12:00:01", message_id("b"), output=5_000, model="nobody-knows-it")
        self.assertEqual(self.total(), (1, "estimated", 5000))
        done = self.run_usage()
        self.assertRegex(done.stdout, r"2026-03-01 .* ~\$1\.00 *\n2026-03-02 .* -\s*\n")
        self.assertRegex(done.stdout, r"total .* ~\$1\.00\+\n")
        self.assertIn("+ without 5.0k tokens of models that have no price: nobody-knows-it\n", done.stdout)
        self.assertNotRegex(done.stdout, r" \n")

    def test_an_unknown_group_is_refused_with_the_known_ones(self):
        for word in ("host", "0"):
            refused = self.run_usage("--by", word)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""))
            self.assertIn(f"--by: `{word}` is none of day, model, program, project, session", refused.stderr)

    def test_a_bad_price_table_is_refused(self):
        Lines(self.root, "s1").answer("2026-03-01 12:00:01", message_id("a"), output=1)
        with open(self.models, "a") as file:
            file.write('[[model]]\npattern = "x"\ninput = -1\n')
        done = self.run_usage()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"earshot: .*models\.toml.*input")
        self.assertEqual(self.run_usage("--models", os.path.join(self.home, "none"), models=False).returncode, 2)


class Table(UsageCase):
    def write(self):
        for number in range(3):
            lines = Lines(self.root, f"5e55000{number}-0000-4000-8000-000000000000", folder=f"-p{number}", cwd=f"/home/ada/\u7aef\u672b\u7aef\u672b\u7aef\u672b{number}")
            lines.answer("2026-03-01 12:00:01", message_id(str(number)), input=123_456_789, output=23_456_789, write=1_234_567_890, read=98_765_432_100)

    def test_it_fits_80_columns_with_wide_characters(self):
        self.write()
        for by in ("day", "session", "project", "model", "program"):
            with self.subTest(by):
                terminal = Terminal(["usage", "--by", by, "--models", self.models], self.home, columns=80)
                self.addCleanup(terminal.close)
                terminal.process.wait(timeout=deadline_s * 4)
                lines = terminal.plain().splitlines()
                self.assertGreaterEqual(len(lines), 3)
                for line in lines:
                    self.assertLessEqual(len(line) + len(re.findall("[\u4e00-\u9fff]", line)), 80, line)
                self.assertIn("CACHE READ", lines[0])
                self.assertIn("COST", lines[0])
                self.assertRegex(terminal.text.decode(), "\x1b\\[")  # colours

    def test_on_a_pipe_it_has_no_colours_and_complete_numbers(self):
        self.write()
        done = self.run_usage()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("296,296,296,300", done.stdout)

    def test_text_from_transcripts_is_escaped(self):
        Lines(self.root, "s1", cwd="/home/ada/" + CONTROL_SEQUENCES).answer("2026-03-01 12:00:01", message_id("a"), output=1, model=CONTROL_SEQUENCES)
        for by in ("project", "session", "model"):
            assert_no_control_characters(self, self.run_usage("--by", by, "--colour", "never").stdout)

    def test_a_terminal_shows_the_progress(self):
        lines = Lines(self.root, "s1")
        lines.prompt("2026-03-01 12:00:00")
        os.truncate(lines.path, 400_000_000_000)  # sparse: takes minutes to read
        terminal = Terminal(["usage"], self.home, columns=80)
        self.addCleanup(terminal.close)
        terminal.wait(r"reading transcripts: \d+% of 400 GB")
        terminal.stop(signal.SIGTERM)  # a runner in the background may have SIGINT ignored

    def test_without_transcripts_it_says_so(self):
        done = self.run_usage()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "no transcripts with tokens found\n  In another directory:  earshot usage --root DIR\n", ""))
        missing = self.run_usage("--root", os.path.join(self.home, "missing"))
        self.assertEqual(missing.returncode, 1)
        self.assertIn("missing: No such file or directory", missing.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root can read every file")
    def test_a_file_that_cannot_be_read_is_reported(self):
        lines = Lines(self.root, "s1")
        lines.answer("2026-03-01 12:00:01", message_id("a"), output=1)
        os.chmod(lines.path, 0)
        done = self.run_usage("--json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Permission denied", done.stderr)


@functools.cache
def installed_ccusage():
    """(its command, or none; the reason)"""
    packages = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
    atexit.register(shutil.rmtree, packages, ignore_errors=True)
    return peers.install(packages)


class Ccusage(UsageCase):
    """The sums by day and model of ccusage 18 over the same directory."""

    def setUp(self):
        super().setUp()
        self.command, reason = installed_ccusage()
        if not self.command:
            self.skipTest(f"{peers.CCUSAGE}: {reason}")

    def expected(self, root, zone):
        environment = {**clean_environment(self.home), "CLAUDE_CONFIG_DIR": root, "LOG_LEVEL": "0", "TZ": zone}
        done = subprocess.run(self.command, capture_output=True, text=True, timeout=deadline_s * 4, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {(day["date"], model["modelName"]): (model["inputTokens"], model["outputTokens"], model["cacheCreationTokens"], model["cacheReadTokens"])
                for day in json.loads(done.stdout)["daily"] for model in day["modelBreakdowns"]
                if any(count for name, count in model.items() if name.endswith("Tokens"))}

    def found(self, root, zone):
        return {(row["day"], model["model"]): (model["input"], model["output"], model["cache_write"], model["cache_read"])
                for row in self.usage("--root", f"claude-code:{root}", zone=zone)["rows"] for model in row["models"]}

    def test_generated_sessions(self):
        generate.write_sessions(self.root, 40, 20_000_000)
        for zone in ("UTC", "Pacific/Auckland"):
            with self.subTest(zone):
                expected = self.expected(self.root, zone)
                self.assertTrue(expected)
                self.assertEqual(self.found(self.root, zone), expected)

    def test_forks_subagents_and_midnight(self):
        first = Lines(self.root, "11111111-0000-4000-8000-000000000000")
        first.prompt("2026-03-01 12:00:00")
        for second in (1, 2):
            first.answer(f"2026-03-01 23:59:5{second * 4}", message_id("a"), input=3, output=50, write=7, read=9, model="claude-opus-4-5")
        first.answer("2026-03-02 00:00:01", message_id("a"), input=3, output=50, write=7, read=9, model="claude-opus-4-5")
        first.answer("2026-03-02 00:00:02", message_id("b"), input=4, output=60, model="claude-haiku-4-5")
        fork = Lines(self.root, "22222222-0000-4000-8000-000000000000")
        fork.copy(first.records)
        fork.answer("2026-03-03 12:00:00", message_id("c"), input=5, output=70, model="claude-opus-4-5")
        agent = Lines(self.root, first.common["sessionId"], file=f"{first.common['sessionId']}/subagents/agent-a1", isSidechain=True, agentId="a1")
        agent.prompt("2026-03-01 12:00:00", "Warmup")
        agent.answer("2026-03-01 12:00:01", message_id("d"), input=6, output=80, model="claude-opus-4-5")
        for zone in ("UTC", "Asia/Tokyo", "America/St_Johns"):
            with self.subTest(zone):
                expected = self.expected(self.root, zone)
                self.assertEqual(len(expected), {"UTC": 3}.get(zone, len(expected)))
                self.assertEqual(self.found(self.root, zone), expected)

    def test_recorded_sessions(self):
        if not corpus():
            self.skipTest("there are no recorded sessions")
        for version in sorted(name for name in os.listdir(corpus()) if name.startswith("claude-")):
            with self.subTest(version):
                root = os.path.join(self.home, version)
                for session in os.listdir(os.path.join(corpus(), version)):
                    source = os.path.join(corpus(), version, session, "tree", "projects")
                    if os.path.isdir(source):
                        shutil.copytree(source, os.path.join(root, "projects", session))
                if os.path.isdir(root):
                    expected = self.expected(root, "UTC")
                    self.assertTrue(expected)
                    self.assertEqual(self.found(root, "UTC"), expected)


if __name__ == "__main__":
    unittest.main()
