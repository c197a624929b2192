"""The dashboard, by its own tests in a real browser, as it is built into this build's daemon."""
import os
import re
import shutil
import subprocess
import unittest

import browser
from harness import TOP, build, sanitized

DASHBOARD = os.path.join(TOP, "clients", "dashboard")
SDK = os.path.join(TOP, "clients", "sdk")
PAGE = os.path.join("page", "app.js")  # in a build that has the dashboard
tests_seconds_max = 540


@unittest.skipUnless(browser.program(), "there is no chromium: ./dev deps installs it")
@unittest.skipUnless(os.path.isdir(os.path.join(SDK, "node_modules")), "clients/sdk/node_modules is not there: ./dev deps fetches it")
@unittest.skipUnless(os.path.exists(os.path.join(build(), PAGE)), "this build has the plain page: cmake says why")
class Dashboard(unittest.TestCase):
    def test_its_own_tests_pass(self):
        if sanitized(build()):
            self.skipTest("a browser and a sanitized daemon on two cores say nothing of the page: the release build does")
        subprocess.run(["node_modules/.bin/tsc", "-p", "."], cwd=SDK, check=True, timeout=tests_seconds_max)  # its daemon for tests
        subprocess.run(["node_modules/.bin/tsc", "-p", "."], cwd=DASHBOARD, check=True, timeout=tests_seconds_max)
        environment = {**os.environ, "EARSHOT_BUILD": os.path.abspath(build()), "EARSHOT_CHROMIUM": browser.program(),
                       "EARSHOT_SCREENSHOTS": os.path.join(os.path.abspath(build()), "screenshots")}
        done = subprocess.run([shutil.which("node"), "--test", "--test-reporter=tap", "test/page.test.mjs"], cwd=DASHBOARD, capture_output=True, text=True,
                              timeout=tests_seconds_max, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-2000:])
        self.assertGreaterEqual(int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1]), 9)
        self.assertIn("# skipped 0", done.stdout)
