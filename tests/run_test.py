"""How the tests are run: what they wait for while the rest is compiled."""
import os
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run  # noqa: E402


class Later(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.later = os.path.join(scratch.name, "later")
        environment = mock.patch.dict(os.environ, EARSHOT_LATER=self.later)
        environment.start()
        self.addCleanup(environment.stop)

    def ends(self, status, log=""):
        with open(self.later + ".log", "w") as file:
            file.write(log)
        with open(self.later + ".part", "w") as file:
            file.write(f"{status}\n")
        os.rename(self.later + ".part", self.later + ".status")

    def test_what_is_compiled_already_is_not_waited_for(self):
        self.ends(0)
        self.assertIsNone(run.await_later())

    def test_what_is_still_compiled_is_waited_for(self):
        compiling = threading.Thread(target=self.ends, args=(0,))
        starts = iter([compiling.start])
        with mock.patch.object(run.time, "sleep", side_effect=lambda _: next(starts, lambda: None)()), mock.patch("builtins.print"):
            run.await_later()
        self.assertTrue(os.path.exists(self.later + ".status"))
        compiling.join()

    def test_what_does_not_compile_ends_the_run_and_shows_why(self):
        self.ends(1, "hub.cpp:7: error: what is this?\n")
        with self.assertRaises(SystemExit) as ended:
            run.await_later()
        self.assertIn("hub.cpp:7: error: what is this?", str(ended.exception))

    def test_nothing_is_waited_for_when_nothing_is_said_to_come(self):
        del os.environ["EARSHOT_LATER"]
        self.assertIsNone(run.await_later())


if __name__ == "__main__":
    unittest.main()
