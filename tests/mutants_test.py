#!/usr/bin/env python3
"""The seeded mutants (tests/mutants) stay what they are said to be: each can still be put in, and its killers are there."""
import os
import sys
import tempfile
import unittest
from unittest import mock

TESTS = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(TESTS, "mutants"))
import mutants  # noqa: E402


def readme_rows():
    """mutant → the row of tests/fault/README.md that tells its killers"""
    with open(os.path.join(TESTS, "fault", "README.md"), encoding="utf-8") as file:
        section = file.read().partition("\n## Mutants\n")[2].partition("\n## ")[0]
    return {line.split("`")[1]: line for line in section.splitlines() if line.startswith("| `")}


class Mutants(unittest.TestCase):
    def test_every_mutant_can_still_be_put_in_and_its_killers_are_there(self):
        self.assertEqual(mutants.problems(), [])

    def test_the_fault_readme_tells_every_mutant_with_its_killers(self):
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

    def test_a_patch_that_no_longer_applies_is_noticed(self):
        name, patch = next(iter(mutants.patches().items()))
        with open(patch, encoding="utf-8") as file:
            text = file.read()
        removed = next(line for line in text.splitlines() if line.startswith("-") and not line.startswith("---"))
        with tempfile.NamedTemporaryFile("w", suffix=".patch") as stale:
            stale.write(text.replace(removed, removed + " // was another line then", 1))
            stale.flush()
            said = mutants.problems({**mutants.patches(), name: stale.name})
        self.assertEqual(len(said), 1, said)
        self.assertIn(f"{name}: the patch no longer applies: mend the patch", said[0])

    def test_a_mutant_without_killers_and_killers_that_are_not_there_are_noticed(self):
        name = next(iter(mutants.KILLERS))
        for killers, expected in (([], "no killer is named"), ([("unit/tail/mutation_test.cpp", "no such test")], "there is no test 'no such test'")):
            with self.subTest(killers=killers), mock.patch.dict(mutants.KILLERS, {name: killers}):
                said = mutants.problems()
                self.assertEqual(len(said), 1, said)
                self.assertIn(expected, said[0])
        found = mutants.patches()
        del found[name]
        self.assertEqual(mutants.problems(found), [f"{name}: killers, but no patch"])


if __name__ == "__main__":
    unittest.main()
