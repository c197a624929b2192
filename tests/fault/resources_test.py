"""Faults 63, 64 and 66 to 68: state that cannot be written, clocks that jump, slow disks, firehoses, and what a registry file is worth."""
import datetime
import json
import os
import signal
import struct
import subprocess
import threading
import unittest

import fault_case
from support.endpoints import EndpointCase, curl
from support.harness import loop, timeout_factor, wait_for
from system_limits import compiled, preloaded, refusal
from support.transcripts import Registry, Session

year_s = 365 * 24 * 3600


async def pong(client):
    await (await client.socket.ping())


class Disk:
    """A file system of 64 KiB in a mount namespace of its own; everybody else gets at it by /proc."""

    def __init__(self, case):
        if reason := refusal("unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"):
            raise unittest.SkipTest(f"no mount namespace: {reason}")
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
                pass  # full

    def read_only(self):
        self.run(f"mount -o remount,ro {self.folder}")

    def close(self):
        self.shell.stdin.close()
        self.shell.wait()
        self.shell.stdout.close()


class Unwritable(fault_case.FaultCase, EndpointCase):
    def works(self, state):
        """A daemon on this state directory that tells what happens, to a client that finds it by its token."""
        daemon = self.start(state=state)
        client = daemon.subscriber()
        sessions = [Session(self.root) for _ in range(3)]
        for session in sessions:
            session.turn("hello")
        self.assert_settled(daemon, client, *(session.path for session in sessions))
        return daemon, client, sessions

    def test_63_delivery_goes_on_when_the_disk_of_the_state_fills_and_a_new_token_is_refused_with_the_reason(self):
        disk = Disk(self)
        daemon, client, sessions = self.works(disk.path)
        disk.fill()
        status, _, body = curl(daemon, "/v1/token/rotate", "-X", "POST", unix=True)
        self.assertEqual(status, 500)
        self.assertIn(b"the token stays as it was", body)
        self.assertIn(b"No space left", body)
        for session in sessions:
            session.turn("on a full disk")
        self.assert_settled(daemon, client, *(session.path for session in sessions))
        again = daemon.client()  # with the old token
        self.assertEqual(len(again.subscribe()), 3)
        self.assertEqual([name for name in os.listdir(disk.path) if name.endswith(".tmp")], [])

    def test_63_a_daemon_starts_on_a_full_disk_and_says_what_could_not_be_written(self):
        disk = Disk(self)
        self.start(state=disk.path).stop()
        disk.fill()
        daemon, client, sessions = self.works(disk.path)
        daemon.wait_log("clients will not find this daemon by themselves: .*No space left")
        self.assert_settled(daemon, client, *(session.path for session in sessions))

    def test_63_a_daemon_starts_on_a_read_only_state_directory_and_says_so(self):
        disk = Disk(self)
        self.start(state=disk.path).stop()
        disk.read_only()
        daemon, client, sessions = self.works(disk.path)
        daemon.wait_log("clients will not find this daemon by themselves: .*Read-only file system")
        self.refused(state=disk.path)  # it is locked all the same
        self.assert_settled(daemon, client, *(session.path for session in sessions))

    def test_63_without_a_place_for_its_socket_it_serves_by_tcp_and_says_so(self):
        disk = Disk(self)
        self.start(state=disk.path).stop()
        disk.read_only()
        blocked = os.path.join(self.home, "no-directory")
        with open(blocked, "w"):
            pass  # where the socket's directory should be there is a file
        daemon = self.start(state=disk.path, runtime=blocked)
        daemon.wait_log("there is no Unix socket")
        client = daemon.subscriber()
        session = Session(self.root)
        session.turn("hello")
        self.assert_settled(daemon, client, session.path)

    def test_63_a_first_start_that_can_keep_no_token_says_why_and_exits_1(self):
        disk = Disk(self)
        disk.fill()
        said = self.refused(state=disk.path)
        self.assertIn("No space left on device", said)
        self.assertIn(disk.path, said)


