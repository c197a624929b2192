"""`./dev bench soak`, for a quarter of a minute: it must not rot. And its judge, which must see what is wrong."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from support.harness import TOP, build, deadline_s, sanitized

sys.path.insert(0, os.path.join(TOP, "tests", "bench"))
from soak_received import Memory  # noqa: E402
from soak_writers import ACTS  # noqa: E402

STREAM = "claude/-home-ada-api/one"


def told(n, stream=STREAM, type="turn.started"):
    return json.dumps({"type": type, "stream": stream, "cursor": f"{n * 100}.1.abcd", "turn": n})


def frame(type, **fields):
    return json.dumps({"type": type, **fields})


def files(*numbers, type="turn.started"):
    return {STREAM: [(n * 100, 1, hash(told(n, type=type)), type) for n in numbers]}


def snapshot(n):
    return frame("session", session="one", cursors=[f"{STREAM}:{n * 100}.1.abcd"])


class Judge(unittest.TestCase):
    def differences(self, expected, *frames, types=("*",)):
        memory = Memory(types)
        for each in frames:
            memory.learn(each)
        return memory.differences(expected)

    def test_what_is_told_once_and_in_order_is_right(self):
        self.assertEqual(self.differences(files(1, 2, 3), told(1), told(2), told(3)), {})

    def test_a_lost_event_is_seen(self):
        self.assertEqual(self.differences(files(1, 2, 3), told(1), told(3)), {STREAM: (1, 0, 0)})

    def test_a_stream_that_was_never_told_of_is_lost(self):
        self.assertEqual(self.differences(files(1, 2)), {STREAM: (2, 0, 0)})

    def test_a_doubled_event_is_seen(self):
        self.assertEqual(self.differences(files(1, 2), told(1), told(2), told(2)), {STREAM: (0, 1, 0)})

    def test_an_event_of_another_history_is_seen(self):
        self.assertEqual(self.differences(files(1), told(1), told(2)), {STREAM: (0, 1, 0)})
        self.assertEqual(self.differences({}, told(1)), {STREAM: (0, 1, 0)})

    def test_two_events_that_changed_places_are_seen(self):
        self.assertEqual(self.differences(files(1, 2), told(2), told(1)), {STREAM: (0, 0, 1)})

    def test_a_reset_and_a_removal_take_back_what_came_before(self):
        self.assertEqual(self.differences(files(2), told(1), frame("reset", stream=STREAM), told(2)), {})
        self.assertEqual(self.differences({}, told(1), frame("stream.removed", stream=STREAM)), {})

    def test_a_snapshot_says_from_where_on_events_are_told(self):
        self.assertEqual(self.differences(files(1, 2, 3), snapshot(2), told(3)), {})
        self.assertEqual(self.differences(files(1, 2, 3), snapshot(1), told(3)), {STREAM: (1, 0, 0)})

    def test_a_gap_is_allowed_only_where_lagged_says_so(self):
        lagged = frame("lagged", id="a")
        self.assertEqual(self.differences(files(1, 2, 3, 4), told(1), lagged, snapshot(3), told(4)), {})
        self.assertEqual(self.differences(files(1, 2, 3, 4), told(1), lagged, snapshot(2), told(4)), {STREAM: (1, 0, 0)})

    def test_a_filter_asks_only_for_its_types(self):
        expected = {STREAM: files(1)[STREAM] + files(2, type="usage.updated")[STREAM]}
        self.assertEqual(self.differences(expected, told(1), types=("turn.*",)), {})
        self.assertEqual(self.differences(expected, told(1)), {STREAM: (1, 0, 0)})

    def test_after_what_was_judged_only_the_rest_is_asked_for(self):
        memory = Memory()
        memory.learn(told(1))
        memory.settle(files(1))
        self.assertEqual(memory.differences(files(1, 2)), {STREAM: (1, 0, 0)})
        memory.learn(told(1))
        self.assertEqual(memory.differences(files(1)), {STREAM: (0, 1, 0)})
        self.assertEqual(memory.after(), [f"{STREAM}:100.1.abcd"])

    def test_a_session_frame_that_is_too_old_is_seen(self):
        memory = Memory()
        memory.learn(snapshot(1))
        self.assertEqual((memory.stale(files(1)), memory.stale(files(1, 2))), ([], [STREAM]))


class Short(unittest.TestCase):
    def test_a_quarter_of_a_minute_of_everything_loses_and_doubles_and_leaks_nothing(self):
        if sanitized(build()):
            self.skipTest("a sanitizer's memory says nothing: only the release build is tried")
        with tempfile.TemporaryDirectory(prefix="earshot-test-", dir="/tmp") as home:
            samples = os.path.join(home, "samples.jsonl")
            done = subprocess.run([sys.executable, os.path.join(TOP, "tests", "bench", "soak.py"), "--minutes", "0.25", "--checkpoint", "4", "--restarts", "1",
                                   "--json", "--out", samples], capture_output=True, text=True, timeout=deadline_s * 15)
            self.assertEqual(done.returncode, 0, done.stderr[-8000:])
            found = json.loads(done.stdout)
            with open(samples) as file:
                lives = {json.loads(line)["life"] for line in file}
        self.assertEqual([found[name] for name in ("lost", "doubled", "out_of_order", "problems")], [0, 0, 0, []])
        self.assertEqual(lives, {1, 2})
        self.assertEqual(found["restarts"], 1)
        self.assertGreater(found["checkpoints"], 0)
        self.assertGreater(found["connections"], 10)  # who was there from the beginning came back after the restart
        self.assertGreater(found["events"], found["lines"])
        self.assertEqual(set(found["acts"]), set(ACTS))
        self.assertLessEqual(found["bytes_read"], found["bytes_readable"])


if __name__ == "__main__":
    unittest.main()
