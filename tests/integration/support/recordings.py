"""The recorded sessions, and playing them live below several roots."""
import glob
import json
import os
import re
import subprocess
import time

from support.harness import corpus, wait_for

VERSIONS = ("claude-2.1.197", "claude-2.1.330")  # whose recordings are played: a corpus that grows changes no result
poll_ms = 20  # wait_for's interval, and what polling takes


def scenarios():
    """name → directory; the name is used for the root"""
    found = [path for version in VERSIONS for path in glob.glob(os.path.join(corpus() or "", version, "*", "timeline.jsonl"))]
    return {re.sub(r"\W+", "-", "-".join(os.path.dirname(path).split(os.sep)[-2:])): os.path.dirname(path) for path in sorted(found)}


def registry_changes(scenario):
    """The recording's changes of registry files, in order: (path, ms, fields); fields is empty for a removed or empty file."""
    with open(os.path.join(scenario, "timeline.jsonl")) as lines:
        for change in map(json.loads, lines):
            if change["path"].startswith("sessions/"):
                text = change.get("text", "")
                yield change["path"], change["ms"], json.loads(text) if text.strip() else {}


class Playback:
    """One root per recording, below the test's home. start() plays all recordings at once."""

    def __init__(self, case):
        self.player = os.path.join(corpus(), "..", "tools", "play.py")
        if not os.path.exists(self.player):
            case.skipTest("play.py is not installed with the recorded sessions")
        self.case, self.scenarios = case, scenarios()
        self.roots = {name: os.path.join(case.home, name) for name in self.scenarios}
        for root in self.roots.values():
            os.mkdir(root)

    def root_arguments(self):
        return [f"{name}={root}" for name, root in self.roots.items()]

    def run(self, daemon, *options, deadline):
        """Plays every recording to its end; returns by how many ms at most this process woke up late meanwhile: a measure of the machine's delays."""
        late_ms, last = 0, time.monotonic()

        def ended():
            nonlocal late_ms, last
            late_ms, last = max(late_ms, (time.monotonic() - last) * 1000 - poll_ms), time.monotonic()
            return all(player.poll() is not None for player in players.values())

        players = {name: subprocess.Popen(["/usr/bin/python3", self.player, folder, self.roots[name], *options, "--seed", "7"],
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for name, folder in self.scenarios.items()}
        try:
            last = time.monotonic()
            wait_for(ended, "the end of the recordings", deadline, daemon.exit_reason)
        finally:
            for player in players.values():
                player.kill()
                player.wait()
        for name, player in players.items():
            with player.stdout as output:
                self.case.assertEqual(player.returncode, 0, f"{name}: {output.read()}")
        return late_ms
