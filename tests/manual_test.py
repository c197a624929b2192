#!/usr/bin/env python3
"""The manual pages say what the programs take, and shells complete it."""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(TOP, "build", "release")
EARSHOT = os.path.join(BUILD, "earshot")
PAGES = {
    "earshot": os.path.join(TOP, "clients/cli/man/earshot.1"),
    "earshot-notify": os.path.join(TOP, "clients/notifier/man/earshot-notify.1"),
    "earshotd": os.path.join(TOP, "daemon/man/earshotd.1"),
    "earshot.toml": os.path.join(TOP, "daemon/man/earshot.toml.5"),
}
SHELLS = ("bash", "zsh", "fish")


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, **more)


def rendered(page):
    """What `man` shows, without bold and underline."""
    shown = run("groff", "-mandoc", "-Tutf8", "-P-c", "-rLL=200n", page).stdout
    return re.sub(r".\x08|\x1b\[[0-9;]*m", "", shown)


def options(*command):
    """--long and -s, as the help lists them."""
    told = run(*command, "--help")
    assert told.returncode == 0, told
    lines = re.findall(r"^  ((?:!?-{1,2}[\w-]+(?:\{\w+\})?,? ?)+)", told.stdout, re.MULTILINE)
    return {name for line in lines for name in re.findall(r"-{1,2}[\w-]+", line)}


def commands():
    told = run(EARSHOT, "--help").stdout
    return re.findall(r"^  ([a-z]+) ", told[told.index("Subcommands:"):told.index("Examples:")], re.MULTILINE)


class Manual(unittest.TestCase):
    def test_every_page_is_set_without_a_warning(self):
        checkers = [["groff", "-ww", "-b", "-mandoc", "-Tutf8", "-z"]]
        if shutil.which("mandoc"):
            checkers.append(["mandoc", "-Tlint", "-Wwarning"])
        if shutil.which("man"):
            checkers.append(["man", "-l", "--warnings", "-P", "cat", "-Tutf8"])
        for checker in checkers:
            for name, page in PAGES.items():
                with self.subTest(page=name, checker=checker[0]):
                    done = run(*checker, page)
                    said = done.stdout + done.stderr if checker[0] != "man" else done.stderr
                    self.assertEqual((done.returncode, said), (0, ""))

    def test_every_option_of_earshot_is_in_its_page_and_none_too_many(self):
        page = rendered(PAGES["earshot"])
        found = commands()
        self.assertEqual(set(found), {"ls", "status", "statusline", "tail", "show", "replay", "open", "token", "doctor", "completions", "help"})
        known = options(EARSHOT)
        for command in found:
            known |= options(EARSHOT, command)
            self.assertRegex(page, rf"(?m)^     {command}\b", f"`{command}` is not described")
        self.missing(known, page)
        of_others = {"-L", "-g", "-l", "-R", "-c", "-r", "-s", "-FRX"}
        told = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", page)) - of_others
        self.assertEqual(told - known, set(), "the page tells of options that there are not")

    def test_every_option_of_earshotd_is_in_its_page(self):
        self.missing(options(os.path.join(BUILD, "earshotd")), rendered(PAGES["earshotd"]))

    def test_every_option_key_and_name_of_earshot_notify_is_in_its_page(self):
        page = rendered(PAGES["earshot-notify"])
        program = os.path.join(BUILD, "earshot-notify")
        known = options(program)
        for command in ("check", "test", "why"):
            known |= options(program, command)
            self.assertRegex(page, rf"(?m)^     {command}\b", f"`{command}` is not described")
        self.missing(known, page)
        words = set()
        for name in ("rules_rule.cpp", "rules_sink.cpp", "rules_file.cpp", "subject.cpp"):
            with open(os.path.join(TOP, "clients/notifier", name), encoding="utf-8") as file:
                text = file.read()
            words |= set(re.findall(r'\{"(\w+)",', text)) | set(re.findall(r'key\.str\(\) == "(\w+)"', text))
        self.assertGreater(len(words), 50)
        for word in sorted(words - {"rule", "sink"}):
            with self.subTest(word=word):
                self.assertRegex(page, rf"(?<![\w-]){word}(?![\w-])")

    def test_every_key_of_the_configuration_is_in_its_page(self):
        text = ""
        for path in sorted(glob.glob(os.path.join(TOP, "daemon/options*.cpp"))):
            with open(path, encoding="utf-8") as file:
                text += file.read()
        keys = re.findall(r'\{"([\w-]+)",\s*(?:read_|\[\])', text[text.index("constexpr Key keys[]"):])
        self.assertGreaterEqual(len(keys), 8)
        limits = os.path.join(TOP, "daemon/serve/limits.cpp")
        if os.path.exists(limits):
            with open(limits, encoding="utf-8") as file:
                keys += re.findall(r'\{"([\w]+)", &Limits::', file.read())
        page = rendered(PAGES["earshot.toml"])
        for key in keys:
            with self.subTest(key=key):
                self.assertRegex(page, rf"(?m)^ .*(?<![\w-]){re.escape(key)}(?![\w-])")

    def test_the_example_s_defaults_are_those_of_its_page(self):
        """That they are the daemon's own, the unit tests say."""
        page = re.sub(r"[\u2018\u2019\u201c\u201d]", '"', rendered(PAGES["earshot.toml"]))
        with open(os.path.join(TOP, "daemon/earshot.toml"), encoding="utf-8") as file:
            said = re.findall(r"^#([\w-]+ = (?:\d+|true|false|\"[\w.:]+\"))$", file.read(), re.MULTILINE)
        self.assertGreater(len(said), 40)
        examples = ("host = ", "names", "tls_c", "tls_key", "allow_remote", "credentials", "nkey")  # no defaults
        for each in said:
            if not each.startswith(examples):
                self.assertIn(each, page)

    def missing(self, known, page):
        self.assertGreater(len(known), 5)
        for option in sorted(known):
            with self.subTest(option=option):
                self.assertRegex(page, rf"(?<![\w-]){option}(?![\w-])")


