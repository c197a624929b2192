"""Faults 61, 62 and 65: kill -9 at every step, state files that are torn, and several daemons at once."""
import json
import os
import signal
import unittest

import fault_case
from support import harness
from support.endpoints import EndpointCase
from support.harness import earshot, timeout_factor, wait_for
from system_limits import preloaded
from support.resume_state import ResumeState
from support.transcripts import Session


class Killed(fault_case.FaultCase, EndpointCase):
    """Fault 61. Every life of the daemon ends one step later than the one before; one client goes through all of them."""

    def setUp(self):
        super().setUp()
        self.dying = preloaded(self, "die")

    def life(self, die_at, state=None):
        """A daemon that is killed at this step, whenever that is. The caller ends it with self.bury()."""
        prefix = (*self.dying[:1], f"DIE_AT={die_at}", *self.dying[1:])
        daemon = harness.Daemon([self.root], state or self.state, self.home, prefix=prefix, runtime=self.runtime)
        wait_for(lambda: daemon.exit_reason() or any("listening on" in line for line in list(daemon.out)), "its end, or the ready line")
        return daemon

    def bury(self, daemon):
        """True when it lived until it was stopped."""
        self.finish(daemon)
        self.assertIn(daemon.process.returncode, (0, -signal.SIGKILL))
        return daemon.process.returncode == 0

    @property
    def runtime(self):
        path = os.path.join(self.home, "run")
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def test_61_killed_at_every_step_of_its_first_start_it_comes_up_the_next_time(self):
        Session(self.root).turn("hello")
        step, ready = 0, False
        while not ready:
            step += timeout_factor()
            state = os.path.join(self.home, f"state{step}")
            daemon = self.life(step, state)
            ready = any("listening on" in line for line in list(daemon.out))
            if daemon.exit_reason() is None:
                daemon.process.kill()
                daemon.wait_exit()
            self.bury(daemon)
            heir = self.start(state=state, runtime=self.runtime)
            client = heir.subscriber()
            self.assertEqual(len(client.all(type="session")), 1)
            self.assertLessEqual(set(os.listdir(state)) - {name for name in os.listdir(state) if name.endswith(".tmp")},
                                 {"token", "key", "lock", "address", "socket"})
            heir.stop()
        self.assertGreater(step, 50)

    def test_61_a_client_that_resumes_after_kill_9_at_any_step_misses_nothing_and_gets_nothing_twice(self):
        sessions = [Session(self.root, cwd=f"/home/ada/p{n}") for n in range(3)]
        memory = ResumeState()
        for session in sessions:
            session.turn("begin")
            memory.events[f"claude/{os.path.basename(session.folder)}/{session.session}"] = []
        self.start(runtime=self.runtime).stop()  # the secrets are there
        step, lived, stride = 0, False, 2 * timeout_factor() - 1
        while not lived:
            step += stride
            daemon = self.life(step)
            try:
                if daemon.exit_reason() is None:
                    self.listen_while_it_lives(daemon, memory, sessions, step)
            except (AssertionError, OSError, harness.websockets.WebSocketException) as cut_off:
                wait_for(daemon.exit_reason, f"the end of the daemon that cut off a client: {cut_off}")
            for client in daemon.clients:
                if daemon.exit_reason() is None:
                    break
                client.wait_closed()
                memory.learn(client)
            lived = self.bury(daemon)
            if step % (10 * stride) == 0 or lived:
                expected = self.truth()
                for stream, texts in memory.events.items():
                    self.assert_same_events(expected[stream][:len(texts)], texts, f"{stream}, killed at step {step}")
        self.assertGreater(step, 200)
        daemon = self.start(runtime=self.runtime)
        client = memory.resume(daemon)
        expected = self.truth()
        for stream, texts in expected.items():
            self.assert_same_events(texts, memory.events[stream], stream)
        self.assertEqual(client.close_code, None)

    def truth(self):
        done = earshot("replay", "--state", self.state, "--host", harness.HOST, self.root, home=self.home)
        found = {}
        for line in done.stdout.removesuffix("\n").split("\n"):
            found.setdefault(json.loads(line)["stream"], []).append(line)
        return found

    def listen_while_it_lives(self, daemon, memory, sessions, step):
        daemon.wait_ready()
        client = memory.resume(daemon)
        for n, session in enumerate(sessions):
            session.turn(f"life {step} " + "x" * (step % 7 * 1000))
            client.wait(lambda: len(client.all(type="turn.finished", session=session.session)) >= n // 3 + 1 or client.close_code, "its turn")
        daemon.stop()
        memory.learn(client)


class State(fault_case.FaultCase, EndpointCase):
    def test_62_torn_state_files_are_set_aside_and_made_anew(self):
        session = Session(self.root)
        session.turn("hello")
        self.start().stop()
        whole = {name: self.read(name) for name in ("token", "key")}
        for name, text in whole.items():
            torn = [text[:n] for n in range(len(text) - 1)] + [text[:n] + b"\0" * (len(text) - n) for n in range(len(text) - 1)]
            for content in torn[::timeout_factor()] + [b"", b"\0" * len(text)]:
                with self.subTest(file=name, content=content):
                    for each in whole:
                        self.write(each, whole[each])
                    self.write(name, content)
                    daemon = self.start()
                    daemon.wait_log(rf"{name} was torn")
                    self.assertEqual(self.read(name + ".torn"), content)
                    self.assertEqual(len(self.read(name)), len(text))
                    self.assertEqual(os.stat(os.path.join(self.state, name)).st_mode & 0o777, 0o600)
                    self.assertEqual(len(daemon.subscriber().all(type="session")), 1)
                    daemon.stop()

    def test_62_a_client_whose_marks_the_lost_key_made_is_reset_and_gets_a_snapshot(self):
        session = Session(self.root)
        session.turn("hello")
        daemon = self.start()
        stream, told = next(iter(daemon.replay(self.root).items()))
        place = f"{stream}:{json.loads(told[-1])['cursor']}"
        daemon.stop()
        self.write("key", b"")
        daemon = self.start()
        client = daemon.client()
        client.subscribe(after=[place])
        client.wait_frame(type="bookmark", id="a", complete=True)
        self.assertEqual([(f["stream"], f["reason"]) for f in client.all(type="reset")], [(stream, "rewritten")])
        self.assertEqual(client.count(), 0)
        session.turn("more")
        client.wait_frame(type="turn.finished", turn=2)

    def test_62_state_files_that_are_not_ours_are_refused_and_left_alone(self):
        self.start().stop()
        for name in ("token", "key"):
            ours = self.read(name)
            for content in (b"-----BEGIN PRIVATE KEY-----\n", ours.strip() + b"00\n", b"\0" * 4096, ours.upper().replace(b"0", b"G")):
                with self.subTest(file=name, content=content[:40]):
                    self.write(name, content)
                    self.assertIn("hex digits; delete it", self.refused())
                    self.assertEqual(self.read(name), content)
            self.write(name, ours)

    def test_62_what_else_is_in_the_state_directory_may_hold_anything(self):
        session = Session(self.root)
        session.turn("hello")
        self.start().stop()
        for content in (b"", b"\0" * 100, b"ws://[", b"\xff" * 5000, b"999999999999999999999\n"):
            with self.subTest(content=content[:40]):
                for name in ("address", "socket", "lock"):
                    self.write(name, content)
                gone = earshot("ls", "--state", self.state, home=self.home)
                self.assertNotEqual(gone.returncode, 0)
                self.assertTrue(gone.stderr.startswith("earshot: "), gone.stderr)
                daemon = self.start()
                self.assertEqual(self.read("address").decode().strip(), daemon.url)
                self.assertEqual(self.read("socket").decode().strip(), daemon.socket)
                self.assertEqual(len(daemon.subscriber().all(type="session")), 1)
                daemon.stop()

    def read(self, name):
        with open(os.path.join(self.state, name), "rb") as file:
            return file.read()

    def write(self, name, content):
        with open(os.path.join(self.state, name), "wb") as file:
            file.write(content)

    def test_65_of_daemons_started_at_once_on_one_socket_one_serves_and_the_others_say_so(self):
        path = os.path.join(self.home, "own", "sock")
        for round in range(5):
            daemons = [self.start("--socket", path, state=os.path.join(self.home, f"state{n}"), ready=False) for n in range(5)]
            wait_for(lambda: sum(d.exit_reason() is not None for d in daemons) == 4, "four of five to give up")
            for daemon in daemons:
                if daemon.exit_reason() is None:
                    serves = daemon.wait_ready()
                    continue
                self.assertEqual(daemon.wait_exit(), 1)
                self.assertEqual(daemon.out, [])
                said = daemon.stderr().decode()
                self.assertIn(path, said)
                self.assertIn("another earshotd", said)
            serves.socket = path
            self.assertEqual(self.health(serves)["pid"], serves.process.pid)
            if round % 2:
                serves.stop()
            else:  # the next ones take over from a dead one
                serves.process.kill()
                serves.wait_exit()

    def test_65_of_daemons_started_at_once_on_one_state_directory_one_serves_and_the_others_say_so(self):
        daemons = [self.start(ready=False) for _ in range(5)]
        wait_for(lambda: sum(d.exit_reason() is not None for d in daemons) == 4, "four of five to give up")
        serves = next(d for d in daemons if d.exit_reason() is None).wait_ready()
        for daemon in daemons:
            if daemon is not serves:
                self.assertEqual(daemon.wait_exit(), 1)
                self.assertIn(f"uses the state directory {self.state}", daemon.stderr().decode())
        self.assertEqual(self.read("address").decode().strip(), serves.url)
        client = serves.subscriber()
        Session(self.root).turn("hello")
        self.assert_settled(serves, client, self.root)


if __name__ == "__main__":
    unittest.main()
