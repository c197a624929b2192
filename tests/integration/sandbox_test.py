"""The user unit's sandbox, as far as an unprivileged user can build it without systemd."""
import os
import re
import shutil
import socket
import subprocess

from support.endpoints import EndpointCase
from support.harness import TOP, build, sanitized, wait_for
from support.service_manager import NotifySocketReader
from support.transcripts import Registry, Session

PYTHON = "/usr/bin/python3"  # Debian's, which has python3-seccomp
SANDBOX = os.path.join(TOP, "tests", "integration", "support", "sandbox.py")
ATTEMPTS = """
import errno, mmap, os, resource, socket
def error(act):
    try: act()
    except OSError as failure: return errno.errorcode[failure.errno]
print(error(lambda: open(HOME + "/new", "w")), error(lambda: open(STATE + "/new", "w")), oct(os.umask(0)),
      error(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)), error(lambda: socket.socket(socket.AF_UNIX)),
      error(lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)), error(lambda: os.chown(STATE, 0, 0)),
      error(lambda: os.nice(-1)), resource.getrlimit(resource.RLIMIT_CORE))
"""


class Sandboxed(EndpointCase):
    def sandbox_prefix(self, unit):
        if sanitized(build()):
            self.skipTest("AddressSanitizer does not work with a system call filter: only the release build is tested")
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed: it defines @system-service")
        if not os.path.exists(PYTHON) or subprocess.run([PYTHON, "-c", "import seccomp"], capture_output=True).returncode != 0:
            self.skipTest("python3-seccomp is not installed")
        self.runtime = os.path.join(self.home, "run")
        for folder in (self.runtime, self.state):
            os.mkdir(folder, 0o700)
        prefix = [PYTHON, SANDBOX, os.path.join(TOP, "systemd", unit), self.state, self.runtime, "--"]
        attempts = subprocess.run([*prefix, PYTHON, "-c", f"HOME, STATE = {self.home!r}, {self.state!r}\n{ATTEMPTS}"], capture_output=True, text=True)
        if attempts.returncode == 77:
            self.skipTest(f"this machine does not allow the sandbox: {attempts.stderr}")
        self.assertEqual((attempts.stderr, attempts.stdout.split(None, 8)),
                         ("", ["EROFS", "None", "0o77", "EAFNOSUPPORT", "None", "EPERM", "EPERM", "EPERM", "(0, 0)\n"]))
        return prefix

    def check_daemon(self, unit, prefix):
        notify = NotifySocketReader(os.path.join(self.home, "notify"))
        self.addCleanup(notify.close)
        daemon = self.start(prefix=["env", f"NOTIFY_SOCKET={notify.path}", "WATCHDOG_USEC=300000", *prefix], runtime=self.runtime)
        wait_for(lambda: "READY=1" in notify.messages, "READY=1")
        with open(f"/proc/{daemon.process.pid}/status") as file:
            status = dict(re.findall(r"^(\w+):\s*(.*)$", file.read(), re.MULTILINE))
        self.assertEqual((status["CapBnd"], status["CapEff"], status["NoNewPrivs"], status["Seccomp"]), ("0" * 16, "0" * 16, "1", "2"))
        by_tcp, by_socket = daemon.subscriber(), self.unix_client(daemon)
        by_socket.subscribe()
        session, process = Session(self.root), self.process()
        session.turn("hello")
        for client in (by_tcp, by_socket):
            self.assert_delivered(daemon, client, session.path)
        registry = Registry(self.root, session.session, process)
        registry.set_status("waiting", "permission prompt")
        by_tcp.wait_frame(type="status", session=session.session, state="waiting", reason="permission")
        registry.fields["procStart"] = "1"
        registry.set_status("busy")
        by_tcp.wait_frame(type="status", session=session.session, state="ended")
        self.assertEqual(self.health(daemon)["watch"]["problem"], "")
        pings = notify.messages.count("WATCHDOG=1")
        wait_for(lambda: notify.messages.count("WATCHDOG=1") > pings + 2, "the watchdog's pings")
        daemon.stop()
        wait_for(lambda: "STOPPING=1" in notify.messages, "STOPPING=1")

    def test_the_daemon_works_in_the_user_unit_s_sandbox(self):
        unit = "user/earshot.service"
        self.check_daemon(unit, self.sandbox_prefix(unit))

    def test_sockets_of_other_programs_are_out_of_reach(self):
        """Fault 96."""
        prefix = self.sandbox_prefix("user/earshot.service")
        kept = os.path.join(self.runtime, "earshot", "sock")
        hidden = [os.path.join(self.runtime, name) for name in (
            "bus", "docker.sock", "podman/podman.sock", "containerd/containerd.sock", "keyring/control", "gcr/ssh", "ssh-agent.socket", "wayland-0")]
        for path in (kept, *hidden):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            self.addCleanup(listener.close)
            listener.bind(path)
            listener.listen()
        connect = """
import socket, sys
for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as end:
        try: end.connect(path); print("open")
        except OSError: print("closed")
"""
        environment = {**os.environ, "HOME": self.home, "XDG_RUNTIME_DIR": self.runtime}
        for words, expected in (([], "open"), (prefix, "closed")):
            done = subprocess.run([*words, PYTHON, "-c", connect, kept, *hidden], capture_output=True, text=True, env=environment)
            self.assertEqual((done.stderr, done.stdout.split()), ("", ["open"] + [expected] * len(hidden)))


if __name__ == "__main__":
    import unittest
    unittest.main()
