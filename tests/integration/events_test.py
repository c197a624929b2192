"""Appended bytes become events at a subscriber: exactly the events that `earshot replay` prints for the final file."""
import json
import os
import threading

from support.harness import DaemonCase, wait_for
from support.transcripts import Conversation, FlatSession, Session, SessionWithSiblingAgents, SessionWithInlineAgents, append


class Events(DaemonCase):
    def test_a_new_file_s_first_line_reaches_a_subscriber(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = Session(self.root)
        session.prompt("hello there")
        started = client.wait_frame(type="session.started")
        turn = client.wait_frame(type="turn.started")
        self.assertEqual(started["session"], session.session)
        self.assertEqual(started["stream"], f"claude/-home-ada-api/{session.session}")
        self.assertEqual(started["host"], "testhost")
        self.assertEqual((turn["prompt"], turn["turn"], turn["origin"]), ("hello there", 1, "human"))

    def test_the_directories_may_not_exist_yet(self):
        daemon = self.start()
        client = daemon.subscriber()
        for n in range(20):
            Session(self.root, cwd=f"/home/ada/project{n}/deep").prompt(f"number {n}")
        client.wait(lambda: {f["prompt"] for f in client.all(type="turn.started")} == {f"number {n}" for n in range(20)}, "20 prompts")

    def test_lines_appended_byte_by_byte_are_the_same_events(self):
        daemon = self.start()
        client = daemon.subscriber()
        source = Session(os.path.join(self.home, "elsewhere"))
        source.turn("grüße, 世界 🌍")
        with open(source.path, "rb") as file:
            data = file.read()
        path = source.path.replace("elsewhere", "claude")
        for at in range(len(data)):
            append(path, data[at : at + 1])
        events = self.assert_delivered(daemon, client, path)
        self.assertEqual(len(events), 1)

    def test_an_unterminated_line_is_no_event(self):
        daemon = self.start()
        client = daemon.subscriber()
        session, other = Session(self.root), Session(self.root)
        session.prompt("first")
        record = session.record("user", {"role": "user", "content": "second"})
        line = json.dumps(record).encode()
        append(session.path, line)
        other.prompt("later")
        client.wait_frame(type="turn.started", prompt="later")
        self.assertIsNone(client.find(type="turn.started", prompt="second"))
        append(session.path, b"\n")
        client.wait_frame(type="turn.started", prompt="second")

    def test_every_era_is_delivered_live_as_replay_prints_it(self):
        daemon = self.start()
        client = daemon.subscriber()
        for session in (Session(self.root), SessionWithSiblingAgents(self.root), SessionWithInlineAgents(self.root)):
            session.prompt("have a look")
            call, agent, subagent = session.agent()
            subagent.turn("Look around")
            session.agent_result(call, agent)
            session.reply("It is fine.", stop_reason="end_turn")
            session.turn("and again")
        for session in (Conversation(self.root), FlatSession(self.root, cwd="/home/ada/flat")):
            session.turn("first")
            session.turn("second")
        events = self.assert_delivered(daemon, client, self.root)
        self.assertEqual(len(events), 7, sorted(events))  # five sessions, two subagents with their own files
        dialects = {json.loads(lines[0])["dialect"] for lines in events.values()}
        self.assertEqual(dialects, {"claude-code", "claude-messages", "claude-flat"})

    def test_many_lines_in_one_write_all_arrive_in_order(self):
        daemon = self.start()
        client = daemon.subscriber()
        session = Session(self.root)
        records = [session.record("user", {"role": "user", "content": f"prompt {n}"}) for n in range(3000)]
        session.append(*records)
        self.assert_delivered(daemon, client, session.path)
        self.assertEqual([f["prompt"] for f in client.all(type="turn.started")], [f"prompt {n}" for n in range(3000)])

    def test_a_snapshot_and_the_following_events_have_no_gap_and_no_repetition(self):
        daemon = self.start()
        session = Session(self.root)
        session.prompt("begin")
        wait_for(lambda: self.snapshot(daemon), "the session")
        first = daemon.subscriber()
        stop = threading.Event()

        def write():
            while not stop.is_set():
                before = first.count()
                for _ in range(20):
                    session.reply("still going " * 20)
                wait_for(lambda: stop.is_set() or first.count() > before, "the writer's lines")  # stay close, so that no client lags

        writer = threading.Thread(target=write)
        writer.start()
        try:
            snapshots = []
            for _ in range(12):
                client = daemon.client()
                snapshots.append((client, client.subscribe()))
        finally:
            stop.set()
            writer.join()
        session.reply("over", stop_reason="end_turn")
        stream = f"claude/-home-ada-api/{session.session}"
        texts = daemon.replay(session.path)[stream]
        cursors = [json.loads(line)["cursor"] for line in texts]
        for client, frames in snapshots:
            client.wait_frame(type="turn.finished")
            name, cursor = next(frame for frame in frames if frame["session"] == session.session)["cursors"][0].rsplit(":", 1)
            self.assertEqual(name, stream)
            after = self.events_before(cursor, cursors)
            self.assertTrue(0 < after < len(texts), "the snapshot was not taken while the writer was active")
            self.assert_same_events(texts[after:], client.event_texts()[stream], "after the snapshot")

    @staticmethod
    def events_before(cursor, cursors):
        """How many events lie before a cursor, which may be after lines without events."""
        position = lambda text: tuple(int(part) for part in text.split(".")[:2])
        return sum(position(each) <= position(cursor) for each in cursors)

    def test_each_subscriber_gets_what_its_filter_selects(self):
        daemon = self.start()
        api, tools = daemon.client(), daemon.client()
        api.subscribe(filter={"project": ["/home/ada/api*"]})
        tools.subscribe(filter={"type": ["tool.*"]})
        one, other = Session(self.root, cwd="/home/ada/api"), Session(self.root, cwd="/home/ada/web")
        one.turn("in api")
        other.turn("in web")
        api.wait_frame(type="turn.finished", session=one.session)
        tools.wait(lambda: len(tools.all(type="tool.finished")) == 2, "two tool results")
        texts = daemon.replay(self.root)
        self.assertEqual({f["session"] for f in api.frames if "cursor" in f}, {one.session})
        self.assert_same_events(texts[f"claude/-home-ada-api/{one.session}"], api.event_texts()[f"claude/-home-ada-api/{one.session}"], "api")
        self.assertEqual({f["type"] for f in tools.frames if "cursor" in f}, {"tool.invoked", "tool.finished"})
        for stream, lines in texts.items():
            wanted = [line for line in lines if json.loads(line)["type"].startswith("tool.")]
            self.assert_same_events(wanted, tools.event_texts()[stream], stream)

    def test_two_subscriptions_of_one_connection_deliver_an_event_once(self):
        daemon = self.start()
        client = daemon.client()
        client.subscribe(id="all")
        client.subscribe(id="tools", filter={"type": ["tool.*"]})
        session = Session(self.root)
        session.turn("once")
        client.wait_frame(type="turn.finished")
        self.assert_delivered(daemon, client, session.path)
        client.send(type="unsubscribe", id="all")
        client.subscribe(id="later", filter={"session": ["nobody"]})  # its reply shows that the unsubscription was processed
        session.turn("twice")
        client.wait(lambda: len(client.all(type="tool.finished")) == 2, "the second result")
        self.assertEqual(len(client.all(type="turn.started")), 1)

    def test_state_subscribers_see_sessions_and_no_events(self):
        daemon = self.start()
        client = daemon.client()
        client.subscribe(deliver="state")
        session = Session(self.root)
        session.turn("quietly")
        client.wait(lambda: any(f["turn"]["number"] == 1 and not f["turn"]["open"] for f in client.all(type="session")), "the finished turn")
        self.assertEqual(client.count(), 0)

    def test_recent_sessions_are_in_the_snapshot_and_old_ones_on_request(self):
        recent, old = Session(self.root), Session(self.root)
        recent.turn("today")
        old.turn("long ago")
        os.utime(old.path, (1_600_000_000, 1_600_000_000))
        daemon = self.start("--recent", "1h")
        client = daemon.client()
        self.assertEqual([f["session"] for f in client.subscribe(id="live")], [recent.session])
        everything = client.subscribe(id="all", all=True)
        self.assertEqual({f["session"] for f in everything}, {recent.session, old.session})
        self.assertEqual(client.count(), 0)  # history is not sent as live events

    def test_an_old_file_that_grows_emits_only_new_events(self):
        session = Session(self.root)
        session.turn("long ago")
        os.utime(session.path, (1_600_000_000, 1_600_000_000))
        daemon = self.start("--recent", "1h")
        client = daemon.subscriber()
        before = len(daemon.replay(session.path)[f"claude/-home-ada-api/{session.session}"])
        session.prompt("here again")
        client.wait_frame(type="turn.started", prompt="here again")
        texts = daemon.replay(session.path)[f"claude/-home-ada-api/{session.session}"]
        self.assert_same_events(texts[before:], client.event_texts()[f"claude/-home-ada-api/{session.session}"], "new events")
