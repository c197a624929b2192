"""README.md: each test command selects at least one test, and each link has a target."""
import os
import re
import unittest

TESTS = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(TESTS)


def python_tests():
    """Yields `file name` of each Python test as `./dev test NAME` compares it with NAME."""
    for folder, _, names in os.walk(TESTS):
        for name in names:
            if name.endswith("_test.py"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    for test in re.findall(r"^    def (test_\w+)", file.read(), re.M):
                        yield f"{os.path.relpath(path, TESTS)} {test}".replace("_", " ").lower()


class Readme(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(TOP, "README.md"), encoding="utf-8") as page:
            self.text = page.read()

    def test_every_test_command_selects_a_test(self):
        tests = list(python_tests())
        commands = re.findall(r'`\./dev test (?:"([^"]+)"|([\w-]+))`', self.text)
        self.assertGreater(len(commands), 10)
        for name in (quoted or plain for quoted, plain in commands):
            self.assertTrue(any(name in test for test in tests), f"./dev test {name}: no test")

    def test_every_link_has_a_target(self):
        links = re.findall(r"\]\(([^)#:]+)\)", self.text)
        self.assertGreater(len(links), 5)
        for link in links:
            self.assertTrue(os.path.exists(os.path.join(TOP, link)), link)


if __name__ == "__main__":
    unittest.main()
