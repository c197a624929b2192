"""tests/run.py: waiting for a compilation in the background, and running a program."""
import os
import sys
import tempfile
import threading
import time
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


class RunProgram(unittest.TestCase):
    def test_what_a_crashed_program_started_is_killed_and_not_waited_for(self):
        code, output = run.run_program(["/bin/sh", "-c", "sleep 1000 & echo $!; exit 3"], "/")
        self.assertEqual(code, 3)
        self.assert_gone(int(output))

    def test_a_program_that_takes_too_long_is_killed_with_what_it_printed(self):
        code, output = run.run_program(["/bin/sh", "-c", "echo $$; exec sleep 1000"], "/", seconds_max=3)
        self.assertEqual(code, "too slow")
        self.assert_gone(int(output))

    def assert_gone(self, process):
        for _ in range(1000):
            try:
                with open(f"/proc/{process}/stat") as stat:
                    if stat.read().rpartition(")")[2].split()[0] == "Z":  # nobody reaps the orphan
                        return
            except (FileNotFoundError, ProcessLookupError):
                return
            time.sleep(0.01)
        self.fail(f"process {process} is still running")


if __name__ == "__main__":
    unittest.main()
