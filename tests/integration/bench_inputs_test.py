"""Inputs of the benchmarks: generated sessions are parsed without skipped lines, and load generators report what they write."""
import json
import os
import subprocess
import sys

from support.harness import TOP, DaemonCase, earshot, wait_for

sys.path.insert(0, os.path.join(TOP, "tests", "bench"))
import generate  # noqa: E402
from plain_client import PlainClient  # noqa: E402

LOAD = os.path.join(TOP, "tests", "bench", "load.py")


class Bench(DaemonCase):
    def stats(self, *paths):
        done = earshot("replay", "--stats", "--json", *paths, home=self.home)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_generated_sessions_of_every_era_are_parsed_completely(self):
        for era in generate.SHAPES:
            with self.subTest(era):
                root = os.path.join(self.home, era)
                generate.write_sessions(root, 3, 1_500_000, era=era)
                found = self.stats(root)
                self.assertEqual((found["lines"]["skipped"], found["duplicates"], found["late_results"], found["unknown_types"]), (0, 0, 0, {}))
                self.assertEqual(found["lines"]["total"], found["records"])
                self.assertEqual(set(found["dialects"]), {"claude-code"})
                events = found["events"]
                self.assertEqual(events["tool.invoked"], events["tool.finished"])
                self.assertEqual(events["turn.started"], events["turn.finished"])

    def test_a_plain_subscriber_counts_sessions_and_receives_live_events(self):
        paths = generate.write_sessions(self.root, 6, 600_000)
        daemon = self.start()
        client = PlainClient(daemon.port, daemon.token)
        self.addCleanup(client.close)
        client.subscribe()
        self.assertEqual(client.until(b'"type":"ready"', counted=b'{"type":"session"'), len(paths))
        with open(paths[0], "ab") as file:
            file.write(json.dumps({"type": "user", "uuid": "one-more", "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": "mark-1"}}).encode() + b"\n")
        client.until(b"mark-1")

    def start_load(self, *args):
        process = subprocess.Popen([sys.executable, LOAD, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def test_a_backfill_appends_complete_lines_at_its_rate_and_reports_the_amount(self):
        path = os.path.join(self.home, "grows.jsonl")
        writer = self.start_load("backfill", path, 20_000_000)
        wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 4_000_000, "the backfill's first bytes")
        report = json.loads(writer.communicate()[0])
        self.assertEqual(report["bytes"], os.path.getsize(path))
        self.assertLess(report["rate"], 40_000_000)
        self.assertEqual(self.stats(path)["lines"]["skipped"], 0)

    def test_a_catch_up_reads_a_stream_from_its_beginning(self):
        path, = generate.write_sessions(self.root, 1, 400_000)
        daemon = self.start()
        stream, = daemon.replay(path)
        reader = self.start_load("catch-up", daemon.port, daemon.token, stream)
        wait_for(lambda: self.catch_ups(daemon) > 1, "a second catch-up")
        report = json.loads(reader.communicate()[0])
        self.assertGreater(report["times"], 1)
        self.assertGreater(report["bytes"], os.path.getsize(path) // 20)  # most of a session is bulk

    def catch_ups(self, daemon):
        done = subprocess.run(["curl", "-s", "-H", f"Authorization: Bearer {daemon.token}", f"http://127.0.0.1:{daemon.port}/metrics"], capture_output=True, text=True)
        return next((float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("earshot_catch_ups_total")), 0)