class Time(fault_case.FaultCase, EndpointCase):
    def jump(self, seconds):
        with open(self.offset, "r+b") as file:
            file.write(struct.pack("q", seconds))

    def test_64_a_wall_clock_that_jumps_by_a_year_changes_no_interval(self):
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
                code = self.code(daemon)
                for seconds in (year_s, -year_s, 10 * year_s, 0):
                    self.jump(seconds)
                    date = curl(daemon, "/healthz", unix=True)[1]["date"]
                    self.assertIn(self.year(seconds), date)
                    self.assertEqual(self.trade(daemon, code), 200)  # not a second older
                    code = self.code(daemon)
                    for n in range(5):
                        session.turn(f"{seconds}, {n}")
                    self.assert_settled(daemon, client, session.path, quiet.path)
                    loop.run(pong(client))
                    self.assertLess(self.health(daemon)["uptime_s"], 3600)
                self.assertEqual({f["state"] for f in client.all(type="status", session=quiet.session)} - {"working"}, set())
                self.assertIsNone(client.close_code)
                daemon.stop()

    @staticmethod
    def year(seconds):
        return str((datetime.datetime.utcnow() + datetime.timedelta(seconds=seconds)).year)

    def code(self, daemon):
        return json.loads(curl(daemon, "/v1/codes", "-X", "POST", unix=True)[2])["code"]

    def trade(self, daemon, code):
        return curl(daemon, "/v1/token", "-X", "POST", "-H", "Content-Type: application/json", "-d", json.dumps({"code": code}), token=False)[0]


