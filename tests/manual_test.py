#!/usr/bin/env python3
"""The manual pages document every option, and shell completions offer them."""
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
NOTIFIER = os.path.join(BUILD, "earshot-notify")
PAGES = {
    "earshot": os.path.join(TOP, "clients/cli/man/earshot.1"),
    "earshot-notify": os.path.join(TOP, "clients/notifier/man/earshot-notify.1"),
    "earshotd": os.path.join(TOP, "daemon/man/earshotd.1"),
    "earshot.toml": os.path.join(TOP, "daemon/man/earshot.toml.5"),
}
SHELLS = ("bash", "zsh", "fish")
NOTIFIER_COMMANDS = ("check", "test", "why", "completions")


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, **more)


def rendered(page):
    """The page as `man` displays it, without bold and underline."""
    shown = run("groff", "-mandoc", "-Tutf8", "-P-c", "-rLL=200n", page).stdout
    return re.sub(r".\x08|\x1b\[[0-9;]*m", "", shown)


def options(*command):
    """The options in --help."""
    output = run(*command, "--help")
    assert output.returncode == 0, output
    lines = re.findall(r"^  ((?:!?-{1,2}[\w-]+(?:\{\w+\})?,? ?)+)", output.stdout, re.MULTILINE)
    return {name for line in lines for name in re.findall(r"-{1,2}[\w-]+", line)}


def commands(program=EARSHOT, end="Examples:"):
    output = run(program, "--help").stdout
    return re.findall(r"^  ([a-z]+) ", output[output.index("Commands:"):output.index(end)], re.MULTILINE)


class Manual(unittest.TestCase):
    def test_every_page_renders_without_warnings(self):
        checkers = [["groff", "-ww", "-b", "-mandoc", "-Tutf8", "-z"]]
        if shutil.which("mandoc"):
            checkers.append(["mandoc", "-Tlint", "-Wwarning"])
        if shutil.which("man"):
            checkers.append(["man", "-l", "--warnings", "-P", "cat", "-Tutf8"])
        for checker in checkers:
            for name, page in PAGES.items():
                with self.subTest(page=name, checker=checker[0]):
                    done = run(*checker, page)
                    text_of = done.stdout + done.stderr if checker[0] != "man" else done.stderr
                    self.assertEqual((done.returncode, text_of), (0, ""))

    def test_the_page_of_earshot_lists_exactly_its_options(self):
        page = rendered(PAGES["earshot"])
        found = commands()
        self.assertEqual(set(found), {"ls", "focus", "status", "statusline", "tail", "show", "search", "replay", "usage", "open", "browsers", "token", "doctor", "completions", "help"})
        known = options(EARSHOT)
        for command in found:
            known |= options(EARSHOT, command)
            self.assertRegex(page, rf"(?m)^     {command}\b", f"`{command}` is not documented")
        self.assert_listed(known, page)
        of_others = {"-L", "-g", "-l", "-R", "-c", "-r", "-s", "-FRX"}
        output = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", page)) - of_others
        self.assertEqual(output - known, set(), "the page lists options that do not exist")

    def test_160_help_fits_80_columns_and_has_no_notes_of_the_library(self):
        programs = [[os.path.join(BUILD, "earshotd")], [EARSHOT], *([EARSHOT, command] for command in commands()),
                    [NOTIFIER], *([NOTIFIER, command] for command in NOTIFIER_COMMANDS)]
        for program in programs:
            with self.subTest(program=program):
                text = run(*program, "--help").stdout
                is_command = re.compile(r"  \S(?!.*\S  )")  # an example, to copy as it is
                self.assertEqual([line for line in text.splitlines() if len(line) > 80 and not is_command.match(line)], [])
                self.assertNotRegex(text, r"\{\w+\}|Excludes:|Needs:|REQUIRED|SUBCOMMAND|\n\n\n")
        self.assertRegex(run(EARSHOT, "--help").stdout, r"Exit codes: [\s\S]*`search`,\s`status`\sand\s`focus`\shave\sothers")

    def test_every_option_of_earshotd_is_in_its_page(self):
        self.assert_listed(options(os.path.join(BUILD, "earshotd")), rendered(PAGES["earshotd"]))

    def test_every_option_key_and_field_of_earshot_notify_is_in_its_page(self):
        page = rendered(PAGES["earshot-notify"])
        known = options(NOTIFIER)
        self.assertEqual(set(commands(NOTIFIER, "Without a command")), set(NOTIFIER_COMMANDS))
        for command in NOTIFIER_COMMANDS:
            known |= options(NOTIFIER, command)
            self.assertRegex(page, rf"(?m)^     {command}\b", f"`{command}` is not documented")
        self.assert_listed(known, page)
        command = set()
        for name in ("rules.cpp", "rules_file.cpp", "rules_reader.cpp", "session_cache.cpp"):
            with open(os.path.join(TOP, "clients/notifier", name), encoding="utf-8") as file:
                text = file.read()
            command |= set(re.findall(r'\{"(\w+)",', text)) | set(re.findall(r'key\.str\(\) == "(\w+)"', text))
        self.assertGreater(len(command), 40)
        for word in sorted(word for word in command - {"rule", "sink", "mon"} if word.islower()):  # not days and Agent
            with self.subTest(word=word):
                self.assertRegex(page, rf"(?<![\w-]){word}(?![\w-])")

    def test_every_key_of_the_configuration_is_in_its_page_with_its_default(self):
        example = run(os.path.join(BUILD, "earshotd"), "--print-config").stdout
        settings = re.findall(r"^#([a-z0-9_]+) = (.*)$", example, re.MULTILINE)
        self.assertGreater(len(settings), 60)
        page = re.sub(r"[\u2018\u2019\u201c\u201d]", '"', rendered(PAGES["earshot.toml"]))
        for key, value in settings:
            with self.subTest(key=key):
                self.assertRegex(page, rf"(?m)^ .*(?<![\w-]){re.escape(key)}(?![\w-])")
        limits = example[example.index("[limits]"):example.index("#[relay]")]
        for key, value in re.findall(r"^#([a-z0-9_]+) = (.*)$", limits, re.MULTILINE):
            with self.subTest(limit=key):
                self.assertIn(f"{key} = {value}", page)

    def assert_listed(self, known, page):
        self.assertGreater(len(known), 5)
        for option in sorted(known):
            with self.subTest(option=option):
                self.assertRegex(page, rf"(?<![\w-]){option}(?![\w-])")


