"""`./dev bench soak` for 15 seconds, and unit tests of its checker."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from support.harness import TOP, build, deadline_s, sanitized

sys.path.insert(0, os.path.join(TOP, "tests", "bench"))
from soak_received import Received  # noqa: E402
from soak_writers import ACTS  # noqa: E402

STREAM = "claude/-home-ada-api/one"


def event(n, stream=STREAM, type="turn.started"):
    return json.dumps({"type": type, "stream": stream, "cursor": f"{n * 100}.1.abcd", "turn": n})


def frame(type, **fields):
    return json.dumps({"type": type, **fields})


def files(*numbers, type="turn.started"):
    return {STREAM: [(n * 100, 1, hash(event(n, type=type)), type) for n in numbers]}


def snapshot(n):
    return frame("session", session="one", cursors=[f"{STREAM}:{n * 100}.1.abcd"])


class Checker(unittest.TestCase):
    def differences(self, expected, *frames, types=("*",)):
        received = Received(types)
        for each in frames:
            received.add(each)
        return received.differences(expected)

    def test_events_received_once_and_in_order_are_correct(self):
        self.assertEqual(self.differences(files(1, 2, 3), event(1), event(2), event(3)), {})

    def test_a_lost_event_is_detected(self):
        self.assertEqual(self.differences(files(1, 2, 3), event(1), event(3)), {STREAM: (1, 0, 0)})

    def test_a_stream_that_was_never_received_is_lost(self):
        self.assertEqual(self.differences(files(1, 2)), {STREAM: (2, 0, 0)})

    def test_a_duplicate_event_is_detected(self):
        self.assertEqual(self.differences(files(1, 2), event(1), event(2), event(2)), {STREAM: (0, 1, 0)})

    def test_an_event_of_another_history_is_detected(self):
        self.assertEqual(self.differences(files(1), event(1), event(2)), {STREAM: (0, 1, 0)})
        self.assertEqual(self.differences({}, event(1)), {STREAM: (0, 1, 0)})

    def test_reordered_events_are_detected(self):
        self.assertEqual(self.differences(files(1, 2), event(2), event(1)), {STREAM: (0, 0, 1)})

    def test_a_reset_and_a_removal_discard_earlier_events(self):
        self.assertEqual(self.differences(files(2), event(1), frame("reset", stream=STREAM), event(2)), {})
        self.assertEqual(self.differences({}, event(1), frame("stream.removed", stream=STREAM)), {})

    def test_a_snapshot_defines_the_first_expected_event(self):
        self.assertEqual(self.differences(files(1, 2, 3), snapshot(2), event(3)), {})
        self.assertEqual(self.differences(files(1, 2, 3), snapshot(1), event(3)), {STREAM: (1, 0, 0)})

    def test_a_gap_is_allowed_only_after_lagged(self):
        lagged = frame("lagged", id="a")
        self.assertEqual(self.differences(files(1, 2, 3, 4), event(1), lagged, snapshot(3), event(4)), {})
        self.assertEqual(self.differences(files(1, 2, 3, 4), event(1), lagged, snapshot(2), event(4)), {STREAM: (1, 0, 0)})

    def test_a_filter_expects_only_its_types(self):
        expected = {STREAM: files(1)[STREAM] + files(2, type="usage.updated")[STREAM]}
        self.assertEqual(self.differences(expected, event(1), types=("turn.*",)), {})
        self.assertEqual(self.differences(expected, event(1)), {STREAM: (1, 0, 0)})

    def test_after_a_checkpoint_only_later_events_are_expected(self):
        received = Received()
        received.add(event(1))
        received.settle(files(1))
        self.assertEqual(received.differences(files(1, 2)), {STREAM: (1, 0, 0)})
        received.add(event(1))
        self.assertEqual(received.differences(files(1)), {STREAM: (0, 1, 0)})
        self.assertEqual(received.after(), [f"{STREAM}:100.1.abcd"])

    def test_a_stale_session_frame_is_detected(self):
        received = Received()
        received.add(snapshot(1))
        self.assertEqual((received.stale(files(1)), received.stale(files(1, 2))), ([], [STREAM]))


class Short(unittest.TestCase):
    def test_fifteen_seconds_of_soak_lose_duplicate_and_leak_nothing(self):
        if sanitized(build()):
            self.skipTest("a sanitizer changes memory use: only the release build is tested")
        with tempfile.TemporaryDirectory(prefix="earshot-test-", dir="/tmp") as home:
            samples = os.path.join(home, "samples.jsonl")
            for minutes in (0.25, 1, 4):  # a busy machine may not get to everything in so short a time
                done = subprocess.run([sys.executable, os.path.join(TOP, "tests", "bench", "soak.py"), "--minutes", str(minutes), "--checkpoint", "4",
                                       "--restarts", "1", "--json", "--out", samples], capture_output=True, text=True, timeout=deadline_s * 15)
                self.assertEqual(done.returncode, 0, done.stderr[-8000:])
                found = json.loads(done.stdout)
                if found["restarts"] == 1 and set(found["acts"]) == set(ACTS):
                    break
            with open(samples) as file:
                lives = {json.loads(line)["life"] for line in file}
        self.assertEqual([found[name] for name in ("lost", "doubled", "out_of_order", "problems")], [0, 0, 0, []])
        self.assertEqual(lives, {1, 2})
        self.assertEqual(found["restarts"], 1)
        self.assertGreater(found["checkpoints"], 0)
        self.assertGreater(found["connections"], 10)  # the permanent subscribers reconnected after the restart
        self.assertGreater(found["events"], found["lines"])
        self.assertEqual(set(found["acts"]), set(ACTS))
        self.assertLessEqual(found["bytes_read"], found["bytes_readable"])


if __name__ == "__main__":
    unittest.main()
