"""Runs the tests of the TypeScript SDK in Node, against this build's daemon."""
import os
import shutil
import unittest

from typescript import SDK, compile_typescript, run_node_tests


@unittest.skipUnless(shutil.which("node"), "node is not installed")
@unittest.skipUnless(os.path.isdir(os.path.join(SDK, "node_modules")), "clients/sdk/node_modules is missing: run ./dev deps")
class Sdk(unittest.TestCase):
    def test_sdk_compiles_and_passes_its_tests(self):
        compile_typescript(SDK)
        passed, skipped = run_node_tests(SDK, "dist/test/*.test.js")
        self.assertGreater(passed, 40)
        self.assertEqual(skipped, [])