class Completions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.script = {}
        for program in (EARSHOT, NOTIFIER):
            for shell in SHELLS:
                done = run(program, "completions", shell)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                name = os.path.basename(program)
                self.script[name, shell] = os.path.join(self.folder, f"{name}.{shell}")
                with open(self.script[name, shell], "w", encoding="utf-8") as file:
                    file.write(done.stdout)

    def bash(self, *command):
        """The completions of bash for the last word."""
        quoted = " ".join(f"'{word}'" for word in command)
        name = os.path.basename(command[0])
        done = run("bash", "--norc", "-c", f"source {self.script[name, 'bash']}; COMP_WORDS=({quoted}); COMP_CWORD={len(command) - 1}; "
                   f"_{name}; printf '%s\\n' \"${{COMPREPLY[@]}}\"", env={"PATH": BUILD + ":" + os.environ["PATH"], "HOME": self.folder})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return set(done.stdout.split())

    def test_every_script_is_valid_for_its_shell(self):
        for (name, shell), script in self.script.items():
            if not shutil.which(shell):
                print(f"        {shell} is not installed: its script is not checked", flush=True)
                continue
            done = run(shell, "-n", script)
            self.assertEqual((done.returncode, done.stderr), (0, ""), (name, shell))

    def test_every_option_is_offered(self):
        for command in commands():
            offered = {line.split("\t")[0] for line in run(EARSHOT, "complete", command, "-").stdout.splitlines()}
            self.assertEqual(offered, options(EARSHOT, command), command)
        for command in NOTIFIER_COMMANDS:
            offered = {line.split("\t")[0] for line in run(NOTIFIER, "complete", command, "-").stdout.splitlines()}
            self.assertEqual(offered, options(NOTIFIER, command), command)

    def test_bash_completes_commands_options_and_their_values(self):
        self.assertEqual(self.bash("earshot", "t"), {"tail", "token"})
        self.assertEqual(self.bash("earshot", "statusline", "--f"), {"--follow", "--from"})
        self.assertEqual(self.bash("earshot", "statusline", "--from", ""), {"claude-code"})
        self.assertEqual(self.bash("earshot", ""), set(commands()))
        self.assertEqual(self.bash("earshot", "--ver"), {"--version"})
        self.assertEqual(self.bash("earshot", "tail", "--s"), {"--since", "--session", "--socket", "--state"})
        self.assertEqual(self.bash("earshot", "tail", "--colour", ""), {"auto", "always", "never"})
        self.assertEqual(self.bash("earshot", "ls", "--color", "=", "al"), {"always"})
        self.assertEqual(self.bash("earshot", "replay", "--view", "m"), {"meta"})
        self.assertEqual(self.bash("earshot", "completions", ""), set(SHELLS))
        self.assertEqual(self.bash("earshot", "help", "do"), {"doctor"})
        self.assertEqual(self.bash("earshot", "tail", "--since", ""), set())

    def test_bash_completes_earshot_notify(self):
        self.assertEqual(self.bash("earshot-notify", ""), set(NOTIFIER_COMMANDS))
        self.assertEqual(self.bash("earshot-notify", "--ver"), {"--verbose", "--version"})
        self.assertEqual(self.bash("earshot-notify", "test", "pl"), {"plan"})
        self.assertEqual(self.bash("earshot-notify", "--state", "test", "w"), {"why"})
        self.assertEqual(self.bash("earshot-notify", "--state", "=", "check", "why", "--c"), {"--count"})
        self.assertEqual(self.bash("earshot-notify", "completions", ""), set(SHELLS))

    def test_without_a_daemon_a_session_still_completes_to_last(self):
        self.assertEqual(self.bash(EARSHOT, "show", ""), {"last"})
        self.assertEqual(self.bash(EARSHOT, "focus", ""), {"last"})


if __name__ == "__main__":
    unittest.main()
