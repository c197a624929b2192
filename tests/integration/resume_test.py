"""Resuming from cursors: across disconnects, restarts, kills, rewrites, and for clients that are too slow."""
import json
import os
import random
import signal
import time

from support.endpoints import HttpCase
from support.harness import loop
from support.resume_state import ResumeState
from support.transcripts import Session


def session(case, project="/home/ada/api", root=None):
    return Session(root or case.root, project)


class Resume(HttpCase):
    def test_random_disconnects_and_restarts_lose_and_repeat_no_event(self):
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                self.run_random_steps(random.Random(seed))

    def run_random_steps(self, dice):
        root = os.path.join(self.home, f"life{dice.randrange(10**6)}", "claude")
        os.makedirs(root)
        sessions = [session(self, f"/home/ada/p{n}", root=root) for n in range(3)]
        for one in sessions:
            one.turn("begin")
        folder = root + ".state"
        daemon = self.start(roots=[root], state=folder)
        states = [ResumeState() for _ in range(2)]
        clients = [state.resume(daemon) for state in states]
        for step in range(25):
            act = dice.randrange(6)
            if act == 0 and len(sessions) < 6:
                sessions.append(session(self, f"/home/ada/p{len(sessions)}", root=root))
            dice.choice(sessions).turn(f"step {step} " + "x" * dice.randrange(3000))
            n = dice.randrange(len(clients))
            if act in (1, 2):  # the connection is lost
                states[n].learn(clients[n])
                clients[n].close()
                states[n].learn(clients[n])
                dice.choice(sessions).turn("while disconnected")
                clients[n] = states[n].resume(daemon)
            elif act == 3:  # the daemon is killed or stopped, and restarted
                for client, state in zip(clients, states):
                    state.learn(client)
                if dice.random() < 0.5:
                    daemon.process.send_signal(signal.SIGKILL)
                else:
                    daemon.process.send_signal(signal.SIGTERM)
                daemon.wait_exit()
                for client, state in zip(clients, states):
                    client.wait_closed()
                    state.learn(client)
                dice.choice(sessions).turn("while the daemon was down")
                daemon = self.start(roots=[root], state=folder)
                clients = [state.resume(daemon) for state in states]
        expected = daemon.replay(root)
        for client, state in zip(clients, states):
            def has_all():
                state.learn(client)
                return all(len(state.events.get(f, [])) >= len(lines) for f, lines in expected.items())

            client.wait(has_all, "all events of all runs")
            for stream, lines in expected.items():
                self.assert_same_events(lines, state.events[stream], stream)
        daemon.stop()

    def test_a_filtered_client_resumes_from_its_bookmark(self):
        one = session(self)
        one.turn("first")
        daemon = self.configured("[limits]\nbookmark = \"50ms\"\ntick = \"20ms\"\n")
        client = daemon.subscriber(filter={"type": ["api.failed"]})
        one.turn("second")
        prefix_hash = client.wait_frame(type="bookmark")
        self.assertTrue(prefix_hash["cursors"])
        client.wait(lambda: [f for f in client.all(type="bookmark") if f["cursors"][0].split(":")[-1].startswith(str(os.path.getsize(one.path)))],
                    "a bookmark at the end of the file")
        cursor_text = client.all(type="bookmark")[-1]["cursors"]
        again = daemon.client()
        again.subscribe(after=cursor_text)
        again.wait_frame(type="bookmark", id="a", complete=True)
        self.assertEqual(again.count(), 0)
        one.turn("third")
        again.wait_frame(type="turn.finished", turn=3)
        self.assertEqual([f["turn"] for f in again.all(type="turn.started")], [3])

    def test_a_rewritten_file_gives_reset_then_its_session_then_new_events(self):
        one = self.held_open(session(self))
        one.turn("first")
        daemon = self.start()
        client = daemon.client()
        client.subscribe(after=[])
        state = ResumeState()
        client.close()
        client = state.resume(daemon)
        client.close()
        daemon.stop()
        cursor_text = state.after()
        with open(one.path, "r+b") as file:  # the same length, another content
            whole = file.read().replace(b"first", b"other")
            file.seek(0)
            file.write(whole)
        daemon = self.start()
        client = daemon.client()
        client.subscribe(after=cursor_text)
        end = client.frames.index(client.wait_frame(type="bookmark", id="a", complete=True))
        kinds = [f["type"] for f in client.frames[:end + 1]]
        self.assertEqual(kinds, ["welcome", "session", "ready", "reset", "session", "bookmark"])
        reset = client.find(type="reset")
        self.assertEqual((reset["reason"], reset["id"], reset["host"]), ("rewritten", "a", "testhost"))
        self.assertEqual(client.count(), 0)
        one.turn("next")
        client.wait_frame(type="turn.finished", turn=2)

    def test_foreign_cursors_get_a_reset_or_an_error_and_no_events(self):
        one = session(self)
        one.turn("first")
        daemon = self.start()
        other = self.start(state=os.path.join(self.home, "other"))
        state = ResumeState()
        state.resume(other)
        stream = next(iter(state.events))
        cursor = state.after()[0].rpartition(":")[2]
        offset, index, prefix_hash = cursor.split(".")
        size = os.path.getsize(one.path)
        cases = {
            f"{stream}:{cursor}": "rewritten",                  # of another daemon: prefix hashes are keyed
            f"{stream}:{size + 4096}.1.{prefix_hash}": "rewritten",    # beyond the end of the file
            f"{stream}:{int(offset) - 3}.1.{prefix_hash}": "rewritten",
            f"{stream}/not:{cursor}": "unknown",
            f"elsewhere/{stream}:{cursor}": "unknown",
            f"{stream}:{cursor[:-1]}": "bad_cursor",            # torn
            f"{stream}:": "events",
            "claude/../../etc/passwd:": "unknown",
            "claude/%2e%2e/x:": "unknown",
            "": "bad_cursor",
        }
        for cursor_text, answer in cases.items():
            with self.subTest(cursor_text=cursor_text):
                client = daemon.client()
                client.subscribe(after=[cursor_text], snapshot=False)
                client.wait_frame(type="bookmark", id="a", complete=True)
                self.assertEqual(client.count() > 0, answer == "events")
                replies = [f.get("reason") or f.get("code") for f in client.frames if f["type"] in ("reset", "error")]
                self.assertEqual(replies, [] if answer == "events" else [answer])

    def test_a_cold_session_is_resumed_from_its_file(self):
        one = session(self)
        one.turn("first")
        one.turn("second")
        old = time.time() - 30 * 86400
        os.utime(one.path, (old, old))
        daemon = self.start()
        expected = next(iter(daemon.replay(self.root).items()))
        client = daemon.client()
        self.assertEqual(client.subscribe(after=[expected[0] + ":" + json.loads(expected[1][2])["cursor"]]), [])
        client.wait_frame(type="bookmark", id="a", complete=True)
        self.assert_same_events(expected[1][3:], client.event_texts()[expected[0]], "the rest of a cold stream")
        one.turn("third")
        client.wait_frame(type="turn.finished", turn=3)
        self.assert_same_events(daemon.replay(self.root)[expected[0]][3:], client.event_texts()[expected[0]], "and the live events")

    def stall(self, daemon, **more):
        """(a subscriber that stops reading, a function that lets it read again)"""
        client = daemon.client()
        client.subscribe(**more)
        transport = client.socket.transport
        loop.loop.call_soon_threadsafe(transport.pause_reading)
        return client, lambda: loop.loop.call_soon_threadsafe(transport.resume_reading)

    def overflow_log(self, witness, *sessions):
        """Writes more than the live log holds; returns when the daemon has read everything."""
        for n in range(600):
            sessions[n % len(sessions)].turn(f"{n} " + "z" * 3500)
        for one in sessions:
            turns = 1 + 600 // len(sessions)
            witness.wait(lambda: [f for f in witness.all(type="session", session=one.session) if f["turn"]["number"] == turns and not f["turn"]["open"]],
                         "the daemon to read everything")

    def test_a_client_that_falls_behind_gets_lagged_and_continues(self):
        one, quiet = session(self), session(self, "/home/ada/quiet")
        one.turn("first")
        quiet.turn("first")
        daemon = self.configured("[limits]\nlog_bytes = 1048576\n")
        slow, resume_reading = self.stall(daemon)
        self.overflow_log(daemon.subscriber(deliver="state"), one)
        resume_reading()
        slow.wait_frame(type="lagged", id="a")
        quiet.turn("after all that")
        slow.wait(lambda: [f for f in slow.all(type="turn.started") if f.get("prompt") == "after all that"], "the live events")
        after = slow.frames[slow.frames.index(slow.find(type="lagged")):]
        self.assertIn(one.session, [f["session"] for f in after if f["type"] == "session"])  # others may have ended meanwhile
        self.assertLess(slow.count(), sum(len(lines) for lines in daemon.replay(self.root).values()))

    def test_a_lagging_client_with_catch_up_loses_nothing(self):
        one, two = session(self), session(self, "/home/ada/two")
        one.turn("first")
        two.turn("first")
        daemon = self.configured("[limits]\nlog_bytes = 1048576\n")
        begin = [f"{stream}:" for stream in daemon.replay(self.root)]
        slow, resume_reading = self.stall(daemon, on_lag="catch_up", snapshot=False, after=begin)
        self.overflow_log(daemon.subscriber(deliver="state"), one, two)
        resume_reading()
        self.assert_delivered(daemon, slow, self.root)
        self.assertEqual(slow.all(type="lagged"), [])

    def test_a_stream_recreated_while_a_client_lags_is_sent_from_its_new_beginning(self):
        one, two, rotated = session(self), session(self, "/home/ada/two"), session(self, "/home/ada/rotated")
        one.turn("first")
        two.turn("first")
        rotated.turn("the old history")
        daemon = self.configured("[limits]\nlog_bytes = 1048576\n")
        [stream] = [name for name in daemon.replay(rotated.path)]
        slow, resume_reading = self.stall(daemon, on_lag="catch_up", after=[f"{stream}:"])
        witness, counter = daemon.subscriber(filter={"type": ["turn.*"]}), daemon.subscriber(deliver="state")
        self.overflow_log(counter, one)
        os.rename(rotated.path, rotated.path + ".1")
        witness.wait_frame(type="stream.removed", stream=stream)
        rotated.turn("the new history")
        witness.wait(lambda: witness.all(type="turn.finished", stream=stream), "the new history")
        self.overflow_log(counter, two)
        resume_reading()
        expected = daemon.replay(rotated.path)[stream]

        def held():
            """The events of the stream that the client holds: a removal or reset discards the earlier ones."""
            texts = []
            for frame, text in list(zip(slow.frames, slow.raw)):
                if frame.get("stream") == stream:
                    texts = [] if frame["type"] in ("stream.removed", "reset") else [*texts, text]
            return texts

        one.turn("the end")
        slow.wait(lambda: slow.all(type="turn.started", prompt="the end"), "the live events")
        self.assert_same_events(expected, held(), stream)
        self.assertTrue(slow.all(type="stream.removed", stream=stream))

    def test_read_returns_the_complete_record_of_an_event(self):
        one = session(self)
        one.turn("first")
        long = "é" * 300_000
        one.prompt(long)
        daemon = self.start()
        client = daemon.client()
        client.subscribe(after=[f"claude/{os.path.relpath(one.path, os.path.join(self.root, 'projects'))[:-6]}:"])
        client.wait_frame(type="bookmark", id="a", complete=True)
        with open(one.path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        for event in client.all(type="turn.started"):
            client.send(type="read", id=event["cursor"], stream=event["stream"], cursor=event["cursor"])
            parts = client.wait(lambda: (found := client.all(type="record", id=event["cursor"])) and len(found) == found[0]["parts"] and found,
                                "the complete record")
            self.assertEqual([p["part"] for p in parts], list(range(1, len(parts) + 1)))
            record = json.loads("".join(p["data"] for p in parts))
            self.assertIn(record, lines)
            self.assertTrue(event["prompt"] == "first" or (record["message"]["content"] == long and len(parts) > 3))
        stream, cursor = event["stream"], event["cursor"]
        offset, index, prefix_hash = cursor.split(".")
        for wrong, code in {"nonsense": "bad_cursor", f"{offset}.{index}.0000000000000000": "bad_cursor", f"{int(offset) - 1}.{index}.{prefix_hash}": "bad_cursor",
                            "0.0.0000000000000000": "bad_cursor"}.items():
            client.send(type="read", id=wrong, stream=stream, cursor=wrong)
            self.assertEqual(client.wait_frame(type="error", id=wrong)["code"], code)
        client.send(type="read", id="nobody", stream=stream + "x", cursor=cursor)
        self.assertEqual(client.wait_frame(type="error", id="nobody")["code"], "not_found")
