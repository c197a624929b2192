#!/usr/bin/env python3
"""The mutants (tests/mutants): each patch applies, and its killers exist."""
import os
import sys
import unittest

TESTS = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(TESTS, "mutants"))
import mutants  # noqa: E402


def readme_rows():
    """mutant → its row in tests/fault/README.md"""
    with open(os.path.join(TESTS, "fault", "README.md"), encoding="utf-8") as file:
        section = file.read().partition("\n## Mutants\n")[2].partition("\n## ")[0]
    return {line.split("`")[1]: line for line in section.splitlines() if line.startswith("| `")}


class Mutants(unittest.TestCase):
    def test_every_patch_applies_and_every_killer_exists(self):
        self.assertEqual(mutants.problems(), [])

    def test_the_fault_readme_lists_every_mutant_with_its_killers(self):
        rows = readme_rows()
        self.assertEqual(sorted(rows), sorted(mutants.KILLERS))
        for name, killers in mutants.KILLERS.items():
            for path, test in killers:
                with self.subTest(mutant=name, killer=test):
                    self.assertIn(f"`sim {test}`" if path == "sim" else f"`{path}`: `{test}`", rows[name])

    def test_every_patch_is_small_and_changes_only_the_daemon(self):
        for name, patch in mutants.patches().items():
            with self.subTest(mutant=name), open(patch, encoding="utf-8") as file:
                lines = file.read().splitlines()
                self.assertLess(sum(line.startswith(("+", "-")) and not line.startswith(("+++", "---")) for line in lines), 30)
                self.assertTrue(all(line.startswith("+++ b/daemon/") for line in lines if line.startswith("+++ ")))


if __name__ == "__main__":
    unittest.main()
