"""A full short life behind the units' walls, built by systemd itself: nothing that the daemon needs is shut off, what it must not touch is."""
import json
import os
import re
import shutil
import tempfile
import unittest

from support.harness import TOP, build, sanitized, wait_for
from support.service_manager import Manager, missing, uid

UNITS = os.path.join(TOP, "systemd")
PRESENT = ("sysinit.target", "basic.target", "sockets.target", "shutdown.target", "local-fs.target", "remote-fs.target", "test.target")


class Behind(unittest.TestCase):
    """What both managers' daemons must be able to do, and must not."""

    def begin(self, kind, units):
        if sanitized(build()):
            self.skipTest("AddressSanitizer cannot live with MemoryDenyWriteExecute= and the memory bounds: only the release build is tried")
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
            self.skipTest(f"this machine does not let namespaces be made: {self.manager.said()}")
        self.manager.wait_up()

    def started(self, unit, state, socket):
        self.unit, self.state, self.socket = unit, state, socket
        self.assertEqual(self.manager.show(unit, "ActiveState"), "active", self.why())
        self.pid = self.manager.show(unit, "MainPID")  # in the managers' pid namespace

    def why(self):
        return self.manager.systemctl("status", "--no-pager", self.unit).stdout + self.manager.said()

    def status(self):
        """/proc/<pid>/status of the daemon, as a dictionary."""
        text = self.manager.run("cat", f"/proc/{self.pid}/status", user=False).stdout
        return dict(re.findall(r"^(\w+):\s*(.*)$", text, re.MULTILINE))

    def inside(self, *words):
        """Run where the daemon is: its files, its network, its user namespace."""
        return self.manager.run("nsenter", "--target", self.pid, "--mount", "--net", "--ipc", *words, user=False)

    def sessions(self, *how):
        done = self.manager.run("curl", "-sS", *(how or ["--unix-socket", self.socket]), "http://localhost/v1/sessions")
        self.assertEqual(done.returncode, 0, done)
        return {s["session"]: s for s in json.loads(done.stdout)["sessions"]}

    def read(self, name):
        return self.manager.run("cat", f"{self.state}/{name}").stdout.strip()

    def told(self, state, session, **more):
        def so():
            status = self.sessions().get(session, {}).get("status", {})
            return status.get("state") == state and all(status.get(k) == v for k, v in more.items())

        wait_for(so, f"{state} of {session}; now: {self.sessions()}")

    def check_life(self):
        session = "0a0a0a0a-0000-4000-8000-000000000001"
        agent = self.manager.agent()
        agent.does(f"s = Session('/home/ada/.claude', session='{session}'); p = subprocess.Popen(['sleep', '600']); s.prompt('hello')")
        wait_for(lambda: session in self.sessions(), "the session")
        agent.does("r = Registry('/home/ada/.claude', s.session, p); r.set_status('busy')")
        self.told("working", session, source="registry")
        agent.does("r.set_status('waiting', 'permission prompt')")
        self.told("waiting", session, reason="permission")
        # Start times are compared, so /proc/<pid>/stat is read; and no other pid namespace is meant.
        agent.does("r.fields['procStart'] = '1'; r.set_status('busy')")
        self.told("ended", session)
        agent.does("r = Registry('/home/ada/.claude', s.session, p); r.set_status('idle')")
        self.told("idle", session, source="registry")
        agent.does("p.kill(); p.wait()")
        self.told("ended", session)
        # A root's directories appear while it runs, and a turn comes by the socket and by TCP.
        other = "0a0a0a0a-0000-4000-8000-000000000002"
        agent.does(f"t = Session('/home/ada/.claude', cwd='/home/ada/fresh', session='{other}'); t.turn('by tcp')")
        address = re.search(r"//([\d.]+:\d+)/", self.read("address"))[1]
        tcp = ["--connect-to", f"localhost:80:{address}", "-H", f"Host: {address}"]
        wait_for(lambda: other in self.sessions(*tcp, "-H", f"Authorization: Bearer {self.read('token')}"), "the session over TCP")
        self.assertEqual(self.manager.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", *tcp, "http://localhost/v1/sessions").stdout, "401")
        # Somebody else, even root, is not let in by the socket.
        stranger = self.manager.run("curl", "-sS", "-i", "--unix-socket", self.socket, "http://localhost/v1/sessions", user=False)
        self.assertNotIn(session, stranger.stdout)
        self.assertEqual((stranger.returncode, stranger.stdout[:12]), (0, "HTTP/1.1 403"), stranger)
        health = json.loads(self.manager.run("curl", "-sS", "--unix-socket", self.socket, "http://localhost/v1/health").stdout)
        self.assertEqual((health["watch"]["mode"], health["watch"].get("trouble", ""), health["troubles"]), ("both", "", []), health)
        self.assertGreater(health["watch"]["inotify_watches"], 3)
        self.assertRegex(self.manager.run("curl", "-sS", "--unix-socket", self.socket, "http://localhost/metrics").stdout,
                         r"(?m)^process_start_time_seconds [1-9]")

    def check_walls(self):
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
        for place in ("/home/ada", "/home/ada/.claude", "/etc", "/opt"):
            done = self.inside("touch", f"{place}/new")
            self.assertIn("Read-only file system", done.stderr, f"{place} can be written")
        self.assertEqual(self.inside("test", "-w", self.state).returncode, 0)

    def check_end(self):
        self.assertGreater(int(self.manager.show(self.unit, "WatchdogTimestampMonotonic")), 0)
        self.assertEqual(self.manager.show(self.unit, "NRestarts"), "0", self.why())
        self.assertEqual(self.manager.systemctl("stop", self.unit).returncode, 0)
        self.assertEqual([self.manager.show(self.unit, name) for name in ("Result", "ExecMainStatus")], ["success", "0"], self.why())


class UserManager(Behind):
    def test_install_service_makes_a_user_s_own_manager_run_it_behind_walls(self):
        self.begin("user", {})
        done = self.manager.run("earshotd", "--install-service", "--listen", "127.0.0.1:0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.manager.said())
        runtime = f"/run/user/{uid}"
        self.started("earshot.service", "/home/ada/.local/state/earshot", f"{runtime}/earshot/sock")
        self.assertEqual(self.manager.systemctl("is-enabled", "earshot.service").stdout, "enabled\n")
        self.check_life()
        self.check_walls()
        mode = self.manager.run("stat", "-c", "%a", f"/proc/{self.pid}/root{runtime}/systemd/private", user=False).stdout
        self.assertEqual(mode, "0\n", "the manager's own door is open: through it, programs can be started without these walls")
        done = self.manager.run("earshot", "ls", "--all")
        self.assertEqual((done.returncode, done.stdout.count("ended")), (0, 1), done)
        self.check_end()
        self.assertEqual(self.manager.systemctl("start", self.unit).returncode, 0)
        done = self.manager.run("earshotd", "--uninstall-service")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.manager.show("earshot.service", "LoadState"), "not-found")
        self.assertEqual(self.manager.run("find", "/home/ada/.config/systemd", "-name", "earshot*").stdout, "")

    def test_the_notifier_s_one_command_makes_it_tell_from_behind_its_walls(self):
        self.begin("user", {})
        self.assertEqual(self.manager.run("earshotd", "--install-service", "--listen", "127.0.0.1:0").returncode, 0, self.manager.said())
        self.started("earshot.service", "/home/ada/.local/state/earshot", f"/run/user/{uid}/earshot/sock")
        with open(os.path.join(UNITS, "user", "earshot-notify.service")) as file:
            unit = file.read().replace("/usr/bin/earshot-notify", "/opt/earshot-notify")
        heard = "/home/ada/.local/state/earshot/notify/heard"
        rules = f"""sinks = ["script"]
[sink.script]
kind = "command"
command = ["/bin/sh", "-c", "cat > $0.new; touch ~/wall 2>> $0.new; mv $0.new $0", "{heard}"]
[[rule]]
name = "waiting"
status = "waiting"
hold = "0"
title = "{{reason}}"
"""
        agent = self.manager.agent()
        agent.does(f"append('/home/ada/.config/systemd/user/earshot-notify.service', {unit.encode()!r})")
        agent.does(f"append('/home/ada/.config/earshot/notify.toml', {rules.encode()!r})")
        self.assertEqual(self.manager.systemctl("daemon-reload").returncode, 0)
        done = self.manager.systemctl("enable", "--now", "earshot-notify.service")
        self.unit = "earshot-notify.service"
        self.assertEqual(done.returncode, 0, done.stderr + self.why())
        self.started("earshot-notify.service", "/home/ada/.local/state/earshot/notify", None)
        agent.does("p = subprocess.Popen(['sleep', '600']); s = Session('/home/ada/.claude'); s.prompt('hello')")
        agent.does("r = Registry('/home/ada/.claude', s.session, p); r.set_status('waiting', 'permission prompt')")
        wait_for(lambda: self.manager.run("test", "-e", heard).returncode == 0, f"the notice: {self.why()}")
        said = self.read("heard").splitlines()
        self.assertEqual(json.loads(said[0])["title"], "permission")
        self.assertIn("Read-only file system", said[1])
        self.check_walls()
        self.assertEqual(self.manager.run("find", "/home/ada/.config/systemd/user/default.target.wants", "-name", self.unit).stdout.count(self.unit), 1)
        self.assertEqual(self.manager.systemctl("stop", self.unit).returncode, 0)
        self.assertEqual([self.manager.show(self.unit, name) for name in ("Result", "ExecMainStatus", "NRestarts")], ["success", "0", "0"], self.why())

    def test_words_reach_the_daemon_as_they_were(self):
        self.begin("user", {})
        name = 'a b/100%h/$HOME ${HOME} "c" \'d\' \\e ; #f é'
        state = "/home/ada/" + name
        done = self.manager.run("earshotd", "--install-service", "--listen", "127.0.0.1:0", "--state", state, "--host", name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.manager.said())
        self.started("earshot.service", state, f"/run/user/{uid}/earshot/sock")
        words = self.manager.run("cat", f"/proc/{self.pid}/cmdline", user=False).stdout.split("\0")[:-1]
        self.assertEqual(words, ["/opt/earshotd", "--listen", "127.0.0.1:0", "--host", name, "--state", state])
        self.assertRegex(self.read("token"), r"^[0-9a-f]{64}$")

    def test_a_service_that_does_not_come_up_is_told(self):
        self.begin("user", {})
        done = self.manager.run("earshotd", "--install-service", "--listen", "127.0.0.1:0", "--socket", f"/run/user/{uid}/" + "s" * 200)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("journalctl --user -u earshot.service", done.stdout)


class SystemManager(Behind):
    def test_one_instance_a_user_lives_behind_its_walls(self):
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
        self.check_life()
        self.check_walls()
        self.assertEqual(self.manager.run("ls", "-A", f"/proc/{self.pid}/root/home", user=False).stdout, "ada\n")
        self.assertNotEqual(self.inside("curl", "-sS", "--max-time", "5", "http://127.0.0.1:7717/healthz").returncode, 0,
                            "the daemon's own network reaches the machine's")
        self.assertEqual(self.manager.systemctl("restart", self.unit).returncode, 0)
        done = self.manager.run("earshot", "ls", "--all", "--state", self.state)
        self.assertEqual(done.returncode, 0, done)
        self.check_end()


if __name__ == "__main__":
    unittest.main()
