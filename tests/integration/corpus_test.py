"""Recorded sessions of the real program, played live and torn, all at once: a subscriber gets exactly what a fold of the final files gives.

Extra: these run where the recorded sessions are (EARSHOT_CORPUS, or shared/corpus beside the project) and are skipped, out loud, elsewhere.
"""
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import unittest

from harness import Case, corpus, earshot, wait_for

held_ms = 700  # a status that the recording held for as long must be seen
STATES = {"busy": "working", "idle": "idle", "waiting": "waiting", "shell": "idle"}
REASONS = {"permission prompt": {"permission"}, "input needed": {"question", "plan"}}


def scenarios():
    """name → directory; the name is a root's"""
    found = glob.glob(os.path.join(corpus() or "", "claude-*", "*", "timeline.jsonl"))
    return {re.sub(r"\W+", "-", "-".join(os.path.dirname(path).split(os.sep)[-2:])): os.path.dirname(path) for path in sorted(found)}


def held(scenario):
    """(session, status, waitingFor) for every status that a registry file of this recording held for long enough"""
    with open(os.path.join(scenario, "timeline.jsonl")) as lines:
        changes = [json.loads(line) for line in lines]
    said = {}
    for change in changes:
        if not change["path"].startswith("sessions/"):
            continue
        before = said.pop(change["path"], None)
        if before and change["ms"] - before[0] >= held_ms:
            yield before[1:]
        facts = json.loads(change["text"]) if change.get("text", "").strip() else {}
        if "status" in facts:
            said[change["path"]] = (change["ms"], facts["sessionId"], facts["status"], facts.get("waitingFor"))


@unittest.skipUnless(corpus(), "the recorded sessions are not here")
class Corpus(Case):
    def test_every_recorded_session_played_torn_is_told_live_as_replay_tells_it(self):
        player = os.path.join(corpus(), "..", "tools", "play.py")
        if not os.path.exists(player):
            self.skipTest("play.py is not beside the recorded sessions")
        names = scenarios()
        roots = {name: os.path.join(self.home, name) for name in names}
        for root in roots.values():
            os.mkdir(root)
        daemon = self.start(roots=[f"{name}={root}" for name, root in roots.items()])
        client = daemon.subscriber()
        plays = {name: subprocess.Popen(["/usr/bin/python3", player, names[name], roots[name], "--torn", "--seed", "7"],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for name in names}
        try:
            wait_for(lambda: all(play.poll() is not None for play in plays.values()), "the recordings' end", deadline=90, give_up=daemon.why_dead)
        finally:
            for play in plays.values():
                play.kill()
                play.wait()
        for name, play in plays.items():
            self.assertEqual(play.returncode, 0, f"{name}: {play.stdout.read()}")
            play.stdout.close()
        told = daemon.replay(*roots.values())
        try:
            client.wait(lambda: client.count() >= sum(map(len, told.values())), "all events", deadline=30)
        finally:  # by stream: says which one lacks what
            got = client.event_texts()
            for stream, lines in told.items():
                self.same(lines, got[stream], stream)
        daemon.stop()  # nothing more comes
        self.assertEqual({s: len(l) for s, l in client.event_texts().items()}, {s: len(l) for s, l in told.items()})
        self.assertEqual(client.all(type="reset"), [])
        self.statuses(client, names)

    def statuses(self, client, names):
        frames = client.all(type="status")
        for name, scenario in names.items():
            for session, status, waiting_for in held(scenario):
                with self.subTest(scenario=name, status=status, waiting_for=waiting_for):
                    seen = [f for f in frames if f["session"] == session and f["state"] == STATES[status]]
                    self.assertTrue(seen, [(f["state"], f.get("reason")) for f in frames if f["session"] == session])
                    if status == "waiting":
                        self.assertTrue(any(f["reason"] in REASONS.get(waiting_for, {"dialog"}) for f in seen), seen)
        asked = [f for f in frames if f["state"] == "waiting" and f.get("reason") == "permission"]
        self.assertTrue(any("approve" in f.get("detail", "") for f in asked), asked)

    def test_replay_accounts_for_every_line(self):
        files = [os.path.join(folder, name) for folder, _, names in os.walk(corpus()) for name in names
                 if name.endswith(".jsonl") and name != "timeline.jsonl"]
        self.assertGreater(len(files), 100)
        lines = 0
        for path in files:
            with open(path, "rb") as file:
                lines += file.read().count(b"\n")
        done = earshot("replay", "--stats", "--json", *files, home=self.home)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        stats = json.loads(done.stdout)
        told, types = stats["lines"], collections.Counter()
        for dialect in stats["dialects"].values():
            types.update(dialect["types"])
        self.assertEqual(told["total"], lines)
        # each record has a type, one of them for what is no record at all; a line has one or, glued, more
        self.assertEqual(sum(types.values()), stats["records"] + stats["undecided_records"] + types["(not an object)"])
        self.assertGreaterEqual(sum(types.values()) + told["skipped"] + told["empty"], lines)
        self.assertEqual(sum(stats["skipped_by_reason"].values()) + stats["skipped_not_reported"], told["skipped"])

    def test_the_public_sessions_as_history_are_each_one_live_session(self):
        folder = os.path.join(self.root, "projects", "-home-public")
        os.makedirs(folder)
        files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(corpus(), "public"))
                       for name in names if name.endswith(".jsonl"))
        for n, path in enumerate(files):
            shutil.copy(path, os.path.join(folder, f"00000000-0000-4000-8000-{n:012}.jsonl"))
        daemon = self.start()
        client = daemon.client()
        shown = {f["session"] for f in client.subscribe()}
        told = daemon.replay(self.root)
        self.assertEqual({json.loads(lines[0])["session"] for lines in told.values()} - shown, set())
        for n in range(len(files)):  # each goes on: the first new line is told, nothing old
            with open(os.path.join(folder, f"00000000-0000-4000-8000-{n:012}.jsonl"), "ab") as file:
                file.write(b'\n{"type":"user","uuid":"new-%d","sessionId":"s","timestamp":"2026-11-21T10:00:00.000Z","message":{"role":"user","content":"news %d"}}\n' % (n, n))
        after = daemon.replay(self.root)
        fresh = {stream: lines[len(told[stream]):] for stream, lines in after.items()}
        expected = {stream: lines for stream, lines in fresh.items() if lines}
        client.wait(lambda: client.count() >= sum(map(len, expected.values())), "the new lines' events")
        for stream, lines in expected.items():
            self.same(lines, client.event_texts()[stream], stream)
