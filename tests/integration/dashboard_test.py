"""The dashboard, by its own tests in a real browser, as it is built into this build's daemon."""
import os
import re
import shutil
import unittest

import browser
from support.harness import build, corpus, sanitized
from typescript import DASHBOARD, SDK, compiled, node_tests

PAGE = os.path.join("page", "app.js")  # in a build that has the dashboard


def wanted_plain():
    """Was this build told not to have the dashboard?"""
    with open(os.path.join(build(), "CMakeCache.txt")) as cache:
        return re.search(r"^EARSHOT_PAGE:\w+=plain$", cache.read(), re.MULTILINE) is not None


@unittest.skipUnless(shutil.which("node") and shutil.which("npm"), "there is no node and npm: this build has the plain page")
@unittest.skipUnless(browser.program(), "there is no chromium: ./dev deps installs it")
class Dashboard(unittest.TestCase):
    def test_its_own_tests_pass(self):
        if sanitized(build()):
            self.skipTest("a browser and a sanitized daemon on two cores say nothing of the page: the release build does")
        if wanted_plain():
            self.skipTest("this build was told to have the plain page")
        self.assertTrue(os.path.exists(os.path.join(build(), PAGE)), "there are node and npm, and this build has the plain page: cmake says why")
        for directory in (SDK, DASHBOARD):
            self.assertTrue(os.path.isdir(os.path.join(directory, "node_modules")), f"{directory} has no node_modules: ./dev deps fetches it")
            compiled(directory)
        passed, skipped = node_tests(DASHBOARD, "test/*.test.mjs", EARSHOT_CHROMIUM=browser.program(), EARSHOT_CORPUS=corpus() or "",
                                     EARSHOT_SCREENSHOTS=os.path.join(os.path.abspath(build()), "screenshots"))
        self.assertGreaterEqual(passed, 23)
        for reason in skipped:
            print(f"        SKIPPED: {reason}")
        self.assertEqual([reason for reason in skipped if "recorded sessions" not in reason and "nats-server" not in reason], [])
