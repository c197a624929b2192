"""--install-service and --uninstall-service: what is written, what the service manager is told, and what is said about it."""
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

from support.harness import DaemonCase, build, clean_environment
from support.transcripts import Session

RECORDS = """#!/bin/sh
printf '%s\\n' "$*" >>"$HOME/calls"
case "$*" in *"$REFUSES"*) [ -z "$REFUSES" ] || exit "${CODE:-1}" ;; esac
"""
RELOAD, ENABLE = "--user daemon-reload", "--user enable --now earshot.service"
DISABLE = "--user disable --now earshot.service"


class Service(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.home)
        self.bin = os.path.join(self.home, "bin")
        os.mkdir(self.bin)
        self.unit = os.path.join(self.home, ".config/systemd/user/earshot.service")

    def manager(self):
        """A systemctl that writes down what it is asked for."""
        path = os.path.join(self.bin, "systemctl")
        with open(path, "w") as file:
            file.write(RECORDS)
        os.chmod(path, stat.S_IRWXU)

    def earshotd(self, *words, code=0, cwd=None, **variables):
        path = f"{self.bin}:/usr/bin:/bin" if os.path.exists(os.path.join(self.bin, "systemctl")) else self.bin
        done = subprocess.run([os.path.join(build(), "earshotd"), *words], capture_output=True, text=True, timeout=60, cwd=cwd or self.home,
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

    def text(self):
        with open(self.unit) as file:
            return file.read()

    def directive(self, name):
        return re.findall(rf"^{name}=(.*)$", self.text(), re.MULTILINE)

    def test_the_unit_is_written_enabled_and_told_line_by_line(self):
        self.manager()
        said = self.earshotd("--install-service")
        self.assertEqual(self.calls(), [RELOAD, ENABLE])
        self.assertEqual(said.splitlines()[:3], [f"earshotd: wrote: {self.unit}", f"earshotd: ran: systemctl {RELOAD}", f"earshotd: ran: systemctl {ENABLE}"])
        self.assertIn("loginctl enable-linger", said)
        self.assertEqual(self.directive("ExecStart"), ['"' + os.path.realpath(os.path.join(build(), "earshotd")) + '"'])
        self.assertEqual(self.directive("ReadWritePaths"), ['"%h/.local/state/earshot"'])
        self.assertEqual(os.listdir(os.path.dirname(self.unit)), ["earshot.service"])
        self.assertFalse(os.path.exists(os.path.join(self.home, ".local")), "installing has started a daemon's work")

    def test_twice_is_already(self):
        self.manager()
        self.earshotd("--install-service")
        first = self.text()
        self.calls()
        self.assertIn(f"already there: {self.unit}", self.earshotd("--install-service"))
        self.assertEqual((self.text(), self.calls()), (first, [RELOAD, ENABLE]))

    def test_other_options_replace_what_was_installed_and_restart_it(self):
        self.manager()
        self.earshotd("--install-service")
        self.calls()
        self.assertIn("replaced: ", self.earshotd("--install-service", "--recent", "7d", "--no-redact"))
        self.assertEqual(self.calls(), [RELOAD, "--user enable earshot.service", "--user restart earshot.service"])
        self.assertTrue(self.directive("ExecStart")[0].endswith(' "--recent" "7d" "--no-redact"'))

    def test_options_are_passed_on_with_whole_paths_and_quoted(self):
        self.manager()
        work = os.path.join(self.home, "my $HOME")
        os.mkdir(work)
        self.earshotd("--install-service", "--root", 'a="50%\\', "--root", "b=/srv/x", "--state", "st", "--socket", "run/s", "--listen", "127.0.0.1:0",
                      cwd=work)
        there = work.replace("$", "$$")
        words = f'"--root" "a={there}/\\"50%%\\\\" "--root" "b=/srv/x" "--listen" "127.0.0.1:0" "--state" "{there}/st" "--socket" "{there}/run/s"'
        self.assertTrue(self.directive("ExecStart")[0].endswith('earshotd" ' + words), self.directive("ExecStart"))
        self.assertEqual(self.directive("ReadWritePaths"), [f'"{work}/st" "{work}/run"'])
        self.assertEqual(self.directive("ExecStartPre"), [f'+mkdir -p -m 0700 "{there}/st" "{there}/run"'])
        self.assertEqual(self.directive("PrivateTmp"), ["no"])  # this home is below /tmp, which must be seen then

    def test_what_only_this_shell_knows_is_written_down(self):
        self.manager()
        self.earshotd("--install-service", CLAUDE_CONFIG_DIR="/srv/50% agents", XDG_STATE_HOME="/srv/state", XDG_CONFIG_HOME=self.home + "/etc")
        self.unit = os.path.join(self.home, "etc/systemd/user/earshot.service")
        self.assertEqual(self.directive("Environment"),
                         ['"CLAUDE_CONFIG_DIR=/srv/50%% agents"', f'"XDG_CONFIG_HOME={self.home}/etc"', '"XDG_STATE_HOME=/srv/state"'])
        self.assertEqual(self.directive("ReadWritePaths"), ['"/srv/state/earshot"'])

    def test_without_systemctl_the_commands_are_said(self):
        said = self.earshotd("--install-service", code=3)
        self.assertTrue(os.path.exists(self.unit))
        self.assertIn("there is no systemctl here", said)
        for command in (RELOAD, ENABLE):
            self.assertIn(f"earshotd:   systemctl {command}\n", said)
        said = self.earshotd("--uninstall-service", code=3)
        self.assertFalse(os.path.exists(self.unit))
        self.assertIn(f"systemctl {DISABLE}", said)

    def test_without_a_manager_to_talk_to_the_commands_are_said(self):
        self.manager()
        said = self.earshotd("--install-service", code=3, REFUSES="daemon-reload")
        self.assertEqual(self.calls(), [RELOAD])
        for command in (RELOAD, ENABLE):
            self.assertIn(f"earshotd:   systemctl {command}\n", said)
        link = os.path.join(os.path.dirname(self.unit), "default.target.wants", "earshot.service")
        os.mkdir(os.path.dirname(link))
        os.symlink(self.unit, link)
        self.earshotd("--uninstall-service", code=3, REFUSES="daemon-reload")
        self.assertFalse(os.path.lexists(self.unit) or os.path.lexists(link))

    def test_a_service_that_fails_is_a_failure(self):
        self.manager()
        said = self.earshotd("--install-service", code=1, REFUSES="enable", CODE="5")
        self.assertIn(f"failed with exit code 5: systemctl {ENABLE}", said)
        self.assertIn("journalctl", said)

    def test_a_changed_file_is_left_alone(self):
        self.manager()
        self.earshotd("--install-service")
        with open(self.unit, "a") as file:
            file.write("Nice=5\n")
        changed = self.text()
        self.calls()
        for errand in ("--install-service", "--uninstall-service"):
            said = self.earshotd(errand, "--recent", "7d", code=4)
            self.assertIn(f"{self.unit} is not as --install-service wrote it", said)
            self.assertEqual((self.text(), self.calls()), (changed, []))
        with open(self.unit, "w") as file:
            file.write(changed.removesuffix("Nice=5\n").replace("MemoryMax=1G", "MemoryMax=9G"))
        self.earshotd("--install-service", code=4)
        self.assertIn("MemoryMax=9G", self.text())

    def test_a_link_and_a_mask_are_left_alone(self):
        self.manager()
        os.makedirs(os.path.dirname(self.unit))
        for target, why in (("/dev/null", "is masked"), ("/somewhere/else", "is a link to /somewhere/else")):
            os.symlink(target, self.unit)
            self.assertIn(why, self.earshotd("--install-service", code=4))
            self.assertEqual((os.readlink(self.unit), self.calls()), (target, []))
            os.unlink(self.unit)

    def test_uninstalled_is_gone_and_the_state_stays(self):
        self.manager()
        state = os.path.join(self.home, ".local/state/earshot")
        os.makedirs(state)
        self.earshotd("--install-service")
        self.calls()
        said = self.earshotd("--uninstall-service")
        self.assertEqual(self.calls(), [RELOAD, DISABLE, RELOAD])
        self.assertIn(f"removed: {self.unit}", said)
        self.assertFalse(os.path.exists(self.unit))
        self.assertTrue(os.path.isdir(state))
        self.assertIn("not installed", self.earshotd("--uninstall-service"))
        self.assertEqual(self.calls(), [])

    def test_what_stops_not_keeps_its_file(self):
        self.manager()
        self.earshotd("--install-service")
        self.earshotd("--uninstall-service", code=1, REFUSES="disable")
        self.assertTrue(os.path.exists(self.unit))

    def test_what_cannot_be_written_is_said(self):
        self.manager()
        os.mkdir(os.path.join(self.home, ".config"))
        with open(os.path.join(self.home, ".config/systemd"), "w"):
            pass
        self.assertIn(f"{self.unit}", self.earshotd("--install-service", code=1))
        self.assertEqual(self.calls(), [])

    def test_what_cannot_be_understood_installs_nothing(self):
        self.manager()
        for words in (["--recent", "soon"], ["--root", "a=/x", "--root", "a=/y"], ["--uninstall-service"], ["--host", "two\nlines"]):
            self.earshotd("--install-service", *words, code=2)
        self.assertEqual((os.path.exists(self.unit), self.calls()), (False, []))


class HandedOver(DaemonCase):
    SERVES = """
import fcntl, os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
away = fcntl.fcntl(listener, fcntl.F_DUPFD_CLOEXEC, 10)
for number in range(int(sys.argv[1])):
    os.dup2(away, 3 + number)
os.environ.update(LISTEN_FDS=sys.argv[1], LISTEN_PID=str(os.getpid()))
print(listener.getsockname()[1], flush=True)
os.execv(sys.argv[2], sys.argv[2:])
"""

    def serves(self, sockets):
        return [sys.executable, "-c", self.SERVES, str(sockets)]

    def test_a_listener_that_was_handed_over_is_used_in_place_of_the_one_that_was_asked_for(self):
        daemon = self.start(prefix=self.serves(1))
        self.assertEqual(daemon.out[0], f"{daemon.port}\n")
        client = daemon.subscriber()
        session = Session(self.root)
        session.turn("by the manager's port")
        self.assert_delivered(daemon, client, session.path)

    def test_a_listener_that_is_not_there_is_an_error(self):
        daemon = self.start(prefix=["sh", "-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"", "sh"], ready=False)
        self.assertEqual(daemon.wait_exit(), 1)
        self.assertIn("LISTEN_FDS", daemon.stderr().decode())

    def test_two_listeners_are_one_too_many(self):
        daemon = self.start(prefix=self.serves(2), ready=False)
        self.assertEqual(daemon.wait_exit(), 1)
        self.assertIn("handed over 2 sockets", daemon.stderr().decode())


if __name__ == "__main__":
    unittest.main()
