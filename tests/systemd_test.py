#!/usr/bin/env python3
"""The files in systemd/: their managers understand them, and the walls are as high as they are said to be."""
import glob
import os
import plistlib
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
UNITS = os.path.join(TOP, "systemd")
BUILD = os.path.join(TOP, "build", "release")
# unit → how exposed it may be at most, times ten, as systemd 252 judges it
EXPOSURE = {"user/earshot.service": 17, "user/earshot-notify.service": 16, "system/earshot@.service": 9, "system/earshot-hub.service": 9}


def read(name):
    with open(os.path.join(UNITS, name), encoding="utf-8") as file:
        return file.read()


def directives(name):
    """name → its values, in order"""
    found = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", read(name), re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found


class Units(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)

    def analyze(self, *words):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not here")
        # A user's manager is looked at without there being one; nor are its own units, only what stands here.
        variables = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "HOME": self.folder, "SYSTEMD_LOG_LEVEL": "warning"}
        return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, env=variables, timeout=120)

    def built(self, name):
        """The unit with a program that is there."""
        path = os.path.join(self.folder, os.path.basename(name))
        with open(path, "w") as file:
            file.write(read(name).replace("/usr/bin/earshot", os.path.join(BUILD, "earshot")))
        return path

    def test_systemd_understands_every_unit(self):
        for name in EXPOSURE:
            with self.subTest(unit=name):
                others = [self.built("system/earshot@.socket")] if "@" in name else []
                scope = ["--user"] if name.startswith("user/") else []
                done = self.analyze("verify", "--man=no", "--recursive-errors=one", *scope, self.built(name), *others)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_directive_that_there_is_not_would_be_noticed(self):
        path = self.built("user/earshot.service")
        with open(path, "a") as file:
            file.write("\n[Service]\nRestartSteeps=3\n")
        self.assertIn("RestartSteeps", self.analyze("verify", "--man=no", "--recursive-errors=one", "--user", path).stderr)

    def test_no_unit_is_more_exposed_than_it_may_be(self):
        for name, most in EXPOSURE.items():
            with self.subTest(unit=name):
                scope = ["--user"] if name.startswith("user/") else []
                judge = lambda threshold: self.analyze("security", "--offline=true", "--no-pager", f"--threshold={threshold}", *scope, self.built(name))
                done = judge(most)
                self.assertEqual(done.returncode, 0, "\n".join(done.stdout.splitlines()[-1:]) + done.stderr)
                self.assertNotEqual(judge(1).returncode, 0, "the threshold is not looked at")

    def test_no_wall_shuts_off_what_the_daemon_must_see(self):
        """systemd's own tests of a life behind them are in integration/units; this holds where that cannot be run."""
        for name in ("user/earshot.service", "system/earshot@.service"):
            with self.subTest(unit=name):
                said = directives(name)
                self.assertEqual(said["PrivateUsers"], ["yes"])
                self.assertEqual(said["ProtectProc"], ["default"], "with PrivateUsers= every agent would be invisible")
                self.assertEqual(said["ProcSubset"], ["all"])
                self.assertNotIn("PrivatePIDs", said)
                self.assertNotIn("yes", said["ProtectHome"])
        self.assertEqual(directives("user/earshot.service")["PrivateNetwork"], ["no"])
        self.assertEqual(directives("user/earshot.service")["RuntimeDirectoryPreserve"], ["yes"])

    def test_no_wall_shuts_off_the_desktop_the_daemon_or_the_network(self):
        said = directives("user/earshot-notify.service")
        hidden = " ".join(said["InaccessiblePaths"])
        for needed in ("%t/bus", "%t/earshot"):
            self.assertNotIn(needed + " ", hidden + " ")
        self.assertEqual(said["PrivateNetwork"], ["no"])
        self.assertNotIn("IPAddressDeny", said)
        self.assertEqual(said["RestrictAddressFamilies"], ["AF_UNIX AF_INET AF_INET6"])
        self.assertEqual(said["PrivateUsers"], ["yes"], "without it a user's manager builds no wall")

    def test_every_unit_says_which_systemd_it_needs_and_no_newer_directive(self):
        newer = {"RestartSteps", "RestartMaxDelaySec", "PrivatePIDs", "ProtectHostname=private", "PrivateBPF", "DelegateNamespaces"}
        for name in EXPOSURE:
            self.assertIn("systemd 252", read(name))
            self.assertEqual(set(directives(name)) & newer, set())

    def test_units_are_installed_with_the_program_s_path(self):
        for prefix, programs in (("/usr", "/usr/bin"), (f"{self.folder}/local", f"{self.folder}/local/bin")):
            stage = tempfile.mkdtemp(dir=self.folder)
            done = subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], capture_output=True, text=True, env={**os.environ, "DESTDIR": stage})
            self.assertEqual(done.returncode, 0, done.stderr)
            there = f"{stage}{prefix}/lib/systemd"
            units = sorted(os.path.relpath(path, there) for path in glob.glob(f"{there}/*/*"))
            self.assertEqual(units, ["system/earshot-hub.service", "system/earshot@.service", "system/earshot@.socket", "user/earshot-notify.service", "user/earshot.service"])
            for unit in units:
                with open(os.path.join(there, unit)) as file:
                    self.assertEqual(file.read(), read(unit).replace("/usr/bin/earshot", f"{programs}/earshot"))

    def test_the_hub_s_unit_starts_a_hub_with_a_configuration_of_its_own(self):
        start = directives("system/earshot-hub.service")["ExecStart"][0]
        self.assertIn(" --hub ", start)
        self.assertIn("--config %d/earshot.toml", start)
        self.assertEqual(directives("system/earshot-hub.service")["LoadCredential"], ["earshot.toml:/etc/earshot-hub/earshot.toml"])


class PropertyList(unittest.TestCase):
    def test_launchd_s_file_says_what_it_must(self):
        with open(os.path.join(UNITS, "launchd", "dev.earshot.earshotd.plist"), "rb") as file:
            said = plistlib.load(file)
        self.assertEqual(said["Label"], "dev.earshot.earshotd")
        self.assertEqual(said["ProgramArguments"], ["/usr/local/bin/earshotd"])
        self.assertEqual((said["RunAtLoad"], said["KeepAlive"], said["ThrottleInterval"]), (True, {"SuccessfulExit": False}, 10))
        self.assertEqual((said["ProcessType"], said["Umask"]), ("Background", 0o077))
        self.assertEqual({said["StandardOutPath"], said["StandardErrorPath"]}, {"/Users/you/Library/Logs/earshotd.log"})
        self.assertEqual(said["SoftResourceLimits"]["Core"], 0)


if __name__ == "__main__":
    unittest.main()
