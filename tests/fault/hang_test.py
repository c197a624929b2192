"""Fault 80: a root whose file system stops answering does not affect the other roots, the clients or the service watchdog."""
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from fault_case import FaultCase, Writer
from support.endpoints import EndpointCase, curl
from support.harness import wait_for
from support.service_manager import NotifySocketReader
from support.transcripts import Session

prompts_per_phase = 120


class Mount:
    """A FUSE mount of `source`, served by a process that can be stopped."""

    def __init__(self, case, source, path):
        if not shutil.which("bindfs"):
            raise unittest.SkipTest("bindfs is not installed")
        for folder in (source, path):
            os.makedirs(folder)
        self.path = path
        self.process = subprocess.Popen(["bindfs", "-f", source, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        case.addCleanup(self.close)
        wait_for(lambda: self.process.poll() is not None or os.path.ismount(path), "the mount")
        if self.process.poll() is not None:
            raise unittest.SkipTest(f"FUSE cannot be used here: {self.process.stdout.read()}")

    def hang(self):
        self.process.send_signal(signal.SIGSTOP)

    def answer(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        self.answer()
        subprocess.run(["umount", "--lazy", self.path], capture_output=True)
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Hang(FaultCase, EndpointCase):
    def setUp(self):
        super().setUp()
        self.source, self.remote = os.path.join(self.home, "source"), os.path.join(self.home, "remote")
        self.mount = Mount(self, self.source, self.remote)

    def begin(self, **variables):
        notify = NotifySocketReader(os.path.join(tempfile.mkdtemp(dir=self.home), "notify"))
        self.addCleanup(notify.close)
        self.daemon = self.start(roots=[self.root, self.remote],
                                 prefix=["env", f"NOTIFY_SOCKET={notify.path}", "WATCHDOG_USEC=1000000", *(f"{name}={value}" for name, value in variables.items())])
        return notify

    def wait_for_sessions(self, count):
        """A call that takes longer than 100 ms is abandoned: a slow mount is read later."""
        wait_for(lambda: self.health(self.daemon)["sessions"] == count, f"{count} sessions", give_up=self.daemon.exit_reason)
        self.assertEqual(len(self.daemon.client().subscribe()), count)

    def test_80_a_root_that_hangs_does_not_delay_the_others(self):
        remote, local = Session(self.remote, "/home/ada/far"), Session(self.root, "/home/ada/near")
        remote.turn("first")
        local.turn("first")
        notify = self.begin()
        streams = [f"{root}/{session}" for root, session in (("claude", f"-home-ada-near/{local.session}"), ("remote", f"-home-ada-far/{remote.session}"))]
        self.wait_for_sessions(2)
        client = self.daemon.subscriber(after=[f"{stream}:" for stream in streams])

        def write(phase):
            """Turns of the local session, all of which arrive."""
            writer = Writer(local, phase)
            self.addCleanup(writer.stop)
            client.wait_frame(type="turn.started", prompt=f"{phase} {prompts_per_phase}")
            writer.stop()
            client.wait_frame(type="turn.started", prompt=f"{phase} {writer.written - 1}")
            writer.assert_arrived(client)

        remote.turn("through the mount")
        client.wait_frame(type="turn.started", prompt="through the mount")
        write("before")

        self.mount.hang()
        beyond = Session(self.source, "/home/ada/far", session=remote.session)  # written by another host
        beyond.turn("while it hangs")
        Session(self.source, "/home/ada/late").turn("a new session")
        write("during")
        self.daemon.wait_log("the file system does not answer")
        second = self.daemon.subscriber()  # also for a new client
        second.send(type="read", id="r", stream=f"claude/-home-ada-near/{local.session}", cursor=client.wait_frame(type="turn.started", prompt="before 0")["cursor"])
        second.wait_frame(type="record", id="r")
        self.assertEqual(curl(self.daemon, "/healthz", unix=True)[0], 200)
        pings = notify.messages.count("WATCHDOG=1")
        wait_for(lambda: notify.messages.count("WATCHDOG=1") > pings + 2, "the watchdog's pings")

        self.mount.answer()
        write("after")
        self.daemon.wait_log("the file system answers again")
        self.assert_settled(self.daemon, client, self.root, self.remote)
        self.assertEqual(client.all(type="stream.removed") + client.all(type="reset"), [])
        wait_for(lambda: not self.health(self.daemon)["problems"], "the problems to be solved", deadline=180)  # retries are up to 60 s apart

    def test_80_a_daemon_starts_and_stops_while_a_root_hangs(self):
        session, beyond = Session(self.root), Session(self.source)
        beyond.turn("behind the mount")
        self.mount.hang()
        self.begin(ASAN_OPTIONS="detect_leaks=0")  # the search for leaks stops all threads, but not one in a call that hangs
        client = self.daemon.subscriber()
        session.turn("hello")
        self.assert_settled(self.daemon, client, self.root)
        self.daemon.stop()
        self.mount.answer()
        self.begin()
        self.wait_for_sessions(2)


if __name__ == "__main__":
    unittest.main()
