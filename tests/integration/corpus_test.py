"""Recorded sessions of the real program, played live in torn writes: a subscriber gets exactly the events of the final files.

Skipped where the recorded sessions are not installed (EARSHOT_CORPUS, or shared/corpus next to the project).
"""
import collections
import json
import os
import shutil
import unittest

import pytest

from support.harness import DaemonCase, corpus, earshot, timeout_factor
from support.recordings import Playback, registry_changes

held_ms = 700  # a status that lasted at least this long in the recording must be seen; four times that in a sanitized build
delays = 4  # of the machine, of which a status is to outlast so many
STATES = {"busy": "working", "idle": "idle", "waiting": "waiting", "shell": "idle"}
REASONS = {"permission prompt": {"permission"}, "input needed": {"question", "plan"}}


def held(scenario, late_ms):
    """(session, status, waitingFor) of every status that a registry file of this recording kept for at least held_ms, on a machine with such delays"""
    current = {}
    for path, ms, fields in registry_changes(scenario):
        before = current.pop(path, None)
        if before and ms - before[0] >= (held_ms + delays * late_ms) * timeout_factor():
            yield before[1:]
        if "status" in fields:
            current[path] = (ms, fields["sessionId"], fields["status"], fields.get("waitingFor"))


def programs_of(path, home):
    """the programs that wrote this transcript, by what `earshot replay` recognises; none where it begins no session"""
    events = earshot("replay", path, home=home).stdout
    return {json.loads(line)["program"] for line in events.removesuffix("\n").split("\n") if '"type":"session.started"' in line}


@unittest.skipUnless(corpus(), "the recorded sessions are not installed")
class Corpus(DaemonCase):
    @pytest.mark.all
    def test_every_recorded_session_played_live_gives_the_events_of_replay(self):
        playback = Playback(self)
        daemon = self.start(roots=playback.root_arguments())
        client = daemon.subscriber()
        late_ms = playback.run(daemon, "--torn", deadline=300)
        replayed = daemon.replay(*playback.roots.values())
        try:
            client.wait(lambda: all(client.event_texts()[stream][-1:] == lines[-1:] for stream, lines in replayed.items()), "every event")
        finally:  # compared by stream, for the message
            self.assert_same_but_repeated(replayed, client.event_texts())
        daemon.stop()  # no further events
        self.assert_same_but_repeated(replayed, client.event_texts())
        self.assertEqual(client.all(type="reset"), [])
        self.assert_statuses(client, playback.scenarios, late_ms)

    def assert_same_but_repeated(self, replayed, got):
        """What a fork repeats of another stream's turns may be its history, and no event."""
        def prompts(lines):
            return {event.get("prompt") for event in map(json.loads, lines) if event["type"] == "turn.started"}

        for stream, lines in replayed.items():
            repeated = lines[:max(0, len(lines) - len(got[stream]))]
            self.assert_same_events(lines[len(repeated):], got[stream], stream)
            others = set().union(*(prompts(theirs) for other, theirs in replayed.items() if other != stream))
            self.assertEqual(prompts(repeated) - others, set(), stream)
            self.assertEqual(bool(repeated), bool(prompts(repeated)), f"{stream}: events are missing that are no turns")

    def assert_statuses(self, client, names, late_ms):
        frames = client.all(type="status")
        for name, scenario in names.items():
            for session, status, waiting_for in held(scenario, late_ms):
                with self.subTest(scenario=name, status=status, waiting_for=waiting_for):
                    seen = [f for f in frames if f["session"] == session and f["state"] == STATES[status]]
                    self.assertTrue(seen, [(f["state"], f.get("reason")) for f in frames if f["session"] == session])
                    if status == "waiting":
                        self.assertTrue(any(f["reason"] in REASONS.get(waiting_for, {"dialog"}) for f in seen), seen)
        prompts = [f for f in frames if f["state"] == "waiting" and f.get("reason") == "permission"]
        self.assertTrue(any("approve" in f.get("detail", "") for f in prompts), prompts)

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
        lines_by_kind, types = stats["lines"], collections.Counter()
        for dialect in stats["dialects"].values():
            types.update(dialect["types"])
        self.assertEqual(lines_by_kind["total"], lines)
        # each record has a type, with one for lines that are not records; concatenated lines have several
        self.assertEqual(sum(types.values()), stats["records"] + stats["undecided_records"] + types["(not an object)"])
        self.assertGreaterEqual(sum(types.values()) + lines_by_kind["skipped"] + lines_by_kind["empty"], lines)
        self.assertEqual(sum(stats["skipped_by_reason"].values()) + stats["skipped_not_reported"], lines_by_kind["skipped"])

    def test_each_public_session_as_history_becomes_one_live_session(self):
        folder = os.path.join(self.root, "projects", "-home-public")
        os.makedirs(folder)
        found = sorted(os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(corpus(), "public"))
                       for name in names if name.endswith(".jsonl"))
        files = [path for path in found if programs_of(path, self.home) <= {"claude-code"}]  # the root's program
        self.assertGreater(len(files), 100)
        for n, path in enumerate(files):
            shutil.copy(path, os.path.join(folder, f"00000000-0000-4000-8000-{n:012}.jsonl"))
        daemon = self.start()
        client = daemon.client()
        shown = {f["session"] for f in client.subscribe()}
        replayed = daemon.replay(self.root)
        self.assertEqual({json.loads(lines[0])["session"] for lines in replayed.values()} - shown, set())
        for n in range(len(files)):  # each continues: only the new line is sent
            with open(os.path.join(folder, f"00000000-0000-4000-8000-{n:012}.jsonl"), "ab") as file:
                file.write(b'\n{"type":"user","uuid":"new-%d","sessionId":"s","timestamp":"2026-11-21T10:00:00.000Z","message":{"role":"user","content":"news %d"}}\n' % (n, n))
        after = daemon.replay(self.root)
        fresh = {stream: lines[len(replayed[stream]):] for stream, lines in after.items()}
        expected = {stream: lines for stream, lines in fresh.items() if lines}
        client.wait(lambda: client.count() >= sum(map(len, expected.values())), "the new lines' events")
        for stream, lines in expected.items():
            self.assert_same_events(lines, client.event_texts()[stream], stream)
