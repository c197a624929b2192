"""Each fuzz target for FUZZ_SECONDS (60) a run of all tests, two at a time, always from one seed (FUZZ_SEED): a test does not depend on luck.
`./dev fuzz` tries what nobody tried before. tests/fuzz/fuzzing.py says what is printed."""
import os
import unittest

import run_fuzzers


class Fuzz(unittest.TestCase):
    """A test a target, made below."""


def test_of(target):
    def test(self):
        if not os.access(run_fuzzers.program(run_fuzzers.BUILD, target), os.X_OK):
            self.skipTest("it is not built: `./dev fuzz` does, with clang-19")
        said = run_fuzzers.fuzz(target, int(os.environ.get("FUZZ_SECONDS", "60")), os.environ.get("FUZZ_SEED", "1"))
        self.assertIsNone(said, said)
    return test


for name in run_fuzzers.AIMS:
    setattr(Fuzz, f"test_{name}", test_of(name))


if __name__ == "__main__":
    unittest.main()