class Load(fault_case.FaultCase, EndpointCase):
    def test_66_while_a_disk_hangs_pings_are_answered_and_other_files_are_told(self):
        hang = os.path.join(self.home, "hang")
        slow, fast = Session(self.root, cwd="/slow"), Session(self.root, cwd="/fast")
        self.assertIn("/-slow/", slow.path)
        daemon = self.start(prefix=preloaded(self, "hang", HANG=hang))
        client, other = daemon.subscriber(), daemon.client()
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
            loop.run(pong(other))
            self.assertEqual(curl(daemon, "/healthz", unix=True)[0], 200)
        another = Session(self.root, cwd="/fast")
        another.turn("a new file")
        client.wait_frame(type="turn.finished", session=another.session)
        self.assertEqual(len(daemon.client().subscribe()), 3)
        self.assertEqual(len(client.all(type="turn.finished", session=slow.session)), 1)
        os.unlink(hang)
        self.assert_settled(daemon, client, slow.path, fast.path, another.path)

    def test_67_beside_a_firehose_a_quiet_file_waits_for_a_few_of_its_bytes_only(self):
        hose, quiet = Session(self.root, cwd="/hose"), Session(self.root, cwd="/quiet")
        for session in (hose, quiet):
            session.turn("before")
        daemon = self.start()
        client = daemon.client()
        client.subscribe(after=[f"claude/{os.path.basename(s.folder)}/{s.session}:" for s in (hose, quiet)])
        self.assert_settled(daemon, client, self.root)
        megabytes = 200 // timeout_factor()
        for round in range(3):
            daemon.process.send_signal(signal.SIGSTOP)  # it has everything before it at once: no hose is faster than that
            for n in range(megabytes):
                hose.prompt(f"{round} {n} " + "x" * (1 << 20))
            quiet.prompt(f"quiet {round}")
            end = os.path.getsize(hose.path)
            daemon.process.send_signal(signal.SIGCONT)
            client.wait_frame(type="turn.started", session=hose.session, deadline=60)
            mine = client.wait_frame(type="turn.started", prompt=f"quiet {round}", deadline=60)
            before = [f for f in client.frames[:client.frames.index(mine)] if f.get("session") == hose.session and "cursor" in f]
            read = int(before[-1]["cursor"].split(".")[0])
            self.assertLess(read, end - (megabytes << 20) + (16 << 20), "the quiet file waited for the firehose")
            self.assert_settled(daemon, client, self.root)

    def test_67_a_firehose_that_never_stops_leaves_everybody_else_their_turn(self):
        hose, quiet = Session(self.root, cwd="/hose"), Session(self.root, cwd="/quiet")
        quiet.turn("before")
        daemon = self.start()
        client = daemon.client()
        client.subscribe(filter={"session": [quiet.session]})
        more = threading.Event()
        self.addCleanup(more.set)

        def write():
            line = json.dumps(hose.record("user", {"role": "user", "content": "x" * 200_000})).encode() + b"\n"
            with open(hose.path, "wb", buffering=0) as file:
                for _ in range(3000 // timeout_factor()):  # 600 MB at most, as fast as the disk takes them
                    if more.is_set():
                        break
                    file.write(line)

        os.makedirs(hose.folder, exist_ok=True)
        writer = threading.Thread(target=write)
        writer.start()
        told = 0
        while writer.is_alive() and told < 200:
            told += 1
            quiet.prompt(f"quiet {told}")
            client.wait_frame(type="turn.started", prompt=f"quiet {told}")
        more.set()
        writer.join()
        self.assertGreater(told, 3)


class Registered(fault_case.FaultCase, EndpointCase):
    def begin(self):
        self.daemon = self.start()
        self.client = self.daemon.subscriber()
        session, process = Session(self.root), self.process()
        session.prompt("go")
        registry = Registry(self.root, session.session, process)
        registry.set_status("busy")
        self.told(session, "working", source="registry")
        return session, process, registry

    def told(self, session, state, **more):
        return self.client.wait_frame(type="status", session=session.session, state=state, **more)

    def states(self, session):
        return [f["state"] for f in self.client.all(type="status", session=session.session, source="registry")]

    def test_68_a_registry_file_read_while_it_is_rewritten_keeps_its_last_state(self):
        session, _, registry = self.begin()
        for n in range(300 // timeout_factor()):
            text = json.dumps({**registry.fields, "updatedAt": n}).encode()
            file = os.open(registry.path, os.O_WRONLY | os.O_TRUNC)  # empty now
            if n % 10 == 0:
                self.looked()
            os.write(file, text[: n % len(text)])  # and now half
            if n % 10 == 5:
                self.looked()
            os.write(file, text[n % len(text):])
            os.close(file)
        self.assertEqual(set(self.states(session)), {"working"})
        registry.set_status("waiting", "permission prompt")
        self.told(session, "waiting", reason="permission")
        self.assertEqual(set(self.states(session)), {"working", "waiting"})

    def looked(self):
        """Returns when what was rung before has been looked at: another session's file was, which came later."""
        other, process = Session(self.root), self.process()
        other.prompt("go")
        Registry(self.root, other.session, process).set_status("busy")
        self.told(other, "working", source="registry")

    def test_68_a_stale_registry_file_after_sigkill_is_the_end(self):
        session, process, registry = self.begin()
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.told(session, "ended")
        self.assertTrue(os.path.exists(registry.path))
        self.daemon.stop()  # and one that never saw it alive says so, too
        self.daemon = self.start()
        self.client = self.daemon.client()
        frame = self.client.subscribe()[0]
        self.client.wait(lambda: "ended" in (frame["status"]["state"], *(f["state"] for f in self.client.all(type="status"))), "the end")

    def test_68_a_pid_that_is_another_s_by_now_is_not_trusted(self):
        reborn = compiled(self, "reborn")
        session, process, registry = self.begin()
        pid, born = process.pid, registry.fields["procStart"]
        process.kill()
        process.wait()
        self.told(session, "ended")

        def again():
            other = subprocess.Popen([reborn, str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(other.communicate)
            self.addCleanup(other.kill)
            said = other.stdout.readline()
            if said != "born\n" and other.wait() == 2:
                self.skipTest(f"no process may be born under a given number here: {other.stderr.read().strip()}")
            self.assertEqual(said, "born\n")
            return other

        again()
        with open(f"/proc/{pid}/stat") as stat:
            self.assertNotEqual(stat.read().rsplit(")", 1)[1].split()[19], born)
        registry.set_status("busy")  # rewritten by nobody that lives: it still tells of the first one
        marker = Session(self.root)
        Registry(self.root, marker.session, self.process()).set_status("busy")
        marker.prompt("go")
        self.told(marker, "working", source="registry")
        self.assertEqual(self.states(session)[-1], "ended")
        self.daemon.stop()
        self.daemon = self.start()
        frame = next(f for f in self.daemon.client().subscribe() if f["session"] == session.session)
        self.assertEqual(frame["status"]["state"], "ended")


if __name__ == "__main__":
    unittest.main()