class Completions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.script = {}
        for shell in SHELLS:
            done = run(EARSHOT, "completions", shell)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.script[shell] = os.path.join(self.folder, shell)
            with open(self.script[shell], "w", encoding="utf-8") as file:
                file.write(done.stdout)

    def bash(self, *words):
        """What bash offers for the last word."""
        quoted = " ".join(f"'{word}'" for word in words)
        done = run("bash", "--norc", "-c", f"source {self.script['bash']}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
                   "_earshot; printf '%s\\n' \"${COMPREPLY[@]}\"", env={"PATH": os.environ["PATH"], "HOME": self.folder})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return set(done.stdout.split())

    def test_every_script_is_one_that_its_shell_understands(self):
        for shell in SHELLS:
            if not shutil.which(shell):
                print(f"        {shell} is not installed: its script is not looked at", flush=True)
                continue
            done = run(shell, "-n", self.script[shell])
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_every_option_is_in_every_script(self):
        for shell in SHELLS:
            with open(self.script[shell], encoding="utf-8") as file:
                text = file.read()
            for command in commands():
                for option in options(EARSHOT, command):
                    name = option if shell != "fish" else ("-l " if option.startswith("--") else "-s ") + option.lstrip("-")
                    self.assertIn(name, text, f"{shell}: {command} {option}")

    def test_bash_completes_commands_options_and_their_words(self):
        self.assertEqual(self.bash("earshot", "t"), {"tail", "token"})
        self.assertEqual(self.bash("earshot", "statusline", "--f"), {"--follow"})
        self.assertEqual(self.bash("earshot", ""), set(commands()))
        self.assertEqual(self.bash("earshot", "--ver"), {"--version"})
        self.assertEqual(self.bash("earshot", "tail", "--s"), {"--since", "--session", "--socket", "--state"})
        self.assertEqual(self.bash("earshot", "tail", "--colour", ""), {"auto", "always", "never"})
        self.assertEqual(self.bash("earshot", "ls", "--color", "=", "al"), {"always"})
        self.assertEqual(self.bash("earshot", "replay", "--view", "m"), {"meta"})
        self.assertEqual(self.bash("earshot", "completions", ""), set(SHELLS))
        self.assertEqual(self.bash("earshot", "help", "do"), {"doctor"})
        self.assertEqual(self.bash("earshot", "tail", "--since", ""), set())

    def test_without_a_daemon_a_session_still_completes_to_last(self):
        self.assertEqual(self.bash(EARSHOT, "show", ""), {"last"})


if __name__ == "__main__":
    unittest.main()
