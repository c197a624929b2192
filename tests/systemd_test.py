#!/usr/bin/env python3
"""The files in systemd/: valid for their managers, and sandboxed as documented."""
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
# Sockets through which a process could leave its sandbox: those of every unit, and those in a user's runtime directory.
SOCKETS = ("/run/docker.sock", "/run/podman", "/run/containerd", "/run/crio", "/run/libvirt", "/run/dbus", "/var/lib/lxd/unix.socket", "/tmp/.X11-unix")
USER_SOCKETS = ("%t/docker.sock", "%t/podman", "%t/keyring", "%t/gcr", "%t/ssh-agent.socket", "%t/gnupg", "%t/systemd/private", "%t/wayland-0", "%h/.Xauthority")
# unit → the highest permitted exposure of `systemd-analyze security` (version 252), times ten
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
            self.skipTest("systemd-analyze is not installed")
        # Analyses user units without a running user manager or its own units.
        variables = {**os.environ, "XDG_RUNTIME_DIR": self.folder, "HOME": self.folder, "SYSTEMD_LOG_LEVEL": "warning"}
        return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, env=variables, timeout=120)

    def with_built_programs(self, name):
        """The unit, with the paths of the built programs."""
        path = os.path.join(self.folder, os.path.basename(name))
        with open(path, "w") as file:
            file.write(read(name).replace("/usr/bin/earshot", os.path.join(BUILD, "earshot")))
        return path

    def test_every_unit_is_valid(self):
        for name in EXPOSURE:
            with self.subTest(unit=name):
                others = [self.with_built_programs(name.replace(".service", ".socket"))] if "-" not in name else []
                scope = ["--user"] if name.startswith("user/") else []
                done = self.analyze("verify", "--man=no", "--recursive-errors=one", *scope, self.with_built_programs(name), *others)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_an_unknown_directive_is_reported(self):
        self.with_built_programs("user/earshot.socket")
        path = self.with_built_programs("user/earshot.service")
        with open(path, "a") as file:
            file.write("\n[Service]\nRestartSteeps=3\n")
        self.assertIn("RestartSteeps", self.analyze("verify", "--man=no", "--recursive-errors=one", "--user", path).stderr)

    def test_no_unit_exceeds_its_permitted_exposure(self):
        for name, most in EXPOSURE.items():
            with self.subTest(unit=name):
                scope = ["--user"] if name.startswith("user/") else []
                security = lambda threshold: self.analyze("security", "--offline=true", "--no-pager", f"--threshold={threshold}", *scope, self.with_built_programs(name))
                done = security(most)
                self.assertEqual(done.returncode, 0, "\n".join(done.stdout.splitlines()[-1:]) + done.stderr)
                self.assertNotEqual(security(1).returncode, 0, "the threshold has no effect")

    def test_the_sandbox_leaves_the_daemon_what_it_needs(self):
        """integration/units_test.py runs the units with systemd; this test works without it."""
        for name in ("user/earshot.service", "system/earshot@.service"):
            with self.subTest(unit=name):
                unit = directives(name)
                self.assertEqual(unit["PrivateUsers"], ["yes"])
                self.assertEqual(unit["ProtectProc"], ["default"], "with PrivateUsers= no agent process would be visible")
                self.assertEqual(unit["ProcSubset"], ["all"])
                self.assertNotIn("PrivatePIDs", unit)
                self.assertNotIn("yes", unit["ProtectHome"])
        self.assertEqual(directives("user/earshot.service")["PrivateNetwork"], ["no"])
        self.assertEqual(directives("user/earshot.service")["RuntimeDirectoryPreserve"], ["yes"])

    def test_144_a_socket_keeps_the_port_of_every_user_s_daemon(self):
        for name, other in (("user/earshot.service", "earshot.socket"), ("system/earshot@.service", "earshot@%i.socket")):
            with self.subTest(unit=name):
                self.assertEqual(directives(name)["Requires"], [other])
                self.assertIn(other, directives(name)["After"][0].split())
                self.assertEqual(directives(name.replace(".service", ".socket"))["ListenStream"], ["127.0.0.1:7717"])
        self.assertEqual(directives("user/earshot.service")["Also"], ["earshot.socket"])

    def test_sockets_of_other_programs_are_hidden(self):
        """Fault 96. integration/sandbox_test.py and units_test.py connect to them."""
        for name in EXPOSURE:
            with self.subTest(unit=name):
                hidden = {path.lstrip("-") for line in directives(name)["InaccessiblePaths"] for path in line.split()}
                self.assertLessEqual(set(SOCKETS), hidden)
                if name.startswith("user/"):
                    self.assertLessEqual(set(USER_SOCKETS), hidden)
                else:  # /run/user
                    self.assertIn(directives(name)["ProtectHome"], (["tmpfs"], ["yes"]))
        self.assertIn("-%t/bus", " ".join(directives("user/earshot.service")["InaccessiblePaths"]).split())

    def test_the_sandbox_leaves_the_notifier_the_desktop_the_daemon_and_the_network(self):
        unit = directives("user/earshot-notify.service")
        hidden = " ".join(unit["InaccessiblePaths"])
        for needed in ("%t/bus", "%t/earshot"):
            self.assertNotIn(needed + " ", hidden + " ")
        self.assertEqual(unit["PrivateNetwork"], ["no"])
        self.assertNotIn("IPAddressDeny", unit)
        self.assertEqual(unit["RestrictAddressFamilies"], ["AF_UNIX AF_INET AF_INET6"])
        self.assertEqual(unit["PrivateUsers"], ["yes"], "without it a user manager ignores the sandbox")

    def test_the_notifier_reloads_its_rules_with_the_signal_that_it_handles(self):
        self.assertEqual(directives("user/earshot-notify.service")["ExecReload"], ["+kill -HUP $MAINPID"], "in the sandbox kill cannot see the process")

    def test_every_unit_names_its_systemd_version_and_has_no_newer_directive(self):
        newer = {"RestartSteps", "RestartMaxDelaySec", "PrivatePIDs", "ProtectHostname=private", "PrivateBPF", "DelegateNamespaces"}
        for name in EXPOSURE:
            self.assertIn("systemd 252", read(name))
            self.assertEqual(set(directives(name)) & newer, set())

    def test_units_are_installed_with_the_program_s_path(self):
        for prefix, programs in (("/usr", "/usr/bin"), (f"{self.folder}/local", f"{self.folder}/local/bin")):
            stage = tempfile.mkdtemp(dir=self.folder)
            done = subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], capture_output=True, text=True, env={**os.environ, "DESTDIR": stage})
            self.assertEqual(done.returncode, 0, done.stderr)
            installed = f"{stage}{prefix}/lib/systemd"
            units = sorted(os.path.relpath(path, installed) for path in glob.glob(f"{installed}/*/*"))
            self.assertEqual(units, ["system/earshot-hub.service", "system/earshot@.service", "system/earshot@.socket", "user/earshot-notify.service", "user/earshot.service",
                                     "user/earshot.socket"])
            for unit in units:
                with open(os.path.join(installed, unit)) as file:
                    self.assertEqual(file.read(), read(unit).replace("/usr/bin/earshot", f"{programs}/earshot"))

    def test_the_hub_unit_starts_a_hub_with_its_own_configuration(self):
        start = directives("system/earshot-hub.service")["ExecStart"][0]
        self.assertIn(" --hub ", start)
        self.assertIn("--config %d/earshot.toml", start)
        self.assertEqual(directives("system/earshot-hub.service")["LoadCredential"], ["earshot.toml:/etc/earshot-hub/earshot.toml"])


class PropertyList(unittest.TestCase):
    def test_the_launchd_file_has_the_required_keys(self):
        with open(os.path.join(UNITS, "launchd", "dev.earshot.earshotd.plist"), "rb") as file:
            unit = plistlib.load(file)
        self.assertEqual(unit["Label"], "dev.earshot.earshotd")
        self.assertEqual(unit["ProgramArguments"], ["/usr/local/bin/earshotd"])
        self.assertEqual((unit["RunAtLoad"], unit["KeepAlive"], unit["ThrottleInterval"]), (True, {"SuccessfulExit": False}, 10))
        self.assertEqual((unit["ProcessType"], unit["Umask"]), ("Background", 0o077))
        self.assertEqual({unit["StandardOutPath"], unit["StandardErrorPath"]}, {"/Users/you/Library/Logs/earshotd.log"})
        self.assertEqual(unit["SoftResourceLimits"]["Core"], 0)


if __name__ == "__main__":
    unittest.main()
