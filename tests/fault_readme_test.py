#!/usr/bin/env python3
"""tests/fault/README.md against the tests: every case is listed, every listed test exists, every fault test is listed."""
import functools
import os
import re
import unittest

TESTS = os.path.dirname(os.path.abspath(__file__))
README = os.path.join(TESTS, "fault", "README.md")
case_numbers = (*range(1, 123), *range(124, 146), 147, 149, 150, *range(153, 168), *range(201, 207))  # from 201 on: of agent programs


@functools.cache
def tests_of(path):
    """The names of the tests in this file; empty if it does not exist."""
    if not os.path.exists(os.path.join(TESTS, path)):
        return frozenset()
    with open(os.path.join(TESTS, path), encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".py"):
        return frozenset(re.findall(r"^\s+def (test_\w+)\(", text, re.MULTILINE))
    if path.endswith((".ts", ".mjs")):
        return frozenset(re.findall(r'^\s*test\("([^"]+)"', text, re.MULTILINE))
    literal = r'"((?:[^"\\]|\\.)*)"'
    found = re.findall(rf"\bTEST_CASE\(\s*((?:{literal.replace('(', '(?:', 1)}\s*)+)", text)
    return frozenset("".join(re.findall(literal, pieces)).replace('\\"', '"') for pieces in found)


def read(text):
    """case → [(file, test)]; None for "not built yet"."""
    cases, case = {}, None
    for line in text.splitlines():
        if head := re.match(r"- \*\*(\d+)\*\* ", line):
            case = cases.setdefault(int(head[1]), [])
        elif line == "  - not built yet":
            case.append(None)
        elif test := re.fullmatch(r"  - `([^`]+)`: `([^`]+)`", line):
            case.append((test[1], test[2]))
        elif line.startswith("  - "):
            case.append((line, "a line that is neither a test nor `not built yet`"))
    return cases


def problems(text):
    cases, found = read(text), []
    for number in case_numbers:
        if not cases.get(number):
            found.append(f"case {number} is not listed, or has no test")
    for number, tests in cases.items():
        if number not in case_numbers:
            found.append(f"there is no case {number}")
        found += [f"case {number}: {test[0]} has no test {test[1]!r}" for test in tests if test and test[1] not in tests_of(test[0])]
    return found


class Readme(unittest.TestCase):
    def setUp(self):
        with open(README, encoding="utf-8") as file:
            self.text = file.read()

    def test_every_case_is_listed_and_every_listed_test_exists(self):
        self.assertEqual(problems(self.text), [])

    def test_every_fault_test_is_listed_under_its_number(self):
        cases = read(self.text)
        for name in sorted(os.listdir(os.path.join(TESTS, "fault"))):
            path = f"fault/{name}"
            for test in sorted(tests_of(path)) if name.endswith("_test.py") else ():
                with self.subTest(test=test):
                    self.assertIn((path, test), cases[int(re.match(r"test_(\d+)_", test)[1])])


if __name__ == "__main__":
    unittest.main()
