"""What a subscription can request: recent events, new streams from their first event, each event once; and heartbeats."""
import os

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


class Pages(SubscriptionCase):
    """Six sessions that work, pages of two."""

    def setUp(self):
        super().setUp()
        self.sessions = {session.session: session for session in (self.held_open(each) for each in (self.session, *(Session(self.root) for _ in range(5))))}
        self.client = self.daemon.client()
        for name, session in self.sessions.items():
            session.prompt("go")
            wait_for(lambda: self.known(name), "the session")

    def known(self, name):
        """The session's frame, or None."""
        return next(iter(self.snapshot(self.daemon, filter={"session": [name]})), None)

    def page(self, **message):
        """Sends this message, or requests the next page; returns the names of the sessions until the next `page` frame, and that frame."""
        message = message or {"type": "next_page", "id": "p", "next": self.client.all(type="page")[-1]["next"]}
        pages, first = len(self.client.all(type="page")), len(self.client.frames)
        self.client.send(**message)
        self.client.wait(lambda: len(self.client.all(type="page")) > pages, "a page")
        frames = self.client.frames[first:]
        frames = frames[: next(at for at, frame in enumerate(frames) if frame["type"] == "page") + 1]
        return [frame["session"] for frame in frames[:-1] if frame["type"] == "session"], frames[-1]

    def subscribe(self):
        return self.page(type="subscribe", id="p", deliver="state", page=2)

    def test_every_session_is_sent_once_and_ready_follows_the_last_page(self):
        first, page = self.subscribe()
        self.assertEqual((len(first), page["rest"]["sessions"]), (2, 4))
        second, page = self.page()
        self.assertEqual((len(second), page["rest"]["sessions"]), (2, 2))
        self.assertIsNone(self.client.find(type="ready"))
        last, page = self.page()
        self.assertEqual((len(last), page["rest"]["sessions"], "next" in page), (2, 0, False))
        self.client.wait_frame(type="ready", id="p")
        self.assertEqual(sorted(first + second + last), sorted(self.sessions))

    def test_a_session_that_changes_is_sent_at_once_and_in_no_later_page(self):
        first, _ = self.subscribe()
        changed, removed = [name for name in self.sessions if name not in first][:2]
        self.sessions[changed].reply("done", stop_reason="end_turn")
        self.client.wait(lambda: any(frame["turn"].get("outcome") for frame in self.client.all(type="session", session=changed)), "the changed session")
        created = Session(self.root)
        created.prompt("new")
        self.client.wait_frame(type="session", session=created.session)
        os.unlink(self.sessions[removed].path)
        wait_for(lambda: not self.known(removed), "the removal")
        pages = []
        while "next" in self.client.all(type="page")[-1]:
            pages += self.page()[0]
        for name in (changed, created.session, removed, *first):
            self.assertNotIn(name, pages)
        known = {frame["session"] for frame in self.client.all(type="session")}
        self.assertLessEqual({*self.sessions, created.session} - {removed}, known)

    def test_a_stale_continuation_is_an_error_and_the_connection_continues(self):
        _, page = self.subscribe()
        self.page()
        for number, wrong in enumerate((page["next"], "", "0" * 16)):
            self.client.send(type="next_page", id="p", next=wrong)
            self.client.wait(lambda: len(self.client.all(type="error", id="p", code="bad_page")) == number + 1, "the error")
        self.page()
        self.client.wait_frame(type="ready", id="p")

    def test_pages_require_states_and_a_snapshot(self):
        for number, more in enumerate(({}, {"deliver": "events"}, {"deliver": "state", "snapshot": False})):
            self.client.send(type="subscribe", id=f"x{number}", page=2, **more)
            self.assertEqual(self.client.wait_frame(type="error", id=f"x{number}")["code"], "bad_message")

    def test_the_rest_and_the_sessions_add_up_to_what_was_used_today(self):
        for session in self.sessions.values():
            session.reply("done", stop_reason="end_turn", output=100)
        wait_for(lambda: all("day" in self.known(name) for name in self.sessions), "the tokens")
        first, page = self.subscribe()
        sent = [self.client.find(type="session", session=name) for name in first]
        if page["rest"]["day"]["since"] == sent[0]["day"]["since"]:  # it is not midnight now
            self.assertEqual(sum(frame["day"]["output"] for frame in sent) + page["rest"]["day"]["output"], 600)
        self.assertEqual(page["rest"]["day"]["sessions"], 4)


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
