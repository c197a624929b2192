#!/usr/bin/env python3
"""The mutants (tests/mutants): each patch applies, and its killers exist."""
import os
import sys
import tempfile
import unittest
from unittest import mock

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

    def test_a_patch_that_does_not_apply_is_reported(self):
        name, patch = next(iter(mutants.patches().items()))
        with open(patch, encoding="utf-8") as file:
            text = file.read()
        removed = next(line for line in text.splitlines() if line.startswith("-") and not line.startswith("---"))
        with tempfile.NamedTemporaryFile("w", suffix=".patch") as stale:
            stale.write(text.replace(removed, removed + " // was another line then", 1))
            stale.flush()
            problems = mutants.problems({**mutants.patches(), name: stale.name})
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(f"{name}: the patch does not apply: update it", problems[0])

    def test_missing_killers_and_patches_are_reported(self):
        name = next(iter(mutants.KILLERS))
        for killers, expected in (([], "mutants.py lists no killer"), ([("unit/tail/mutation_test.cpp", "no such test")], "there is no test 'no such test'")):
            with self.subTest(killers=killers), mock.patch.dict(mutants.KILLERS, {name: killers}):
                problems = mutants.problems()
                self.assertEqual(len(problems), 1, problems)
                self.assertIn(expected, problems[0])
        found = mutants.patches()
        del found[name]
        self.assertEqual(mutants.problems(found), [f"{name}: killers, but no patch"])


if __name__ == "__main__":
    unittest.main()
