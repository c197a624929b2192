"""Each fuzz target for FUZZ_SECONDS (60) a run of all tests, two at a time, always from one seed (FUZZ_SEED): a test does not depend on luck.
`./dev fuzz` tries what nobody tried before. tests/fuzz/fuzzing.py says what is printed."""
import os
import unittest

import fuzzing


class Fuzz(unittest.TestCase):
    """A test a target, made below."""


def test_of(target):
    def test(self):
        if not os.access(fuzzing.program(fuzzing.BUILD, target), os.X_OK):
            self.skipTest("it is not built: `./dev fuzz` does, with clang-19")
        said = fuzzing.fuzz(target, int(os.environ.get("FUZZ_SECONDS", "60")), os.environ.get("FUZZ_SEED", "1"))
        self.assertIsNone(said, said)
    return test


for name in fuzzing.AIMS:
    setattr(Fuzz, f"test_{name}", test_of(name))


if __name__ == "__main__":
    unittest.main()
