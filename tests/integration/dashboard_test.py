"""Runs the dashboard's tests in a real browser, against the page that is built into this build's daemon: each file is a test."""
import glob
import os
import re
import shutil
import unittest

import browser
import pytest
from support.harness import build, corpus, sanitized
from typescript import DASHBOARD, SDK, compile_typescript, run_node_tests

PAGE = os.path.join("page", "app.js")  # exists in a build with the dashboard


def is_plain():
    """True if this build was configured with the plain page."""
    with open(os.path.join(build(), "CMakeCache.txt")) as cache:
        return re.search(r"^EARSHOT_PAGE:\w+=plain$", cache.read(), re.MULTILINE) is not None


@unittest.skipUnless(shutil.which("node") and shutil.which("npm"), "node and npm are not installed: this build has the plain page")
@unittest.skipUnless(browser.program(), "chromium is not installed: run ./dev deps")
class Dashboard(unittest.TestCase):
    def run_file(self, name):
        if sanitized(build()):
            self.skipTest("a sanitized daemon is too slow for the dashboard's tests: the release build runs them")
        if is_plain():
            self.skipTest("this build is configured with the plain page")
        self.assertTrue(os.path.exists(os.path.join(build(), PAGE)), "node and npm are installed, but this build has the plain page: see the output of cmake")
        for directory in (SDK, DASHBOARD):
            self.assertTrue(os.path.isdir(os.path.join(directory, "node_modules")), f"{directory} has no node_modules: run ./dev deps")
            compile_typescript(directory)
        passed, skipped = run_node_tests(DASHBOARD, f"test/{name}", EARSHOT_CHROMIUM=browser.program(), EARSHOT_CORPUS=corpus() or "",
                                         EARSHOT_SCREENSHOTS=os.path.join(os.path.abspath(build()), "screenshots"))
        self.assertGreater(passed + len(skipped), 0)
        self.assertEqual([reason for reason in skipped if "recorded sessions" not in reason and "nats-server" not in reason], [])


def runs(name):
    def test(self):
        self.run_file(name)
    return test


for path in glob.glob(os.path.join(DASHBOARD, "test", "*.test.mjs")):
    file = os.path.basename(path)
    test = runs(file)
    if file in ("accessibility.test.mjs", "load.test.mjs", "corpus.test.mjs"):
        test = pytest.mark.all(test)
    setattr(Dashboard, f"test_{file.removesuffix('.test.mjs')}", test)
