"""Numbers of `session` frames: the window of the context, the cost, and how the time was spent."""
import datetime
import os
import time

from support.harness import DaemonCase, wait_for
from support.transcripts import Registry, Session, now

TABLE = """
[[model]]
pattern = "claude-opus-5-5"
context_window = 400_000
input = 1000
output = 0
"""


def at(second):
    start = datetime.datetime(2026, 3, 14, 9, 26, 0)
    return {"timestamp": (start + datetime.timedelta(seconds=second)).isoformat(timespec="milliseconds") + "Z"}


class Numbers(DaemonCase):
    def shown(self, daemon, session):
        """The session's frame as a new client receives it."""
        client = daemon.client()
        frames = client.subscribe(sessions=[session.session])
        client.close()
        return next(frame for frame in frames if frame["session"] == session.session)

    def table(self, text):
        path = os.path.join(self.home, "models.toml")
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_cost_and_window_come_from_the_built_in_table(self):
        daemon, session = self.daemon_with_a_turn()
        usage = self.shown(daemon, session)["usage"]
        self.assertEqual((usage["cost_source"], usage["context_window"]), ("estimated", 1_000_000))
        self.assertAlmostEqual(usage["cost_usd"], (2 * 20 * 4 + 2 * 12 * 20) / 1e6)  # two messages

    def test_the_users_table_comes_first(self):
        daemon = self.start("--models", self.table(TABLE))
        session = Session(self.root)
        client = daemon.subscriber()
        session.turn("hello")
        client.wait_frame(type="turn.finished")
        usage = self.shown(daemon, session)["usage"]
        self.assertEqual((usage["cost_source"], usage["context_window"]), ("estimated", 400_000))
        self.assertAlmostEqual(usage["cost_usd"], 2 * 20 * 1000 / 1e6)

    def test_a_bad_table_is_refused_with_file_line_and_key(self):
        path = self.table(TABLE.replace("input = 1000", "input = -1"))
        for arguments, configuration in ((("--models", path), ""), ((), f'models = "{path}"\n'), ((), 'models = "models.toml"\n')):
            with self.subTest(arguments=arguments, configuration=configuration):
                daemon = self.configured(configuration, *arguments, ready=False)
                self.assertEqual(daemon.wait_exit(), 2)
                self.assertIn(f"{path}:5: `input` must be USD per million tokens, a number from 0 to 1000000, not -1", daemon.stderr().decode())

    def test_recorded_cost_is_used_as_it_is(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = Session(self.root)
        session.turn("hello")
        session.append({"type": "cost-state", "sessionId": session.session, "totalCostUSD": 1.25})
        client.wait(lambda: client.find(type="usage.updated", cost_usd=1.25), "the recorded cost")
        usage = self.shown(daemon, session)["usage"]
        self.assertEqual((usage["cost_source"], usage["cost_usd"]), ("recorded", 1.25))
        session.reply("more")
        client.wait(lambda: len(client.all(type="usage.updated", stream=client.find(type="usage.updated")["stream"])) == 4, "its tokens")
        usage = self.shown(daemon, session)["usage"]
        self.assertEqual(usage["cost_source"], "mixed")
        self.assertAlmostEqual(usage["cost_usd"], 1.25 + (20 * 4 + 12 * 20) / 1e6)

    def test_a_question_is_a_wait_of_its_turn(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = self.held_open(Session(self.root))
        session.prompt("go", **at(0))
        call = session.tool_call("AskUserQuestion", {"questions": [{"question": "Which?"}]}, **at(10))
        client.wait_frame(type="status", state="waiting", reason="question")
        self.assertEqual(self.shown(daemon, session)["times"],
                         {"waited_ms": 0, "worked_ms": 10_000, "idle_ms": 0, "turn": {"waited_ms": 0, "worked_ms": 10_000}})
        session.result(call, "the first", **at(70))
        client.wait(lambda: client.all(type="status", session=session.session)[-1]["state"] == "working", "working again")
        self.assertEqual(self.shown(daemon, session)["times"],
                         {"waited_ms": 60_000, "worked_ms": 10_000, "idle_ms": 0, "turn": {"waited_ms": 60_000, "worked_ms": 10_000}})
        session.reply("Done.", stop_reason="end_turn", **at(75))
        finished = client.wait_frame(type="turn.finished")
        self.assertEqual((finished["duration_ms"], finished["waited_ms"]), (75_000, 60_000))
        session.prompt("more", **at(100))
        client.wait_frame(type="turn.started", turn=2)
        client.wait(lambda: client.all(type="status", session=session.session)[-1].get("since") == at(100)["timestamp"], "the status of the turn")
        self.assertEqual(self.shown(daemon, session)["times"],
                         {"waited_ms": 60_000, "worked_ms": 15_000, "idle_ms": 25_000, "turn": {"waited_ms": 0, "worked_ms": 0}})

    def test_a_wait_for_permission_that_no_record_proves_is_seen_live(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = Session(self.root)
        registry = Registry(self.root, session.session, self.process())
        registry.set_status("busy")
        session.prompt("go")
        client.wait_frame(type="status", session=session.session, state="working")
        client.wait_frame(type="turn.started", session=session.session)  # a status can be known before the transcript
        session.tool_call("Bash", {"command": "make"})
        registry.set_status("waiting", "permission prompt")
        asked = client.wait_frame(type="status", session=session.session, state="waiting", reason="permission")
        wait_for(lambda: now() > asked["since"], "a later millisecond")
        registry.set_status("busy")
        working = client.wait(lambda: next((f for f in client.all(type="status", session=session.session, state="working")
                                            if f["since"] > asked["since"]), None), "working again")
        waited = datetime.datetime.fromisoformat(working["since"][:-1]) - datetime.datetime.fromisoformat(asked["since"][:-1])
        times = self.shown(daemon, session)["times"]
        self.assertEqual(times["waited_ms"], round(waited.total_seconds() * 1000))
        self.assertEqual(times["turn"]["waited_ms"], times["waited_ms"])
        self.assertGreater(times["waited_ms"], 0)

    def test_a_question_whose_answer_is_recorded_before_the_status_changes_is_one_wait(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = Session(self.root)
        registry = Registry(self.root, session.session, self.process())
        registry.set_status("busy")
        session.prompt("go")
        client.wait_frame(type="turn.started", session=session.session)
        call = session.tool_call("AskUserQuestion", {"questions": [{"question": "Which?"}]})
        client.wait_frame(type="tool.invoked")  # or the registry may be read first: a dialog
        registry.set_status("waiting", "input")
        client.wait_frame(type="status", session=session.session, state="waiting", reason="question")
        time.sleep(0.5)
        session.result(call, "the first")
        client.wait_frame(type="status", session=session.session, state="waiting", reason="permission")
        registry.set_status("busy")
        working = client.wait(lambda: (frame := client.all(type="status", session=session.session)[-1])["state"] == "working" and frame, "working again")
        session.reply("Done.", stop_reason="end_turn")
        finished = client.wait_frame(type="turn.finished")
        begin, end = (datetime.datetime.fromisoformat(at[:-1]) for at in (client.find(type="tool.invoked")["time"], working["since"]))
        waited_ms = self.shown(daemon, session)["times"]["waited_ms"]
        self.assertGreaterEqual(waited_ms, finished["waited_ms"])
        self.assertLessEqual(waited_ms, (end - begin).total_seconds() * 1000)
