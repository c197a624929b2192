"""What a subscription can request: recent events, new streams from their first event, each event once; and heartbeats."""
from support.harness import DaemonCase, wait_for
from support.transcripts import Session


class Heartbeat(DaemonCase):
    def test_an_idle_websocket_is_sent_heartbeats_after_its_welcome(self):
        client = self.configured('[limits]\nheartbeat = "300ms"\n').client()
        client.wait(lambda: len(client.all(type="heartbeat")) > 1, "two heartbeats")
        self.assertEqual(client.frames[0]["type"], "welcome")
        self.assertRegex(client.find(type="heartbeat")["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_the_welcome_states_the_size_of_the_largest_frame(self):
        client = self.start().client()
        self.assertEqual(client.wait_frame(type="welcome")["limits"]["outbound_bytes"], 16 << 20)


class SubscriptionCase(DaemonCase):
    def setUp(self):
        super().setUp()
        self.daemon = self.start()
        self.session = Session(self.root)


class Since(SubscriptionCase):
    def test_events_from_the_time_on_are_sent_then_a_bookmark_then_live_events(self):
        self.session.turn("old")
        before = self.daemon.client()
        before.subscribe(id="all", new_streams="beginning")
        before.wait_frame(type="bookmark", id="all")
        before.wait_frame(type="turn.finished")
        last = max(frame["time"] for frame in before.frames if "cursor" in frame and "time" in frame)
        client = self.daemon.client()
        client.subscribe(id="s", since=last)
        client.wait_frame(type="bookmark", id="s")
        times = {frame["time"] for frame in client.frames if "cursor" in frame and "time" in frame}
        self.assertEqual(times, {last})
        self.session.prompt("live")
        client.wait_frame(type="turn.started", prompt="live")

    def test_a_malformed_time_is_an_error(self):
        client = self.daemon.client()
        client.subscribe(id="s", since="yesterday", wait=False)
        self.assertEqual(client.wait_frame(type="error", id="s")["code"], "bad_message")


class NewStreams(SubscriptionCase):
    def test_the_streams_of_the_snapshot_are_sent_from_their_first_event(self):
        self.session.turn("before")
        wait_for(lambda: self.snapshot(self.daemon), "the session")
        client = self.daemon.client()
        client.subscribe(id="n", new_streams="beginning")
        client.wait_frame(type="bookmark", id="n")
        self.session.turn("after")
        client.wait(lambda: len(client.all(type="turn.finished")) == 2, "both turns")
        self.assertEqual([frame["prompt"] for frame in client.all(type="turn.started")], ["before", "after"])


class Once(SubscriptionCase):
    def test_a_second_subscription_that_resumes_repeats_nothing(self):
        self.session.turn("one")
        client = self.daemon.client()
        client.subscribe(id="a", new_streams="beginning")
        stream = client.wait_frame(type="turn.started")["stream"]
        client.subscribe(id="b", after=[stream + ":"], snapshot=False)
        client.wait_frame(type="bookmark", id="b")
        self.session.turn("two")
        client.wait(lambda: len(client.all(type="turn.finished")) == 2, "both turns")
        cursors = [frame["cursor"] for frame in client.frames if "cursor" in frame]
        self.assertEqual(len(cursors), len(set(cursors)))


class Unsubscribed(SubscriptionCase):
    def test_unsubscribe_is_acknowledged_and_no_event_follows(self):
        client, other = self.daemon.client(), self.daemon.client()
        for each in (client, other):
            each.subscribe(id="a")
        client.send(type="unsubscribe", id="a")
        client.wait_frame(type="unsubscribed", id="a")
        self.session.turn("after")
        other.wait_frame(type="turn.finished")
        client.subscribe(id="b", snapshot=False)
        self.assertFalse([frame for frame in client.frames if "cursor" in frame])
