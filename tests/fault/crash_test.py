"""Faults 61, 62 and 65: kill -9 at every step, torn state files, and several daemons at once."""
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
    """Fault 61. Each daemon is killed one step later than the one before; one client resumes across all of them."""

    def setUp(self):
        super().setUp()
        self.kill_prefix = preloaded(self, "kill_at_step")

    def start_killed_at(self, die_at, state=None):
        """Starts a daemon that is killed at this step. The caller finishes it with finish_killed()."""
        prefix = (*self.kill_prefix[:1], f"DIE_AT={die_at}", *self.kill_prefix[1:])
        daemon = harness.Daemon([self.root], state or self.state, self.home, prefix=prefix, runtime=self.runtime)
        wait_for(lambda: daemon.exit_reason() or any("listening on" in line for line in list(daemon.out)), "its death, or the ready line")
        return daemon

    def finish_killed(self, daemon):
        """True if it was not killed before it stopped."""
        self.finish(daemon)
        self.assertIn(daemon.process.returncode, (0, -signal.SIGKILL))
        return daemon.process.returncode == 0

    @property
    def runtime(self):
        path = os.path.join(self.home, "run")
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def test_61_killed_at_every_step_of_its_first_start_the_next_start_works(self):
        Session(self.root).turn("hello")
        step, ready = 0, False
        while not ready:
            step += timeout_factor()
            state = os.path.join(self.home, f"state{step}")
            daemon = self.start_killed_at(step, state)
            ready = any("listening on" in line for line in list(daemon.out))
            if daemon.exit_reason() is None:
                daemon.process.kill()
                daemon.wait_exit()
            self.finish_killed(daemon)
            successor = self.start(state=state, runtime=self.runtime)
            client = successor.subscriber()
            self.assertEqual(len(client.all(type="session")), 1)
            self.assertLessEqual({name for name in os.listdir(state) if not name.endswith(".tmp")},
                                 {"token", "key", "lock", "address", "socket", "seen.json", "browsers.json",
                                  *(f"search.sqlite{part}" for part in ("", "-journal", "-wal", "-shm"))})
            successor.stop()
        self.assertGreater(step, 50)

    def test_61_a_client_that_resumes_after_kill_9_at_any_step_loses_and_repeats_no_event(self):
        sessions = [Session(self.root, cwd=f"/home/ada/p{n}") for n in range(3)]
        state = ResumeState()
        for session in sessions:
            session.turn("begin")
            state.events[f"claude/{os.path.basename(session.folder)}/{session.session}"] = []
        self.start(runtime=self.runtime).stop()  # creates the secrets
        step, survived, stride = 0, False, 2 * timeout_factor() - 1
        while not survived:
            step += stride
            daemon = self.start_killed_at(step)
            try:
                if daemon.exit_reason() is None:
                    self.follow_until_killed(daemon, state, sessions, step)
            except (AssertionError, OSError, harness.websockets.WebSocketException) as disconnected:
                wait_for(daemon.exit_reason, f"the end of the daemon that disconnected a client: {disconnected}")
            for client in daemon.clients:
                if daemon.exit_reason() is None:
                    break
                client.wait_closed()
                state.learn(client)
            survived = self.finish_killed(daemon)
            if step % (10 * stride) == 0 or survived:
                expected = self.replayed()
                for stream, texts in state.events.items():
                    self.assert_same_events(expected[stream][:len(texts)], texts, f"{stream}, killed at step {step}")
        self.assertGreater(step, 200)
        daemon = self.start(runtime=self.runtime)
        client = state.resume(daemon)
        expected = self.replayed()
        for stream, texts in expected.items():
            self.assert_same_events(texts, state.events[stream], stream)
        self.assertEqual(client.close_code, None)

    def replayed(self):
        done = earshot("replay", "--state", self.state, "--host", harness.HOST, self.root, home=self.home)
        found = {}
        for line in done.stdout.removesuffix("\n").split("\n"):
            found.setdefault(json.loads(line)["stream"], []).append(line)
        return found

    def follow_until_killed(self, daemon, state, sessions, step):
        daemon.wait_ready()
        client = state.resume(daemon)
        for n, session in enumerate(sessions):
            session.turn(f"life {step} " + "x" * (step % 7 * 1000))
            client.wait(lambda: len(client.all(type="turn.finished", session=session.session)) >= n // 3 + 1 or client.close_code, "the turn")
        daemon.stop()
        state.learn(client)


class State(fault_case.FaultCase, EndpointCase):
    def test_62_torn_state_files_are_renamed_and_recreated(self):
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
                    daemon.wait_log(rf"{name} was truncated")
                    self.assertEqual(self.read(name + ".torn"), content)
                    self.assertEqual(len(self.read(name)), len(text))
                    self.assertEqual(os.stat(os.path.join(self.state, name)).st_mode & 0o777, 0o600)
                    self.assertEqual(len(daemon.subscriber().all(type="session")), 1)
                    daemon.stop()

    def test_62_after_the_loss_of_the_key_clients_are_reset_and_get_a_snapshot(self):
        session = Session(self.root)
        session.turn("hello")
        daemon = self.start()
        stream, texts_before = next(iter(daemon.replay(self.root).items()))
        entry = f"{stream}:{json.loads(texts_before[-1])['cursor']}"
        daemon.stop()
        self.write("key", b"")
        daemon = self.start()
        client = daemon.client()
        client.subscribe(after=[entry])
        client.wait_frame(type="bookmark", id="a", complete=True)
        self.assertEqual([(f["stream"], f["reason"]) for f in client.all(type="reset")], [(stream, "rewritten")])
        self.assertEqual(client.count(), 0)
        session.turn("more")
        client.wait_frame(type="turn.finished", turn=2)

    def test_62_foreign_state_files_are_refused_and_not_changed(self):
        self.start().stop()
        for name in ("token", "key"):
            ours = self.read(name)
            for content in (b"-----BEGIN PRIVATE KEY-----\n", ours.strip() + b"00\n", b"\0" * 4096, ours.upper().replace(b"0", b"G")):
                with self.subTest(file=name, content=content[:40]):
                    self.write(name, content)
                    self.assertIn("hex digits; delete it", self.start_refused())
                    self.assertEqual(self.read(name), content)
            self.write(name, ours)

    def test_62_other_files_in_the_state_directory_may_have_any_content(self):
        session = Session(self.root)
        session.turn("hello")
        self.start().stop()
        for content in (b"", b"\0" * 100, b"ws://[", b"\xff" * 5000, b"999999999999999999999\n"):
            with self.subTest(content=content[:40]):
                for name in ("address", "socket", "lock"):
                    self.write(name, content)
                listing = earshot("ls", "--state", self.state, home=self.home)
                self.assertNotEqual(listing.returncode, 0)
                self.assertTrue(listing.stderr.startswith("earshot: "), listing.stderr)
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

    def test_65_of_several_daemons_on_one_socket_one_serves_and_the_others_exit_with_an_error(self):
        path = os.path.join(self.home, "own", "sock")
        for round in range(5):
            daemons = [self.start("--socket", path, state=os.path.join(self.home, f"state{n}"), ready=False) for n in range(5)]
            wait_for(lambda: sum(d.exit_reason() is not None for d in daemons) == 4, "four of five to give up")
            for daemon in daemons:
                if daemon.exit_reason() is None:
                    serving = daemon.wait_ready()
                    continue
                self.assertEqual(daemon.wait_exit(), 1)
                self.assertEqual(daemon.out, [])
                stderr = daemon.stderr().decode()
                self.assertIn(path, stderr)
                self.assertIn("another earshotd", stderr)
            serving.socket = path
            self.assertEqual(self.health(serving)["pid"], serving.process.pid)
            if round % 2:
                serving.stop()
            else:  # the next round takes over from a dead daemon
                serving.process.kill()
                serving.wait_exit()

    def test_65_of_several_daemons_on_one_state_directory_one_serves_and_the_others_exit_with_an_error(self):
        daemons = [self.start(ready=False) for _ in range(5)]
        wait_for(lambda: sum(d.exit_reason() is not None for d in daemons) == 4, "four of five to give up")
        serving = next(d for d in daemons if d.exit_reason() is None).wait_ready()
        for daemon in daemons:
            if daemon is not serving:
                self.assertEqual(daemon.wait_exit(), 1)
                self.assertIn(f"uses the state directory {self.state}", daemon.stderr().decode())
        self.assertEqual(self.read("address").decode().strip(), serving.url)
        client = serving.subscriber()
        Session(self.root).turn("hello")
        self.assert_settled(serving, client, self.root)


class Exit(fault_case.FaultCase):
    def test_97_the_daemon_stops_cleanly_while_its_connection_to_the_broker_uses_openssl(self):
        """The connection's thread may be in a call that does not return: OpenSSL must not be released under it."""
        reached = os.path.join(self.home, "reached")
        daemon = self.configured('[relay]\nurl = "tls://127.0.0.1:1"\ntls_ca = "missing.pem"\n', prefix=preloaded(self, "busy_tls", REACHED=reached))
        wait_for(lambda: os.path.exists(reached), "the certificates to be loaded", give_up=daemon.exit_reason)
        daemon.stop()  # fails unless the exit code is 0


if __name__ == "__main__":
    unittest.main()
