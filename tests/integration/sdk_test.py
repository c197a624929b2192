"""The TypeScript SDK, by its own tests, in Node, against this build's daemon."""
import os
import re
import shutil
import subprocess
import unittest

from harness import TOP, build

SDK = os.path.join(TOP, "clients", "sdk")
tests_seconds_max = 300


@unittest.skipUnless(shutil.which("node"), "there is no node")
@unittest.skipUnless(os.path.isdir(os.path.join(SDK, "node_modules")), "clients/sdk/node_modules is not there: ./dev deps fetches it")
class Sdk(unittest.TestCase):
    def test_it_compiles_and_its_own_tests_pass(self):
        compiled = subprocess.run(["node_modules/.bin/tsc", "-p", "."], cwd=SDK, capture_output=True, text=True, timeout=tests_seconds_max)
        self.assertEqual(compiled.returncode, 0, compiled.stdout)
        done = subprocess.run(["node", "--test", "--test-reporter=tap", "dist/test/"], cwd=SDK, capture_output=True, text=True, timeout=tests_seconds_max,
                              env={**os.environ, "EARSHOT_BUILD": os.path.abspath(build())})
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-2000:])
        self.assertGreater(int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1]), 20)
        self.assertIn("# skipped 0", done.stdout)
