"""--install-service and --uninstall-service: the unit file, the calls of the service manager, the output."""
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

from support.harness import DaemonCase, build, clean_environment, deadline_s
from support.transcripts import Session

SYSTEMCTL = """#!/bin/sh
printf '%s\\n' "$*" >>"$HOME/calls"
case "$*" in *"$REFUSES"*) [ -z "$REFUSES" ] || exit "${CODE:-1}" ;; esac
"""
UNITS = "earshot.socket earshot.service"
RELOAD, ENABLE = "--user daemon-reload", f"--user enable --now {UNITS}"
DISABLE = f"--user disable --now {UNITS}"


class Service(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.home)
        self.bin = os.path.join(self.home, "bin")
        os.mkdir(self.bin)
        self.unit = os.path.join(self.home, ".config/systemd/user/earshot.service")
        self.socket = self.unit.replace(".service", ".socket")

    def fake_systemctl(self):
        """Installs a systemctl that records its arguments."""
        path = os.path.join(self.bin, "systemctl")
        with open(path, "w") as file:
            file.write(SYSTEMCTL)
        os.chmod(path, stat.S_IRWXU)

    def earshotd(self, *args, code=0, cwd=None, **variables):
        path = f"{self.bin}:/usr/bin:/bin" if os.path.exists(os.path.join(self.bin, "systemctl")) else self.bin
        done = subprocess.run([os.path.join(build(), "earshotd"), *args], capture_output=True, text=True, timeout=deadline_s * 4, cwd=cwd or self.home,
                              stdin=subprocess.DEVNULL, env={**clean_environment(self.home), "PATH": path, **variables})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code != 2 else done.stderr + done.stdout

    def calls(self):
        path = os.path.join(self.home, "calls")
        if not os.path.exists(path):
            return []
        with open(path) as file:
            calls = file.read().splitlines()
        os.unlink(path)
        return calls

    def text(self, path=None):
        with open(path or self.unit) as file:
            return file.read()

    def directive(self, name, path=None):
        return re.findall(rf"^{name}=(.*)$", self.text(path), re.MULTILINE)

    def test_installing_writes_and_enables_the_unit_and_prints_each_step(self):
        self.fake_systemctl()
        output = self.earshotd("--install-service")
        self.assertEqual(self.calls(), [RELOAD, ENABLE])
        self.assertEqual(output.splitlines()[:4], [f"earshotd: wrote: {self.unit}", f"earshotd: wrote: {self.socket}", f"earshotd: ran: systemctl {RELOAD}", f"earshotd: ran: systemctl {ENABLE}"])
        self.assertIn("loginctl enable-linger", output)
        self.assertEqual(self.directive("ExecStart"), ['"' + os.path.realpath(os.path.join(build(), "earshotd")) + '"'])
        self.assertEqual(self.directive("ReadWritePaths"), ['"%h/.local/state/earshot"'])
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.unit))), ["earshot.service", "earshot.socket"])
        self.assertEqual(self.directive("ListenStream", self.socket), ["127.0.0.1:7717"])
        self.assertEqual(self.directive("Requires"), ["earshot.socket"])
        self.assertFalse(os.path.exists(os.path.join(self.home, ".local")), "installing created the state directory")

    def test_installing_twice_changes_nothing(self):
        self.fake_systemctl()
        self.earshotd("--install-service")
        first = self.text()
        self.calls()
        self.assertIn(f"already installed: {self.unit}", self.earshotd("--install-service"))
        self.assertEqual((self.text(), self.calls()), (first, [RELOAD, ENABLE]))

    def test_other_options_replace_the_unit_and_restart_the_service(self):
        self.fake_systemctl()
        self.earshotd("--install-service")
        self.calls()
        self.assertIn("replaced: ", self.earshotd("--install-service", "--recent", "7d", "--no-redact"))
        self.assertEqual(self.calls(), [RELOAD, f"--user enable {UNITS}", f"--user restart {UNITS}"])
        self.assertTrue(self.directive("ExecStart")[0].endswith(' "--recent" "7d" "--no-redact"'))

    def test_options_are_passed_on_quoted_with_absolute_paths(self):
        self.fake_systemctl()
        work = os.path.join(self.home, "my $HOME")
        os.mkdir(work)
        self.earshotd("--install-service", "--root", 'a="50%\\', "--root", "b=/srv/x", "--state", "st", "--socket", "run/s", "--listen", "127.0.0.1:0",
                      cwd=work)
        there = work.replace("$", "$$")
        args = f'"--root" "a={there}/\\"50%%\\\\" "--root" "b=/srv/x" "--listen" "127.0.0.1:0" "--socket" "{there}/run/s" "--state" "{there}/st"'
        self.assertTrue(self.directive("ExecStart")[0].endswith('earshotd" ' + args), self.directive("ExecStart"))
        self.assertEqual(self.directive("ReadWritePaths"), [f'"{work}/st" "{work}/run"'])
        self.assertEqual(self.directive("ExecStartPre"), [f'+mkdir -p -m 0700 "{there}/st" "{there}/run"'])
        self.assertEqual(self.directive("PrivateTmp"), ["no"])  # this home is below /tmp, which must be visible

    def test_environment_variables_of_the_shell_are_written_to_the_unit(self):
        self.fake_systemctl()
        self.earshotd("--install-service", CLAUDE_CONFIG_DIR="/srv/50% agents", CODEX_HOME="/srv/codex", COPILOT_HOME="/srv/copilot",
                      PI_CODING_AGENT_DIR="/srv/pi", XDG_STATE_HOME="/srv/state", XDG_CONFIG_HOME=self.home + "/etc")
        self.unit = os.path.join(self.home, "etc/systemd/user/earshot.service")
        self.assertEqual(self.directive("Environment"),
                         ['"CLAUDE_CONFIG_DIR=/srv/50%% agents"', '"CODEX_HOME=/srv/codex"', '"COPILOT_HOME=/srv/copilot"', '"PI_CODING_AGENT_DIR=/srv/pi"',
                          f'"XDG_CONFIG_HOME={self.home}/etc"', '"XDG_STATE_HOME=/srv/state"'])
        self.assertEqual(self.directive("ReadWritePaths"), ['"/srv/state/earshot"'])

    def test_without_systemctl_the_commands_are_printed(self):
        output = self.earshotd("--install-service", code=3)
        self.assertTrue(os.path.exists(self.unit))
        self.assertIn("systemctl is not installed here", output)
        for command in (RELOAD, ENABLE):
            self.assertIn(f"earshotd:   systemctl {command}\n", output)
        output = self.earshotd("--uninstall-service", code=3)
        self.assertFalse(os.path.exists(self.unit))
        self.assertIn(f"systemctl {DISABLE}", output)

    def test_without_a_running_manager_the_commands_are_printed(self):
        self.fake_systemctl()
        output = self.earshotd("--install-service", code=3, REFUSES="daemon-reload")
        self.assertEqual(self.calls(), [RELOAD])
        for command in (RELOAD, ENABLE):
            self.assertIn(f"earshotd:   systemctl {command}\n", output)
        for unit, target in ((self.unit, "default"), (self.socket, "sockets")):
            link = os.path.join(os.path.dirname(unit), target + ".target.wants", os.path.basename(unit))
            os.mkdir(os.path.dirname(link))
            os.symlink(unit, link)
        self.earshotd("--uninstall-service", code=3, REFUSES="daemon-reload")
        self.assertEqual([files for _, _, files in os.walk(os.path.dirname(self.unit)) if files], [])

    def test_a_service_that_fails_to_start_is_an_error(self):
        self.fake_systemctl()
        output = self.earshotd("--install-service", code=1, REFUSES="enable", CODE="5")
        self.assertIn(f"failed with exit code 5: systemctl {ENABLE}", output)
        self.assertIn("journalctl", output)

    def test_144_the_socket_has_the_configured_port_and_is_absent_for_any_port(self):
        self.fake_systemctl()
        self.earshotd("--install-service", "--listen", "127.0.0.1:0")
        self.assertEqual(self.calls(), [RELOAD, "--user enable --now earshot.service"])
        self.assertFalse(os.path.exists(self.socket))
        self.assertNotIn("=earshot.socket", self.text())
        self.earshotd("--install-service", "--listen", "[::1]:7718")
        self.assertEqual(self.calls(), [RELOAD, f"--user enable {UNITS}", f"--user restart {UNITS}"])
        self.assertEqual(self.directive("ListenStream", self.socket), ["[::1]:7718"])
        with open(self.socket, "a") as file:
            file.write("Backlog=5\n")
        for command in ("--install-service", "--uninstall-service"):
            self.assertIn(f"{self.socket} was edited", self.earshotd(command, code=4))
        self.assertEqual(self.calls(), [])

    def test_an_edited_unit_is_not_overwritten(self):
        self.fake_systemctl()
        self.earshotd("--install-service")
        with open(self.unit, "a") as file:
            file.write("Nice=5\n")
        changed = self.text()
        self.calls()
        for command in ("--install-service", "--uninstall-service"):
            output = self.earshotd(command, "--recent", "7d", code=4)
            self.assertIn(f"{self.unit} was edited since --install-service wrote it", output)
            self.assertEqual((self.text(), self.calls()), (changed, []))
        with open(self.unit, "w") as file:
            file.write(changed.removesuffix("Nice=5\n").replace("MemoryMax=1G", "MemoryMax=9G"))
        self.earshotd("--install-service", code=4)
        self.assertIn("MemoryMax=9G", self.text())

    def test_a_linked_or_masked_unit_is_not_overwritten(self):
        self.fake_systemctl()
        os.makedirs(os.path.dirname(self.unit))
        for target, why in (("/dev/null", "is masked"), ("/somewhere/else", "is a link to /somewhere/else")):
            os.symlink(target, self.unit)
            self.assertIn(why, self.earshotd("--install-service", code=4))
            self.assertEqual((os.readlink(self.unit), self.calls()), (target, []))
            os.unlink(self.unit)

    def test_uninstalling_removes_the_unit_and_keeps_the_state(self):
        self.fake_systemctl()
        state = os.path.join(self.home, ".local/state/earshot")
        os.makedirs(state)
        self.earshotd("--install-service")
        self.calls()
        output = self.earshotd("--uninstall-service")
        self.assertEqual(self.calls(), [RELOAD, DISABLE, RELOAD])
        for path in (self.unit, self.socket):
            self.assertIn(f"removed: {path}", output)
            self.assertFalse(os.path.exists(path))
        self.assertTrue(os.path.isdir(state))
        self.assertIn("not installed", self.earshotd("--uninstall-service"))
        self.assertEqual(self.calls(), [])

    def test_a_service_that_cannot_be_stopped_keeps_its_unit(self):
        self.fake_systemctl()
        self.earshotd("--install-service")
        self.earshotd("--uninstall-service", code=1, REFUSES="disable")
        self.assertTrue(os.path.exists(self.unit))

    def test_an_unwritable_unit_is_an_error(self):
        self.fake_systemctl()
        os.mkdir(os.path.join(self.home, ".config"))
        with open(os.path.join(self.home, ".config/systemd"), "w"):
            pass
        self.assertIn(f"{self.unit}", self.earshotd("--install-service", code=1))
        self.assertEqual(self.calls(), [])

    def test_invalid_options_install_nothing(self):
        self.fake_systemctl()
        for args in (["--recent", "soon"], ["--root", "a=/x", "--root", "a=/y"], ["--uninstall-service"], ["--host", "two\nlines"]):
            self.earshotd("--install-service", *args, code=2)
        self.assertEqual((os.path.exists(self.unit), self.calls()), (False, []))


