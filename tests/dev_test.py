"""./dev: its commands, the packages it installs, and when it configures again."""
import os
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMANDS = ("deps", "build", "package", "run", "demo", "team-demo", "test", "bench", "fuzz", "mutants", "lint", "help")


class Dev(unittest.TestCase):
    def setUp(self):
        self.bin = tempfile.mkdtemp(prefix="earshot-dev-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.bin)
        self.log = os.path.join(self.bin, "log")

    def fake(self, name, script):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\n{script}\n')
        os.chmod(path, stat.S_IRWXU)

    def dev(self, *args, cwd="/"):
        return subprocess.run([os.path.join(TOP, "dev"), *args], capture_output=True, text=True, cwd=cwd,
                              env={"PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin", "HOME": self.bin})

    def logged(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log) as file:
            return file.read().splitlines()

    def machine(self, installed, user):
        """A machine with these packages; commands that would change it are logged."""
        self.fake("uname", "echo Linux")
        self.fake("id", f"echo {user}")
        self.fake("dpkg-query", 'for p in "$@"; do case " %s " in *" $p "*) printf "/$p/installed/ ";; esac; done; exit 1' % " ".join(installed))
        self.fake("apt-get", f'echo "apt-get $*" >>{self.log}')
        self.fake("sudo", f'echo "sudo" >>{self.log}; exec "$@"')

    def packages(self):
        with open(os.path.join(TOP, "dev")) as file:
            text = file.read()
        lists = re.findall(r'^(?:build|test)_packages="([^"]*)"', text, re.MULTILINE)
        self.assertEqual(len(lists), 2)
        return " ".join(lists).split()

    def test_help_names_every_command(self):
        done = self.dev("help")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(re.findall(r"^  ([\w-]+)", done.stdout, re.MULTILINE), list(COMMANDS))
        self.assertEqual(self.dev().stdout, done.stdout)

    def test_an_unknown_command_is_refused(self):
        done = self.dev("dance")
        self.assertEqual(done.returncode, 1)
        self.assertIn("dance", done.stderr)

    def test_deps_installs_exactly_the_missing_packages(self):
        wanted = self.packages()
        self.machine(installed=[p for p in wanted if p not in ("cmake", "python3-websockets")], user=0)
        done = self.dev("deps")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("installing: cmake python3-websockets", done.stderr)
        self.assertEqual(self.logged(), ["apt-get update -qq", "apt-get install -y -qq --no-install-recommends cmake python3-websockets"])

    def test_deps_prints_nothing_when_everything_is_installed(self):
        self.machine(installed=self.packages(), user=1000)
        done = self.dev("deps")
        self.assertEqual((done.returncode, done.stdout, done.stderr, self.logged()), (0, "", "", []))

    def test_deps_uses_sudo_when_not_root(self):
        self.machine(installed=self.packages()[1:], user=1000)
        self.assertEqual(self.dev("deps").returncode, 0)
        self.assertEqual(self.logged()[::2], ["sudo", "sudo"])

    def test_the_script_is_plain_posix_shell(self):
        if not shutil.which("dash"):
            self.skipTest("dash is not installed")
        checked = subprocess.run(["dash", "-n", os.path.join(TOP, "dev")], capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_shellcheck_reports_nothing(self):
        if not shutil.which("shellcheck"):
            self.skipTest("shellcheck is not installed")
        checked = subprocess.run(["shellcheck", os.path.join(TOP, "dev"), os.path.join(TOP, ".ci", "run")], capture_output=True, text=True)
        self.assertEqual(checked.stdout, "")

    def test_ci_runs_all_tests(self):
        with open(os.path.join(TOP, ".ci", "run")) as file:
            self.assertIn("./dev test", file.read())
        self.assertTrue(os.access(os.path.join(TOP, ".ci", "run"), os.X_OK))


if __name__ == "__main__":
    unittest.main()
