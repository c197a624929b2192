"""Faults 63, 64 and 66 to 68: unwritable state, clock jumps, hanging disks, floods of data, and unreliable registry files."""
import datetime
import errno
import itertools
import json
import os
import signal
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import fault_case
from daemon_metrics import DaemonMetrics
from support.browser_key import BrowserKey
from support.endpoints import EndpointCase, curl
from support.harness import loop, timeout_factor, wait_for
from system_limits import compiled, preloaded, refusal
from support.transcripts import Registry, Session

year_s = 365 * 24 * 3600


async def pong(client):
    await (await client.socket.ping())


class Disk:
    """A file system of 64 KiB in its own mount namespace, accessible to other processes through /proc."""

    def __init__(self, case):
        if reason := refusal("unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"):
            raise unittest.SkipTest(f"mount namespaces are not available: {reason}")
        folder = os.path.join(case.home, "tiny")
        os.mkdir(folder)
        self.shell = subprocess.Popen(["unshare", "-Urm", "sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        case.addCleanup(self.close)
        self.run(f"mount -t tmpfs -o size=64k,mode=700 none {folder}")
        self.folder = folder
        self.path = f"/proc/{self.shell.pid}/root{folder}"

    def run(self, command):
        self.shell.stdin.write(f"{command} && echo done || echo failed\n")
        self.shell.stdin.flush()
        if self.shell.stdout.readline() != "done\n":
            raise AssertionError(command)

    def fill(self):
        with open(os.path.join(self.path, "fill"), "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 512)
            except OSError:
                pass  # the disk is full

    def read_only(self):
        self.run(f"mount -o remount,ro {self.folder}")

    def close(self):
        self.shell.stdin.close()
        self.shell.wait()
        self.shell.stdout.close()


class Unwritable(fault_case.FaultCase, EndpointCase):
    def start_working(self, state):
        """Starts a daemon on this state directory; asserts that it delivers events to a client with its token."""
        daemon = self.start(state=state)
        client = daemon.subscriber()
        sessions = [Session(self.root) for _ in range(3)]
        for session in sessions:
            session.turn("hello")
        self.assert_settled(daemon, client, *(session.path for session in sessions))
        return daemon, client, sessions

    def test_63_on_a_full_state_disk_delivery_continues_and_rotating_the_token_fails_with_the_reason(self):
        disk = Disk(self)
        daemon, client, sessions = self.start_working(disk.path)
        disk.fill()
        status, _, body = curl(daemon, "/v1/token/rotate", "-X", "POST", unix=True)
        self.assertEqual(status, 500)
        self.assertIn(b"the token was not changed", body)
        self.assertIn(b"No space left", body)
        for session in sessions:
            session.turn("on a full disk")
        self.assert_settled(daemon, client, *(session.path for session in sessions))
        second = daemon.client()  # with the old token
        self.assertEqual(len(second.subscribe()), 3)
        wait_for(lambda: not [name for name in os.listdir(disk.path) if name.endswith(".tmp")], "no unfinished file")

    def test_150_a_seen_mark_on_a_full_disk_is_a_problem_until_it_is_stored(self):
        disk = Disk(self)
        daemon, client, sessions = self.start_working(disk.path)
        session = sessions[0].session
        client.wait_frame(type="session", session=session, unseen=True)
        path = os.path.join(disk.path, "seen.json")
        wait_for(lambda: os.path.exists(path), "the file of marks")

        def problem():
            health = json.loads(curl(daemon, "/v1/health", unix=True)[2])
            return "".join(each["reason"] for each in health["problems"] if each["path"] == path)

        disk.fill()
        self.assertEqual(curl(daemon, "/v1/seen", "-d", json.dumps({"session": session}), "-H", "Content-Type: application/json", unix=True)[0], 204)
        wait_for(lambda: "No space left" in problem(), "the problem")
        os.unlink(os.path.join(disk.path, "fill"))
        wait_for(lambda: not problem(), "the file to be written")
        with open(path) as file:
            self.assertIn(session, json.load(file)["sessions"])

    def start_without_writes(self, disk, prevent_writes, reason):
        """Starts a daemon on an existing state directory that cannot be written any more."""
        self.start(state=disk.path).stop()
        prevent_writes()
        daemon, client, sessions = self.start_working(disk.path)
        daemon.wait_log(f"clients cannot discover this daemon: .*{reason}")
        self.assert_settled(daemon, client, *(session.path for session in sessions))

    def test_63_a_daemon_starts_on_a_full_disk_and_logs_what_it_could_not_write(self):
        disk = Disk(self)
        self.start_without_writes(disk, disk.fill, "No space left")

    def test_63_a_daemon_starts_on_a_read_only_state_directory_and_logs_it(self):
        disk = Disk(self)
        self.start_without_writes(disk, disk.read_only, "Read-only file system")
        self.start_refused(state=disk.path)  # it is locked nevertheless

    def test_63_without_a_usable_socket_path_it_serves_tcp_and_logs_it(self):
        disk = Disk(self)
        self.start(state=disk.path).stop()
        disk.read_only()
        blocked = os.path.join(self.home, "no-directory")
        with open(blocked, "w"):
            pass  # a file in place of the socket's directory
        daemon = self.start(state=disk.path, runtime=blocked)
        daemon.wait_log("without a Unix socket, clients connect by TCP")
        client = daemon.subscriber()
        session = Session(self.root)
        session.turn("hello")
        self.assert_settled(daemon, client, session.path)

    def test_63_a_first_start_that_cannot_store_a_token_reports_the_reason_and_exits_1(self):
        disk = Disk(self)
        disk.fill()
        stderr = self.start_refused(state=disk.path)
        self.assertIn("No space left on device", stderr)
        self.assertIn(disk.path, stderr)


class Time(fault_case.FaultCase, EndpointCase):
    def jump(self, seconds):
        with open(self.offset, "r+b") as file:
            file.write(struct.pack("q", seconds))

    def test_64_a_wall_clock_jump_by_a_year_changes_no_interval(self):
        self.offset = os.path.join(self.home, "offset")
        with open(self.offset, "wb") as file:
            file.write(struct.pack("q", 0))
        session, quiet = Session(self.root), Session(self.root)
        quiet.prompt("an open turn")
        for watch in ("both", "sweep"):
            with self.subTest(watch=watch):
                self.jump(0)
                daemon = self.start("--watch", watch, prefix=preloaded(self, "clock", CLOCK_OFFSET=self.offset))
                client = daemon.client()
                client.subscribe(after=[f"claude/-home-ada-api/{s.session}:" for s in (session, quiet)])
                for seconds in (year_s, -year_s, 10 * year_s, 0):
                    code = self.code(daemon)  # good for a minute
                    self.jump(seconds)
                    self.assertEqual(self.exchange_code(daemon, code), 200)  # the code has not expired
                    date = curl(daemon, "/healthz", unix=True)[1]["date"]
                    self.assertIn(self.year(seconds), date)
                    for n in range(5):
                        session.turn(f"{seconds}, {n}")
                    self.assert_settled(daemon, client, session.path, quiet.path)
                    loop.run(pong(client))
                    self.assertLess(self.health(daemon)["uptime_s"], 3600)
                self.assertEqual({f["state"] for f in client.all(type="status", session=quiet.session)} - {"working", "ended"}, set())
                self.assertIsNone(client.close_code)
                daemon.stop()

    @staticmethod
    def year(seconds):
        return str((datetime.datetime.utcnow() + datetime.timedelta(seconds=seconds)).year)

    def code(self, daemon):
        return json.loads(curl(daemon, "/v1/codes", "-X", "POST", unix=True)[2])["code"]

    def exchange_code(self, daemon, code):
        return BrowserKey(daemon.port).register(code)[0]


def reads_without_waiting(directory):
    """False on a file system such as tmpfs."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        try:
            os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
        except OSError as error:
            return error.errno != errno.EOPNOTSUPP
    return True


class Load(fault_case.FaultCase, EndpointCase):
    def test_66_while_a_disk_hangs_pings_are_answered_and_other_files_are_delivered(self):
        if not reads_without_waiting(self.root):
            self.skipTest("the file system has no reads that do not wait: all of them wait for the disk thread")
        hang = os.path.join(self.home, "hang")
        slow, fast = Session(self.root, cwd="/slow"), Session(self.root, cwd="/fast")
        self.assertIn("/-slow/", slow.path)
        daemon = self.start(prefix=preloaded(self, "hang", HANG=hang))
        client, child = daemon.subscriber(), daemon.client()
        for session in (slow, fast):
            session.turn("before")
        self.assert_settled(daemon, client, slow.path, fast.path)
        with open(hang, "w"):
            pass
        slow.turn("from a disk that hangs")
        wait_for(lambda: os.path.exists(hang + ".reached"), "a read that hangs", give_up=daemon.exit_reason)
        for n in range(20):
            fast.turn(f"meanwhile {n}")
            client.wait_frame(type="turn.finished", session=fast.session, turn=n + 2)
            loop.run(pong(child))
            self.assertEqual(curl(daemon, "/healthz", unix=True)[0], 200)
        another = Session(self.root, cwd="/fast")
        another.turn("a new file")
        client.wait_frame(type="turn.finished", session=another.session)
        self.assertEqual(len(daemon.client().subscribe()), 3)
        self.assertEqual(len(client.all(type="turn.finished", session=slow.session)), 1)
        os.unlink(hang)
        self.assert_settled(daemon, client, slow.path, fast.path, another.path)

    def test_67_during_a_flood_a_quiet_file_waits_for_a_few_mebibytes_only(self):
        flood, quiet = Session(self.root, cwd="/hose"), Session(self.root, cwd="/quiet")
        for session in (flood, quiet):
            session.turn("before")
        daemon = self.start()
        client = daemon.client()
        client.subscribe(after=[f"claude/{os.path.basename(s.folder)}/{s.session}:" for s in (flood, quiet)])
        self.assert_settled(daemon, client, self.root)
        megabytes = 200 // timeout_factor()
        for round in range(3):
            daemon.process.send_signal(signal.SIGSTOP)  # so that it sees everything at once
            for n in range(megabytes):
                flood.prompt(f"{round} {n} " + "x" * (1 << 20))
            quiet.prompt(f"quiet {round}")
            end = os.path.getsize(flood.path)
            daemon.process.send_signal(signal.SIGCONT)
            client.wait_frame(type="turn.started", session=flood.session, deadline=60)
            event = client.wait_frame(type="turn.started", prompt=f"quiet {round}", deadline=60)
            before = [f for f in client.frames[:client.frames.index(event)] if f.get("session") == flood.session and "cursor" in f]
            read = int(before[-1]["cursor"].split(".")[0])
            self.assertLess(read, end - (megabytes << 20) + (16 << 20), "the quiet file waited for the flood")
            self.assert_settled(daemon, client, self.root)

    def test_67_an_endless_flood_does_not_starve_other_files(self):
        quiet = Session(self.root, cwd="/quiet")
        quiet.turn("before")
        daemon = self.start()
        client, metrics = daemon.client(), DaemonMetrics(daemon)
        self.addCleanup(metrics.close)
        client.subscribe(filter={"session": [quiet.session]})
        stop, file_bytes, flood_bytes = threading.Event(), (200 << 20) // timeout_factor(), [0]
        self.addCleanup(stop.set)

        def write():
            """File after file, until it is stopped: one is deleted when the daemon has read it."""
            for n in itertools.count(1):
                flood = Session(self.root, cwd="/hose")
                line = json.dumps(flood.record("user", {"role": "user", "content": "x" * 200_000})).encode() + b"\n"
                os.makedirs(flood.folder, exist_ok=True)
                with open(flood.path, "wb", buffering=0) as file:
                    while flood_bytes[0] < n * file_bytes:
                        if stop.is_set():
                            return
                        flood_bytes[0] += file.write(line)
                if n > 1:
                    metrics.wait_bytes(flood_bytes[0] - file_bytes)
                    os.unlink(last)
                last = flood.path

        writer = threading.Thread(target=write)
        writer.start()
        count = 0
        while writer.is_alive() and (count <= 3 or (count < 200 and flood_bytes[0] < 3 * file_bytes)):
            count += 1
            quiet.prompt(f"quiet {count}")
            client.wait_frame(type="turn.started", prompt=f"quiet {count}")
        stop.set()
        writer.join()
        self.assertGreater(count, 3)


class Registered(fault_case.FaultCase, EndpointCase):
    def begin(self):
        self.daemon = self.start()
        self.client = self.daemon.subscriber()
        session, process = Session(self.root), self.process()
        session.prompt("go")
        registry = Registry(self.root, session.session, process)
        registry.set_status("busy")
        self.wait_status(session, "working", source="registry")
        return session, process, registry

    def wait_status(self, session, state, **more):
        return self.client.wait_frame(type="status", session=session.session, state=state, **more)

    def states(self, session):
        return [f["state"] for f in self.client.all(type="status", session=session.session, source="registry")]

    def test_68_a_registry_file_read_while_it_is_rewritten_keeps_its_last_state(self):
        session, _, registry = self.begin()
        for n in range(300 // timeout_factor()):
            text = json.dumps({**registry.fields, "updatedAt": n}).encode()
            file = os.open(registry.path, os.O_WRONLY | os.O_TRUNC)  # empty
            if n % 10 == 0:
                self.wait_check()
            os.write(file, text[: n % len(text)])  # half of it
            if n % 10 == 5:
                self.wait_check()
            os.write(file, text[n % len(text):])
            os.close(file)
        self.assertEqual(set(self.states(session)), {"working"})
        registry.set_status("waiting", "permission prompt")
        self.wait_status(session, "waiting", reason="permission")
        self.assertEqual(set(self.states(session)), {"working", "waiting"})

    def wait_check(self):
        """Waits until earlier changes were checked: a registry file written later was."""
        child, process = Session(self.root), self.process()
        child.prompt("go")
        Registry(self.root, child.session, process).set_status("busy")
        self.wait_status(child, "working", source="registry")

    def test_68_a_stale_registry_file_after_sigkill_ends_the_session(self):
        session, process, registry = self.begin()
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.wait_status(session, "ended")
        self.assertTrue(os.path.exists(registry.path))
        self.daemon.stop()  # a daemon that never saw the process reports it too
        self.daemon = self.start()
        self.client = self.daemon.client()
        frame = self.client.subscribe()[0]
        self.client.wait(lambda: "ended" in (frame["status"]["state"], *(f["state"] for f in self.client.all(type="status"))), "the end")

    def test_68_a_reused_pid_is_not_trusted(self):
        reuse_pid = compiled(self, "reuse_pid")
        session, process, registry = self.begin()
        pid, born = process.pid, registry.fields["procStart"]
        process.kill()
        process.wait()
        self.wait_status(session, "ended")
        ticks = os.sysconf("SC_CLK_TCK")  # what start times are counted in: two processes of one tick have the same
        wait_for(lambda: int(time.clock_gettime(time.CLOCK_BOOTTIME) * ticks) > int(born), "the next clock tick")

        def start_with_pid():
            child = subprocess.Popen([reuse_pid, str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(child.communicate)
            self.addCleanup(child.kill)
            stderr = child.stdout.readline()
            if stderr != "born\n" and child.wait() == 2:
                self.skipTest(f"a process with a given pid cannot be created: {child.stderr.read().strip()}")
            self.assertEqual(stderr, "born\n")
            return child

        start_with_pid()
        with open(f"/proc/{pid}/stat") as stat:
            self.assertNotEqual(stat.read().rsplit(")", 1)[1].split()[19], born)
        registry.set_status("busy")  # still names the start time of the first process
        marker = Session(self.root)
        Registry(self.root, marker.session, self.process()).set_status("busy")
        marker.prompt("go")
        self.wait_status(marker, "working", source="registry")
        self.assertEqual(self.states(session)[-1], "ended")
        self.daemon.stop()
        self.daemon = self.start()
        self.client = self.daemon.client()
        frame = next(f for f in self.client.subscribe() if f["session"] == session.session)
        states = lambda: [frame["status"]["state"], *(f["state"] for f in self.client.all(type="status", session=session.session))]
        self.client.wait(lambda: "ended" in states(), "the end")
        self.assertEqual({f["state"] for f in [frame["status"], *self.client.all(type="status", session=session.session)] if f.get("source") == "registry"}, {"ended"})


if __name__ == "__main__":
    unittest.main()
