"""tests/skips.py: what is skipped is listed with its reason, and fails where that is not permitted."""
import os
import subprocess
import sys
import tempfile
import unittest

TESTS = os.path.dirname(os.path.abspath(__file__))
CTEST = """<testsuite><testcase name="unit_tail/one"/><testcase name="unit_tail/two"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>tests/unit/tail/x_test.cpp:3: warning:
  skipped: {reason}

more</system-out></testcase></testsuite>"""
PYTEST = '<testsuites><testsuite><testcase name="test_one"/><testcase name="test_two"><skipped type="pytest.skip" message="{reason}"/></testcase></testsuite></testsuites>'


def run(report, no_skip):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(report)
        file.flush()
        done = subprocess.run([sys.executable, os.path.join(TESTS, "skips.py"), file.name], capture_output=True, text=True, env={**os.environ, "EARSHOT_NO_SKIP": no_skip})
    return done.returncode, done.stdout


class Skips(unittest.TestCase):
    def test_a_skipped_test_is_listed_with_its_reason(self):
        self.assertEqual(run(CTEST.format(reason="there is no moon"), ""), (0, "skipped: unit_tail/two: there is no moon\n"))
        self.assertEqual(run(PYTEST.format(reason="there is no moon"), ""), (0, "skipped: test_two: there is no moon\n"))

    def test_in_ci_a_reason_that_is_not_permitted_is_a_failure(self):
        for report in (CTEST, PYTEST):
            self.assertEqual(run(report.format(reason="chromium is not installed"), "1")[0], 1)
            self.assertEqual(run(report.format(reason="root can read every file"), "1")[0], 0)

    def test_a_report_without_skipped_tests_is_silent(self):
        self.assertEqual(run("<testsuite><testcase name='one'/></testsuite>", "1"), (0, ""))


if __name__ == "__main__":
    unittest.main()
