"""The TypeScript SDK, by its own tests, in Node, against this build's daemon."""
import os
import shutil
import unittest

from typescript import SDK, compiled, node_tests


@unittest.skipUnless(shutil.which("node"), "there is no node")
@unittest.skipUnless(os.path.isdir(os.path.join(SDK, "node_modules")), "clients/sdk/node_modules is not there: ./dev deps fetches it")
class Sdk(unittest.TestCase):
    def test_it_compiles_and_its_own_tests_pass(self):
        compiled(SDK)
        passed, skipped = node_tests(SDK, "dist/test/*.test.js")
        self.assertGreater(passed, 25)
        self.assertEqual(skipped, [])
