"""Runs each fuzz target for FUZZ_SECONDS (20), two at a time, from a fixed seed (FUZZ_SEED) so that the result is reproducible.
`./dev fuzz` explores new inputs. tests/fuzz/run_fuzzers.py documents the output."""
import os
import unittest

import run_fuzzers


class Fuzz(unittest.TestCase):
    """One test per target, added below."""


def test_of(target):
    def test(self):
        if not os.access(run_fuzzers.program(run_fuzzers.BUILD, target), os.X_OK):
            self.skipTest("not built; `./dev fuzz` builds it with clang-19")
        failure = run_fuzzers.fuzz(target, int(os.environ.get("FUZZ_SECONDS", "20")), os.environ.get("FUZZ_SEED", "1"))
        self.assertIsNone(failure, failure)
    return test


for name in run_fuzzers.COVERED:
    setattr(Fuzz, f"test_{name}", test_of(name))


if __name__ == "__main__":
    unittest.main()
