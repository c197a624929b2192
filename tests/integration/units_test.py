"""The units run by systemd itself: the sandbox allows everything the daemon needs and blocks what it must not touch."""
import json
import os
import re
import shutil
import socket
import tempfile
import unittest

from support.harness import TOP, build, sanitized, wait_for
from support.service_manager import Manager, missing, uid

UNITS = os.path.join(TOP, "systemd")
PRESENT = ("sysinit.target", "basic.target", "sockets.target", "shutdown.target", "local-fs.target", "remote-fs.target", "test.target")


class Sandboxed(unittest.TestCase):
    """What a daemon must be able to do under either manager, and what it must not."""

    def begin(self, kind, units):
        if sanitized(build()):
            self.skipTest("AddressSanitizer does not work with MemoryDenyWriteExecute= and memory limits: only the release build is tested")
        if reason := missing():
            self.skipTest(f"systemd cannot run here: {reason}")
        self.home = tempfile.mkdtemp(prefix="earshot-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        folder = os.path.join(self.home, "units")
        os.mkdir(folder)
        for name, text in units.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        self.manager = Manager(kind, folder, self.home)
        self.addCleanup(self.manager.stop)
        if not self.manager.prepared():
            self.skipTest(f"this machine does not allow the namespaces: {self.manager.output()}")
        self.manager.wait_up()

    def started(self, unit, state, socket):
        self.unit, self.state, self.socket = unit, state, socket
        self.assertEqual(self.manager.show(unit, "ActiveState"), "active", self.why())
        self.pid = self.manager.show(unit, "MainPID")  # in the manager's pid namespace

    def why(self):
        return self.manager.systemctl("status", "--no-pager", self.unit).stdout + self.manager.output()

    def status(self):
        """/proc/<pid>/status of the daemon, as a dictionary."""
        text = self.manager.run("cat", f"/proc/{self.pid}/status", user=False).stdout
        return dict(re.findall(r"^(\w+):\s*(.*)$", text, re.MULTILINE))

    def inside(self, *args):
        """Runs a command in the daemon's mount, network and IPC namespaces."""
        return self.manager.run("nsenter", "--target", self.pid, "--mount", "--net", "--ipc", *args, user=False)

    def sessions(self, *how):
        done = self.manager.run("curl", "-sS", *(how or ["--unix-socket", self.socket]), "http://localhost/v1/sessions")
        self.assertEqual(done.returncode, 0, done)
        return {s["session"]: s for s in json.loads(done.stdout)["sessions"]}

    def read(self, name):
        return self.manager.run("cat", f"{self.state}/{name}").stdout.strip()

    def wait_status(self, state, session, **more):
        def reached():
            status = self.sessions().get(session, {}).get("status", {})
            return status.get("state") == state and all(status.get(k) == v for k, v in more.items())

        wait_for(reached, f"{state} of {session}; now: {self.sessions()}")

    def check_service(self):
        session = "0a0a0a0a-0000-4000-8000-000000000001"
        agent = self.manager.agent()
        agent.run(f"s = Session('/home/ada/.claude', session='{session}'); p = subprocess.Popen(['sleep', '600']); s.prompt('hello')")
        wait_for(lambda: session in self.sessions(), "the session")
        agent.run("r = Registry('/home/ada/.claude', s.session, p); r.set_status('busy')")
        self.wait_status("working", session, source="registry")
        agent.run("r.set_status('waiting', 'permission prompt')")
        self.wait_status("waiting", session, reason="permission")
        # Start times are compared, so /proc/<pid>/stat is readable and of the same pid namespace.
        agent.run("r.fields['procStart'] = '1'; r.set_status('busy')")
        self.wait_status("ended", session)
        agent.run("r = Registry('/home/ada/.claude', s.session, p); r.set_status('idle')")
        self.wait_status("idle", session, source="registry")
        agent.run("p.kill(); p.wait()")
        self.wait_status("ended", session)
        # New directories of a root are followed, and sessions are served over the socket and TCP.
        other = "0a0a0a0a-0000-4000-8000-000000000002"
        agent.run(f"t = Session('/home/ada/.claude', cwd='/home/ada/fresh', session='{other}'); t.turn('by tcp')")
        address = re.search(r"//([\d.]+:\d+)/", self.read("address"))[1]
        tcp = ["--connect-to", f"localhost:80:{address}", "-H", f"Host: {address}"]
        wait_for(lambda: other in self.sessions(*tcp, "-H", f"Authorization: Bearer {self.read('token')}"), "the session over TCP")
        self.assertEqual(self.manager.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", *tcp, "http://localhost/v1/sessions").stdout, "401")
        # Another user, even root, is refused on the socket.
        by_root = self.manager.run("curl", "-sS", "-i", "--unix-socket", self.socket, "http://localhost/v1/sessions", user=False)
        self.assertNotIn(session, by_root.stdout)
        self.assertEqual((by_root.returncode, by_root.stdout[:12]), (0, "HTTP/1.1 403"), by_root)
        health = json.loads(self.manager.run("curl", "-sS", "--unix-socket", self.socket, "http://localhost/v1/health").stdout)
        self.assertEqual((health["watch"]["mode"], health["watch"].get("problem", ""), health["problems"]), ("both", "", []), health)
        self.assertGreater(health["watch"]["inotify_watches"], 3)
        self.assertRegex(self.manager.run("curl", "-sS", "--unix-socket", self.socket, "http://localhost/metrics").stdout,
                         r"(?m)^process_start_time_seconds [1-9]")

    def check_sandbox(self):
        status = self.status()
        self.assertEqual(status["Uid"].split(), [str(uid)] * 4)
        self.assertEqual({status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}, {"0" * 16})
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        own = self.manager.run("readlink", f"/proc/{self.pid}/ns/user", user=False).stdout.strip()
        self.assertRegex(own, r"^user:\[\d+\]$")
        self.assertNotEqual(own, os.readlink("/proc/self/ns/user"))
        limits = self.manager.run("cat", f"/proc/{self.pid}/limits", user=False).stdout
        self.assertRegex(limits, r"Max core file size +0 +0 ")
        root = f"/proc/{self.pid}/root"
        see = lambda path: self.manager.run("ls", "-A", root + path)
        self.assertNotEqual(see("/home/ada/.ssh").returncode, 0)
        self.assertEqual(see("/tmp").stdout, "")
        for path in ("/home/ada", "/home/ada/.claude", "/etc", "/opt"):
            done = self.inside("touch", f"{path}/new")
            self.assertIn("Read-only file system", done.stderr, f"{path} can be written")
        self.assertEqual(self.inside("test", "-w", self.state).returncode, 0)

    def check_stop(self):
        self.assertGreater(int(self.manager.show(self.unit, "WatchdogTimestampMonotonic")), 0)
        self.assertEqual(self.manager.show(self.unit, "NRestarts"), "0", self.why())
        self.assertEqual(self.manager.systemctl("stop", self.unit).returncode, 0)
        self.assertEqual([self.manager.show(self.unit, name) for name in ("Result", "ExecMainStatus")], ["success", "0"], self.why())


class UserManager(Sandboxed):
    def test_install_service_runs_the_sandboxed_daemon_under_the_user_manager(self):
        self.begin("user", {})
        done = self.manager.run("earshotd", "--install-service", "--listen", "127.0.0.1:0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.manager.output())
        runtime = f"/run/user/{uid}"
        self.started("earshot.service", "/home/ada/.local/state/earshot", f"{runtime}/earshot/sock")
        self.assertEqual(self.manager.systemctl("is-enabled", "earshot.service").stdout, "enabled\n")
        self.check_service()
        self.check_sandbox()
        mode = self.manager.run("stat", "-c", "%a", f"/proc/{self.pid}/root{runtime}/systemd/private", user=False).stdout
        self.assertEqual(mode, "0\n", "the manager's private socket is accessible: programs could be started outside the sandbox through it")
        done = self.manager.run("earshot", "ls", "--all")
        self.assertEqual((done.returncode, done.stdout.count("0a0a0a0a-"), "ended" in done.stdout), (0, 2, True), done)
        self.check_stop()
        self.assertEqual(self.manager.systemctl("start", self.unit).returncode, 0)
        done = self.manager.run("earshotd", "--uninstall-service")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.manager.show("earshot.service", "LoadState"), "not-found")
        self.assertEqual(self.manager.run("find", "/home/ada/.config/systemd", "-name", "earshot*").stdout, "")

    def test_enabling_the_notifier_unit_delivers_notices_from_its_sandbox(self):
        self.begin("user", {})
        self.assertEqual(self.manager.run("earshotd", "--install-service", "--listen", "127.0.0.1:0").returncode, 0, self.manager.output())
        self.started("earshot.service", "/home/ada/.local/state/earshot", f"/run/user/{uid}/earshot/sock")
        with open(os.path.join(UNITS, "user", "earshot-notify.service")) as file:
            unit = file.read().replace("/usr/bin/earshot-notify", "/opt/earshot-notify")
        notice = "/home/ada/.local/state/earshot/notify/notice"
        rules = f"""sinks = ["script"]
[sink.script]
kind = "command"
command = ["/bin/sh", "-c", "cat > $0.new; touch ~/outside 2>> $0.new; mv $0.new $0", "{notice}"]
[[rule]]
name = "waiting"
status = "waiting"
hold = "0"
title = "{{reason}}"
"""
        agent = self.manager.agent()
        agent.run(f"append('/home/ada/.config/systemd/user/earshot-notify.service', {unit.encode()!r})")
        agent.run(f"append('/home/ada/.config/earshot/notify.toml', {rules.encode()!r})")
        self.assertEqual(self.manager.systemctl("daemon-reload").returncode, 0)
        done = self.manager.systemctl("enable", "--now", "earshot-notify.service")
        self.unit = "earshot-notify.service"
        self.assertEqual(done.returncode, 0, done.stderr + self.why())
        self.started("earshot-notify.service", "/home/ada/.local/state/earshot/notify", None)
        agent.run("p = subprocess.Popen(['sleep', '600']); s = Session('/home/ada/.claude'); s.prompt('hello')")
        agent.run("r = Registry('/home/ada/.claude', s.session, p); r.set_status('waiting', 'permission prompt')")
        wait_for(lambda: self.manager.run("test", "-e", notice).returncode == 0, f"the notice: {self.why()}")
        lines = self.read("notice").splitlines()
        self.assertEqual(json.loads(lines[0])["title"], "permission")
        self.assertIn("Read-only file system", lines[1])
        pid = self.manager.show(self.unit, "MainPID")
        rule = '[[rule]]\nname = "done"\nstatus = "idle"\nhold = "0"\ntitle = "after the reload"\n'
        agent.run(f"append('/home/ada/.config/earshot/notify.toml', {rule.encode()!r})")
        self.assertEqual(self.manager.systemctl("reload", self.unit).returncode, 0, self.why())
        agent.run("r.set_status('idle')")
        wait_for(lambda: "after the reload" in self.read("notice"), f"the notice of the new rule: {self.why()}")
        self.assertEqual(self.manager.show(self.unit, "MainPID"), pid)
        self.check_sandbox()
        self.assertEqual(self.manager.run("find", "/home/ada/.config/systemd/user/default.target.wants", "-name", self.unit).stdout.count(self.unit), 1)
        self.assertEqual(self.manager.systemctl("stop", self.unit).returncode, 0)
        self.assertEqual([self.manager.show(self.unit, name) for name in ("Result", "ExecMainStatus", "NRestarts")], ["success", "0", "0"], self.why())

    def test_144_the_socket_keeps_the_port_while_the_daemon_is_stopped(self):
        self.begin("user", {})

        def free_port():
            with socket.create_server(("127.0.0.1", 0)) as server:
                return server.getsockname()[1]

        def is_taken():
            try:
                socket.create_server(("127.0.0.1", self.port)).close()
            except OSError:
                return True

        def installed():
            self.port = free_port()
            return self.manager.run("earshotd", "--install-service", "--listen", f"127.0.0.1:{self.port}").returncode == 0

        self.assertEqual(self.manager.run("earshotd", "--install-service", "--listen", "127.0.0.1:0").returncode, 0)  # without a socket
        wait_for(installed, f"a port that no other program uses: {self.manager.output()}")
        self.started("earshot.service", "/home/ada/.local/state/earshot", f"/run/user/{uid}/earshot/sock")
        self.assertEqual(self.read("address"), f"ws://127.0.0.1:{self.port}/v1/ws")
        self.assertEqual(self.manager.systemctl("is-enabled", "earshot.socket").stdout, "enabled\n")
        self.check_stop()
        self.assertEqual(self.manager.show("earshot.service", "ActiveState"), "inactive")
        self.assertTrue(is_taken())
        self.assertEqual(self.manager.run("curl", "-sS", f"http://127.0.0.1:{self.port}/healthz").stdout, "ok\n")
        self.assertEqual(self.manager.show("earshot.service", "ActiveState"), "active", self.why())
        self.assertEqual(self.manager.run("earshotd", "--install-service", "--listen", f"127.0.0.1:{self.port}", "--no-redact").returncode, 0)
        self.assertEqual(self.manager.show("earshot.service", "ActiveState"), "active", self.why())
        self.assertEqual(self.manager.run("earshotd", "--uninstall-service").returncode, 0)
        self.assertEqual(self.manager.run("find", "/home/ada/.config/systemd", "-name", "earshot*").stdout, "")
        self.assertEqual(self.manager.show("earshot.service", "ActiveState"), "inactive")
        self.assertFalse(is_taken())

    def test_arguments_reach_the_daemon_unchanged(self):
        self.begin("user", {})
        name = 'a b/100%h/$HOME ${HOME} "c" \'d\' \\e ; #f é'
        state = "/home/ada/" + name
        done = self.manager.run("earshotd", "--install-service", "--listen", "127.0.0.1:0", "--state", state, "--host", name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.manager.output())
        self.started("earshot.service", state, f"/run/user/{uid}/earshot/sock")
        args = self.manager.run("cat", f"/proc/{self.pid}/cmdline", user=False).stdout.split("\0")[:-1]
        self.assertEqual(args, ["/opt/earshotd", "--listen", "127.0.0.1:0", "--host", name, "--state", state])
        self.assertRegex(self.read("token"), r"^[0-9a-f]{64}$")

    def test_a_service_that_fails_to_start_is_reported(self):
        self.begin("user", {})
        done = self.manager.run("earshotd", "--install-service", "--listen", "127.0.0.1:0", "--socket", f"/run/user/{uid}/" + "s" * 200)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("journalctl --user -u earshot.service", done.stdout)


class SystemManager(Sandboxed):
    def test_the_system_unit_runs_one_sandboxed_instance_per_user(self):
        units = {name: "[Unit]\nDefaultDependencies=no\n" for name in PRESENT}
        for name in ("earshot@.service", "earshot@.socket"):
            with open(os.path.join(UNITS, "system", name)) as file:
                units[name] = file.read().replace("/usr/bin/earshotd", "/opt/earshotd")
        self.begin("system", units)
        done = self.manager.systemctl("start", "earshot@ada.service")
        self.unit = "earshot@ada.service"
        self.assertEqual(done.returncode, 0, done.stderr + self.why())
        self.started("earshot@ada.service", "/var/lib/earshot/ada", "/run/earshot/ada/sock")
        self.assertEqual(self.read("address"), "ws://127.0.0.1:7717/v1/ws")
        self.check_service()
        self.check_sandbox()
        self.assertEqual(self.manager.run("ls", "-A", f"/proc/{self.pid}/root/home", user=False).stdout, "ada\n")
        self.assertNotEqual(self.inside("curl", "-sS", "--max-time", "5", "http://127.0.0.1:7717/healthz").returncode, 0,
                            "the daemon's network namespace reaches the machine's network")
        self.assertEqual(self.manager.systemctl("restart", self.unit).returncode, 0)
        done = self.manager.run("earshot", "ls", "--all", "--state", self.state)
        self.assertEqual(done.returncode, 0, done)
        self.check_stop()


if __name__ == "__main__":
    unittest.main()
