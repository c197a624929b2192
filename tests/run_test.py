"""tests/run.py: waiting for a compilation in the background."""
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

    def finish_compilation(self, status, log=""):
        with open(self.later + ".log", "w") as file:
            file.write(log)
        with open(self.later + ".part", "w") as file:
            file.write(f"{status}\n")
        os.rename(self.later + ".part", self.later + ".status")

    def test_a_finished_compilation_is_not_waited_for(self):
        self.finish_compilation(0)
        self.assertIsNone(run.await_later())

    def test_a_running_compilation_is_waited_for(self):
        compiling = threading.Thread(target=self.finish_compilation, args=(0,))
        starts = iter([compiling.start])
        with mock.patch.object(run.time, "sleep", side_effect=lambda _: next(starts, lambda: None)()), mock.patch("builtins.print"):
            run.await_later()
        self.assertTrue(os.path.exists(self.later + ".status"))
        compiling.join()

    def test_a_failed_compilation_ends_the_run_with_its_log(self):
        self.finish_compilation(1, "server.cpp:7: error: expected ';'\n")
        with self.assertRaises(SystemExit) as ended:
            run.await_later()
        self.assertIn("server.cpp:7: error: expected ';'", str(ended.exception))

    def test_without_a_compilation_nothing_is_waited_for(self):
        del os.environ["EARSHOT_LATER"]
        self.assertIsNone(run.await_later())


if __name__ == "__main__":
    unittest.main()
