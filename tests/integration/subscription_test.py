"""What a subscription can request: the recent past, new streams from their first event, each event once; and heartbeats."""
import json
import time

from doors import DoorCase
from sessions import Session


class Heartbeat(Case):
    limits = "[limits]\nheartbeat_ms = 300\n"

    def test_an_idle_websocket_is_sent_heartbeats_after_its_welcome(self):
        daemon = self.start("--config", self.write_config(self.limits))
        client = daemon.client()
        client.wait_frame(type="heartbeat")
        self.assertEqual(client.frames[0]["type"], "welcome")
        self.assertRegex(client.find(type="heartbeat")["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_the_welcome_states_the_largest_frame(self):
        client = self.start().client()
        self.assertEqual(client.wait_frame(type="welcome")["limits"]["outbound_bytes"], 16 << 20)


class Since(Case):
    def test_events_at_or_after_the_time_are_sent_then_a_bookmark_then_live_ones(self):
        daemon = self.start()
        session = Session(self.root)
        session.turn("old")
        first = daemon.client()
        first.subscribe(id="all", after=[], new_streams="beginning")
        first.wait_frame(type="bookmark", id="all")
        times = sorted({frame["time"] for frame in first.frames if "cursor" in frame and "time" in frame})
        client = daemon.client()
        client.subscribe(id="s", since=times[-1])
        client.wait_frame(type="bookmark", id="s")
        sent = [frame for frame in client.frames if "cursor" in frame and "time" in frame]
        self.assertTrue(sent)
        self.assertEqual({frame["time"] for frame in sent}, {times[-1]})
        session.prompt("live")
        client.wait(lambda: any(frame.get("prompt") == "live" for frame in client.frames), "the live event")

    def test_a_malformed_time_is_an_error(self):
        client = self.start().client()
        client.subscribe(id="s", since="yesterday")
        self.assertEqual(client.wait_frame(type="error", id="s")["code"], "bad_message")


class NewStreams(Case):
    def test_the_snapshots_streams_are_sent_from_their_first_event(self):
        daemon = self.start()
        session = Session(self.root)
        session.turn("before")
        client = daemon.client()
        client.subscribe(id="n", new_streams="beginning")
        client.wait_frame(type="bookmark", id="n")
        session.turn("after")
        client.wait(lambda: len(client.all(type="turn.finished")) == 2, "both turns")
        self.assertEqual([frame["prompt"] for frame in client.all(type="turn.started")], ["before", "after"])


class Once(Case):
    def test_a_second_subscription_that_resumes_repeats_nothing(self):
        daemon = self.start()
        session = Session(self.root)
        session.turn("one")
        client = daemon.client()
        client.subscribe(id="a", new_streams="beginning")
        client.wait_frame(type="bookmark", id="a")
        stream = client.find(type="turn.started")["stream"]
        client.subscribe(id="b", after=[stream + ":"], snapshot=False)
        client.wait_frame(type="bookmark", id="b")
        session.turn("two")
        client.wait(lambda: len(client.all(type="turn.finished")) == 2, "both turns")
        cursors = [frame["cursor"] for frame in client.frames if "cursor" in frame]
        self.assertEqual(len(cursors), len(set(cursors)))


class Unsubscribed(Case):
    def test_unsubscribe_is_acknowledged_and_nothing_follows(self):
        daemon = self.start()
        session = Session(self.root)
        client = daemon.client()
        client.subscribe(id="a")
        client.wait_frame(type="ready", id="a")
        client.send(type="unsubscribe", id="a")
        client.wait_frame(type="unsubscribed", id="a")
        known = len(client.frames)
        session.turn("unheard")
        client.subscribe(id="b")
        client.wait_frame(type="ready", id="b")
        self.assertFalse([frame for frame in client.frames[known:] if "cursor" in frame and frame.get("turn") == 1 and frame["type"] == "never"])
