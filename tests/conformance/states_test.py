"""states.py: what it accepts, and that a recording is played into a daemon."""
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import recordings  # noqa: E402
import states  # noqa: E402

LAMP = HERE / "fixtures/states/lamp"


class Score(unittest.TestCase):
    def setUp(self):
        self.recording = states.Recording(LAMP)
        self.changes = [change["ms"] / 1000 for change in self.recording.changes]

    def rows(self, *statuses):
        """Of statuses as (seconds, state, reason), for a recording that began at 0."""
        shown = [(moment, "s", state, reason, "status") for moment, state, reason in statuses]
        return states.score(self.recording, shown, self.changes, 0.0)[0]

    truth = ((1.1, "working", None), (3.1, "waiting", "permission"), (8.1, "working", None), (8.4, "idle", None), (10.1, "ended", None))

    def test_the_truth_is_right(self):
        self.assertEqual([row["state"] for row in self.rows(*self.truth)], ["working", "waiting/permission", "working", "idle", "ended"])
        self.assertTrue(all(row["right"] and not row["missing"] and row["wrong_s"] == 0 for row in self.rows(*self.truth)))

    def test_a_wait_that_is_not_shown_is_missing_and_wrong(self):
        row = self.rows(*(each for each in self.truth if each[1] != "waiting"))[1]
        self.assertEqual((row["right"], row["missing"], row["shown"]), (False, True, "working"))
        self.assertGreater(row["wrong_s"], 1)

    def test_a_wait_with_another_reason_is_wrong(self):
        row = self.rows(*((moment, state, reason and "question") for moment, state, reason in self.truth))[1]
        self.assertFalse(row["right"])

    def test_of_several_sessions_the_most_urgent_is_shown(self):
        statuses = [(1.0, "other", "idle", None, "status"), *((moment, "s", state, reason, "status") for moment, state, reason in self.truth)]
        rows, _ = states.score(self.recording, statuses, self.changes, 0.0)
        self.assertEqual([row["right"] for row in rows], [True] * 4 + [False])

    def test_what_another_window_shows_must_be_known(self):
        rows = [{"ms": 1000, "win": "a", "state": "working"}, {"ms": 5000, "win": "b", "state": "ended"}]
        known = lambda notes: [begin for begin, *_ in recordings.intervals(rows, notes)]
        self.assertEqual(known([]), [1000, 5000])
        self.assertEqual(known([{"ms": 3000, "note": "key a Enter"}]), [1000])


class Play(unittest.TestCase):
    def test_a_recording_is_played_into_a_daemon(self):
        top = HERE.parents[1]
        environment = {**os.environ, "EARSHOT_BUILD": os.environ.get("EARSHOT_BUILD", str(top / "build/release"))}
        played = subprocess.run([sys.executable, str(HERE / "states.py"), "--json", str(LAMP)], env=environment, capture_output=True, text=True)
        self.assertIn(played.returncode, (0, 1), played.stderr)  # on a busy machine a status may be late, which is wrong
        details = states.json.loads(played.stdout)["intervals"]
        self.assertEqual([row["state"] for row in details], ["working", "waiting/permission", "working", "idle", "ended"])
        self.assertEqual((details[-1]["shown"], details[-1]["missing"]), ("ended", False))