class SocketActivation(DaemonCase):
    LAUNCHER = """
import fcntl, os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
away = fcntl.fcntl(listener, fcntl.F_DUPFD_CLOEXEC, 10)
for number in range(int(sys.argv[1])):
    os.dup2(away, 3 + number)
os.environ.update(LISTEN_FDS=sys.argv[1], LISTEN_PID=str(os.getpid()))
print(listener.getsockname()[1], flush=True)
os.execv(sys.argv[2], sys.argv[2:])
"""

    def launcher(self, sockets):
        return [sys.executable, "-c", self.LAUNCHER, str(sockets)]

    def test_an_inherited_listener_replaces_the_requested_one(self):
        daemon = self.start(prefix=self.launcher(1))
        self.assertEqual(daemon.out[0], f"{daemon.port}\n")
        client = daemon.subscriber()
        session = Session(self.root)
        session.turn("by the manager's port")
        self.assert_delivered(daemon, client, session.path)

    def test_144_another_inherited_listener_than_the_configured_one_is_an_error(self):
        daemon = self.start(prefix=self.launcher(1), listen="[::1]:0", ready=False)
        self.assertEqual(daemon.wait_exit(), 2)
        self.assertIn(f"listen is [::1]:0, but the service manager passed a socket at 127.0.0.1:{daemon.out[0].strip()}:", daemon.stderr().decode())

    def test_a_missing_inherited_listener_is_an_error(self):
        daemon = self.start(prefix=["sh", "-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"", "sh"], ready=False)
        self.assertEqual(daemon.wait_exit(), 1)
        self.assertIn("LISTEN_FDS", daemon.stderr().decode())

    def test_two_inherited_listeners_are_an_error(self):
        daemon = self.start(prefix=self.launcher(2), ready=False)
        self.assertEqual(daemon.wait_exit(), 1)
        self.assertIn("passed 2 sockets", daemon.stderr().decode())


if __name__ == "__main__":
    unittest.main()
